package storage

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// TestKeyHead: the first 2 KiB of a table of keys hold the record of its stripes, as SPEC.md says: it is not read again.
func TestKeyHead(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	k := makeKeyed(t, tab, rand.New(rand.NewPCG(1, 2)), []uint32{20000, 30000, 10000}, 1<<50)
	segment, err := names.ParseID(k.d.ID)
	if err != nil {
		t.Fatal(err)
	}
	counting := object.NewCounted(tab.s.blobs)
	tab.s.blobs, tab.s.trees.Blobs = counting, counting
	if _, err := tab.s.segments.openKeys(t.Context(), k.d); err != nil {
		t.Fatal(err)
	}
	reads := counting.Counts().Reads
	t.Logf("%s of %d bytes: %d", segment.KeysName(), k.d.KeysSize, reads)
	if reads > 3 { // tail, head, and the index partition of the facts
		t.Errorf("opening a table of keys of %d bytes reads %d ranges: want 3, the tail, the head and an index partition: the head lacks the facts", k.d.KeysSize, reads)
	}
}

// TestKeyFactsMemory: facts that lie about how many features there are allocate no more than a small multiple of their bytes.
func TestKeyFactsMemory(t *testing.T) {
	b := binary.AppendUvarint(nil, 1<<20)
	b = append(b, make([]byte, 1<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := wire.Decoder{Rest: b}
	decodeKeyFacts(&d)
	runtime.ReadMemStats(&after)
	if d.Reason == "" {
		t.Error("no damage")
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("facts of 1 MiB allocate %d MiB", n>>20)
	}
}

// TestKeyTableSwapped: a table of keys of another segment, of as many rows, stripes and bytes, is told from the segment's own.
func TestKeyTableSwapped(t *testing.T) {
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.segments.MinKeyRows = 1
	rng := rand.New(rand.NewPCG(1, 2))
	a := makeKeyed(t, tab, rng, []uint32{30, 20}, 1<<40)
	var b *keyed
	for b == nil || b.d.KeysSize != a.d.KeysSize {
		b = makeKeyed(t, tab, rng, []uint32{30, 20}, 1<<40)
	}
	mustCommit(t, tab, Change{Operation: "ingest", Ops: []Operation{AddFeatures{keyNumber, keyText, keyGroup, feature("other", int64Type), feature("plain", int64Type)}, AddSegments{a.d, b.d}}})
	ia, _ := names.ParseID(a.d.ID)
	ib, _ := names.ParseID(b.d.ID)
	data := make([]byte, b.d.KeysSize)
	if err := mem.ReadAt(t.Context(), ib.KeysName(), data, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(mem.Delete(t.Context(), ia.KeysName()), mem.PutIfAbsent(t.Context(), ia.KeysName(), data)); err != nil {
		t.Fatal(err)
	}
	missed := 0
	for row, v := range a.numbers {
		if v == nil {
			continue
		}
		got, err := a.rows(keyNumber, HashInt(*v))
		if err == nil && got != nil && !got[uint32(row)] {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("%d keys that the segment has are not found, without an error", missed)
	}
	r, err := Verify(t.Context(), tab.s, "", true, nil)
	if err != nil || len(r.Damage) == 0 {
		t.Errorf("a deep verify finds nothing: %v, %v", r.Damage, err)
	}
}

// TestKeyBucketSkewed: a feature whose keys were made so that their hashes begin alike (xxhash64 of eight bytes can be turned round) is left out.
func TestKeyBucketSkewed(t *testing.T) {
	k := &keyHashes{feature: 1, stripes: 1, entries: make([]uint64, maxBucketEntries+9)}
	for i := range k.entries {
		k.entries[i] = uint64(i) << 16
	}
	if f := k.facts(); k.largestBucket(f) <= maxBucketEntries {
		t.Errorf("the largest bucket has %d entries", k.largestBucket(f))
	}
	for i := range k.entries {
		k.entries[i] = uint64(i) * 0x9e3779b97f4a7c15 & hashMask
	}
	if f := k.facts(); k.largestBucket(f) > 2*bucketEntries {
		t.Errorf("the largest bucket has %d entries", k.largestBucket(f))
	}
}

// TestKeyRowsNotAsked: where no segment has a table, the keys are not copied and sorted.
func TestKeyRowsNotAsked(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	d := segment(t, tab, nil, []uint32{50}, 1, SegmentOptions{}, "a")
	hashes := make([]uint64, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := (&Snapshot{t: tab}).KeyRows(t.Context(), keyNumber, hashes, []catalog.SegmentDescriptor{d}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d MiB", n>>20)
	}
}
