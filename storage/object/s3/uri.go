package s3

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/dsistore/dsistore/storage/object/remote"
)

// A Location is where a store lies: a bucket, and the prefix of its objects' keys, which ends with a slash or is empty.
type Location struct {
	Bucket, Prefix string
}

// ParseURI parses s3://bucket/prefix.
func ParseURI(uri string) (Location, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return Location{}, fmt.Errorf("not a URI of S3: want s3://bucket/prefix")
	case u.Scheme != "s3" && u.Scheme != "s3a" && u.Scheme != "s3n":
		return Location{}, fmt.Errorf("scheme %q: want s3://bucket/prefix", u.Scheme)
	case u.User != nil:
		return Location{}, fmt.Errorf("credentials in a URI would be logged: give AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY, or a profile")
	case u.RawQuery != "" || u.Fragment != "":
		return Location{}, fmt.Errorf("options in a URI are not read: give them by environment variables or options")
	case u.Host == "":
		return Location{}, fmt.Errorf("no bucket: want s3://bucket/prefix")
	case strings.HasSuffix(u.Host, "--x-s3") || strings.HasSuffix(u.Host, "--xa-s3"): // the latter is an access point
		return Location{}, fmt.Errorf("bucket %s is a directory bucket (S3 Express): it lists names in no order, "+
			"which a store needs; use a general purpose bucket", u.Host)
	}
	prefix, err := remote.ParsePrefix(u.Path)
	if err != nil {
		return Location{}, err
	}
	return Location{Bucket: u.Host, Prefix: prefix}, nil
}

// URI returns s3://bucket/prefix, without a slash at its end.
func (l Location) URI() string {
	return "s3://" + strings.TrimSuffix(l.Bucket+"/"+l.Prefix, "/")
}

// Options say how a service is reached. The zero value asks the environment for everything, as the AWS command line
// does.
type Options struct {
	// Endpoint is the URL of a service that is not AWS's. Empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_ENDPOINT,
	// or the profile's.
	Endpoint string
	// Region; empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's, or us-east-1 with an endpoint.
	Region  string
	Profile string // empty: AWS_PROFILE
	// AccessKeyID and SecretAccessKey are used instead of the environment's credentials, with SessionToken if that is
	// not empty.
	AccessKeyID, SecretAccessKey, SessionToken string
	// Exchange gives the credentials instead. nil: it does not.
	Exchange *Exchange
	// Anonymous requests are not signed: public buckets.
	Anonymous bool
	// AllowHTTP allows an endpoint without TLS, which loopback addresses need no leave for.
	AllowHTTP bool
	// VirtualHosted asks for the bucket in the host's name; the default with an endpoint is in the path, as MinIO and
	// most others need it. AWS always has it in the host's name.
	VirtualHosted bool
}

// keys are the names of options, those of the object_store library and of fsspec.
var keys = remote.Keys[Options]{
	"aws_endpoint":          func(o *Options, v string) error { o.Endpoint = v; return nil },
	"aws_region":            func(o *Options, v string) error { o.Region = v; return nil },
	"aws_profile":           func(o *Options, v string) error { o.Profile = v; return nil },
	"aws_access_key_id":     func(o *Options, v string) error { o.AccessKeyID = v; return nil },
	"aws_secret_access_key": func(o *Options, v string) error { o.SecretAccessKey = v; return nil },
	"aws_session_token":     func(o *Options, v string) error { o.SessionToken = v; return nil },
	// The name of an Exchange. Of a program in Python it stands for a function.
	"aws_credential_provider":          func(o *Options, v string) error { o.Exchange = ExchangeOf(v); return nil },
	"aws_skip_signature":               remote.Truth(func(o *Options) *bool { return &o.Anonymous }),
	"aws_allow_http":                   remote.Truth(func(o *Options) *bool { return &o.AllowHTTP }),
	"aws_virtual_hosted_style_request": remote.Truth(func(o *Options) *bool { return &o.VirtualHosted }),
}

// aliases are other names of options.
var aliases = map[string]string{
	"endpoint": "aws_endpoint", "endpoint_url": "aws_endpoint", "aws_endpoint_url": "aws_endpoint",
	"aws_endpoint_url_s3": "aws_endpoint",
	"region":              "aws_region", "aws_default_region": "aws_region", "region_name": "aws_region",
	"profile":       "aws_profile",
	"access_key_id": "aws_access_key_id", "key": "aws_access_key_id",
	"secret_access_key": "aws_secret_access_key", "secret": "aws_secret_access_key",
	"session_token": "aws_session_token", "token": "aws_session_token", "aws_token": "aws_session_token",
	"credential_provider": "aws_credential_provider",
	"skip_signature":      "aws_skip_signature", "anon": "aws_skip_signature",
	"allow_http":                   "aws_allow_http",
	"virtual_hosted_style_request": "aws_virtual_hosted_style_request",
}

// ParseOptions reads options by the names that other libraries have for them, in any case. Unknown ones are an error
// that does not show values.
func ParseOptions(given map[string]string) (Options, error) {
	o, err := keys.Parse(given, aliases)
	switch {
	case err != nil:
	case o.AccessKeyID != "" && o.SecretAccessKey == "":
		err = errors.New("storage option aws_access_key_id is given without aws_secret_access_key")
	case o.AccessKeyID == "" && o.SecretAccessKey != "":
		err = errors.New("storage option aws_secret_access_key is given without aws_access_key_id")
	}
	return o, err
}

// endpoint returns the URL of the service, or "" for AWS's. configured is what the SDK has found in the environment and
// the profile, or nil.
func (o *Options) endpoint(configured *string) (string, error) {
	endpoint := o.Endpoint
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"} {
		if endpoint == "" {
			endpoint = os.Getenv(name)
		}
	}
	if endpoint == "" && configured != nil {
		endpoint = *configured
	}
	if endpoint == "" {
		return "", nil
	}
	allowed, _ := remote.ParseTruth(os.Getenv("AWS_ALLOW_HTTP"))
	if _, err := remote.ParseEndpoint(endpoint, o.AllowHTTP || allowed,
		"aws_allow_http=true (or AWS_ALLOW_HTTP)"); err != nil {
		return "", err
	}
	return endpoint, nil
}
