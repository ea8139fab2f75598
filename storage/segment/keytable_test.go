package segment

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
	"github.com/dsistore/dsistore/storage/wire"
)

var (
	int64Type = vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	userKey   = catalog.Feature{ID: catalog.NewFeatureID("user", 0), Name: "user", Type: int64Type,
		Role: catalog.RoleUserKey}
)

// writeSegment writes a segment with a user key, whose values are random.
func writeSegment(t testing.TB, s *Store, stripes []uint32) catalog.SegmentDescriptor {
	t.Helper()
	w, err := s.NewWriter(t.Context(), names.TableID{1}, nil, stripes, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	err = w.AddFeature(t.Context(), 0, userKey, func(w *format.Writer) error {
		for _, rows := range stripes {
			c := vector.NewColumn(int64Type)
			for range rows {
				c.Ints = append(c.Ints, rng.Int64())
				c.AddSlot()
			}
			if err := w.WriteStripe(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestKeyHead: the first 2 KiB of a key table hold the record of its stripes, as SPEC.md says: it is not read
// again.
func TestKeyHead(t *testing.T) {
	counting := object.NewCounted(object.NewMemory())
	s := NewStore(counting, format.Limits{}, 0)
	d := writeSegment(t, s, []uint32{20000, 30000, 10000})
	before := counting.Counts().Reads
	if _, err := s.openKeys(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	reads := counting.Counts().Reads - before
	t.Logf("%d bytes: %d", d.KeysSize, reads)
	if reads > 3 { // tail, head, and the index partition of the facts
		t.Errorf(
			"opening a table of keys of %d bytes reads %d ranges: want 3, the tail, the head and an index "+
				"partition: the head lacks the facts", d.KeysSize, reads)
	}
}

// TestKeyFactsMemory: facts that lie about how many features there are allocate no more than a small multiple of their
// bytes.
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

// TestKeyBucketSkewed: a feature whose keys were made so that their hashes begin alike (xxhash64 of eight bytes can be
// turned round) is left out.
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

// BenchmarkKeyTable makes a segment's table of a million keys, each its own.
func BenchmarkKeyTable(b *testing.B) {
	stripes := make([]*vector.Column, 64)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range stripes {
		stripes[i] = vector.NewColumn(int64Type)
		for range 16384 {
			stripes[i].Ints = append(stripes[i].Ints, rng.Int64())
			stripes[i].AddSlot()
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		k := &keyHashes{}
		for _, c := range stripes {
			k.add(c)
		}
		table := sst.NewWriter(io.Discard)
		err := k.write(table, k.facts(), len(stripes))
		size, ferr := table.Finish()
		if err := errors.Join(err, ferr); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size)/float64(len(stripes)*16384), "B/key")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(stripes)*16384), "ns/key")
}
