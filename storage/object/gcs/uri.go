package gcs

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/dsistore/dsistore/storage/object/remote"
)

// A Location is where a store lies: a bucket, and the prefix of its objects' names, which ends with a slash or is
// empty.
type Location struct {
	Bucket, Prefix string
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// ParseURI parses gs://bucket/prefix.
func ParseURI(uri string) (Location, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return Location{}, fmt.Errorf("not a URI of Google Cloud Storage: want gs://bucket/prefix")
	case u.Scheme != "gs" && u.Scheme != "gcs":
		return Location{}, fmt.Errorf("scheme %q: want gs://bucket/prefix", u.Scheme)
	case u.User != nil:
		return Location{}, fmt.Errorf("credentials in a URI would be logged: give GOOGLE_APPLICATION_CREDENTIALS")
	case u.RawQuery != "" || u.Fragment != "":
		return Location{}, fmt.Errorf("options in a URI are not read: give them by environment variables or options")
	case !bucketName.MatchString(u.Host):
		return Location{}, fmt.Errorf("%q is no name of a bucket: want gs://bucket/prefix", u.Host)
	}
	prefix, err := remote.ParsePrefix(u.Path)
	if err != nil {
		return Location{}, err
	}
	return Location{Bucket: u.Host, Prefix: prefix}, nil
}

// URI returns gs://bucket/prefix, without a slash at its end.
func (l Location) URI() string {
	return "gs://" + strings.TrimSuffix(l.Bucket+"/"+l.Prefix, "/")
}

// Options say how the service is reached. The zero value asks the environment for everything, as Google's own programs
// do.
type Options struct {
	// Endpoint is the URL of a service that is not Google's. Empty: that of Emulator, or Google's.
	Endpoint string
	// Emulator is the address of an emulator, as STORAGE_EMULATOR_HOST has it: with or without a scheme. Empty:
	// STORAGE_EMULATOR_HOST.
	Emulator string
	// CredentialsFile is the path of a file with credentials: of a service account, a user or workload identity. Empty:
	// GOOGLE_APPLICATION_CREDENTIALS, the file that `gcloud auth application-default login` writes, or the machine's
	// metadata server.
	CredentialsFile string
	// CredentialsJSON is what such a file has. It is used instead of one.
	CredentialsJSON string
	// Anonymous requests carry no credentials: public buckets. So are all to an emulator or an endpoint without TLS.
	Anonymous bool
	// AllowHTTP allows an endpoint without TLS, which loopback addresses need no leave for.
	AllowHTTP bool
}

// keys are the names of options, those of the object_store library and of gcsfs.
var keys = remote.Keys[Options]{
	"google_base_url":            func(o *Options, v string) error { o.Endpoint = v; return nil },
	"google_service_account":     func(o *Options, v string) error { o.CredentialsFile = v; return nil },
	"google_service_account_key": func(o *Options, v string) error { o.CredentialsJSON = v; return nil },
	"google_skip_signature":      remote.Truth(func(o *Options) *bool { return &o.Anonymous }),
	"google_allow_http":          remote.Truth(func(o *Options) *bool { return &o.AllowHTTP }),
	"storage_emulator_host":      func(o *Options, v string) error { o.Emulator = v; return nil },
}

// aliases are other names of options.
var aliases = map[string]string{
	"endpoint": "google_base_url", "endpoint_url": "google_base_url", "base_url": "google_base_url",
	"google_endpoint_url":     "google_base_url",
	"service_account":         "google_service_account",
	"service_account_path":    "google_service_account",
	"application_credentials": "google_service_account", "google_application_credentials": "google_service_account",
	"google_service_account_path": "google_service_account",
	"service_account_key":         "google_service_account_key",
	"skip_signature":              "google_skip_signature", "anon": "google_skip_signature",
	"allow_http": "google_allow_http",
}

// ParseOptions reads options by the names that other libraries have for them, in any case. Unknown ones are an error
// that does not show values.
func ParseOptions(given map[string]string) (Options, error) { return keys.Parse(given, aliases) }

// service is Google's own endpoint.
const service = "https://storage.googleapis.com"

// endpoint returns the URL of the service, and whether its requests carry credentials.
func (o *Options) endpoint() (u *url.URL, signed bool, err error) {
	endpoint, emulator := o.Endpoint, o.Emulator
	if emulator == "" {
		emulator = os.Getenv("STORAGE_EMULATOR_HOST")
	}
	allowed := o.AllowHTTP
	emulated := endpoint == "" && emulator != ""
	switch {
	case endpoint != "":
	case !emulated:
		endpoint = service
	default: // no credentials go there
		if endpoint = emulator; !strings.Contains(endpoint, "://") {
			endpoint = "http://" + endpoint
		}
		allowed = true
	}
	u, err = remote.ParseEndpoint(strings.TrimSuffix(endpoint, "/"), allowed, "google_allow_http=true")
	if err != nil {
		return nil, false, err
	}
	return u, !o.Anonymous && !emulated && u.Scheme == "https", nil
}
