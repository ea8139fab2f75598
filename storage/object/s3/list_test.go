package s3_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
)

// Who wants the first object asks for one name, and gets one that a table can have.
func TestFirst(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := object.NewThrottled(object.NewCounted(open(t, server, proxy)), 1<<40)
	for i := range 20 {
		must(t, s.PutIfAbsent(t.Context(), fmt.Sprintf("b/%d", i), nil))
	}
	server.Put(t, bucket, s.URI()[len("s3://"+bucket+"/"):]+"/b/ no name", nil) // sorts before the others
	var asked, more atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		if q := r.URL.Query(); q.Has("list-type") {
			asked.Add(1)
			if q.Get("max-keys") != "1" {
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

// An object of unknown size is one request while it is small, and whole where the answer breaks off.
func TestReadWhole(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := object.NewCounted(open(t, server, proxy))
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
func TestReadWholeOfNonsense(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", "bytes 0-9/5")
		w.WriteHeader(http.StatusPartialContent)
		fmt.Fprint(w, "0123456789")
	}))
	t.Cleanup(server.Close)
	s, err := object.OpenWith("s3://b/store", map[string]string{
		"aws_endpoint": server.URL, "aws_access_key_id": "a", "aws_secret_access_key": "b",
	})
	must(t, err)
	if _, _, err := object.ReadWhole(t.Context(), s, "x", 10); err == nil {
		t.Error("10 bytes of 5")
	}
}
