package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// client returns a client of the service that the options say.
func client(ctx context.Context, o Options) (*awss3.Client, error) {
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(httpClient()), config.WithLogger(logging.Nop{}),
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	var static aws.CredentialsProvider
	switch {
	case o.Exchange != nil: // it is asked each time
	case o.Anonymous:
		static = aws.AnonymousCredentials{}
	case o.AccessKeyID != "" || o.SecretAccessKey != "":
		static = credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, o.SessionToken)
	}
	if static != nil {
		load = append(load, config.WithCredentialsProvider(static))
	}
	c, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("configuration of AWS: %w", err)
	}
	var changing *source
	switch {
	case static != nil:
	case o.Exchange != nil:
		changing = &source{find: func(context.Context) (aws.CredentialsProvider, error) {
			return aws.NewCredentialsCache(o.Exchange), nil
		}, from: aws.NewCredentialsCache(o.Exchange)}
	default:
		changing = &source{find: func(ctx context.Context) (aws.CredentialsProvider, error) {
			c, err := config.LoadDefaultConfig(ctx, load...)
			return c.Credentials, err
		}, from: c.Credentials}
	}
	if changing != nil {
		c.Credentials = changing
	}
	// A profile may have an endpoint for S3 alone, which is in no configuration but in the client's.
	address, err := o.endpoint(awss3.NewFromConfig(c).Options().BaseEndpoint)
	if err != nil {
		return nil, err
	}
	if c.Region == "" {
		if address == "" {
			return nil, errors.New("no region: set AWS_REGION, or aws_region of the storage options")
		}
		c.Region = "us-east-1"
	}
	return awss3.NewFromConfig(c, func(s *awss3.Options) {
		if address != "" {
			s.BaseEndpoint = aws.String(address)
			s.UsePathStyle = !o.VirtualHosted
			// Other services do not know AWS's newer checksums.
			s.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		}
		// Every part of a segment has a checksum of its own, which readers check.
		s.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		s.DisableLogOutputChecksumValidationSkipped = true
		s.APIOptions = append(s.APIOptions, retries(&atomic.Int64{}, changing), sayingSomething)
		// Not before: the configuration adds certificates to the SDK's client.
		s.HTTPClient = endpoint.New(staying(s.HTTPClient), schemes[0], kindOf)
	}), nil
}

// kindOf says what S3 bills a request as.
func kindOf(r *http.Request) object.Kind {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodDelete || r.Method == http.MethodPost && q.Has("delete"):
		return object.KindDelete
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		return object.KindWrite
	case q.Has("list-type") || q.Has("versions") || q.Has("uploads"):
		return object.KindList
	}
	return object.KindRead
}

// httpClient keeps as many idle connections as a reader has requests at once.
func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 8*object.RequestsAtOnce
		t.ResponseHeaderTimeout = endpoint.HeaderTimeout
		t.ReadBufferSize, t.WriteBufferSize = 64<<10, 64<<10
		t.DisableCompression = true
	}).WithDialerOptions(func(d *net.Dialer) { d.Timeout = 10 * time.Second })
}

// staying is the SDK's client, but that it follows no redirection: it would leave the credentials behind, and "access
// denied" be all that the other region says.
func staying(c awss3.HTTPClient) awss3.HTTPClient {
	b, ok := c.(*awshttp.BuildableClient)
	if !ok {
		return c
	}
	return &http.Client{
		Transport:     b.GetTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// retries gives each call of the SDK a retryer of its own: that of a client does not know when a call began. skew is
// what the client has found out of the service's clock. credentials are those that may change; nil: they do not.
func retries(skew *atomic.Int64, credentials *source) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		r := &retryer{Standard: retry.NewStandard(withoutQuota), retry: endpoint.NewRetry(), credentials: credentials}
		_, err := stack.Finalize.Swap((*retry.Attempt)(nil).ID(), retry.NewAttemptMiddleware(r,
			smithyhttp.RequestCloner, func(a *retry.Attempt) { a.ClientSkew = skew }))
		return err
	}
}

// withoutQuota takes away the quota of tokens for all requests of a client, which one burst of 503 uses up.
func withoutQuota(o *retry.StandardOptions) { o.RateLimiter = ratelimit.None }

// A retryer is the SDK's of one call, with how often and when of package endpoint.
type retryer struct {
	*retry.Standard
	retry       *endpoint.Retry
	credentials *source
	renewed     int             // so often for this call
	ctx         context.Context // of the call
}

// GetAttemptToken is called before each request.
func (r *retryer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	r.ctx = ctx
	return r.Standard.GetAttemptToken(ctx)
}

// IsErrorRetryable knows more than the SDK does: 408, 429, 409, which says that another request for the name was under
// way (by its status: an answer to a HEAD has no error code), an answer that broke off, and that credentials have
// changed. Every request may be sent again: a creation knows its own object, and the others say the same twice.
func (r *retryer) IsErrorRetryable(err error) bool {
	status, code := answer(err)
	if r.credentials != nil && r.renewed < refusals(status, code) {
		r.renewed++
		a := answerOf(err)
		return a != nil && a.Request != nil && r.credentials.renew(r.ctx, a.Request)
	}
	return r.Standard.IsErrorRetryable(err) || endpoint.Temporary(status) || status == http.StatusConflict ||
		brokeOff(err)
}

// brokeOff reports whether the body of an answer ended before its end, or stalled, which the SDK takes for an answer of
// nonsense.
func brokeOff(err error) bool {
	var syntax *xml.SyntaxError
	var stalled *endpoint.StallError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &stalled) ||
		errors.As(err, &syntax) && syntax.Msg == "unexpected EOF"
}

// sayingSomething makes an answer of 200 without a body one that broke off: the SDK takes it for an empty listing, or
// for deletions that all went well.
func sayingSomething(stack *middleware.Stack) error {
	return stack.Deserialize.Insert(middleware.DeserializeMiddlewareFunc("SayingSomething", func(ctx context.Context,
		in middleware.DeserializeInput, next middleware.DeserializeHandler,
	) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleDeserialize(ctx, in)
		switch middleware.GetOperationName(ctx) {
		case "ListObjectsV2", "ListObjectVersions", "ListMultipartUploads", "DeleteObjects":
			if a, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil && a.StatusCode == http.StatusOK {
				a.Body = &notEmpty{ReadCloser: a.Body}
			}
		}
		return out, metadata, err
	}), "OperationDeserializer", middleware.After)
}

// notEmpty is a body that has bytes, or breaks off.
type notEmpty struct {
	io.ReadCloser
	begun bool
}

func (b *notEmpty) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.begun = b.begun || n > 0
	if err == io.EOF && !b.begun {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// answerOf returns the answer that an error is about; nil: there was none.
func answerOf(err error) *http.Response {
	var response *awshttp.ResponseError
	if errors.As(err, &response) && response.HTTPResponse() != nil {
		return response.HTTPResponse().Response
	}
	return nil
}

// MaxAttempts leaves that to RetryDelay.
func (r *retryer) MaxAttempts() int { return 0 }

func (r *retryer) RetryDelay(_ int, err error) (time.Duration, error) {
	var header http.Header
	if a := answerOf(err); a != nil {
		header = a.Header
	}
	wait, ok := r.retry.Next(header)
	if !ok {
		return 0, &retry.MaxAttemptsError{Attempt: r.retry.Sent, Err: err}
	}
	return wait, nil
}
