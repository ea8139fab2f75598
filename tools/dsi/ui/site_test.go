package ui

import (
	"context"
	"errors"
	"iter"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// A failing is a store whose listings fail as long as fails is set.
type failing struct {
	object.Store
	fails atomic.Bool
}

func (f *failing) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	if f.fails.Load() {
		return func(yield func(object.Info, error) bool) { yield(object.Info{}, errors.New("no route to ü")) }
	}
	return f.Store.List(ctx, prefix, after)
}

// TestFailedLook: while the store cannot be read the page says so, each time that it asks, and a warning says it once.
// The figures stay.
func TestFailedLook(t *testing.T) {
	blobs := &failing{Store: object.NewMemory()}
	store, err := storage.Create(t.Context(), blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var warned []string
	s := &site{ctx: t.Context(), store: store, key: "K", warn: func(text string) { warned = append(warned, text) }}
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask := func() (code int, failed string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/K/report?seen="+s.version, nil))
		failed, err := url.PathUnescape(w.Header().Get("Dsistore-Failed"))
		if err != nil {
			t.Fatal(err)
		}
		return w.Code, failed
	}
	for i, fails := range []bool{false, true, true, false, true} {
		blobs.fails.Store(fails)
		if code, failed := ask(); code != 204 || strings.Contains(failed, "no route to ü") != fails {
			t.Errorf("%d: %d, %q", i, code, failed)
		}
	}
	if len(warned) != 2 {
		t.Errorf("warned %q, want once each time that it begins", warned)
	}
}
