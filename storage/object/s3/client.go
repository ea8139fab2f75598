package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

const (
	// attempts is how often a request is sent before its error is told: with the delays between, some 30 s. How many
	// are under way at once is bounded by package endpoint, so that the delays need not be long.
	attempts   = 16
	firstDelay = 100 * time.Millisecond // at most
	mostDelay  = 5 * time.Second

	// headerTimeout bounds the wait for the first byte of an answer. A server may work at the completion of an upload
	// for minutes, but sends white space meanwhile.
	headerTimeout = 60 * time.Second
)

// client returns a client of the service that the options say.
func client(ctx context.Context, o Options) (*awss3.Client, error) {
	address, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(httpClient()), config.WithRetryer(newRetryer), config.WithLogger(logging.Nop{}),
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	switch {
	case o.Anonymous:
		load = append(load, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	case o.AccessKeyID != "" || o.SecretAccessKey != "":
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, o.SessionToken)))
	}
	c, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("configuration of AWS: %w", err)
	}
	elsewhere := address != "" || c.BaseEndpoint != nil
	if c.Region == "" {
		if !elsewhere {
			return nil, errors.New("no region: set AWS_REGION, or aws_region of the storage options")
		}
		c.Region = "us-east-1"
	}
	return awss3.NewFromConfig(c, func(s *awss3.Options) {
		if address != "" {
			s.BaseEndpoint = aws.String(address)
		}
		if elsewhere {
			s.UsePathStyle = !o.VirtualHosted
			// Other services do not know AWS's newer checksums.
			s.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		}
		// Every part of a segment has a checksum of its own, which readers check.
		s.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		s.DisableLogOutputChecksumValidationSkipped = true
		s.HTTPClient = endpoint.New(s.HTTPClient) // not before: the configuration adds certificates to the SDK's client
	}), nil
}

// httpClient keeps as many idle connections as a reader has requests at once.
func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 8*object.RequestsAtOnce
		t.ResponseHeaderTimeout = headerTimeout
		t.ReadBufferSize, t.WriteBufferSize = 64<<10, 64<<10
		t.DisableCompression = true
	}).WithDialerOptions(func(d *net.Dialer) { d.Timeout = 10 * time.Second })
}

// pause waits before a request is sent again whose answer was good and said that some of it was not done.
func pause(ctx context.Context, attempt int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(delay(attempt)):
		return nil
	}
}

// delay is how long to wait before a request is sent again: up to twice as long each time.
func delay(attempt int) time.Duration {
	return rand.N(min(firstDelay<<min(attempt, 16), mostDelay))
}

// newRetryer returns the SDK's with more attempts and without a quota of tokens for all requests of a client, which one
// burst of 503 uses up. A 409 says that another request for the name was under way.
func newRetryer() aws.Retryer {
	return retry.AddWithErrorCodes(retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return delay(attempt - 1), nil
		})
		o.RateLimiter = ratelimit.None
	}), "ConditionalRequestConflict", "OperationAborted")
}
