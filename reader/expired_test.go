package reader

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// TestExpiredIsNoDamage: what an erasure has removed of a snapshot that has expired is not there for its readers, and
// is no damage that somebody could repair. Of a snapshot that has not expired it is damage.
func TestExpiredIsNoDamage(t *testing.T) {
	_, snap, l := leasedLayout(t)
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
}
