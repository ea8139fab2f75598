package azure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/azure"
	"github.com/dsistore/dsistore/storage/object/objecttest"
)

const container = "tables"

var stores atomic.Int64

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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, s object.Store, name string) []byte {
	t.Helper()
	info, err := s.Stat(t.Context(), name)
	must(t, err)
	b := make([]byte, info.Size)
	must(t, s.ReadAt(t.Context(), name, b, 0))
	return b
}

// large returns bytes of several parts.
func large(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}

// put creates an object by a Writer, of parts if it is large enough.
func put(ctx context.Context, s object.Store, name string, data []byte) error {
	w, err := s.Create(ctx, name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		w.Abort()
		return err
	}
	return w.Commit(ctx)
}

func TestConformance(t *testing.T) {
	server := objectserver.StartAzure(t, container)
	objecttest.Conformance(t, func(t *testing.T) object.Store { return open(t, server, nil) })
}

// The conditions of creations hold in races, of requests and of uploads in parts.
func TestProbe(t *testing.T) {
	server := objectserver.StartAzure(t, container)
	s := open(t, server, nil)
	for round := range 5 {
		n := 0
		must(t, object.Probe(t.Context(), s, func() string { n++; return fmt.Sprintf("probe/%d-%d", round, n) }))
	}
	for info, err := range s.List(t.Context(), "", "") {
		t.Errorf("%+v is left, %v", info, err)
	}
}

// An object of several parts is whole, and of those that race for a name one wins.
func TestParts(t *testing.T) {
	server := objectserver.StartAzure(t, container)
	s := open(t, server, nil)
	ctx := t.Context()
	for _, n := range []int{8 << 20, 8<<20 + 1, 29<<20 + 7} {
		name, all := fmt.Sprintf("parts/%d", n), large(n)
		must(t, put(ctx, s, name, all))
		if !bytes.Equal(content(t, s, name), all) {
			t.Fatalf("%d: other bytes", n)
		}
		if err := put(ctx, s, name, large(9<<20)); !errors.Is(err, object.ErrExists) {
			t.Fatalf("%d: made twice: %v", n, err)
		}
	}
	const racers = 8
	data := make([][]byte, racers)
	errs := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		data[i] = large(9<<20 + i)
		wg.Go(func() { errs[i] = put(ctx, s, "race", data[i]) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("%d and %d have won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, object.ErrExists):
			t.Fatal(err)
		}
	}
	if winner < 0 || !bytes.Equal(content(t, s, "race"), data[winner]) {
		t.Fatalf("%d won: other bytes", winner)
	}
}

// A creation whose answer is lost, or that the service is too busy for, is made once and knows its own object.
func TestLostAnswers(t *testing.T) {
	server := objectserver.StartAzure(t, container)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	s := open(t, server, proxy)
	ctx := t.Context()
	for _, f := range []objectserver.Fault{
		{Lost: true}, {Status: http.StatusServiceUnavailable, Code: "ServerBusy"},
		{Status: http.StatusInternalServerError, Code: "InternalError"},
	} {
		for _, n := range []int{100, 9 << 20} {
			name, data := fmt.Sprintf("lost/%d/%d-%v", n, f.Status, f.Lost), large(n)
			var broken atomic.Int64
			proxy.Break(func(r *http.Request) objectserver.Fault {
				comp := r.URL.Query().Get("comp")
				if r.Method == http.MethodPut && comp != "block" && broken.Add(1) <= 2 {
					return f
				}
				return objectserver.Fault{}
			})
			must(t, put(ctx, s, name, data))
			if broken.Load() < 2 {
				t.Fatalf("%s: %d requests", name, broken.Load())
			}
			broken.Store(0)
			if err := put(ctx, s, name, []byte("other")); !errors.Is(err, object.ErrExists) {
				t.Fatalf("%s: a second creation: %v", name, err)
			}
			proxy.Break(nil)
			if !bytes.Equal(content(t, s, name), data) {
				t.Fatalf("%s: other bytes", name)
			}
		}
	}
}

// A creation of which nobody can say whether it was this one is no "exists": a commit that is told that is made again,
// by another name.
func TestUnknownMaker(t *testing.T) {
	server := objectserver.StartAzure(t, container)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	s := open(t, server, proxy)
	var puts atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		switch {
		case r.Method == http.MethodHead:
			return objectserver.Fault{Status: http.StatusForbidden, Code: "AuthorizationFailure"}
		case r.Method == http.MethodPut && puts.Add(1) == 1:
			return objectserver.Fault{Lost: true}
		}
		return objectserver.Fault{}
	})
	if err := s.PutIfAbsent(t.Context(), "a", []byte("x")); err == nil || errors.Is(err, object.ErrExists) {
		t.Fatal(err)
	}
	if puts.Load() != 2 {
		t.Fatalf("%d requests", puts.Load())
	}
}

// A body that ends early is read on from where it ended.
func TestBrokenBodies(t *testing.T) {
	server := objectserver.StartAzure(t, container)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	s := open(t, server, proxy)
	data := large(1 << 20)
	must(t, s.PutIfAbsent(t.Context(), "a", data))
	var requests atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		switch requests.Add(1) {
		case 1:
			return objectserver.Fault{Cut: 300_000}
		case 2:
			return objectserver.Fault{Lost: true}
		case 3:
			return objectserver.Fault{Status: http.StatusServiceUnavailable, Code: "ServerBusy"}
		case 4:
			return objectserver.Fault{Cut: 1}
		}
		return objectserver.Fault{}
	})
	got := make([]byte, len(data)-10)
	must(t, s.ReadAt(t.Context(), "a", got, 10))
	if !bytes.Equal(got, data[10:]) {
		t.Fatal("other bytes")
	}
	if requests.Load() != 5 {
		t.Fatalf("%d requests", requests.Load())
	}
	requests.Store(10) // the object's own end is no broken body
	err := s.ReadAt(t.Context(), "a", make([]byte, 100), int64(len(data)-50))
	if !errors.Is(err, io.ErrUnexpectedEOF) || requests.Load() != 11 {
		t.Fatalf("%d requests, %v", requests.Load()-10, err)
	}
}

// Many objects are deleted by few requests, also where some are not there.
func TestDeleteAll(t *testing.T) {
	server := objectserver.StartAzure(t, container)
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

// Errors say what is wrong.
func TestErrors(t *testing.T) {
	server := objectserver.StartAzure(t, container)
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
	server := objectserver.StartAzure(t, container)
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
	server := objectserver.StartAzure(t, container)
	proxy := objectserver.StartProxy(t, server.Endpoint[:len(server.Endpoint)-len(server.Account)-1])
	var seen atomic.Int64
	proxy.Break(func(*http.Request) objectserver.Fault {
		seen.Add(1)
		return objectserver.Fault{}
	})
	objecttest.Traffic(t, open(t, server, proxy), seen.Load, 4, 1)
}
