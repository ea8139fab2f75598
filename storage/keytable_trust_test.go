package storage

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestKeyTableSwapped: a key table of another segment, of as many rows, stripes and bytes, is told from the
// segment's own.
func TestKeyTableSwapped(t *testing.T) {
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.core.Segments.MinKeyRows = 1
	rng := rand.New(rand.NewPCG(1, 2))
	a := makeKeyed(t, tab, rng, []uint32{30, 20}, 1<<40)
	var b *keyed
	for b == nil || b.d.KeysSize != a.d.KeysSize {
		b = makeKeyed(t, tab, rng, []uint32{30, 20}, 1<<40)
	}
	mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures{keyNumber, keyText,
		keyGroup, feature("other", int64Type), feature("plain", int64Type)}, commit.AddSegments{a.d, b.d}}})
	ia, _ := names.ParseID(a.d.ID)
	ib, _ := names.ParseID(b.d.ID)
	data := make([]byte, b.d.KeysSize)
	if err := mem.ReadAt(t.Context(), ib.KeysName(), data, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(mem.Delete(t.Context(), ia.KeysName()), mem.PutIfAbsent(t.Context(), ia.KeysName(),
		data)); err != nil {
		t.Fatal(err)
	}
	missed := 0
	for row, v := range a.numbers {
		if v == nil {
			continue
		}
		got, err := a.rows(keyNumber, segment.HashInt(*v))
		if err == nil && got != nil && !got[uint32(row)] {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("%d keys that the segment has are not found, without an error", missed)
	}
	r, err := tab.s.Verify(t.Context(), "", true, nil)
	if err != nil || len(r.Damage) == 0 {
		t.Errorf("a deep verify finds nothing: %v, %v", r.Damage, err)
	}
}

// TestKeyRowsNotAsked: where no segment has a table, the keys are not copied and sorted.
func TestKeyRowsNotAsked(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	d := writeSegment(t, tab, nil, []uint32{50}, 1, segment.Options{}, "a")
	hashes := make([]uint64, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := tab.log.Empty().KeyRows(t.Context(), keyNumber, hashes, []catalog.SegmentDescriptor{d}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d MiB", n>>20)
	}
}
