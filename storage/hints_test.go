package storage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
)

// TestHints: whatever hints say, the newest snapshot is found, and at no great cost.
func TestHints(t *testing.T) {
	ctx := t.Context()
	const n = 200
	prefix := newestPrefix("ads")
	hint := func(n uint64) string { return newestName("ads", n) }
	for name, hints := range map[string][]string{
		"none":                    {},
		"right":                   {hint(1), hint(65), hint(129), hint(193)},
		"old":                     {hint(1)},
		"past the end":            {hint(n + 5), hint(193)},
		"far past the end":        {hint(math.MaxUint64), hint(math.MaxUint64 - 1), hint(1 << 63), hint(193)},
		"of nothing":              {hint(0)},
		"garbage before the rest": {prefix + "!", prefix + "+", prefix + "00000000000000000000~", prefix + "0", prefix + "%00", hint(193)},
		"garbage after the rest":  {prefix + "zzz", prefix + "99999999999999999999", hint(193)},
		"directories":             {prefix + "0/x", prefix + "00000000000000000000/1", hint(193)},
	} {
		t.Run(name, func(t *testing.T) {
			mem := object.NewMemory()
			tab := newTable(t, mem)
			for range n {
				if _, err := tab.Commit(ctx, Change{Operation: "ingest"}); err != nil {
					t.Fatal(err)
				}
			}
			for _, i := range []uint64{1, 65, 129, 193} {
				if err := mem.Delete(ctx, hint(i)); err != nil {
					t.Fatal(err)
				}
			}
			for _, h := range hints {
				if object.ValidateName(h) != nil {
					continue
				}
				if err := mem.PutIfAbsent(ctx, h, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			most := int64(11) // from 193 on
			switch name {
			case "none", "old", "past the end", "far past the end", "of nothing":
				most = 20 // the numbers from the first on are tried
			}
			counted := object.NewCounted(mem)
			s, err := newTable(t, counted).Latest(ctx)
			if err != nil || s.Info().Number != n {
				t.Fatal(s, err)
			}
			if c := counted.Counts(); c.Requests() > most {
				t.Errorf("%d requests", c.Requests())
			}
			if tables, err := tab.s.Tables(ctx); err != nil || fmt.Sprint(tables) != "[ads]" {
				t.Error(tables, err)
			}
			if s, err = newTable(t, mem).Commit(ctx, Change{Operation: "next"}); err != nil || s.Info().Number != n+1 {
				t.Error(s, err)
			}
		})
	}
}

// TestNewestFromAfar: where requests take long, the newest snapshot is there after two round trips, of few snapshots and of many,
// and is the same one that is found near by.
func TestNewestFromAfar(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		n, expired, trips int
		hints             bool
	}{
		{n: 1, trips: 2, hints: true}, {n: 6, trips: 2, hints: true}, {n: 64, trips: 2, hints: true}, {n: 65, trips: 2, hints: true}, {n: 255, trips: 2, hints: true},
		{n: 300, trips: 3, hints: true}, {n: 320, trips: 3, hints: true}, {n: 321, trips: 3, hints: true},
		{n: 6, trips: 2}, {n: 300, trips: 20}, {n: 300, expired: 250, trips: 4, hints: true},
	} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		for range c.n {
			if _, err := tab.Commit(ctx, Change{Operation: "ingest"}); err != nil {
				t.Fatal(err)
			}
		}
		want := uint64(c.n)
		if c.expired > 0 {
			if _, err := tab.Expire(ctx, ExpireOptions{KeepLast: uint64(c.n - c.expired)}); err != nil {
				t.Fatal(err)
			}
			want++
			if _, err := GC(ctx, tab.s, GCOptions{NoWait: true}); err != nil {
				t.Fatal(err)
			}
		}
		if !c.hints {
			for i := uint64(1); i <= want; i += newestEvery {
				if err := mem.Delete(ctx, newestName("ads", i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		near, err := newTable(t, mem).Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, start := t.Context(), time.Now()
			s, err := Open(ctx, object.NewDelayed(mem, time.Second), Options{})
			if err != nil {
				t.Fatal(err)
			}
			far, err := s.Table(ctx, "ads")
			if err != nil {
				t.Fatal(err)
			}
			got, err := far.Latest(ctx)
			if err != nil || got.Info().Number != want || near.Info().Number != want {
				t.Fatalf("%+v: %d near, %v from afar (%v), want %d", c, near.Info().Number, got, err, want)
			}
			if n := int(time.Since(start) / time.Second); n > c.trips {
				t.Errorf("%+v: %d round trips", c, n)
			}
		})
	}
}

// TestTableVanishes: a table whose snapshots somebody took away under an open handle is not committed to as if they were
// there: nobody would find the commit.
func TestTableVanishes(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	populate(t, l)
	other, err := object.NewLocal(l.Root())
	if err != nil {
		t.Fatal(err)
	}
	tab := newTable(t, other)
	if _, err := tab.Latest(ctx); err != nil {
		t.Fatal(err)
	}
	d := segment(t, tab, nil, []uint32{10}, 1, SegmentOptions{}, "a")
	if err := os.RemoveAll(filepath.Join(l.Root(), "tables")); err != nil {
		t.Fatal(err)
	}
	if s, err := tab.Commit(ctx, Change{Operation: "ingest", Features: features("a"), Add: []SegmentDescriptor{d}}); err == nil {
		_, lost := newTable(t, l).Latest(ctx)
		t.Fatalf("snapshot %d was made, and then: %v", s.Info().Number, lost)
	} else {
		t.Log(err)
	}
	if _, err := newTable(t, l).Latest(ctx); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

// TestMissingSnapshot takes away each snapshot, the first, some and all: what is behind the gap is not taken for garbage,
// and verify says what is missing. Only of the newest nobody can know.
func TestMissingSnapshot(t *testing.T) {
	ctx := t.Context()
	for _, gone := range [][]uint64{{1}, {2}, {3}, {5}, {2, 3, 4}, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}} {
		mem := object.NewMemory()
		tab := populate(t, mem)
		segment(t, tab, nil, []uint32{10}, 1, SegmentOptions{}, "a")
		for _, n := range gone {
			if err := mem.Delete(ctx, snapshotName("ads", n)); err != nil {
				t.Fatal(err)
			}
		}
		first := snapshotName("ads", gone[0])
		for _, table := range []string{"", "ads"} {
			if gone[0] == 1 && table != "" {
				if _, err := newTable(t, mem).s.Table(ctx, "ads"); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), first) {
					t.Errorf("without %v: %v", gone, err)
				}
				continue
			}
			r, err := Verify(ctx, newTable(t, mem).s, table, false, nil)
			if err != nil || r.DamageCount == 0 || !strings.Contains(r.Damage[0].Error(), first) || r.Snapshots != 6-uint64(len(gone)) {
				t.Errorf("without %v: %v %+v", gone, err, r)
			}
		}
		if r, err := GC(ctx, newTable(t, mem).s, GCOptions{NoWait: true}); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), first) {
			t.Errorf("without %v: gc removed %v: %v", gone, r, err)
		}
	}
}

// TestGCWithoutTables: with all tables gone, a disk mounted in part or a copy under way, nothing is garbage.
func TestGCWithoutTables(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	populate(t, mem)
	count := func(prefix string, each func(string)) (n int) {
		for info, err := range mem.List(ctx, prefix, "") {
			if err != nil {
				t.Fatal(err)
			}
			each(info.Name)
			n++
		}
		return n
	}
	count(tablesPrefix, func(name string) {
		if err := mem.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	})
	before := count("", func(string) {})
	r, err := GC(ctx, newTable(t, mem).s, GCOptions{NoWait: true})
	if after := count("", func(string) {}); err == nil || after != before {
		t.Fatalf("%d objects of %d are left: %v %v", after, before, r, err)
	}
	if r, err := GC(ctx, newTable(t, mem).s, GCOptions{}); err != nil || r.Young == 0 {
		t.Fatal(r, err)
	}
}

// racing is a store in which gc takes the first snapshots between the look at one and the look at the next.
type racing struct {
	object.Store
	before string   // the Stat before which it happens
	take   []string // what goes
}

func (r *racing) Stat(ctx context.Context, name string) (object.Info, error) {
	if name == r.before {
		for _, n := range r.take {
			if err := r.Delete(ctx, n); err != nil {
				return object.Info{}, err
			}
		}
		r.before = ""
	}
	return r.Store.Stat(ctx, name)
}

// TestCommitWhileSnapshotsGo: a commit does not take the number of a snapshot that gc took while the newest was looked for.
func TestCommitWhileSnapshotsGo(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	for range 5 {
		if _, err := tab.Commit(ctx, Change{Operation: "ingest"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tab.Expire(ctx, ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	name := func(n uint64) string { return snapshotName("ads", n) }
	s, err := newTable(t, &racing{mem, name(2), []string{name(1), name(2)}}).Commit(ctx, Change{Operation: "next"})
	if err != nil || s.Info().Number != 7 {
		t.Fatal(s, err)
	}
}
