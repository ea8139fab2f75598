package sst

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
)

// A craftedEntry is an entry of a crafted block: a key without its trailer, of which shared bytes are those of the
// entry before.
type craftedEntry struct {
	shared int
	suffix string
	value  []byte
}

func appendHandle(dst []byte, h handle) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, h.off), h.n)
}

// craftBlock returns a block with one restart. raw: keys have no trailer; else it is part of the suffix, and nothing of
// it is shared.
func craftBlock(raw bool, entries ...craftedEntry) []byte {
	var b []byte
	for _, e := range entries {
		suffix := e.suffix
		if !raw {
			suffix += "\x01\x00\x00\x00\x00\x00\x00\x00"
		}
		b = binary.AppendUvarint(b, uint64(e.shared))
		b = binary.AppendUvarint(b, uint64(len(suffix)))
		b = binary.AppendUvarint(b, uint64(len(e.value)))
		b = append(append(b, suffix...), e.value...)
	}
	return append(b, 0, 0, 0, 0, 1, 0, 0, 0)
}

// A crafted table is made block by block, each with a right checksum.
type crafted struct{ b []byte }

func (c *crafted) add(body []byte) handle {
	h := handle{uint64(len(c.b)), uint64(len(body))}
	c.b = append(append(c.b, body...), 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(c.b[h.end()-4:], maskedCRC(c.b[h.off:h.end()-4]))
	return h
}

// finish adds properties, metaindex and footer: a table whose index is the last block.
func (c *crafted) finish(index handle, kind uint32) []byte {
	props := c.add(craftBlock(true, craftedEntry{suffix: "rocksdb.block.based.table.index.type",
		value: binary.LittleEndian.AppendUint32(nil, kind)}))
	meta := c.add(craftBlock(true, craftedEntry{suffix: "rocksdb.properties", value: appendHandle(nil, props)}))
	foot := appendHandle(appendHandle([]byte{1}, meta), index)
	foot = append(foot, make([]byte, footerLen-12-len(foot))...)
	foot = binary.LittleEndian.AppendUint32(foot, version)
	return append(append(c.b, foot...), magic...)
}

// measure returns how much is allocated while f runs, and how many bytes it reads of the table.
func measure(t *testing.T, b []byte, f func(r *Reader) error) (allocated, read uint64, err error) {
	t.Helper()
	inner := readFrom(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := Open(t.Context(), "o", int64(len(b)), Fetch{}, func(ctx context.Context, ranges ...object.Range) error {
		for _, r := range ranges {
			read += uint64(len(r.P))
		}
		return inner(ctx, ranges...)
	})
	if err == nil {
		err = f(r)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, read, err
}

func iterate(ctx context.Context) func(r *Reader) error {
	return func(r *Reader) error {
		it := r.Iter(nil)
		for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
		}
		return it.Err()
	}
}

// TestOverlappingBlocks: the partitions of an index name large blocks that overlap. A look-up of many keys allocates no
// more than the table is large, before any of the blocks is checked.
func TestOverlappingBlocks(t *testing.T) {
	const n, size = 160, 5 << 20
	var c crafted
	c.b = make([]byte, size+6*n)
	var top []craftedEntry
	var keys [][]byte
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "key%03d", i))
		part := c.add(craftBlock(false, craftedEntry{suffix: string(keys[i]), value: appendHandle(nil,
			handle{uint64(6 * i), size})}))
		top = append(top, craftedEntry{suffix: string(keys[i]), value: appendHandle(nil, part)})
	}
	b := c.finish(c.add(craftBlock(false, top...)), 2)
	allocated, read, err := measure(t, b, func(r *Reader) error {
		_, err := r.Get(t.Context(), keys...)
		return err
	})
	if !errors.Is(err, format.ErrCorrupt) {
		t.Error(err)
	}
	if most := uint64(2*len(b) + 1<<20); allocated > most || read > most {
		t.Errorf("a table of %d bytes: a look-up of %d keys allocates %d bytes and reads %d", len(b), n,
			allocated, read)
	}
}

// TestRepeatedBlocks: many small partitions name the same large block, which has no entry. Walking the table reads
// about as much as it has.
func TestRepeatedBlocks(t *testing.T) {
	for _, c := range []struct {
		name  string
		parts int
		at    func(i int, block handle) handle
	}{
		{"all the same", 500, func(_ int, block handle) handle { return block }},
		{"none at the front", 1, func(_ int, block handle) handle { return handle{block.end(), 8} }},
		{"the last ends early", 1, func(_ int, block handle) handle { return block }},
	} {
		var x crafted
		block := x.add(binary.LittleEndian.AppendUint32(make([]byte, 1<<20), 1<<18)) // restarts, and no entries
		x.add(craftBlock(false))
		var top []craftedEntry
		for i := range c.parts {
			key := fmt.Sprintf("key%05d", i)
			part := x.add(craftBlock(false, craftedEntry{suffix: key, value: appendHandle(nil, c.at(i, block))}))
			top = append(top, craftedEntry{suffix: key, value: appendHandle(nil, part)})
		}
		b := x.finish(x.add(craftBlock(false, top...)), 2)
		allocated, read, err := measure(t, b, iterate(t.Context()))
		if !errors.Is(err, format.ErrCorrupt) {
			t.Error(c.name, err)
		}
		if most := uint64(3*len(b) + 1<<20); allocated > most || read > most {
			t.Errorf("%s: a table of %d bytes: walking it allocates %d bytes and reads %d", c.name, len(b),
				allocated, read)
		}
	}
}

// TestLongSharedKeys: a key of a megabyte that thousands of entries share. As whole keys the block would be thousands
// of times as large.
func TestLongSharedKeys(t *testing.T) {
	const n, size = 2000, 1 << 20
	long := func(entry func(i int) craftedEntry) (out []craftedEntry) {
		for i := range n {
			e := entry(i)
			if e.shared, e.suffix = size, fmt.Sprintf("%06d", i); i == 0 {
				e.shared, e.suffix = 0, string(bytes.Repeat([]byte("k"), size))+e.suffix
			}
			out = append(out, e)
		}
		return out
	}
	for _, level := range []string{"data", "index", "top", "partition"} {
		var x crafted
		var b []byte
		switch level {
		case "data":
			block := x.add(craftBlock(false, long(func(int) craftedEntry { return craftedEntry{} })...))
			b = x.finish(x.add(craftBlock(false, craftedEntry{suffix: "z", value: appendHandle(nil, block)})), 0)
		case "index", "partition":
			entries := long(func(int) craftedEntry {
				return craftedEntry{value: appendHandle(nil,
					x.add(craftBlock(false)))}
			})
			index := x.add(craftBlock(false, entries...))
			if level == "index" {
				b = x.finish(index, 0)
			} else {
				b = x.finish(x.add(craftBlock(false, craftedEntry{suffix: "z", value: appendHandle(nil, index)})), 2)
			}
		case "top":
			entries := long(func(i int) craftedEntry {
				return craftedEntry{value: appendHandle(nil, x.add(craftBlock(false, craftedEntry{suffix: "z",
					value: appendHandle(nil, handle{0, 8})})))}
			})
			b = x.finish(x.add(craftBlock(false, entries...)), 2)
		}
		for name, f := range map[string]func(*Reader) error{"walk": iterate(t.Context()),
			"look-up": func(r *Reader) error {
				_, err := r.Get(t.Context(), []byte("kkkk"), []byte("y"))
				return err
			}} {
			allocated, _, err := measure(t, b, f)
			if err != nil && !errors.Is(err, format.ErrCorrupt) || err == nil && name == "walk" {
				t.Errorf("%s, %s: %v", level, name, err)
			}
			if most := uint64(4*len(b) + 20*size); allocated > most {
				t.Errorf("%s, %s: a table of %d bytes allocates %d", level, name, len(b), allocated)
			}
		}
	}
}
