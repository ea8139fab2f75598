package objectserver

import (
	"context"
	"encoding/json"
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
)

// A Rotating is a server of S3 whose credentials change: what is signed with older ones is refused, but for those that
// were the newest a tenth of the time ago.
type Rotating struct {
	Endpoint string // of what refuses
	URL      string // gives the newest credentials, in the form of a container's, and of a credential_process
	Region   string

	begun   time.Time
	every   time.Duration
	refused atomic.Int64
}

// accounts is how many credentials there are, one after another.
const accounts = 64

// StartRotating starts a server with empty buckets, whose credentials change after each time so long. It ends with the
// test, which is skipped where the server cannot be had.
func StartRotating(t testing.TB, every time.Duration, buckets ...string) *Rotating {
	t.Helper()
	if _, err := build(pinned, versitygw); err != nil {
		skip(t, "S3", err)
	}
	r, stop, err := RunRotating(t.Context(), t.TempDir(), every, buckets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return r
}

// RunRotating is StartRotating outside of tests: with files in dir, until stop is called.
func RunRotating(ctx context.Context, dir string, every time.Duration, buckets ...string) (*Rotating, func(), error) {
	path, err := build(pinned, versitygw)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]any{}
	for i := range accounts {
		all[accessKey(i)] = map[string]any{"access": accessKey(i), "secret": secretKey(i), "role": "admin"}
	}
	users, err := json.Marshal(map[string]any{"accessAccounts": all})
	iam := filepath.Join(dir, "iam")
	if err = errors.Join(err, os.MkdirAll(iam, 0o755), os.WriteFile(filepath.Join(iam, "users.json"), users,
		0o600)); err != nil {
		return nil, nil, err
	}
	s, stop, err := runS3(ctx, path, dir, buckets, "--iam-dir", iam)
	if err != nil {
		return nil, nil, err
	}
	proxy, stopProxy, err := RunProxy(s.Endpoint)
	if err != nil {
		stop()
		return nil, nil, err
	}
	r := &Rotating{Endpoint: proxy.URL, Region: s.Region, begun: time.Now(), every: every}
	proxy.Break(r.refuse)
	gives := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(r.Newest())
	}))
	r.URL = gives.URL
	return r, func() {
		gives.Close()
		stopProxy()
		stop()
	}, nil
}

func accessKey(n int) string { return fmt.Sprintf("rotating%06d", n%accounts) }
func secretKey(n int) string { return fmt.Sprintf("hush-%d", n%accounts) }

// A Credential is what requests are signed with until its end.
type Credential struct {
	Version                              int
	AccessKeyID                          string `json:"AccessKeyId"`
	SecretAccessKey, SessionToken, Token string
	Expiration                           time.Time
}

// Newest returns the credentials that are not refused now.
func (r *Rotating) Newest() Credential {
	n := r.Rotations()
	return Credential{
		Version: 1, AccessKeyID: accessKey(n), SecretAccessKey: secretKey(n),
		Expiration: r.begun.Add(time.Duration(n+1) * r.every).UTC(),
	}
}

// Rotations returns how often the credentials have changed.
func (r *Rotating) Rotations() int { return int(time.Since(r.begun) / r.every) }

// Refused returns how many requests were refused.
func (r *Rotating) Refused() int64 { return r.refused.Load() }

// refuse is the rule of the proxy. AWS has both answers.
func (r *Rotating) refuse(ask *http.Request) Fault {
	before := int((time.Since(r.begun) - r.every/10) / r.every)
	_, id, _ := strings.Cut(ask.Header.Get("Authorization"), "Credential=")
	id, _, _ = strings.Cut(id, "/")
	switch {
	case id == accessKey(r.Rotations()), id == accessKey(before):
		return Fault{}
	case r.refused.Add(1)%2 == 0:
		return Fault{Status: http.StatusBadRequest, Code: "ExpiredToken"}
	}
	return Fault{Status: http.StatusForbidden, Code: "InvalidAccessKeyId"}
}

// Environment returns the variables of an environment that lead to the server, and to its credentials as those of a
// container.
func (r *Rotating) Environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": r.Endpoint, "AWS_REGION": r.Region, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": r.URL,
	}
}
