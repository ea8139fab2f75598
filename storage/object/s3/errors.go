package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// wrap returns an error of a request about an object, which matches what a Store's errors match.
func (s *Store) wrap(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	if end := ctx.Err(); end != nil { // the SDK's own error of it does not match it
		return fmt.Errorf("object %s: %w", name, end)
	}
	status, code := answer(err)
	switch {
	case code == "NoSuchBucket":
		return fmt.Errorf("bucket %s %w: %w", s.at.Bucket, object.ErrNoBucket, short(err))
	case strings.Contains(err.Error(), noRole):
		return fmt.Errorf("object %s: %w: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "+
			"AWS_PROFILE%s", name, object.ErrDenied, whyNoRole(err))
	case status == http.StatusNotFound && code != noUpload:
		return fmt.Errorf("%w: %s", object.ErrNotFound, name)
	case status == http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %s", object.ErrExists, name)
	case redirected(status) || code == "AuthorizationHeaderMalformed":
		return fmt.Errorf("object %s: bucket %s is in another region than %s: set AWS_REGION: %w", name, s.at.Bucket,
			s.client.Options().Region, short(err))
	case code == "InvalidObjectState":
		return fmt.Errorf("object %s: it is archived by its storage class: restore it: %w", name, short(err))
	case status == http.StatusForbidden || status == http.StatusUnauthorized || strings.HasSuffix(code, "Token"):
		return fmt.Errorf("object %s: %w: %w", name, object.ErrDenied, short(err))
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || code == "SlowDown":
		return fmt.Errorf("object %s: %w: %w", name, object.ErrThrottled, short(err))
	}
	return fmt.Errorf("object %s: %w", name, short(err))
}

// redirected reports whether a status says that a bucket is elsewhere: 307 that of one made lately, which the service's
// names do not lead to yet.
func redirected(status int) bool {
	return status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect
}

// noRole begins what the SDK says of the last place where it looks for credentials: the role of a machine of EC2.
const noRole = "no EC2 IMDS role found, "

// whyNoRole says why a machine gives no role, which it may have: a container may not reach what knows it. Where the
// environment says that it is not to be asked, that is nothing.
func whyNoRole(err error) string {
	_, why, _ := strings.Cut(err.Error(), noRole)
	if strings.Contains(why, "AWS_EC2_METADATA_DISABLED") {
		return ""
	}
	return "; this machine gives no role: " + why
}

// answer returns the status and the error code that the service answered with: 0 and "" where it did not.
func answer(err error) (status int, code string) {
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	return status, code
}

// short is an error of the SDK without the operation and the request's ids around it, which say nothing to who reads
// it; where there is an id, support asks for it.
func short(err error) error {
	var api smithy.APIError
	var response *awshttp.ResponseError
	if !errors.As(err, &api) {
		attempts := 1
		var tries *retry.MaxAttemptsError
		if errors.As(err, &tries) {
			attempts, err = tries.Attempt, tries.Err
		}
		var request *url.Error // the SDK's own words are around it
		if errors.As(err, &request) {
			err = request
		}
		if err = remote.Lost(err); attempts > 1 {
			return fmt.Errorf("after %d attempts: %w", attempts, err)
		}
		return err
	}
	text := api.ErrorCode()
	if m := api.ErrorMessage(); m != "" {
		text += ": " + m
	}
	if errors.As(err, &response) && response.ServiceRequestID() != "" {
		text += " (request " + response.ServiceRequestID() + ")"
	}
	return errors.New(text)
}
