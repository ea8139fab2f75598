package reader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// TestExpiredIsNoDamage: what an erasure has removed of a snapshot that has expired is not there for its readers, and
// is no damage that somebody could repair. Of a snapshot that has not expired it is damage.
func TestExpiredIsNoDamage(t *testing.T) {
	blobs, snap, l := leasedLayout(t)
	table, ctx := snap.Table(), t.Context()
	opts := Options{Lease: LeaseOptions{Off: true}}
	tk, err := l.Taker(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer tk.Close()
	var data []string
	for info, err := range table.Store().Blobs().List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if base := path.Base(info.Name); base == "index.sst" || strings.HasPrefix(base, "pack-") {
			data = append(data, info.Name)
		}
	}
	if err := object.DeleteAll(ctx, table.Store().Blobs(), data); err != nil || len(data) == 0 {
		t.Fatal(data, err)
	}
	check := func(want error) {
		t.Helper()
		s, err := l.Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, next := s.Next(ctx)
		_, again := s.Next(ctx)
		_, take := tk.Take(ctx, []uint64{0})
		_, matching := Matching(ctx, snap, PlanOptions{Filter: "n = 1"}, LayoutOptions{Read: opts})
		for i, err := range []error{next, again, take, matching} {
			if !errors.Is(err, want) || errors.Is(err, format.ErrCorrupt) != (want == format.ErrCorrupt) {
				t.Errorf("%d: %v, want %v", i, err, want)
			}
		}
	}
	check(format.ErrCorrupt)
	number := snap.Info().Number
	for range 2 { // the first may expire none but those before number
		if _, err := table.Commit(ctx, commit.Change{Operation: "expire",
			Ops: []commit.Operation{commit.ExpireBelow(number)}}); err != nil {
			t.Fatal(err)
		}
		number++
	}
	check(storage.ErrNotFound)

	// A caller that waits in steps shorter than a request is told the same.
	blobs.Store = slowLists{blobs.Store}
	s, err := l.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for err = context.DeadlineExceeded; errors.Is(err, context.DeadlineExceeded); {
		step, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
		_, err = s.Next(step)
		cancel()
	}
	if !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("in steps: %v", err)
	}
}

// slowLists is a store whose lists begin after 50 ms, unless the caller waits no longer.
type slowLists struct{ object.Store }

func (s slowLists) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		select {
		case <-time.After(50 * time.Millisecond):
			s.Store.List(ctx, prefix, after)(yield)
		case <-ctx.Done():
			yield(object.Info{}, ctx.Err())
		}
	}
}

// lateContext ends between two looks at it: it has no error at first.
type lateContext struct {
	context.Context
	asked int
}

func (c *lateContext) Err() error {
	if c.asked++; c.asked > 1 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestTimeoutOfTheStore: a read that fails because a request took too long is an error of the reader, also where the
// caller's own time ends meanwhile. Taken for the caller's, it would leave a reader that no batch ever comes from.
func TestTimeoutOfTheStore(t *testing.T) {
	blobs, _, l := leasedLayout(t)
	s, err := l.Open(Options{Lease: LeaseOptions{Off: true}, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	blobs.Store = timedOut{blobs.Store}
	s.begin()
	if _, err := s.Next(&lateContext{Context: t.Context()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	again, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := s.Next(again); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("%v: want what the read said", err)
	}
}

// timedOut is a store whose reads take too long.
type timedOut struct{ object.Store }

func (timedOut) ReadAt(context.Context, string, []byte, int64) error {
	return fmt.Errorf("no answer: %w", context.DeadlineExceeded)
}
