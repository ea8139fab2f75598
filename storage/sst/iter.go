package sst

import (
	"bytes"
	"context"
)

const maxReadAhead = 256 // blocks

// An Iter walks a table's entries in key order. Not safe for concurrent use. It holds no resource that needs closing.
//
//	for ok := it.SeekGE(ctx, from); ok; ok = it.Next(ctx) { it.Key(), it.Value() }
//	err := it.Err()
type Iter struct {
	r     *Reader
	upper []byte // nil: none

	part    []indexEntry // the index partition that the iterator stands in
	topAt   int          // its place in r.top, with two levels
	blockAt int          // the data block's place in part
	ahead   int          // how many blocks to read at once next
	ready   map[uint64][]byte
	c       cursor
	prev    []byte // the key before, to see that keys increase
	err     error
}

// Iter returns an iterator over the keys below upper, all when it is nil. It stands nowhere. upper is borrowed for the
// iterator's life.
func (r *Reader) Iter(upper []byte) *Iter { return &Iter{r: r, upper: upper} }

// Key and Value are borrowed until the next move.
func (it *Iter) Key() []byte   { return it.c.key }
func (it *Iter) Value() []byte { return it.c.value }

// Err returns what ended the iteration, nil at the end of the table.
func (it *Iter) Err() error { return it.err }

// SeekGE moves to the first key that is not below key, and reports whether there is one below the upper bound.
func (it *Iter) SeekGE(ctx context.Context, key []byte) bool {
	if it.err != nil {
		return false
	}
	r := it.r
	if r.twoLevel {
		i, ok := find(r.top, key)
		if !ok {
			return it.end()
		}
		if !it.loadPart(ctx, i) {
			return false
		}
	} else {
		it.part, it.topAt = r.top, 0
	}
	i, ok := find(it.part, key)
	if !ok {
		// A separator of the partition may lie above its last key's.
		return it.nextPart(ctx) && it.Next(ctx)
	}
	it.ahead = 1
	if !it.loadBlock(ctx, i) {
		return false
	}
	if it.c.seek(key) {
		return it.bounded()
	}
	if it.c.reason != "" {
		return it.wrong()
	}
	return it.Next(ctx)
}

// Next moves to the next key.
func (it *Iter) Next(ctx context.Context) bool {
	for it.err == nil {
		it.prev = append(it.prev[:0], it.c.key...)
		if it.c.next() {
			if len(it.prev) > 0 && bytes.Compare(it.prev, it.c.key) >= 0 {
				it.c.fail("keys out of order")
				return it.wrong()
			}
			return it.bounded()
		}
		if it.c.reason != "" {
			return it.wrong()
		}
		if it.blockAt+1 < len(it.part) {
			if it.upper != nil && bytes.Compare(it.part[it.blockAt].last, it.upper) >= 0 {
				return it.end()
			}
			if !it.loadBlock(ctx, it.blockAt+1) {
				return false
			}
		} else if !it.nextPart(ctx) {
			return false
		}
		it.c.key = it.prev // for the order of keys across blocks
	}
	return false
}

func (it *Iter) bounded() bool {
	if it.upper != nil && bytes.Compare(it.c.key, it.upper) >= 0 {
		return it.end()
	}
	return true
}

func (it *Iter) end() bool {
	it.c.data, it.c.pos, it.part, it.blockAt, it.topAt = nil, 0, nil, 0, len(it.r.top)
	it.c.key, it.c.value = nil, nil
	return false
}

func (it *Iter) wrong() bool {
	it.err = it.r.corrupt(it.part[it.blockAt].off, it.c.reason)
	return false
}

func (it *Iter) loadPart(ctx context.Context, i int) bool {
	it.topAt = i
	it.part, it.err = it.r.partition(ctx, it.r.top[i].handle)
	return it.err == nil
}

// nextPart moves to the first block of the next partition, which follows the last of this one.
func (it *Iter) nextPart(ctx context.Context) bool {
	if !it.r.twoLevel || it.topAt+1 >= len(it.r.top) {
		return it.end()
	}
	last := it.part[len(it.part)-1].end()
	if !it.loadPart(ctx, it.topAt+1) {
		return false
	}
	if it.part[0].off != last {
		it.err = it.r.corrupt(it.r.top[it.topAt].off, "index partition does not begin where the one before ends")
		return false
	}
	return it.loadBlock(ctx, 0)
}

// loadBlock stands before the first entry of block i. Blocks read one after another are read ahead, ever more at a
// time.
func (it *Iter) loadBlock(ctx context.Context, i int) bool {
	b, ok := it.ready[it.part[i].off]
	if !ok {
		var want []handle
		for j := i; j < min(len(it.part), i+max(1, it.ahead)); j++ {
			want = append(want, it.part[j].handle)
			if it.upper != nil && bytes.Compare(it.part[j].last, it.upper) >= 0 {
				break
			}
		}
		if it.ready, it.err = it.r.blocks(ctx, want); it.err != nil {
			return false
		}
		it.ahead = min(maxReadAhead, 2*max(1, it.ahead))
		b = it.ready[it.part[i].off]
	}
	it.blockAt = i
	if !it.c.init(b, false) {
		return it.wrong()
	}
	return true
}
