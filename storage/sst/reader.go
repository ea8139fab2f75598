package sst

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
)

const (
	footerLen = 53
	magic     = "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"
	version   = 2
	// Open reads a table of up to wholeBytes (or Fetch.Whole) whole, else what should hold the top of its index:
	// baseTail bytes and the tailShare-th part of it, at most maxTail.
	wholeBytes = 64 << 10
	baseTail   = 2 << 10
	tailShare  = 512
	maxTail    = 64 << 10
	// coalesceGap is how many unwanted bytes a read takes along rather than be two, unless Fetch.Gap is more.
	coalesceGap = 2 << 10
	// maxSpan ends a coalesced read.
	maxSpan = 4 << 20
)

// A ReadFunc fills ranges of the table's object, at once where it can; io.ErrUnexpectedEOF when it ends before one.
type ReadFunc func(ctx context.Context, ranges ...object.Range) error

// A Reader reads a sorted table. It holds the tail of the object and what it read of the index. Safe for concurrent
// use.
type Reader struct {
	object string
	size   uint64
	read   ReadFunc
	gap    uint64 // Fetch.Gap

	head     []byte // the object up to its length; never written after Open
	tailOff  uint64
	tail     []byte // the object from tailOff on; never written after Open
	twoLevel bool
	top      []indexEntry // never written after Open

	// dataEnd is where the data blocks end: they follow each other from 0 to it, whatever names them.
	dataEnd uint64

	mu sync.Mutex
	// partitions holds the blocks of the index partitions read so far, by offset. Guarded by mu; the slices are never
	// written again.
	partitions map[uint64][]byte
}

// indexEntry says that the keys up to last, and above the entry before, are in the block.
type indexEntry struct {
	last []byte
	handle
}

// Fetch says what Open reads besides the tail.
type Fetch struct {
	Head  int // so many bytes of the front, where the first entries are, at the same time
	Whole int // tables of up to so many bytes are read whole, at least those of 64 KiB
	Tail  int // so many bytes of the end, at least what should hold the top of the index
	Gap   int // blocks that lie no further apart are read as one, at least those with 2 KiB between them
}

// Open reads the tail of the table of size bytes in the object of a name, and what fetch says.
func Open(ctx context.Context, name string, size int64, fetch Fetch, read ReadFunc) (*Reader, error) {
	r := &Reader{object: name, size: uint64(size), read: read, gap: uint64(max(coalesceGap, fetch.Gap)),
		partitions: map[uint64][]byte{}}
	if size < footerLen {
		return nil, r.corrupt(0, "table shorter than its footer")
	}
	n := r.size
	if n > uint64(max(wholeBytes, fetch.Whole)) {
		n = min(n, max(min(baseTail+n/tailShare, maxTail), uint64(fetch.Tail)))
	}
	r.tailOff = r.size - n
	r.tail = make([]byte, n)
	want := []object.Range{{P: r.tail, Off: int64(r.tailOff)}}
	if fetch.Head > 0 && n < r.size {
		r.head = make([]byte, min(uint64(fetch.Head), r.tailOff))
		want = append(want, object.Range{P: r.head})
	}
	if err := r.fill(ctx, want...); err != nil {
		return nil, err
	}
	foot := r.tail[len(r.tail)-footerLen:]
	footOff := r.size - footerLen
	if string(foot[footerLen-8:]) != magic || binary.LittleEndian.Uint32(foot[footerLen-12:]) != version ||
		foot[0] != 1 {
		return nil, r.corrupt(footOff, "no footer of a table of format 2")
	}
	meta, i := r.handle(foot[1:footerLen-12], 0, footOff)
	if i == 0 {
		return nil, r.corrupt(footOff, "metaindex outside the table")
	}
	index, i := r.handle(foot[1:footerLen-12], i, footOff)
	if i == 0 {
		return nil, r.corrupt(footOff, "index outside the table")
	}
	// The footer has no checksum. That its blocks lie end to end up to it, and zeros fill it, does as well.
	if meta.end() != footOff || len(bytes.Trim(foot[1+i:footerLen-12], "\x00")) > 0 {
		return nil, r.corrupt(footOff, "metaindex does not end at the footer")
	}
	props, err := r.properties(ctx, meta)
	if err != nil {
		return nil, err
	}
	if props.end() != meta.off || index.end() != props.off {
		return nil, r.corrupt(footOff, "index, properties and metaindex do not follow each other")
	}
	if r.top, err = r.index(ctx, index); err != nil {
		return nil, err
	}
	if n := len(r.top); n > 0 && r.top[n-1].end() != index.off || n > 0 && !r.twoLevel && r.top[0].off != 0 {
		return nil, r.corrupt(index.off, "blocks do not end at the index")
	}
	if r.dataEnd = index.off; r.twoLevel && len(r.top) > 0 {
		r.dataEnd = r.top[0].off
	}
	return r, nil
}

// Whole returns the table's bytes if Open read all of them, else nil. Borrowed.
func (r *Reader) Whole() []byte {
	if r.tailOff > 0 {
		return nil
	}
	return r.tail
}

// handle decodes a block handle at b[i:] of a block that ends before limit; the index after it, 0 when it is wrong.
func (r *Reader) handle(b []byte, i int, limit uint64) (handle, int) {
	off, i := uvarint(b, i)
	if i == 0 {
		return handle{}, 0
	}
	n, i := uvarint(b, i)
	if i == 0 || n > maxBlock || off > limit || n+trailerLen > limit-off {
		return handle{}, 0
	}
	return handle{off: off, n: n}, i
}

// properties reads what the reader needs to know of the table, whether its index has two levels, and returns where the
// properties are.
func (r *Reader) properties(ctx context.Context, meta handle) (handle, error) {
	b, err := r.block(ctx, meta)
	if err != nil {
		return handle{}, err
	}
	var c cursor
	var props handle
	for ok := c.init(b, true); ok && c.next(); {
		switch string(c.key) {
		case "rocksdb.properties":
			var i int
			if props, i = r.handle(c.value, 0, meta.off); i == 0 {
				return handle{}, r.corrupt(meta.off, "properties outside the table")
			}
		case "rocksdb.range_del2", "rocksdb.range_del", "pebble.range_key", "pebble.value_index":
			return handle{}, r.corrupt(meta.off, "table holds more than entries")
		}
	}
	if c.reason == "" && props.n == 0 {
		c.reason = "no properties"
	}
	if c.reason != "" {
		return handle{}, r.corrupt(meta.off, c.reason)
	}
	if b, err = r.block(ctx, props); err != nil {
		return handle{}, err
	}
	found := false
	for ok := c.init(b, true); ok && c.next(); {
		if string(c.key) == "rocksdb.block.based.table.index.type" && len(c.value) == 4 {
			kind := binary.LittleEndian.Uint32(c.value)
			found, r.twoLevel = kind == 0 || kind == 2, kind == 2
		}
	}
	if c.reason == "" && !found {
		c.reason = "no index type that is known"
	}
	if c.reason != "" {
		return handle{}, r.corrupt(props.off, c.reason)
	}
	return props, nil
}

// index reads the index block that the footer names.
func (r *Reader) index(ctx context.Context, h handle) ([]indexEntry, error) {
	b, err := r.block(ctx, h)
	if err != nil {
		return nil, err
	}
	return r.parseIndex(b, h, h.off)
}

// parseIndex decodes the index block at h. The blocks that it names follow each other and end before limit. Its keys
// are stored whole, so that they take no more memory than the block.
func (r *Reader) parseIndex(b []byte, h handle, limit uint64) ([]indexEntry, error) {
	var c cursor
	var out []indexEntry
	var keys []byte
	for ok := c.init(b, false); ok && c.next(); {
		if len(keys)+len(c.key) > len(b) {
			return nil, r.corrupt(h.off, "index keys are longer than their block")
		}
		e, i := r.handle(c.value, 0, limit)
		if i == 0 || i != len(c.value) || len(out) > 0 && e.off != out[len(out)-1].end() {
			return nil, r.corrupt(h.off, "index names a block outside its place")
		}
		if len(out) > 0 && bytes.Compare(out[len(out)-1].last, c.key) > 0 {
			return nil, r.corrupt(h.off, "index out of order")
		}
		at := len(keys)
		keys = append(keys, c.key...)
		out = append(out, indexEntry{last: keys[at:len(keys):len(keys)], handle: e})
	}
	if c.reason != "" {
		return nil, r.corrupt(h.off, c.reason)
	}
	return out, nil
}

// partition returns the entries of an index partition, its block from memory when it was read before.
func (r *Reader) partition(ctx context.Context, h handle) ([]indexEntry, error) {
	if err := r.loadPartitions(ctx, []handle{h}); err != nil {
		return nil, err
	}
	entries, err := r.parseIndex(r.kept(h), h, r.dataEnd)
	if err != nil {
		return nil, err
	}
	n := len(entries)
	if n == 0 || h == r.top[0].handle && entries[0].off != 0 || h == r.top[len(r.top)-1].handle &&
		entries[n-1].end() != r.dataEnd {
		return nil, r.corrupt(h.off, "index partition does not name the blocks that are its own")
	}
	return entries, nil
}

func (r *Reader) kept(h handle) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.partitions[h.off]
}

// locate returns the block that may hold key according to the index partition at h, which is loaded; n is 0 when there
// is none. It searches the partition's block rather than decode all of it.
func (r *Reader) locate(c *cursor, h handle, key []byte) (handle, error) {
	if c.init(r.kept(h), false) && c.seek(key) {
		e, i := r.handle(c.value, 0, r.dataEnd)
		if i == 0 || i != len(c.value) {
			return handle{}, r.corrupt(h.off, "index names a block outside its place")
		}
		return e, nil
	}
	if c.reason != "" {
		return handle{}, r.corrupt(h.off, c.reason)
	}
	return handle{}, nil
}

// find returns the entry of the block that may hold key.
func find(entries []indexEntry, key []byte) (int, bool) {
	i := sort.Search(len(entries), func(i int) bool { return bytes.Compare(entries[i].last, key) >= 0 })
	return i, i < len(entries)
}

// Get returns the value of each key, nil where there is none; a value that is there is not nil. The values are copied:
// the caller's. Blocks are read once each, neighbours in one request, several requests at a time.
func (r *Reader) Get(ctx context.Context, keys ...[]byte) ([][]byte, error) {
	out := make([][]byte, len(keys))
	where := make([]handle, len(keys)) // n == 0: nowhere
	if r.twoLevel {
		var need []handle
		parts := make([]handle, len(keys))
		for k, key := range keys {
			if i, ok := find(r.top, key); ok {
				parts[k] = r.top[i].handle
				need = append(need, parts[k])
			}
		}
		if err := r.loadPartitions(ctx, need); err != nil {
			return nil, err
		}
		var c cursor
		for k, key := range keys {
			if parts[k].n == 0 {
				continue
			}
			var err error
			if where[k], err = r.locate(&c, parts[k], key); err != nil {
				return nil, err
			}
		}
	} else {
		for k, key := range keys {
			if i, ok := find(r.top, key); ok {
				where[k] = r.top[i].handle
			}
		}
	}
	blocks, err := r.blocks(ctx, where)
	if err != nil {
		return nil, err
	}
	var c cursor
	for k, key := range keys {
		if where[k].n == 0 {
			continue
		}
		ok := c.init(blocks[where[k].off], false) && c.seek(key)
		if c.reason != "" {
			return nil, r.corrupt(where[k].off, c.reason)
		}
		if ok && bytes.Equal(c.key, key) {
			out[k] = append(make([]byte, 0, len(c.value)), c.value...)
		}
	}
	return out, nil
}

// loadPartitions reads the partitions that are not in memory yet.
func (r *Reader) loadPartitions(ctx context.Context, need []handle) error {
	r.mu.Lock()
	need = slices.DeleteFunc(need, func(h handle) bool { _, ok := r.partitions[h.off]; return ok })
	r.mu.Unlock()
	if len(need) == 0 {
		return nil
	}
	blocks, err := r.blocks(ctx, need)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range need {
		r.partitions[h.off] = blocks[h.off]
	}
	return nil
}

// inMemory returns the bytes of a block with its trailer when head or tail holds them, else nil.
func (r *Reader) inMemory(h handle) []byte {
	switch {
	case h.off >= r.tailOff:
		return r.tail[h.off-r.tailOff : h.end()-r.tailOff]
	case h.end() <= uint64(len(r.head)):
		return r.head[h.off:h.end()]
	}
	return nil
}

// block reads one block.
func (r *Reader) block(ctx context.Context, h handle) ([]byte, error) {
	if b := r.inMemory(h); b != nil {
		return r.checked(b, h.off)
	}
	b := make([]byte, h.end()-h.off)
	if err := r.fill(ctx, object.Range{P: b, Off: int64(h.off)}); err != nil {
		return nil, err
	}
	return r.checked(b, h.off)
}

// blocks reads the blocks of handles (those of no length left out), by offset. What it allocates is less than the
// table: partitions that name blocks which overlap are found out before any is read.
func (r *Reader) blocks(ctx context.Context, handles []handle) (map[uint64][]byte, error) {
	hs := slices.Clone(handles)
	hs = slices.DeleteFunc(hs, func(h handle) bool { return h.n == 0 })
	slices.SortFunc(hs, func(a, b handle) int { return int(min(1, max(-1, int64(a.off)-int64(b.off)))) })
	hs = slices.Compact(hs)
	out := make(map[uint64][]byte, len(hs))
	type span struct{ from, to int } // of hs
	var spans []span
	for i, h := range hs {
		if i > 0 && h.off < hs[i-1].end() {
			return nil, r.corrupt(h.off, "blocks overlap")
		}
		if b := r.inMemory(h); b != nil {
			b, err := r.checked(b, h.off)
			if err != nil {
				return nil, err
			}
			out[h.off] = b
			continue
		}
		if n := len(spans); n > 0 {
			s := &spans[n-1]
			if h.off <= hs[s.to-1].end()+r.gap && h.end()-hs[s.from].off <= maxSpan {
				s.to = i + 1
				continue
			}
		}
		spans = append(spans, span{i, i + 1})
	}
	if len(spans) == 0 {
		return out, nil
	}
	ranges := make([]object.Range, len(spans))
	for k, s := range spans {
		off := hs[s.from].off
		ranges[k] = object.Range{P: make([]byte, hs[s.to-1].end()-off), Off: int64(off)}
	}
	if err := r.fill(ctx, ranges...); err != nil {
		return nil, err
	}
	for k, s := range spans {
		base := hs[s.from].off
		for _, h := range hs[s.from:s.to] {
			b, err := r.checked(ranges[k].P[h.off-base:h.end()-base], h.off)
			if err != nil {
				return nil, err
			}
			out[h.off] = b
		}
	}
	return out, nil
}

// fill reads from the object; an object shorter than stated is corrupt.
func (r *Reader) fill(ctx context.Context, ranges ...object.Range) error {
	err := r.read(ctx, ranges...)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return r.corrupt(uint64(ranges[0].Off), "object ends early")
	}
	return err
}

func (r *Reader) checked(b []byte, off uint64) ([]byte, error) {
	body, reason := checkBlock(b)
	if reason != "" {
		return nil, r.corrupt(off, reason)
	}
	return body, nil
}

func (r *Reader) corrupt(off uint64, reason string) error {
	return &format.CorruptError{Object: r.object, Stripe: -1, Offset: int64(off), Reason: reason}
}
