package gcs_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
)

// A caller that wants the first object asks for one name, and gets one that a table can have.
func TestFirst(t *testing.T) {
	server := objectserver.StartGCS(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := object.NewThrottled(object.NewCounted(open(t, proxy.URL)), 1<<40)
	for i := range 20 {
		must(t, s.PutIfAbsent(t.Context(), fmt.Sprintf("b/%d", i), nil))
	}
	server.Put(t, bucket, s.URI()[len("gs://"+bucket+"/"):]+"/b/ no name", nil) // sorts before the others
	var asked, more atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		if q := r.URL.Query(); q.Has("maxResults") {
			asked.Add(1)
			if q.Get("maxResults") != "1" {
				more.Add(1)
			}
		}
		return objectserver.Fault{}
	})
	first, ok, err := object.First(t.Context(), s, "b/", "b/0")
	if err != nil || !ok || first.Name != "b/1" || asked.Load() != 1 || more.Load() > 0 {
		t.Errorf("%+v %v %v: asked %d times, %d of them for more", first, ok, err, asked.Load(), more.Load())
	}
	// Where the first is no table's, the next come in one page.
	first, ok, err = object.First(t.Context(), s, "b/", "")
	if err != nil || !ok || first.Name != "b/0" || asked.Load() != 3 || more.Load() != 1 {
		t.Errorf("%+v %v %v: asked %d times, %d of them for more", first, ok, err, asked.Load(), more.Load())
	}
	if _, ok, err := object.First(t.Context(), s, "b/", "b/9"); ok || err != nil {
		t.Error(ok, err)
	}
}

// A listing of several pages has every name once.
func TestPages(t *testing.T) {
	proxy := objectserver.StartProxy(t, objectserver.StartGCS(t, bucket).Endpoint)
	s := open(t, proxy.URL)
	ctx := t.Context()
	must(t, object.Parallel(ctx, object.RequestsAtOnce, 2500, func(ctx context.Context, i int) error {
		return s.PutIfAbsent(ctx, fmt.Sprintf("p/%04d", i), nil)
	}))
	var asked atomic.Int64
	proxy.Break(func(*http.Request) objectserver.Fault { asked.Add(1); return objectserver.Fault{} })
	n := 100
	for info, err := range s.List(ctx, "p/", "p/0099") {
		if must(t, err); info.Name != fmt.Sprintf("p/%04d", n) {
			t.Fatalf("%s is number %d", info.Name, n)
		}
		n++
	}
	if n != 2500 || asked.Load() != 3 {
		t.Errorf("%d names, %d requests", n, asked.Load())
	}
}

// An object of unknown size is one request while it is small, and whole where the answer breaks off.
func TestReadWhole(t *testing.T) {
	proxy := objectserver.StartProxy(t, objectserver.StartGCS(t, bucket).Endpoint)
	s := object.NewCounted(open(t, proxy.URL))
	small, data := large(200<<10), large(900<<10)
	must(t, s.PutIfAbsent(t.Context(), "small", small))
	must(t, s.PutIfAbsent(t.Context(), "large", data))
	var asked atomic.Int64
	for _, cut := range []int64{0, 100 << 10} {
		proxy.Break(func(*http.Request) objectserver.Fault {
			if asked.Add(1) == 1 {
				return objectserver.Fault{Cut: cut}
			}
			return objectserver.Fault{}
		})
		for name, want := range map[string][]byte{"small": small, "large": data} {
			asked.Store(0)
			got, size, err := object.ReadWhole(t.Context(), s, name, 1<<20)
			if err != nil || size != int64(len(want)) || !bytes.Equal(got, want) {
				t.Errorf("%s, cut after %d: %d of %d bytes, %v", name, cut, len(got), size, err)
			}
			if n := asked.Load(); name == "small" && cut == 0 && n != 1 {
				t.Errorf("%d requests", n)
			}
		}
	}
	if c := s.Counts(); c.Stats > 0 || c.Reads != 4 {
		t.Errorf("%+v", c)
	}
}

// A service that contradicts itself is an error, and no panic.
func TestNonsense(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") == "" {
			fmt.Fprint(w, "[not JSON of an object")
			return
		}
		w.Header().Set("Content-Range", "bytes 0-9/5")
		w.WriteHeader(http.StatusPartialContent)
		fmt.Fprint(w, "0123456789")
	}))
	t.Cleanup(server.Close)
	s := open(t, server.URL)
	if _, _, err := object.ReadWhole(t.Context(), s, "x", 10); err == nil {
		t.Error("10 bytes of 5")
	}
	if _, err := s.Stat(t.Context(), "x"); err == nil {
		t.Error("described")
	}
	for _, err := range s.List(t.Context(), "", "") {
		if err == nil {
			t.Error("listed")
		}
	}
	if err := object.DeleteAll(t.Context(), s, []string{"a", "b"}); err == nil {
		t.Error("deleted")
	}
	if err := put(t.Context(), s, "x", large(9<<20)); err == nil {
		t.Error("uploaded")
	}
}
