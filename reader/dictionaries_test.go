package reader

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// sharedTable is a table of one segment whose features' stripes share values, and the rows of each feature.
func sharedTable(t *testing.T, stripes, rows int) (*testTable, [][]int64) {
	t.Helper()
	types := []vector.Type{
		{Kind: vector.Sparse, Elem: vector.Int64}, {Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Sparse,
			Elem: vector.Int64},
	}
	table := &testTable{
		blobs:    &memoryBlobs{objects: map[string][]byte{}},
		segments: []catalog.SegmentDescriptor{{ID: "s", Rows: uint64(stripes * rows)}},
		indexes:  map[string]*testIndex{"s": {entries: map[catalog.FeatureID]*segment.Entry{}}},
	}
	index := table.indexes["s"]
	for range stripes {
		index.stripeRows = append(index.stripeRows, uint32(rows))
	}
	var object bytes.Buffer
	var want [][]int64
	rng := rand.New(rand.NewPCG(1, 2))
	for k, ty := range types {
		f := catalog.Feature{ID: catalog.FeatureID(k + 1), Name: string(rune('a' + k)), Type: ty}
		table.features = append(table.features, f)
		offset := object.Len()
		w, err := format.NewWriter(&object, ty, format.WriterOptions{Feature: uint64(f.ID), Name: f.Name})
		if err != nil {
			t.Fatal(err)
		}
		var all []int64
		for range stripes {
			c := &vector.Column{Type: ty, Rows: rows, Slots: rows}
			for i := range rows {
				c.Ints = append(c.Ints, int64(uint64(rng.IntN(300)+1)*0x9e3779b97f4a7c15>>1))
				c.Offsets = append(c.Offsets, int32(i))
			}
			if c.Offsets = append(c.Offsets, int32(rows)); !ty.IsList() {
				c.Offsets = nil
			}
			all = append(all, c.Ints...)
			if err := w.WriteStripe(c); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, all)
		meta, size, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if meta.Dictionary.Length == 0 {
			t.Fatalf("feature %s: no dictionary", f.Name)
		}
		index.entries[f.ID] = &segment.Entry{Object: "pack", Offset: uint64(offset), Length: uint64(size),
			Meta: meta}
	}
	for _, e := range index.entries {
		e.ObjectSize = uint64(object.Len())
	}
	table.blobs.objects["pack"] = object.Bytes()
	return table, want
}

// nearAndFar runs a test of what is read from a disk, and from an object store.
func nearAndFar(t *testing.T, test func(t *testing.T, far bool)) {
	t.Run("near", func(t *testing.T) { test(t, false) })
	t.Run("far", func(t *testing.T) { test(t, true) })
}

// A run fetches and decodes each dictionary once, whatever the position that it starts at, and gives its memory back.
func TestDictionariesAreReadOnce(t *testing.T) {
	nearAndFar(t, checkDictionariesAreReadOnce)
}

func checkDictionariesAreReadOnce(t *testing.T, far bool) {
	defer goleak.VerifyNone(t)
	const stripes, rows, batch = 12, 500, 700
	table, want := sharedTable(t, stripes, rows)
	table.blobs.far = far
	opts := Options{Workers: 2, Requests: 3, MemoryBudget: 1 << 17, GapBytes: 1, RequestBytes: 1 << 20}
	s := open(t, table.layout([]int{2, 0, 1}, batch, OutputColumns), opts)
	defer s.Close()
	for _, first := range []uint64{0, 5, s.Batches() - 1} {
		if err := s.Seek(Position{Batch: first}); err != nil {
			t.Fatal(err)
		}
		table.blobs.reads = nil
		row := int(first) * batch
		for {
			b, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for k, f := range []int{2, 0, 1} {
				for i := range b.Rows {
					if v := columnValue(b.Columns[k], i); len(v.numbers) != 1 || v.numbers[0].i != want[f][row+i] {
						t.Fatalf("row %d of feature %d: %v, want %d", row+i, f, v, want[f][row+i])
					}
				}
			}
			row += b.Rows
			b.Release()
		}
		if row != stripes*rows {
			t.Fatalf("from batch %d: %d rows", first, row)
		}
		for _, e := range table.indexes["s"].entries {
			at, length := e.Meta.Dictionary.Range()
			from, to, read := int64(e.Offset+at), int64(e.Offset+at+length), int64(0)
			for _, r := range table.blobs.reads {
				read += max(0, min(r.to, to)-max(r.from, from))
			}
			if read != to-from {
				t.Errorf("from batch %d: %d bytes of a dictionary of %d were read", first, read, to-from)
			}
		}
		s.stop()
		if freeMemory(s) != opts.MemoryBudget {
			t.Errorf("from batch %d: %d bytes of memory of %d at the end", first, freeMemory(s),
				opts.MemoryBudget)
		}
	}
}

// The buffers of a shuffle come back to segments that were looked up and forgotten, from any position: the memory of
// their dictionaries comes back all the same.
func TestShuffledDictionariesGiveMemoryBack(t *testing.T) {
	nearAndFar(t, checkShuffledDictionariesGiveMemoryBack)
}

func checkShuffledDictionariesGiveMemoryBack(t *testing.T, far bool) {
	defer goleak.VerifyNone(t)
	const stripes, rows, batch, segments = 12, 500, 700, 8
	table, want := sharedTable(t, stripes, rows)
	table.blobs.far = far
	for _, id := range []string{"t", "u", "v", "w", "x", "y", "z"} {
		d := table.segments[0]
		d.ID = id
		table.segments, table.indexes[id] = append(table.segments, d), table.indexes["s"]
	}
	counts := map[int64]int{}
	for _, v := range want[0] {
		counts[v] += segments
	}
	features := []int{0, 1, 2}
	l := table.layoutOf(features, Plan{Table: "t", Snapshot: 1, BatchSize: batch, Output: OutputColumns,
		Shuffle: Shuffle{Unit: UnitRow, BufferStripes: 4}})
	opts := Options{Workers: 2, MemoryBudget: 1 << 16, RequestBytes: 1 << 20} // a segment and a half are kept
	s := open(t, l, opts)
	defer s.Close()
	for _, first := range []uint64{0, 3, s.Batches() / 2} {
		if err := s.Seek(Position{Batch: first}); err != nil {
			t.Fatal(err)
		}
		opened := table.opens.Load()
		row := int(first) * batch
		got := map[int64]int{}
		for {
			b, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Rows {
				got[columnValue(b.Columns[0], i).numbers[0].i]++
			}
			row += b.Rows
			b.Release()
		}
		if row != segments*stripes*rows {
			t.Fatalf("from batch %d: %d rows", first, row)
		}
		for v, n := range got {
			if n > counts[v] || first == 0 && n != counts[v] {
				t.Fatalf("from batch %d: %d times %d, of %d", first, n, v, counts[v])
			}
		}
		if table.opens.Load()-opened <= 2*segments {
			t.Fatal("no segment was forgotten")
		}
		s.stop()
		if freeMemory(s) != opts.MemoryBudget {
			t.Errorf("from batch %d: %d bytes of memory of %d at the end", first, freeMemory(s),
				opts.MemoryBudget)
		}
	}
}

// Buffers that begin at EndBatch or after it are not read.
func TestShuffleEndsAtEndBatch(t *testing.T) {
	table, _ := sharedTable(t, 12, 500)
	l := table.layoutOf([]int{0, 1, 2}, Plan{Table: "t", Snapshot: 1, BatchSize: 500, Output: OutputColumns,
		Shuffle: Shuffle{Unit: UnitRow, BufferStripes: 1}})
	s := open(t, l, Options{EndBatch: 2})
	defer s.Close()
	for i := range 3 {
		b, err := s.Next(t.Context())
		if (i == 2) != errors.Is(err, io.EOF) {
			t.Fatal(i, err)
		}
		if err == nil {
			b.Release()
		}
	}
	if n, all := s.Stats().BytesNeeded, uint64(len(table.blobs.objects["pack"])); n > all/2 {
		t.Errorf("%d bytes of %d were read for 2 stripes of 12", n, all)
	}
}

// Stripes whose bytes are there before the dictionaries wait for them.
func TestStripesWaitForDictionaries(t *testing.T) {
	defer goleak.VerifyNone(t)
	const stripes, rows = 12, 500
	table, want := sharedTable(t, stripes, rows)
	e := table.indexes["s"].entries[1]
	last := e.Meta.Stripes[stripes-1]
	others, once := make(chan struct{}), sync.Once{}
	table.blobs.hook = func(ctx context.Context, _ string, p []byte, off int64) error {
		if at, _ := e.Meta.Dictionary.Range(); off <= int64(e.Offset+at) && int64(e.Offset+at) < off+int64(len(p)) {
			select {
			case <-others:
			case <-ctx.Done():
			}
		}
		if off <= int64(e.Offset+last.Offset) && int64(e.Offset+last.Offset) < off+int64(len(p)) {
			once.Do(func() { close(others) })
		}
		return nil
	}
	s := open(t, table.layout([]int{0}, 500, OutputColumns),
		Options{Workers: 1, Requests: 8, MemoryBudget: 1 << 17, RequestBytes: 1 << 20})
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range stripes {
		b, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if v := columnValue(b.Columns[0], 7); v.numbers[0].i != want[0][i*rows+7] {
			t.Fatalf("batch %d: %v, want %d", i, v, want[0][i*rows+7])
		}
		b.Release()
	}
}

// A dictionary that is damaged, or cut off, fails the batch of the first stripe, by name.
func TestDamagedDictionary(t *testing.T) {
	nearAndFar(t, checkDamagedDictionary)
}

func checkDamagedDictionary(t *testing.T, far bool) {
	defer goleak.VerifyNone(t)
	table, _ := sharedTable(t, 6, 500)
	table.blobs.far = far
	e := table.indexes["s"].entries[2]
	at, _ := e.Meta.Dictionary.Range()
	table.blobs.objects["pack"][e.Offset+at+3] ^= 1
	s := open(t, table.layout([]int{0, 1}, 100, OutputColumns), Options{MemoryBudget: 1 << 17})
	defer s.Close()
	_, err := s.Next(t.Context())
	var c *format.CorruptError
	if !errors.As(err, &c) || c.Stream != "dictionary" || c.Feature != "b" || c.Object != "pack" ||
		c.Offset != int64(e.Offset+at) {
		t.Fatal(err)
	}
}
