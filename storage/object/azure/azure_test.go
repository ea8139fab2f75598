package azure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/azure"
	"github.com/dsistore/dsistore/storage/object/objecttest"
	"github.com/dsistore/dsistore/storage/object/remote/remotetest"
)

const container = "tables"

var (
	stores atomic.Int64
	must   = objecttest.Must
	large  = remotetest.Large
	put    = remotetest.Put
)

// azurite is one server for all tests of this package, because it takes seconds to start.
var azurite struct {
	once   sync.Once
	server *objectserver.Azure
	stop   func()
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if azurite.stop != nil {
		azurite.stop()
	}
	os.Exit(code)
}

// start returns the server, which has the container. The test is skipped where it cannot be had. Its stores have
// prefixes of their own; a test that counts what a container holds makes another container.
func start(t *testing.T) *objectserver.Azure {
	t.Helper()
	if _, err := objectserver.Azurite(); err != nil {
		t.Skipf("no server of Azure: %v", err)
	}
	azurite.once.Do(func() {
		azurite.server, azurite.stop, azurite.err = objectserver.RunAzure(context.Background(), container)
	})
	must(t, azurite.err)
	return azurite.server
}

// open returns an empty store of a server, at a prefix of its own, by way of a proxy if there is one.
func open(t *testing.T, s *objectserver.Azure, p *objectserver.Proxy) object.Store {
	t.Helper()
	options := s.Options()
	if p != nil {
		options["azure_storage_endpoint"] = p.URL + "/" + s.Account
	}
	store, err := object.OpenWith(fmt.Sprintf("az://%s/store-%d", container, stores.Add(1)), options)
	must(t, err)
	return store
}

func TestConformance(t *testing.T) {
	server := start(t)
	objecttest.Conformance(t, func(t *testing.T) object.Store { return open(t, server, nil) })
}

func TestRaces(t *testing.T) {
	server := start(t)
	objecttest.Races(t, open(t, server, nil))
}

func TestParts(t *testing.T) { remotetest.Parts(t, open(t, start(t), nil), nil) }

// A name with a component that ends with a dot is refused by every method: the service, unlike Azurite, drops the dot,
// and another object would be meant. Blobs of other programs are read by any name.
func TestDots(t *testing.T) {
	server := start(t)
	s := open(t, server, nil)
	ctx := t.Context()
	must(t, s.PutIfAbsent(ctx, "tables/.ads/a.b..c", []byte("x")))
	for _, name := range []string{"tables/ads./table", "tables/ads.", "a../b"} {
		_, created := s.Create(ctx, name)
		_, stat := s.Stat(ctx, name)
		_, _, whole := object.ReadWhole(ctx, s, name, 10)
		for what, err := range map[string]error{
			"PutIfAbsent": s.PutIfAbsent(ctx, name, nil), "Create": created, "Stat": stat, "ReadWhole": whole,
			"ReadAt": s.ReadAt(ctx, name, make([]byte, 1), 0), "Delete": s.Delete(ctx, name),
			"DeleteAll": object.DeleteAll(ctx, s, []string{name}), "Truncate": s.Truncate(ctx, object.Info{Name: name}),
		} {
			if err == nil || !strings.Contains(err.Error(), "Azure drops a dot") {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	server.Put(t, container, "dumps./part.", []byte("0123"))
	b, err := object.OpenBucket("az", container, server.Options())
	must(t, err)
	info, err := b.Stat(ctx, "dumps./part.")
	must(t, err)
	got := make([]byte, 3)
	must(t, b.ReadAt(ctx, info, got, 1))
	if string(got) != "123" {
		t.Errorf("%q", got)
	}
}

// Many objects are deleted by few requests, also where some are not there.
func TestDeleteAll(t *testing.T) {
	server := start(t)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	s := open(t, server, proxy)
	ctx := t.Context()
	var names []string
	for i := range 600 {
		names = append(names, fmt.Sprintf("all/%04d", i))
	}
	must(t, object.Parallel(ctx, object.RequestsAtOnce, 550, func(ctx context.Context, i int) error {
		return s.PutIfAbsent(ctx, names[i], nil)
	}))
	must(t, s.PutIfAbsent(ctx, "allowed", nil))
	var requests atomic.Int64
	proxy.Break(func(*http.Request) objectserver.Fault {
		requests.Add(1)
		return objectserver.Fault{}
	})
	must(t, object.DeleteAll(ctx, s, names))
	if requests.Load() != 3 {
		t.Errorf("%d requests", requests.Load())
	}
	proxy.Break(nil)
	for info, err := range s.List(ctx, "all", "") {
		if must(t, err); info.Name != "allowed" {
			t.Fatalf("%s is there", info.Name)
		}
	}
	if err := object.DeleteAll(ctx, s, []string{"a", "../b"}); err == nil {
		t.Error("a name that no object has")
	}
}

// All that is refused is named, and the rest is deleted, one by one where the service takes no batches.
func TestDeleteInPart(t *testing.T) {
	server := start(t)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	s := open(t, server, proxy)
	ctx, names := t.Context(), []string{"a", "b", "c", "d"}
	for _, name := range names {
		must(t, s.PutIfAbsent(ctx, name, nil))
	}
	proxy.Break(func(r *http.Request) objectserver.Fault {
		if r.URL.Query().Get("comp") == "batch" || strings.HasSuffix(r.URL.Path, "/b") ||
			strings.HasSuffix(r.URL.Path, "/d") {
			return objectserver.Fault{Status: http.StatusForbidden, Code: "AuthorizationPermissionMismatch"}
		}
		return objectserver.Fault{}
	})
	err := object.DeleteAll(ctx, s, names)
	if !errors.Is(err, object.ErrDenied) || !strings.Contains(err.Error(), "object b: ") ||
		!strings.Contains(err.Error(), "refused too: d") {
		t.Error(err)
	}
	proxy.Break(nil)
	left := ""
	for info, err := range s.List(ctx, "", "") {
		must(t, err)
		left += info.Name
	}
	if left != "bd" {
		t.Errorf("%q is left", left)
	}
}

// Errors say what is wrong.
func TestErrors(t *testing.T) {
	server := start(t)
	options := server.Options()
	options["azure_storage_account_key"] = "YSBzZWNyZXQ="
	s, err := object.OpenWith("az://"+container, options)
	must(t, err)
	if _, err := s.Stat(t.Context(), "a"); !errors.Is(err, object.ErrDenied) {
		t.Errorf("stat with a wrong key: %v", err)
	}
	err = s.PutIfAbsent(t.Context(), "a", []byte("x"))
	if !errors.Is(err, object.ErrDenied) || strings.Contains(err.Error(), "YSBz") {
		t.Errorf("put with a wrong key: %v", err)
	}
	s, err = object.OpenWith("az://no-such-container/x", server.Options())
	must(t, err)
	if err := s.PutIfAbsent(t.Context(), "a", nil); err == nil || !strings.Contains(err.Error(), "no-such-container") {
		t.Errorf("put into no container: %v", err)
	}
	for _, err := range s.List(t.Context(), "", "") {
		if err == nil || !strings.Contains(err.Error(), "no-such-container") {
			t.Errorf("list of no container: %v", err)
		}
	}
}

// Every request asks for the version that the package needs, and not for the SDK's newest.
func TestServiceVersion(t *testing.T) {
	server := start(t)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	s := open(t, server, proxy)
	ctx := t.Context()
	var requests atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		requests.Add(1)
		if v := r.Header.Values("X-Ms-Version"); len(v) != 1 || v[0] != "2026-02-06" {
			t.Errorf("%s %s: version %q", r.Method, r.URL, v)
		}
		return objectserver.Fault{}
	})
	must(t, s.PutIfAbsent(ctx, "a", []byte("x")))
	must(t, put(ctx, s, "b", large(9<<20)))
	must(t, s.ReadAt(ctx, "a", make([]byte, 1), 0))
	first, ok, err := object.First(ctx, s, "", "a")
	if err != nil || !ok || first.Name != "b" {
		t.Error(first, ok, err)
	}
	must(t, object.DeleteAll(ctx, s, []string{"a", "b"}))
	if n := requests.Load(); n != 1+3+1+1+1 {
		t.Errorf("%d requests", n)
	}
	if _, ok, err := object.First(ctx, s, "", ""); ok || err != nil {
		t.Error(ok, err)
	}
}

// Errors tell the reasons of a service that show no secret: a clock that is wrong, a signature whose time is over, a
// header that the service does not take.
func TestReasons(t *testing.T) {
	code, detail := "", ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-ms-error-code", code)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code>"+
			"<Message>m\nTime:t</Message>%s</Error>", code, detail)
	}))
	t.Cleanup(server.Close)
	s, err := object.OpenWith("az://tables/store", map[string]string{"endpoint": server.URL, "anon": "true"})
	must(t, err)
	for _, c := range []struct{ code, detail, says string }{
		{"AuthenticationFailed", "<AuthenticationErrorDetail>Signature not valid in the specified time frame: " +
			"Start [a] - Expiry [b]</AuthenticationErrorDetail>",
			"AuthenticationFailed: Signature not valid in the specified time frame: Start [a] - Expiry [b]"},
		{"AuthenticationFailed", "<AuthenticationErrorDetail>Request date header too old: 'x'\n" +
			"</AuthenticationErrorDetail>", "AuthenticationFailed: Request date header too old: 'x'"},
		{"AuthenticationFailed", "<AuthenticationErrorDetail>The MAC signature found in the HTTP request 'hush' is " +
			"not the same as any computed signature. Server used following string to sign: 'hush'." +
			"</AuthenticationErrorDetail>", "AuthenticationFailed"},
		{"InvalidHeaderValue", "<HeaderName>x-ms-version</HeaderName><HeaderValue>hush</HeaderValue>",
			"InvalidHeaderValue: header x-ms-version"},
		{"AuthenticationFailed", "<not XML hush", "AuthenticationFailed"},
	} {
		code, detail = c.code, c.detail
		err := s.ReadAt(t.Context(), "a", make([]byte, 1), 0)
		if !errors.Is(err, object.ErrDenied) || !strings.HasSuffix(err.Error(), ": "+c.says) {
			t.Errorf("%v: want %s", err, c.says)
		}
	}
}

// A blob that somebody holds a lease on is neither another object nor one that exists.
func TestLease(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("x-ms-error-code", "LeaseIdMissing")
		w.WriteHeader(http.StatusPreconditionFailed)
	}))
	t.Cleanup(server.Close)
	s := openURL(t, server.URL)
	for what, err := range map[string]error{
		"Truncate": s.Truncate(t.Context(), object.Info{Name: "a", Version: "v"}), "Delete": s.Delete(t.Context(), "a"),
		"PutIfAbsent": s.PutIfAbsent(t.Context(), "a", nil),
	} {
		if err == nil || !strings.Contains(err.Error(), "somebody holds a lease") || errors.Is(err, object.ErrExists) ||
			errors.Is(err, object.ErrChanged) || errors.Is(err, object.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A service whose certificate nobody trusts is asked once.
func TestUntrusted(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	if _, err := openURL(t, server.URL).Stat(t.Context(), "a"); err == nil || connections.Load() != 1 {
		t.Errorf("%d connections, %v", connections.Load(), err)
	}
}

// A service that lists names in another order, or is another kind of account, is an error: objects could be missed.
func TestOrder(t *testing.T) {
	var names []string
	kind := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<EnumerationResults><Blobs>")
		for _, name := range names {
			fmt.Fprintf(w, "<Blob><Name>store/%s</Name><Properties>%s</Properties></Blob>", name, kind)
		}
		fmt.Fprint(w, "</Blobs><NextMarker/></EnumerationResults>")
	}))
	t.Cleanup(server.Close)
	s, err := object.OpenWith("az://tables/store", map[string]string{"endpoint": server.URL, "anon": "true"})
	must(t, err)
	list := func() (got string, err error) {
		for info, err := range s.List(t.Context(), "", "b") {
			if err != nil {
				return got, err
			}
			got += info.Name
		}
		return got, nil
	}
	// One that does not know where to begin is asked for more than is needed.
	names = []string{"a", "b", "c", "d"}
	if got, err := list(); err != nil || got != "cd" {
		t.Errorf("%q, %v", got, err)
	}
	names = []string{"a/b", "a-b", "c"}
	if got, err := list(); err == nil {
		t.Errorf("%q, in no order", got)
	}
	names, kind = []string{"c"}, "<ResourceType>file</ResourceType>"
	if got, err := list(); err == nil {
		t.Errorf("%q, of a hierarchical namespace", got)
	}
}

// Who wants the first object asks for two names.
func TestFirst(t *testing.T) {
	server := start(t)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	s := open(t, server, proxy)
	for i := range 20 {
		must(t, s.PutIfAbsent(t.Context(), fmt.Sprintf("b/%02d", i), nil))
	}
	var asked, more atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		asked.Add(1)
		if r.URL.Query().Get("maxresults") != "2" {
			more.Add(1)
		}
		return objectserver.Fault{}
	})
	first, ok, err := object.First(t.Context(), s, "b/", "b/07")
	if err != nil || !ok || first.Name != "b/08" || asked.Load() != 1 || more.Load() > 0 {
		t.Errorf("%+v %v %v: asked %d times, %d of them for more", first, ok, err, asked.Load(), more.Load())
	}
	if _, ok, err := object.First(t.Context(), s, "b/", "b/19"); ok || err != nil {
		t.Error(ok, err)
	}
}

// Requests are counted as the service bills them.
func TestTraffic(t *testing.T) {
	server := start(t)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	var seen atomic.Int64
	proxy.Break(func(*http.Request) objectserver.Fault {
		seen.Add(1)
		return objectserver.Fault{}
	})
	objecttest.Traffic(t, open(t, server, proxy), seen.Load, 4, 1)
}

// openURL returns a store of a service without TLS, anonymous.
func openURL(t *testing.T, url string) object.Store {
	s, err := object.OpenWith("az://b", map[string]string{"endpoint": url, "anon": "true"})
	must(t, err)
	return s
}

func TestRetries(t *testing.T)         { remotetest.Retries(t, openURL) }
func TestLostConnections(t *testing.T) { remotetest.LostConnections(t, openURL) }
func TestNoRanges(t *testing.T)        { remotetest.NoRanges(t, openURL) }
func TestStalls(t *testing.T)          { remotetest.Stalls(t, openURL) }

func TestFaults(t *testing.T) {
	server := start(t)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	remotetest.Faults(t, remotetest.Faulty{
		Store: open(t, server, proxy), Proxy: proxy,
		Makes: func(r *http.Request) bool {
			return r.Method == http.MethodPut && r.URL.Query().Get("comp") != "block"
		},
		Finds: func(r *http.Request) bool { return r.Method == http.MethodHead },
		Busy: []objectserver.Fault{
			{Status: http.StatusServiceUnavailable, Code: "ServerBusy"},
			{Status: http.StatusInternalServerError, Code: "InternalError"},
		},
	})
}
