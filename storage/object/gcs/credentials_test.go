package gcs

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// issuer is a service that gives tokens, each valid for some seconds, and one that has objects and wants the last.
type issuer struct {
	*httptest.Server
	seconds int
	status  int // answered to those who ask for a token; 0: it gets one
	issued  atomic.Int64
	asked   atomic.Int64  // for a token
	hangs   chan struct{} // closed: who asks for a token gets an answer again; nil: always
}

func newIssuer(t *testing.T, seconds int) *issuer {
	i := &issuer{seconds: seconds}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" && i.hangs != nil {
			<-i.hangs
		}
		switch {
		case r.URL.Path == "/token" && i.status != 0:
			i.asked.Add(1)
			w.WriteHeader(i.status)
			fmt.Fprint(w, `{"error": "invalid_grant", "error_description": "no such account"}`)
		case r.URL.Path == "/token":
			i.asked.Add(1)
			fmt.Fprintf(w, `{"access_token": "token-%d", "token_type": "Bearer", "expires_in": %d}`, i.issued.Add(1),
				i.seconds)
		case r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-%d", i.issued.Load()):
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fmt.Fprint(w, `{"name": "a", "size": "7", "generation": "1", "timeCreated": "2026-01-01T00:00:00Z"}`)
		}
	}))
	t.Cleanup(i.Close)
	return i
}

// open returns a store of the service, which trusts its certificate.
func (i *issuer) open(t *testing.T, o Options) *Store {
	t.Helper()
	o.Endpoint = i.URL
	s, err := Open("gs://b/store", o)
	if err != nil {
		t.Fatal(err)
	}
	s.client.Transport.(*http.Transport).TLSClientConfig = i.Client().Transport.(*http.Transport).TLSClientConfig
	return s
}

// key returns the JSON of a service account's key.
func (i *issuer) key(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@example", "token_uri": i.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
		})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Requests carry a token, which is fetched again when it has expired, and not before.
func TestTokens(t *testing.T) {
	for seconds, want := range map[int]int64{3600: 1, 5: 3} { // one that has less than 10 s is not used again
		i := newIssuer(t, seconds)
		s := i.open(t, Options{CredentialsJSON: i.key(t)})
		for range 3 {
			if info, err := s.Stat(t.Context(), "a"); err != nil || info.Size != 7 {
				t.Fatal(info, err)
			}
		}
		if got := i.issued.Load(); got != want {
			t.Errorf("tokens of %d s: %d", seconds, got)
		}
	}
}

// A token that the service refuses before it expires is fetched anew, once for all requests that carry it. One that is
// refused soon after that is not.
func TestRevokedToken(t *testing.T) {
	i := newIssuer(t, 3600)
	s := i.open(t, Options{CredentialsJSON: i.key(t)})
	if _, err := s.Stat(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	i.issued.Add(1) // to somebody else: the last is the only one that is taken
	err := object.Parallel(t.Context(), 16, 16, func(ctx context.Context, _ int) error {
		_, err := s.Stat(ctx, "a")
		return err
	})
	if err != nil || i.asked.Load() != 2 {
		t.Errorf("asked for %d tokens: %v", i.asked.Load(), err)
	}
	i.issued.Add(1)
	if _, err := s.Stat(t.Context(), "a"); !errors.Is(err, object.ErrDenied) || i.asked.Load() != 2 {
		t.Errorf("asked for %d tokens: %v", i.asked.Load(), err)
	}
	s.tokens.dropped = time.Now().Add(-keptFor)
	if _, err := s.Stat(t.Context(), "a"); err != nil || i.asked.Load() != 3 {
		t.Errorf("asked for %d tokens: %v", i.asked.Load(), err)
	}
}

// While a token does not come, requests wait no longer than their contexts last. The one that asked for it leaves, too;
// the token is for the next ones.
func TestTokenThatDoesNotCome(t *testing.T) {
	i := newIssuer(t, 3600)
	i.hangs = make(chan struct{})
	s := i.open(t, Options{CredentialsJSON: i.key(t)})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := object.Parallel(context.WithoutCancel(ctx), 64, 64, func(context.Context, int) error {
		if _, err := s.Stat(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("without a token: %w", err)
		}
		return nil
	})
	if s.tokens.drop(ctx, "the one before") {
		t.Error("a refused token is dropped while another one does not come")
	}
	if took := time.Since(begin); err != nil || took > 5*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	close(i.hangs)
	if _, err := s.Stat(t.Context(), "a"); err != nil || i.asked.Load() != 1 {
		t.Errorf("asked for %d tokens: %v", i.asked.Load(), err)
	}
}

// A connection that is not made is no reason to give up, though the first token was asked for.
func TestFirstTokenOverABadNetwork(t *testing.T) {
	i := newIssuer(t, 3600)
	key := i.key(t)
	s := i.open(t, Options{CredentialsJSON: strings.Replace(key, i.URL, "https://127.0.0.1:1", 1)})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, i.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	var told *errToken
	if err := s.tokens.sign(r); !errors.As(err, &told) || told.denied {
		t.Errorf("%v", err)
	}
}

// Credentials come from options, from GOOGLE_APPLICATION_CREDENTIALS, or from where gcloud writes them.
func TestSources(t *testing.T) {
	i := newIssuer(t, 3600)
	dir := t.TempDir()
	file := filepath.Join(dir, "application_default_credentials.json")
	if err := os.WriteFile(file, []byte(i.key(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variable, value, file string }{
		{"GOOGLE_APPLICATION_CREDENTIALS", file, ""}, {"CLOUDSDK_CONFIG", dir, ""},
		{"GOOGLE_APPLICATION_CREDENTIALS", "not used", file},
	} {
		for _, name := range []string{"GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "STORAGE_EMULATOR_HOST"} {
			t.Setenv(name, "")
		}
		t.Setenv(c.variable, c.value)
		if _, err := i.open(t, Options{CredentialsFile: c.file}).Stat(t.Context(), "a"); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The metadata server of a machine is asked where there are no other credentials.
func TestMetadataServer(t *testing.T) {
	i := newIssuer(t, 3600)
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/instance/service-accounts/default/token") ||
			r.Header.Get("Metadata-Flavor") != "Google" {
			t.Error(r.URL)
		}
		fmt.Fprintf(w, `{"access_token": "token-%d", "token_type": "Bearer", "expires_in": 3600}`, i.issued.Add(1))
	}))
	t.Cleanup(machine.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(machine.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("CLOUDSDK_CONFIG", t.TempDir())
	if _, err := i.open(t, Options{}).Stat(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// Anonymous requests carry no token.
func TestAnonymous(t *testing.T) {
	i := newIssuer(t, 3600)
	s := i.open(t, Options{CredentialsJSON: i.key(t), Anonymous: true})
	if _, err := s.Stat(t.Context(), "a"); !errors.Is(err, object.ErrDenied) || i.asked.Load() != 0 {
		t.Error(err)
	}
}

// An account that gets no token is denied at once; one whose service is busy is asked for again. Neither shows the key.
func TestNoToken(t *testing.T) {
	i := newIssuer(t, 3600)
	key := i.key(t)
	s := i.open(t, Options{CredentialsJSON: key})
	i.status = http.StatusBadRequest
	_, err := s.Stat(t.Context(), "a")
	if !errors.Is(err, object.ErrDenied) || !strings.Contains(err.Error(), "no such account") || i.asked.Load() != 1 {
		t.Errorf("asked %d times: %v", i.asked.Load(), err)
	}
	i.status = http.StatusServiceUnavailable
	i.asked.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.Stat(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || i.asked.Load() < 2 {
		t.Errorf("asked %d times: %v", i.asked.Load(), err)
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "KEY") {
		t.Error(err)
	}
	broken := strings.Replace(key, "BEGIN RSA", "BEGIN", 1)
	s = i.open(t, Options{CredentialsJSON: strings.Replace(broken, "MII", "hush", 1)})
	if _, err := s.Stat(t.Context(), "a"); err == nil || strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
	for _, data := range []string{"hush", `{"type": "hush`, `{"client_secret": "hush"}`} {
		_, err := Open("gs://b", Options{Endpoint: i.URL, CredentialsJSON: data})
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", data, err)
		}
	}
}
