package sst

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/sstable"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type entry struct{ key, value []byte }

func build(t interface {
	Helper()
	Fatal(...any)
}, entries []entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	for _, e := range entries {
		if err := w.Add(e.key, e.value); err != nil {
			t.Fatal(err)
		}
	}
	n, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(buf.Len()) {
		t.Fatal("size", n, buf.Len())
	}
	return buf.Bytes()
}

func readFrom(b []byte) ReadFunc {
	return func(_ context.Context, ranges ...object.Range) error {
		for _, r := range ranges {
			if r.Off < 0 || r.Off > int64(len(b)) || int64(len(r.P)) > int64(len(b))-r.Off {
				return io.ErrUnexpectedEOF
			}
			copy(r.P, b[r.Off:])
		}
		return nil
	}
}

// sorted draws a table: short keys, long ones, and values from none to several blocks.
func sorted(t *rapid.T) []entry {
	n := rapid.SampledFrom([]int{0, 1, 2, 15, 100, 3000}).Draw(t, "n")
	size := rapid.SampledFrom([]int{0, 10, 300, 9000}).Draw(t, "value size")
	if n*size > 4<<20 {
		n = 4 << 20 / size
	}
	seed := rapid.Uint64().Draw(t, "seed")
	seen := map[string]bool{}
	var out []entry
	for i := range n {
		seed = seed*6364136223846793005 + 1442695040888963407
		k := binary.BigEndian.AppendUint64([]byte("prefix"), seed)[:6+int(seed>>60)%8]
		if seen[string(k)] {
			continue
		}
		seen[string(k)] = true
		out = append(out, entry{k, bytes.Repeat([]byte{byte(i)}, size*int(seed>>58)/64)})
	}
	slices.SortFunc(out, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	return out
}

// TestReaderEqualsPebble holds the reader to what was written and to Pebble's own reader on the same bytes.
func TestReaderEqualsPebble(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		entries := sorted(t)
		b := build(t, entries)
		fetch := Fetch{Head: rapid.SampledFrom([]int{0, 2000}).Draw(t, "head"), Whole: rapid.SampledFrom([]int{0,
			1 << 20}).Draw(t, "whole"),
			Tail: rapid.SampledFrom([]int{0, 20000, 1 << 30}).Draw(t, "tail"), Gap: rapid.SampledFrom([]int{0,
				1 << 20}).Draw(t, "gap")}
		r, err := Open(ctx, "o", int64(len(b)), fetch, readFrom(b))
		if err != nil {
			t.Fatal(err)
		}
		oracle, err := sstable.NewMemReader(b, sstable.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer oracle.Close()
		oit, err := oracle.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		if err != nil {
			t.Fatal(err)
		}
		defer oit.Close()
		it := r.Iter(nil)
		i := 0
		kv := oit.First()
		for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
			v, _, err := kv.Value(nil)
			if err != nil || !bytes.Equal(it.Key(), entries[i].key) || !bytes.Equal(it.Value(), entries[i].value) ||
				!bytes.Equal(kv.K.UserKey, it.Key()) || !bytes.Equal(v, it.Value()) {
				t.Fatalf("entry %d: %x, want %x, Pebble has %x", i, it.Key(), entries[i].key, kv.K.UserKey)
			}
			i++
			kv = oit.Next()
		}
		if it.Err() != nil || i != len(entries) || kv != nil {
			t.Fatalf("%d of %d entries: %v", i, len(entries), it.Err())
		}
		if len(entries) == 0 {
			return
		}
		var keys [][]byte
		var want [][]byte
		for range 20 {
			e := entries[rapid.IntRange(0, len(entries)-1).Draw(t, "i")]
			keys, want = append(keys, e.key), append(want, e.value)
			keys, want = append(keys, append(bytes.Clone(e.key), 0, 0, 0)), append(want, nil)
		}
		got, err := r.Get(ctx, keys...)
		if err != nil {
			t.Fatal(err)
		}
		for k := range keys {
			if !bytes.Equal(got[k], want[k]) || (got[k] == nil) != (want[k] == nil) && k%2 == 1 || k%2 == 0 &&
				got[k] == nil {
				t.Fatalf("key %x: %x, want %x", keys[k], got[k], want[k])
			}
		}
		lo := rapid.IntRange(0, len(entries)-1).Draw(t, "lo")
		hi := rapid.IntRange(lo, len(entries)-1).Draw(t, "hi")
		it = r.Iter(entries[hi].key)
		n := lo
		for ok := it.SeekGE(ctx, entries[lo].key); ok; ok = it.Next(ctx) {
			if !bytes.Equal(it.Key(), entries[n].key) {
				t.Fatalf("range entry %d: %x, want %x", n, it.Key(), entries[n].key)
			}
			n++
		}
		if it.Err() != nil || n != hi {
			t.Fatalf("range ended at %d of %d: %v", n, hi, it.Err())
		}
	})
}

func many(n, size int) []entry {
	out := make([]entry, n)
	for i := range out {
		out[i] = entry{fmt.Appendf(nil, "key%08d", i), bytes.Repeat([]byte{byte(i), byte(i >> 8)}, size/2)}
	}
	return out
}

// use reads everything in every way; it returns an error or nil, and must neither panic nor read wrong entries.
func use(ctx context.Context, b []byte, entries []entry) error {
	r, err := Open(ctx, "o", int64(len(b)), Fetch{}, readFrom(b))
	if err != nil {
		return err
	}
	return useReader(ctx, r, entries)
}

func useReader(ctx context.Context, r *Reader, entries []entry) error {
	i := 0
	it := r.Iter(nil)
	for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
		if entries != nil && (i >= len(entries) || !bytes.Equal(it.Key(), entries[i].key) || !bytes.Equal(it.Value(),
			entries[i].value)) {
			return errors.New("wrong entry without an error")
		}
		i++
	}
	if it.Err() != nil {
		return it.Err()
	}
	if entries != nil && i != len(entries) {
		return errors.New("entries missing without an error")
	}
	_, err := r.Get(ctx, []byte("key00000007"), []byte("key00000777"), []byte("a"), []byte("z"))
	return err
}

// TestDamage flips every byte of a small table in turn, and many of one with an index of two levels: what is read is
// right, or an error that says it is corrupt and where.
func TestDamage(t *testing.T) {
	for _, c := range []struct{ n, steps int }{{100, 5000}, {12000, 150}} {
		entries := many(c.n, 80)
		b := build(t, entries)
		if r, err := Open(t.Context(), "o", int64(len(b)), Fetch{}, readFrom(b)); err != nil ||
			r.twoLevel != (c.n > 10000) {
			t.Fatal(err, len(b))
		}
		flip := func(i int) {
			d := bytes.Clone(b)
			d[i] ^= 1 << (i % 8)
			err := use(t.Context(), d, entries)
			var ce *format.CorruptError
			if err != nil && (!errors.As(err, &ce) || ce.Object != "o" || ce.Offset < 0) {
				t.Fatalf("byte %d of %d: %v", i, len(b), err)
			}
		}
		for i := 0; i < len(b); i += 1 + len(b)/c.steps {
			flip(i)
		}
		for i := max(0, len(b)-50_000); i < len(b); i += 1 + 50_000/c.steps {
			flip(i)
		}
		for n := 0; n < len(b); n += 1 + len(b)/50 {
			if err := use(t.Context(), b[:n], entries); !errors.Is(err, format.ErrCorrupt) {
				t.Fatalf("cut to %d of %d: %v", n, len(b), err)
			}
		}
	}
}

// forge writes a block over the one at h with a right checksum, so that the fuzzer gets past it.
func forge(b []byte, h handle, body []byte) {
	copy(b[h.off:h.off+h.n], body)
	trailer := b[h.off+h.n:]
	trailer[0] = 0
	binary.LittleEndian.PutUint32(trailer[1:], maskedCRC(b[h.off:h.off+h.n+1]))
}

// A cleanTable is a table, and where its parts are.
type cleanTable struct {
	b      []byte
	blocks []handle // data, index, properties, metaindex and, with two levels, an index partition
}

func cleanTableOf(f *testing.F, entries []entry) (out cleanTable) {
	out.b = build(f, entries)
	r, err := Open(f.Context(), "o", int64(len(out.b)), Fetch{}, readFrom(out.b))
	if err != nil {
		f.Fatal(err)
	}
	foot := out.b[len(out.b)-footerLen:]
	meta, i := r.handle(foot[1:], 0, uint64(len(out.b)))
	index, _ := r.handle(foot[1:], i, uint64(len(out.b)))
	var c cursor
	c.init(out.b[meta.off:meta.off+meta.n], true)
	c.next()
	props, _ := r.handle(c.value, 0, uint64(len(out.b)))
	out.blocks = []handle{r.top[0].handle, index, props, meta}
	if r.twoLevel {
		part, err := r.partition(f.Context(), r.top[1].handle)
		if err != nil {
			f.Fatal(err)
		}
		out.blocks[0] = part[0].handle
		out.blocks = append(out.blocks, r.top[1].handle)
	}
	return out
}

// FuzzReader gives the reader a table in which the fuzzer wrote one block and made its checksum right, or the footer.
// The table has an index of one level, or of two. Whatever is in it, it is read about as often as it is used, and
// nothing large is allocated.
func FuzzReader(f *testing.F) {
	tables := []cleanTable{cleanTableOf(f, many(50, 100)), cleanTableOf(f, many(1200, 100))}
	const parts = 6 // the last is the footer
	for level, c := range tables {
		if level+4 != len(c.blocks) {
			f.Fatalf("table %d has %d parts: want an index of %d levels", level, len(c.blocks), level+1)
		}
		for i, h := range c.blocks {
			f.Add(uint8(level*parts+i), c.b[h.off:h.off+h.n])
		}
		f.Add(uint8(level*parts+parts-1), c.b[len(c.b)-footerLen:])
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		c := tables[which/parts%2]
		b := bytes.Clone(c.b)
		if i := int(which % parts); i < len(c.blocks) {
			forge(b, c.blocks[i], body)
		} else {
			copy(b[len(b)-footerLen:], body)
		}
		allocated, read, err := measure(t, b, func(r *Reader) error { return useReader(t.Context(), r, nil) })
		if err != nil && !errors.Is(err, format.ErrCorrupt) {
			t.Fatal(err)
		}
		if most := uint64(8*len(b) + 1<<20); allocated > most || read > most {
			t.Fatalf("a table of %d bytes: %d allocated, %d read", len(b), allocated, read)
		}
	})
}

// TestRequests holds what a look-up costs in a process that has just started.
func TestRequests(t *testing.T) {
	for _, n := range []int{200, 20000} {
		b := build(t, many(n, 200))
		var reads, bytesRead int
		inner := readFrom(b)
		r, err := Open(t.Context(), "o", int64(len(b)), Fetch{},
			func(ctx context.Context, ranges ...object.Range) error {
				reads++
				for _, r := range ranges {
					bytesRead += len(r.P)
				}
				return inner(ctx, ranges...)
			})
		if err != nil {
			t.Fatal(err)
		}
		if reads != 1 {
			t.Errorf("%d entries: opened with %d reads", n, reads)
		}
		if _, err := r.Get(t.Context(), []byte("key00000100")); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d entries in %d bytes: %d reads, %d bytes", n, len(b), reads, bytesRead)
		if reads > 3 || bytesRead > 96<<10 {
			t.Errorf("%d entries: a look-up took %d reads, %d bytes", n, reads, bytesRead)
		}
	}
}
