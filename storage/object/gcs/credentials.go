package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// scope is what tokens allow: to read, write and delete objects, and to read what is set of a bucket.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// tokenTimeout bounds a request for a token.
const tokenTimeout = 30 * time.Second

// kinds are those of credentials that a file may have.
var kinds = map[google.CredentialsType]bool{
	google.ServiceAccount: true, google.AuthorizedUser: true, google.ExternalAccount: true,
	google.ExternalAccountAuthorizedUser: true, google.ImpersonatedServiceAccount: true,
}

// tokens are what requests are signed with. Safe for concurrent use.
type tokens struct {
	find func() (oauth2.TokenSource, error)

	// lock holds a token while the fields below are used, and while a token is fetched: requests wait for one, as long
	// as their contexts last.
	lock    chan struct{}
	source  oauth2.TokenSource
	had     bool      // there was a token: what is wrong now may go again
	last    string    // token that was signed with, as the header has it; empty: it was dropped
	dropped time.Time // when one was, the last time
	failed  error     // of the last try; nil: it gave a token

	tries   atomic.Uint64 // how often a token was asked for
	offline *atomic.Bool  // a request for a token got no answer since this was cleared
}

// tokensOf returns the tokens of what find finds.
func tokensOf(offline *atomic.Bool, find func() (oauth2.TokenSource, error)) *tokens {
	return &tokens{find: find, lock: make(chan struct{}, 1), offline: offline}
}

// A noting transport notes that a request got no answer. Some token sources do not say it in their errors.
type noting struct {
	http.RoundTripper
	offline *atomic.Bool
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.RoundTripper.RoundTrip(r)
	if err != nil {
		n.offline.Store(true)
	}
	return resp, err
}

// keptFor is how long a token is used at least that came in place of one that was refused: another would be refused
// too.
const keptFor = time.Minute

// newTokens returns the tokens of the credentials that the options or the environment name. It reads files, and makes
// no request.
func newTokens(client *http.Client, o Options) (*tokens, error) {
	offline := new(atomic.Bool)
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient,
		&http.Client{Transport: noting{client.Transport, offline}, Timeout: tokenTimeout})
	data, from := []byte(o.CredentialsJSON), "google_service_account_key"
	if len(data) == 0 {
		path, must := o.CredentialsFile, true
		if path == "" {
			path = os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
		}
		if path == "" {
			path, must = wellKnownFile(), false
		}
		var err error
		data, err = os.ReadFile(path)
		if err != nil && (must || !errors.Is(err, os.ErrNotExist)) {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		from = path
	}
	if len(data) == 0 {
		return tokensOf(offline, func() (oauth2.TokenSource, error) {
			return google.ComputeTokenSource("", scope), nil
		}), nil
	}
	var kind struct {
		Type google.CredentialsType
	}
	if err := json.Unmarshal(data, &kind); err != nil { // its own text may show what is there
		return nil, fmt.Errorf("credentials %s: want the JSON of a key, or what `gcloud auth "+
			"application-default login` writes", from)
	}
	if !kinds[kind.Type] {
		return nil, fmt.Errorf("credentials %s: type %q is not known: want the JSON of a key, or what `gcloud auth "+
			"application-default login` writes", from, kind.Type)
	}
	return tokensOf(offline, func() (oauth2.TokenSource, error) {
		c, err := google.CredentialsFromJSONWithType(ctx, data, kind.Type, scope)
		if err != nil {
			return nil, fmt.Errorf("credentials %s: %w", from, err)
		}
		return c.TokenSource, nil
	}), nil
}

// wellKnownFile is where gcloud writes credentials for programs.
func wellKnownFile() string {
	const name = "application_default_credentials.json"
	if dir := os.Getenv("CLOUDSDK_CONFIG"); dir != "" {
		return filepath.Join(dir, name)
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(os.Getenv("APPDATA"), "gcloud", name)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	return filepath.Join(home, ".config", "gcloud", name)
}

// errToken is an error of the request for a token.
type errToken struct {
	err    error
	denied bool // else it may go when tried again
}

func (e *errToken) Error() string { return "credentials: " + e.err.Error() }
func (e *errToken) Unwrap() error { return e.err }

// sign adds a token to a request. It fetches one when there is none, or the last is about to expire. A request that
// waits while another one asks has that one's answer, also where it is an error.
func (t *tokens) sign(r *http.Request) error {
	tries := t.tries.Load()
	select {
	case t.lock <- struct{}{}:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	if t.failed != nil && t.tries.Load() != tries {
		defer t.unlock()
		return t.failed
	}
	signed := make(chan error, 1)
	header := http.Header{}
	go func() { // the sources take no context: who asks may leave, and the token is for the next one
		defer t.unlock()
		t.failed = t.ask(header)
		t.tries.Add(1)
		signed <- t.failed
	}()
	select {
	case err := <-signed:
		if err == nil {
			r.Header.Set("Authorization", header.Get("Authorization"))
		}
		return err
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

func (t *tokens) unlock() { <-t.lock }

// ask puts a token into a header. The lock is held.
func (t *tokens) ask(header http.Header) error {
	if t.source == nil {
		source, err := t.find()
		if err != nil {
			return &errToken{err, true}
		}
		t.source = source
	}
	t.offline.Store(false)
	token, err := t.source.Token()
	if err == nil {
		t.had = true
		t.last = token.Type() + " " + token.AccessToken
		header.Set("Authorization", t.last)
		return nil
	}
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) {
		return &errToken{refusedToken(answer), !endpoint.Temporary(answer.Response.StatusCode)}
	}
	var network *url.Error
	final := !t.had && !errors.As(err, &network) && !t.offline.Load()
	return &errToken{fmt.Errorf("no token (is GOOGLE_APPLICATION_CREDENTIALS set?): %w", bare(err)), final}
}

// drop forgets a token that the service has refused, now and then before it expires. It reports whether requests are
// signed with another one now; not if ctx ends before that is known.
func (t *tokens) drop(ctx context.Context, refused string) bool {
	select {
	case t.lock <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer t.unlock()
	switch {
	case t.last != refused: // another request has dropped it
		return true
	case time.Since(t.dropped) < keptFor:
		return false
	}
	t.source, t.last, t.dropped = nil, "", time.Now() // the source has it, too
	return true
}

// refusedToken returns what a service says that gives no token, in one line.
func refusedToken(e *oauth2.RetrieveError) error {
	var told struct {
		Error       string
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(e.Body, &told) // a page, perhaps: then the status is all
	text := fmt.Sprintf("no token: %d %s %s", e.Response.StatusCode, told.Error, told.Description)
	return errors.New(strings.Join(strings.Fields(text), " "))
}
