package azure

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// wrap returns an error of a request about an object, which matches what a Store's errors match.
func (s *Store) wrap(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	if end := ctx.Err(); end != nil {
		return fmt.Errorf("object %s: %w", name, end)
	}
	status, code := answer(err)
	var credential *azidentity.AuthenticationFailedError
	switch {
	case code == bloberror.ContainerNotFound || code == bloberror.ContainerBeingDeleted:
		return fmt.Errorf("container %s %w: %w", s.at.Container, object.ErrNoBucket, short(err))
	case status == http.StatusNotFound:
		return fmt.Errorf("%w: %s", object.ErrNotFound, name)
	case code == bloberror.LeaseIDMissing || code == bloberror.LeaseIDMismatchWithBlobOperation:
		return fmt.Errorf("object %s: somebody holds a lease on the blob: %w", name, short(err))
	case code == bloberror.BlobAlreadyExists || status == http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %s", object.ErrExists, name)
	case status == http.StatusForbidden || status == http.StatusUnauthorized || errors.As(err, &credential) ||
		code == bloberror.BlobImmutableDueToPolicy || code == bloberror.InvalidAuthenticationInfo:
		return fmt.Errorf("object %s: %w: %w", name, object.ErrDenied, short(err))
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests ||
		code == bloberror.ServerBusy:
		return fmt.Errorf("object %s: %w: %w", name, object.ErrThrottled, short(err))
	}
	return fmt.Errorf("object %s: %w", name, short(err))
}

// answer returns the status and the error code that the service answered with: 0 and "" where it did not.
func answer(err error) (status int, code bloberror.Code) {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.StatusCode, bloberror.Code(response.ErrorCode)
	}
	return 0, ""
}

// short is an error of the SDK without the request's URL, which may have a signature, and the answer's headers and
// body, but for a reason that shows no secret; where there is an id, support asks for it.
func short(err error) error {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		text := response.ErrorCode
		if text == "" {
			text = fmt.Sprintf("status %d", response.StatusCode)
		}
		if why := reason(response.RawResponse); why != "" {
			text += ": " + why
		}
		if r := response.RawResponse; r != nil && r.Header.Get("X-Ms-Request-Id") != "" {
			text += " (request " + r.Header.Get("X-Ms-Request-Id") + ")"
		}
		return errors.New(text)
	}
	var transport *url.Error
	if errors.As(err, &transport) {
		return remote.Lost(transport.Err)
	}
	var credential *azidentity.AuthenticationFailedError
	if errors.As(err, &credential) { // its other lines are the answer's
		first, _, _ := strings.Cut(credential.Error(), "\n")
		return errors.New(first)
	}
	return remote.Lost(err)
}

// reasons begin the details of an answer that may be shown. Others have what was signed, and with what.
var reasons = []string{"Signature not valid in the specified time frame", "Request date header too old"}

// reason returns what an answer's body says of why a request was refused, in one line: of its time, by the clocks of
// both sides, or which header it was. Empty: nothing that may be shown.
func reason(r *http.Response) string {
	if r == nil {
		return ""
	}
	body, err := runtime.Payload(r) // the SDK has read it
	if err != nil {
		return ""
	}
	var told struct {
		Detail string `xml:"AuthenticationErrorDetail"`
		Header string `xml:"HeaderName"`
	}
	if xml.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &told) != nil {
		return ""
	}
	why := ""
	for _, begin := range reasons {
		if strings.HasPrefix(told.Detail, begin) {
			why = told.Detail
		}
	}
	if told.Header != "" {
		why = strings.TrimPrefix(why+"; header "+told.Header, "; ")
	}
	if why = strings.Join(strings.Fields(why), " "); len(why) > maxReason {
		why = why[:maxReason] + "..."
	}
	return why
}

// maxReason is of how many bytes a reason is shown.
const maxReason = 300
