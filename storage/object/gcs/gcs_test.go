package gcs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/storage/object/objecttest"
	"github.com/dsistore/dsistore/storage/object/remote/remotetest"

	_ "github.com/dsistore/dsistore/storage/object/gcs"
)

const bucket = "tables"

var (
	stores  atomic.Int64
	large   = remotetest.Large
	put     = remotetest.Put
	must    = objecttest.Must
	content = objecttest.Content
)

// open returns an empty store of a server, at a prefix of its own, by way of what listens at a URL.
func open(t *testing.T, at string) object.Store {
	t.Helper()
	store, err := object.OpenWith(fmt.Sprintf("gs://%s/store-%d", bucket, stores.Add(1)),
		map[string]string{"endpoint_url": at})
	must(t, err)
	return store
}

func TestConformance(t *testing.T) {
	server := objectserver.StartGCS(t, bucket)
	objecttest.Conformance(t, func(t *testing.T) object.Store { return open(t, server.Endpoint) })
}

// The same holds where every 17th answer is lost, refused for now, or cut.
func TestConformanceUnderFaults(t *testing.T) {
	sessions := startSessions(t, objectserver.StartGCS(t, bucket).Endpoint)
	proxy := objectserver.StartProxy(t, sessions.URL)
	faults := []objectserver.Fault{{Lost: true}, {Status: http.StatusServiceUnavailable}, {Cut: 1}}
	var requests atomic.Int64
	proxy.Break(func(*http.Request) objectserver.Fault {
		if n := requests.Add(1); n%17 == 0 {
			return faults[n/17%3]
		}
		return objectserver.Fault{}
	})
	objecttest.Conformance(t, func(t *testing.T) object.Store { return open(t, proxy.URL) })
}

func TestRaces(t *testing.T) {
	objecttest.Races(t, open(t, objectserver.StartGCS(t, bucket).Endpoint))
}

// The service takes one write of a name per second. Creations that it refuses for that are told that the name is taken,
// as soon as it is, and the refusals say nothing of how many requests the host takes.
func TestRacesForALimitedName(t *testing.T) {
	limited, refused := startLimited(t, objectserver.StartGCS(t, bucket).Endpoint)
	sessions := startSessions(t, limited)
	s, n := open(t, sessions.URL), 0
	begin := time.Now()
	must(t, object.Probe(t.Context(), s, func() string { n++; return fmt.Sprintf("races/%d", n) }))
	for i := range 3 { // by one request, and as an upload of two chunks
		name := fmt.Sprintf("taken/%d", i)
		must(t, s.PutIfAbsent(t.Context(), name, nil))
		if err := put(t.Context(), s, name, large(i*9<<20)); !errors.Is(err, object.ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := endpoint.CountsOf(strings.TrimPrefix(sessions.URL, "http://"))
	// To send each again until it is looked at takes 100 s.
	if took := time.Since(begin); refused.Load() < 31 || c.Throttled > 0 || took > 50*time.Second {
		t.Errorf("%d refused, %+v, in %s", refused.Load(), c, took)
	}
}

func TestChunks(t *testing.T) {
	sessions := startSessions(t, objectserver.StartGCS(t, bucket).Endpoint)
	remotetest.Parts(t, open(t, sessions.URL), sessions.open)
}

// The end of an upload is lost each time that it is sent: whose object is there says who made it.
func TestLostEnd(t *testing.T) {
	sessions := startSessions(t, objectserver.StartGCS(t, bucket).Endpoint)
	proxy := objectserver.StartProxy(t, sessions.URL)
	s := open(t, proxy.URL)
	data := large(9 << 20)
	var ends atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		if strings.HasSuffix(r.Header.Get("Content-Range"), "/9437184") && ends.Add(1) <= 3 {
			return objectserver.Fault{Lost: true}
		}
		return objectserver.Fault{}
	})
	must(t, put(t.Context(), s, "a", data))
	if !bytes.Equal(content(t, s, "a"), data) || ends.Load() != 4 {
		t.Fatalf("other bytes, or %d requests", ends.Load())
	}
}

// A service may keep a part of a chunk: the rest is sent again, and nothing twice.
func TestPartOfAChunk(t *testing.T) {
	sessions := startSessions(t, objectserver.StartGCS(t, bucket).Endpoint)
	sessions.keeps = 3 << 20
	s := open(t, sessions.URL)
	data := large(20 << 20)
	must(t, put(t.Context(), s, "a", data))
	if !bytes.Equal(content(t, s, "a"), data) {
		t.Fatal("other bytes")
	}
}

// An upload that the service has forgotten is an error, and no "not found"; nothing shows its URL.
func TestForgottenUpload(t *testing.T) {
	sessions := startSessions(t, objectserver.StartGCS(t, bucket).Endpoint)
	s := open(t, sessions.URL)
	w, err := s.Create(t.Context(), "a")
	must(t, err)
	_, err = w.Write(large(9 << 20))
	must(t, err)
	sessions.forget()
	if _, err = w.Write(large(9 << 20)); err == nil {
		err = w.Commit(t.Context())
	}
	w.Abort()
	if err == nil || errors.Is(err, object.ErrNotFound) || errors.Is(err, object.ErrExists) ||
		strings.Contains(err.Error(), "upload_id") {
		t.Fatal(err)
	}
	w, err = s.Create(t.Context(), "b")
	must(t, err)
	_, err = w.Write(large(9 << 20))
	must(t, err)
	sessions.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.Commit(ctx); err == nil || strings.Contains(err.Error(), "upload_id") {
		t.Fatal(err)
	}
}

// A truncation whose answer is lost is done, and one that comes late has no effect.
func TestLostTruncate(t *testing.T) {
	proxy := objectserver.StartProxy(t, objectserver.StartGCS(t, bucket).Endpoint)
	s := open(t, proxy.URL)
	must(t, s.PutIfAbsent(t.Context(), "a", []byte("x")))
	info, err := s.Stat(t.Context(), "a")
	must(t, err)
	var puts atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		return objectserver.Fault{Lost: r.Method == http.MethodPost && puts.Add(1) == 1}
	})
	must(t, s.Truncate(t.Context(), info))
	if got := content(t, s, "a"); len(got) > 0 || puts.Load() != 2 {
		t.Fatalf("%q, %d requests", got, puts.Load())
	}
}

// An answer that breaks off is asked for again.
func TestBrokenListing(t *testing.T) {
	proxy := objectserver.StartProxy(t, objectserver.StartGCS(t, bucket).Endpoint)
	s := open(t, proxy.URL)
	for i := range 20 {
		must(t, s.PutIfAbsent(t.Context(), fmt.Sprintf("b/%02d", i), nil))
	}
	var requests atomic.Int64
	proxy.Break(func(*http.Request) objectserver.Fault {
		if requests.Add(1) == 1 {
			return objectserver.Fault{Cut: 100}
		}
		return objectserver.Fault{}
	})
	n := 0
	for _, err := range s.List(t.Context(), "b/", "") {
		must(t, err)
		n++
	}
	if n != 20 || requests.Load() != 2 {
		t.Errorf("%d names, %d requests", n, requests.Load())
	}
}

// Errors say what is wrong.
func TestErrors(t *testing.T) {
	proxy := objectserver.StartProxy(t, objectserver.StartGCS(t, bucket).Endpoint)
	s := open(t, proxy.URL)
	for _, code := range []int{http.StatusForbidden, http.StatusUnauthorized} {
		proxy.Break(func(*http.Request) objectserver.Fault { return objectserver.Fault{Status: code} })
		if _, err := s.Stat(t.Context(), "a"); !errors.Is(err, object.ErrDenied) {
			t.Errorf("%d: %v", code, err)
		}
		if err := s.PutIfAbsent(t.Context(), "a", nil); !errors.Is(err, object.ErrDenied) {
			t.Errorf("%d: %v", code, err)
		}
	}
	proxy.Break(nil)
	none, err := object.OpenWith("gs://no-such-bucket/x", map[string]string{"endpoint_url": proxy.URL})
	must(t, err)
	if err := none.PutIfAbsent(t.Context(), "a", nil); err == nil || !strings.Contains(err.Error(), "no-such-bucket") {
		t.Errorf("put into no bucket: %v", err)
	}
	err = put(t.Context(), none, "a", large(9<<20))
	if err == nil || !strings.Contains(err.Error(), "no-such-bucket") {
		t.Errorf("upload into no bucket: %v", err)
	}
	for _, err := range none.List(t.Context(), "", "") {
		if err == nil || !strings.Contains(err.Error(), "no-such-bucket") {
			t.Errorf("list of no bucket: %v", err)
		}
	}
}

// Errors of reads are bare texts that the service calls HTML: a missing bucket is no missing object, and the reason of
// others is told. A page of a proxy is not.
func TestErrorsOfReads(t *testing.T) {
	for _, c := range []struct {
		status    int
		body      string
		is, isNot error
		says      string
	}{
		{404, "No such object: tables/store/a", object.ErrNotFound, object.ErrNoBucket, "object not found: a"},
		{404, "The specified bucket does not exist.", object.ErrNoBucket, object.ErrNotFound, "tables"},
		{403, "me@example does not have storage.objects.get access.", object.ErrDenied, nil, "storage.objects.get"},
		{400, "User project specified is invalid.", nil, object.ErrNotFound, "User project"},
		{403, "\n<!DOCTYPE html><p>hush</p>", object.ErrDenied, nil, "403 Forbidden"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("alt") != "media" {
				t.Error(r.URL)
			}
			w.Header().Set("Content-Type", "text/html; charset=UTF-8")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		err := open(t, server.URL).ReadAt(t.Context(), "a", make([]byte, 1), 0)
		server.Close()
		if err == nil || c.is != nil && !errors.Is(err, c.is) || c.isNot != nil && errors.Is(err, c.isNot) ||
			!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%d %q: %v", c.status, c.body, err)
		}
	}
}

// Requests are counted as the service bills them, of a store at the bucket's root, too.
func TestTraffic(t *testing.T) {
	proxy := objectserver.StartProxy(t, startSessions(t, objectserver.StartGCS(t, bucket).Endpoint).URL)
	var seen atomic.Int64
	proxy.Break(func(*http.Request) objectserver.Fault {
		seen.Add(1)
		return objectserver.Fault{}
	})
	s, err := object.OpenWith("gs://"+bucket, map[string]string{"endpoint_url": proxy.URL})
	must(t, err)
	objecttest.Traffic(t, s, seen.Load, 4, 1)
}

// openURL returns a store of a service without TLS, anonymous.
func openURL(t *testing.T, url string) object.Store {
	s, err := object.OpenWith("gs://b", map[string]string{"endpoint": url, "anon": "true"})
	must(t, err)
	return s
}

func TestRetries(t *testing.T)         { remotetest.Retries(t, openURL) }
func TestLostConnections(t *testing.T) { remotetest.LostConnections(t, openURL) }
func TestNoRanges(t *testing.T)        { remotetest.NoRanges(t, openURL) }
func TestStalls(t *testing.T)          { remotetest.Stalls(t, openURL) }

func TestFaults(t *testing.T) {
	sessions := startSessions(t, objectserver.StartGCS(t, bucket).Endpoint)
	proxy := objectserver.StartProxy(t, sessions.URL)
	remotetest.Faults(t, remotetest.Faulty{
		Store: open(t, proxy.URL), Proxy: proxy,
		Makes: func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/upload/") },
		Finds: func(r *http.Request) bool { return r.Method == http.MethodGet },
		Busy: []objectserver.Fault{
			{Status: http.StatusRequestTimeout}, {Status: http.StatusTooManyRequests},
			{Status: http.StatusServiceUnavailable}, {Status: http.StatusInternalServerError},
		},
	})
}
