package azure

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// client returns a client of the container that the options say. seen sees all its answers.
func client(at Location, o Options, seen policy.Policy) (*container.Client, error) {
	o, err := o.resolve(at)
	if err != nil {
		return nil, err
	}
	url := o.Endpoint + "/" + at.Container
	with := &container.ClientOptions{ClientOptions: clientOptions(transport)}
	with.Retry.MaxRetries = -1 // of the SDK: none
	with.PerCallPolicies = []policy.Policy{version{}, retries{}}
	with.PerRetryPolicies = []policy.Policy{seen, batches{}}
	switch {
	case o.Key != "":
		key, err := container.NewSharedKeyCredential(o.Account, o.Key)
		if err != nil { // its text has a part of the key
			return nil, errors.New("the account's key is not in base64")
		}
		return container.NewClientWithSharedKeyCredential(url, key, with)
	case o.SAS != "":
		return container.NewClientWithNoCredential(url+"?"+o.SAS, with)
	case o.Anonymous:
		return container.NewClientWithNoCredential(url, with)
	}
	token, err := o.token()
	if err != nil {
		return nil, fmt.Errorf("credentials of Azure: %w", err)
	}
	return container.NewClient(url, token, with)
}

// token returns what asks for tokens, and asks again before they expire.
func (o *Options) token() (azcore.TokenCredential, error) {
	with := clientOptions(credentials)
	switch {
	case o.ClientSecret != "":
		return azidentity.NewClientSecretCredential(o.TenantID, o.ClientID, o.ClientSecret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: with})
	case o.TokenFile != "":
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: with, TenantID: o.TenantID, ClientID: o.ClientID, TokenFilePath: o.TokenFile,
		})
	case o.ClientID != "":
		return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{
			ClientOptions: with, ID: azidentity.ClientID(o.ClientID),
		})
	}
	return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: with, TenantID: o.TenantID,
	})
}

// clientOptions are those of requests for tokens, too, which have the SDK's retries.
func clientOptions(through policy.Transporter) azcore.ClientOptions {
	return azcore.ClientOptions{
		Transport: through, Telemetry: policy.TelemetryOptions{ApplicationID: "dsistore"},
	}
}

// serviceVersion is the first whose listings begin at a name (startFrom). That of the SDK is newer, and a service may
// not have it yet: it refuses all requests then.
const serviceVersion = "2026-02-06"

// version asks for serviceVersion. It comes before requests are signed.
type version struct{}

func (version) Do(req *policy.Request) (*http.Response, error) {
	req.Raw().Header["x-ms-version"] = []string{serviceVersion} // the SDK's own, which has no capitals
	return req.Next()
}

// retries sends a request again, as endpoint.Retry says, that was not answered, or with a status that passes.
type retries struct{}

func (retries) Do(req *policy.Request) (*http.Response, error) {
	retry, ctx := endpoint.NewRetry(), req.Raw().Context()
	for {
		if err := req.RewindBody(); err != nil {
			return nil, err
		}
		resp, err := req.Clone(ctx).Next()
		var header http.Header
		switch {
		case ctx.Err() != nil, err != nil && !temporary(err), err == nil && !endpoint.Temporary(resp.StatusCode):
			return resp, err
		case err == nil:
			header = resp.Header
		}
		wait, ok := retry.Next(header)
		if !ok || retry.Sent >= unknownTries && unknownHost(err) {
			if err != nil {
				err = fmt.Errorf("after %d attempts: %w", retry.Sent, short(err))
			}
			return resp, err
		}
		runtime.Drain(resp) // until then it counts among the requests that are under way
		if !endpoint.Sleep(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// unknownTries is how often a host is looked up that there is not: its name has the account's, which may be misspelt.
const unknownTries = 3

func unknownHost(err error) bool {
	var lookup *net.DNSError
	return errors.As(err, &lookup) && lookup.IsNotFound
}

// temporary reports whether a request without an answer may get one: not where there is no credential, and not of a
// service whose certificate is not trusted.
func temporary(err error) bool {
	var credential *azidentity.AuthenticationFailedError
	if errors.As(err, &credential) {
		return credential.RawResponse != nil && endpoint.Temporary(credential.RawResponse.StatusCode)
	}
	var certificate *tls.CertificateVerificationError
	var final interface{ NonRetriable() }
	return !errors.As(err, &certificate) && !errors.As(err, &final)
}

// batches reads answers about several deletions whole: the SDK does not close their bodies, and until somebody does
// they count among the requests that are under way.
type batches struct{}

func (batches) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err == nil && req.Raw().URL.Query().Get("comp") == "batch" {
		_, err = runtime.Payload(resp)
	}
	return resp, err
}

// kindOf says what the service bills a request as.
func kindOf(r *http.Request) object.Kind {
	comp := r.URL.Query().Get("comp")
	switch {
	case r.Method == http.MethodDelete || comp == "batch":
		return object.KindDelete
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		return object.KindWrite
	case comp == "list":
		return object.KindList
	}
	return object.KindRead
}

// transport is that of requests to stores, credentials that of requests for tokens.
var (
	transport   policy.Transporter = endpoint.New(httpClient, "az", kindOf)
	credentials policy.Transporter = endpoint.New(httpClient, "", nil)
)

// httpClient is shared by all stores.
var httpClient = &http.Client{Transport: endpoint.Transport()}
