package objectserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// A GCS is a server that speaks the JSON API of Google Cloud Storage, on a port of the loopback address. It holds
// objects in memory, and asks for no credentials.
//
// It keeps the conditions of creations under races, and generations. Of resumable uploads it does not keep: the offset
// of a chunk (a chunk that is sent again is added again), the question how much has come (it ends the upload), and the
// end of a session by DELETE. Package gcs tests those by a server of its own.
type GCS struct {
	Endpoint string // http://127.0.0.1:port
}

const fakeGCS = "github.com/fsouza/fake-gcs-server"

// StartGCS starts a server with empty buckets of the given names. It ends with the test, which is skipped where the
// server cannot be had.
func StartGCS(t testing.TB, buckets ...string) *GCS {
	t.Helper()
	path, err := build(pinned, fakeGCS)
	if err != nil {
		skip(t, "Google Cloud Storage", err)
	}
	g, stop, err := runGCS(t.Context(), path, buckets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return g
}

// RunGCS is StartGCS outside of tests, until stop is called.
func RunGCS(ctx context.Context, buckets ...string) (g *GCS, stop func(), err error) {
	path, err := build(pinned, fakeGCS)
	if err != nil {
		return nil, nil, err
	}
	return runGCS(ctx, path, buckets)
}

func runGCS(ctx context.Context, path string, buckets []string) (*GCS, func(), error) {
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	g := &GCS{Endpoint: "http://127.0.0.1:" + port}
	stop, err := serve(ctx, g.Endpoint, path, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port",
		port, "-log-level", "error")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range buckets {
		body := fmt.Appendf(nil, `{"name": %q}`, name)
		if _, err := g.ask(ctx, http.MethodPost, "/storage/v1/b?project=p", "application/json", body); err != nil {
			stop()
			return nil, nil, err
		}
	}
	return g, stop, nil
}

// Options are those by which package gcs reaches the server.
func (g *GCS) Options() map[string]string { return map[string]string{"endpoint_url": g.Endpoint} }

// Environment returns the variables of an environment that do the same.
func (g *GCS) Environment() map[string]string {
	return map[string]string{"STORAGE_EMULATOR_HOST": g.Endpoint}
}

// ask is a client of the server besides the one that is tested.
func (g *GCS) ask(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, g.Endpoint+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, data)
	}
	return data, err
}

func (g *GCS) mustAsk(t testing.TB, method, path, contentType string, body []byte) []byte {
	t.Helper()
	data, err := g.ask(t.Context(), method, path, contentType, body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Put makes an object of any name.
func (g *GCS) Put(t testing.TB, bucket, key string, data []byte) {
	t.Helper()
	g.mustAsk(t, http.MethodPost, "/upload/storage/v1/b/"+bucket+"/o?uploadType=media&name="+url.QueryEscape(key),
		"application/octet-stream", data)
}

// KeepVersions enables versioning of a bucket.
func (g *GCS) KeepVersions(t testing.TB, bucket string) {
	t.Helper()
	g.mustAsk(t, http.MethodPatch, "/storage/v1/b/"+bucket, "application/json",
		[]byte(`{"versioning": {"enabled": true}}`))
}

// Versions lists all generations in a bucket.
func (g *GCS) Versions(t testing.TB, bucket string) (all []Version) {
	t.Helper()
	var answer struct {
		Items []struct{ Name, Generation, TimeDeleted string }
	}
	data := g.mustAsk(t, http.MethodGet, "/storage/v1/b/"+bucket+"/o?versions=true", "", nil)
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	for _, o := range answer.Items {
		all = append(all, Version{Key: o.Name, ID: o.Generation, Latest: o.TimeDeleted == ""})
	}
	return all
}

// Bytes returns what a generation holds.
func (g *GCS) Bytes(t testing.TB, bucket string, v Version) []byte {
	t.Helper()
	path := "/storage/v1/b/" + bucket + "/o/" + url.PathEscape(v.Key) + "?alt=media&generation=" + v.ID
	return g.mustAsk(t, http.MethodGet, path, "", nil)
}
