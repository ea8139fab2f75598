package remotetest

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
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/objecttest"
)

// A Faulty is an empty store behind a network, by way of a proxy.
type Faulty struct {
	Store object.Store
	Proxy *objectserver.Proxy
	// Makes reports whether a request makes an object, by itself or as the end of an upload; Finds, whether it asks who
	// has made one.
	Makes, Finds func(*http.Request) bool
	// Busy are answers after which the same request may succeed.
	Busy []objectserver.Fault
}

var must = objecttest.Must

// Large returns bytes of several parts, or as many as are asked for.
func Large(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}

// Put creates an object by a Writer, of parts if it is large enough.
func Put(ctx context.Context, s object.Store, name string, data []byte) error {
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

// Faults tests what the methods of a store promise where answers are lost, refused and cut.
func Faults(t *testing.T, f Faulty) {
	defer f.Proxy.Break(nil)
	t.Run("broken bodies", f.brokenBodies) // the first: a read is sent twice where it is known how long others took
	t.Run("lost answers", f.lostAnswers)
	t.Run("unknown maker", f.unknownMaker)
}

// A creation whose answer is lost, or that the service is too busy for, is made once and knows its own object.
func (f Faulty) lostAnswers(t *testing.T) {
	ctx := t.Context()
	for _, n := range []int{0, 100, 17 << 20} {
		for _, fault := range append([]objectserver.Fault{{Lost: true}}, f.Busy...) {
			name, data := fmt.Sprintf("lost/%d/%d-%v", n, fault.Status, fault.Lost), Large(n)
			var makes atomic.Int64
			f.Proxy.Break(func(r *http.Request) objectserver.Fault {
				if f.Makes(r) { // where it is an upload of several requests, some in the middle and the end are hit
					switch makes.Add(1) {
					case 1, 2, 5, 6, 9:
						return fault
					}
				}
				return objectserver.Fault{}
			})
			must(t, Put(ctx, f.Store, name, data))
			if makes.Load() < 2 {
				t.Fatalf("%s: %d requests", name, makes.Load())
			}
			makes.Store(0)
			if err := Put(ctx, f.Store, name, []byte("other")); !errors.Is(err, object.ErrExists) {
				t.Fatalf("%s: a second creation: %v", name, err)
			}
			f.Proxy.Break(nil)
			if !bytes.Equal(objecttest.Content(t, f.Store, name), data) {
				t.Fatalf("%s: other bytes", name)
			}
		}
	}
}

// A creation of which nobody can say whether it was this one is no "exists": a commit that is told that is made again,
// by another name.
func (f Faulty) unknownMaker(t *testing.T) {
	var makes atomic.Int64
	f.Proxy.Break(func(r *http.Request) objectserver.Fault {
		switch {
		case f.Finds(r):
			return objectserver.Fault{Status: http.StatusForbidden, Code: "AccessDenied"}
		case f.Makes(r) && makes.Add(1) == 1:
			return objectserver.Fault{Lost: true}
		}
		return objectserver.Fault{}
	})
	err := f.Store.PutIfAbsent(t.Context(), "unknown", []byte("x"))
	if err == nil || errors.Is(err, object.ErrExists) {
		t.Fatal(err)
	}
	if makes.Load() != 2 {
		t.Fatalf("%d requests", makes.Load())
	}
}

// A body that ends early is read on from where it ended.
func (f Faulty) brokenBodies(t *testing.T) {
	data := Large(1 << 20)
	f.Proxy.Break(nil)
	must(t, f.Store.PutIfAbsent(t.Context(), "body", data))
	var requests atomic.Int64
	f.Proxy.Break(func(*http.Request) objectserver.Fault {
		switch requests.Add(1) {
		case 1:
			return objectserver.Fault{Cut: 300_000}
		case 2:
			return objectserver.Fault{Lost: true}
		case 3:
			return objectserver.Fault{Status: http.StatusServiceUnavailable}
		case 4:
			return objectserver.Fault{Cut: 1}
		}
		return objectserver.Fault{}
	})
	got := make([]byte, len(data)-10)
	must(t, f.Store.ReadAt(t.Context(), "body", got, 10))
	if !bytes.Equal(got, data[10:]) {
		t.Fatal("other bytes")
	}
	if requests.Load() != 5 {
		t.Fatalf("%d requests", requests.Load())
	}
	requests.Store(10) // the object's own end is no broken body
	err := f.Store.ReadAt(t.Context(), "body", make([]byte, 100), int64(len(data)-50))
	if !errors.Is(err, io.ErrUnexpectedEOF) || requests.Load() != 11 {
		t.Fatalf("%d requests, %v", requests.Load()-10, err)
	}
}

// NoRanges tests that a service which answers with other bytes than those that were asked for is told. open returns a
// store of a service without TLS, anonymous.
func NoRanges(t *testing.T, open func(t *testing.T, url string) object.Store) {
	whole := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "0123456789")
	}))
	t.Cleanup(whole.Close)
	got := make([]byte, 4)
	err := open(t, whole.URL).ReadAt(t.Context(), "a", got, 3)
	if err == nil || !strings.Contains(err.Error(), "ranges") {
		t.Fatalf("%v: %q", err, got)
	}
}
