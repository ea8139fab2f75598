//go:build unix

package diskcache

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	blockBytes = 1 << 20
	sumBytes   = 64 << 10
	sums       = blockBytes / sumBytes

	magic      = 0x0163_6863_6973_6464 // "ddsichc", version 1
	headerSize = 4096
	// largest bounds the blocks of a cache: 16 TiB.
	largest = 1 << 24
)

// A key stands for a block of an object.
type key [2]uint64

// keyOf returns the key of a block. Names of segments' objects are unique in all stores.
func keyOf(name string, block int64) key {
	h := sha256.New()
	h.Write([]byte(name))
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(block))
	h.Write(n[:])
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	k := key{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
	k[0] |= 1 // the zero key is nobody's
	return k
}

// A header is the beginning of the index.
type header struct {
	magic  uint64
	blocks uint64
	dirty  uint64 // not 0 while a process changes the index
	used   uint64 // blocks [used, blocks) were never used
	free   uint64 // the first of the blocks that are free again, + 1
	small  queue
	main   queue
	ghosts uint64 // so many were evicted from the small queue

	// Counts of all processes since the directory was made.
	hits, misses, bytesHit, bytesFetched, evicted, damaged, waited, failed atomic.Uint64
}

// A queue is a ring of block numbers: the first is at position head, the next one to come at tail.
type queue struct{ head, tail uint64 }

func (q *queue) len() uint64 { return q.tail - q.head }

// States of an entry.
const (
	stateFree    = iota
	stateClaimed // a process fetches it
	stateSmall   // in the small queue
	stateMain
)

// An entry says what a block holds. Words that readers take without the lock are read and written as one.
type entry struct {
	number atomic.Uint64 // odd while the entry changes
	key    [2]atomic.Uint64
	about  atomic.Uint64 // length<<8 | state
	uses   atomic.Uint32 // up to 3, since it is in its queue
	usedAt atomic.Uint32 // Unix seconds
	since  int64         // of a claim, Unix nanoseconds
	pid    uint32        // of a claim
	next   uint32        // of a free block: the next one, + 1
	sums   [sums]atomic.Uint32
	check  atomic.Uint32 // see checkOf
	_      uint32
}

// checkOf returns the CRC-32C of what an entry says of a block that is there.
func checkOf(k key, length int, crcs *[sums]uint32) uint32 {
	var b [24 + 4*sums]byte
	binary.LittleEndian.PutUint64(b[:], k[0])
	binary.LittleEndian.PutUint64(b[8:], k[1])
	binary.LittleEndian.PutUint64(b[16:], uint64(length))
	for i, c := range crcs {
		binary.LittleEndian.PutUint32(b[24+4*i:], c)
	}
	return crc32.Checksum(b[:], castagnoli)
}

// An index is the mapped file.
type index struct {
	file    *os.File
	mapped  []byte
	h       *header
	entries []entry
	table   []atomic.Uint32 // by key: block + 1, in the first free place after the key's own
	rings   [2][]uint32     // of the small and the main queue
	ghost   []uint64        // by key: upper half of the key, and when it was evicted
}

// sizes returns the bytes of an index and of its parts.
func sizes(blocks uint64) (table, total int) {
	table = 4
	for uint64(table) < 2*blocks {
		table *= 2
	}
	n := headerSize + int(blocks)*int(unsafe.Sizeof(entry{})) + 4*table + 2*4*int(blocks) + 8*int(blocks)
	return table, (n + headerSize - 1) / headerSize * headerSize
}

// mapIndex maps an open index of a number of blocks.
func mapIndex(f *os.File, blocks uint64) (*index, error) {
	table, total := sizes(blocks)
	m, err := unix.Mmap(int(f.Fd()), 0, total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	x := &index{file: f, mapped: m, h: (*header)(unsafe.Pointer(&m[0]))}
	at := headerSize
	x.entries = partOf[entry](m, &at, int(blocks))
	x.ghost = partOf[uint64](m, &at, int(blocks))
	x.table = partOf[atomic.Uint32](m, &at, table)
	x.rings[0] = partOf[uint32](m, &at, int(blocks))
	x.rings[1] = partOf[uint32](m, &at, int(blocks))
	return x, nil
}

func partOf[T any](m []byte, at *int, n int) []T {
	out := unsafe.Slice((*T)(unsafe.Pointer(&m[*at])), n)
	*at += n * int(unsafe.Sizeof(out[0]))
	return out
}

func (x *index) close() error {
	err := unix.Munmap(x.mapped)
	x.mapped, x.h, x.entries, x.table, x.rings, x.ghost = nil, nil, nil, nil, [2][]uint32{}, nil
	return err
}

// find returns the block of a key; -1: there is none. Without the lock it may miss one.
func (x *index) find(k key) int {
	mask := uint64(len(x.table) - 1)
	for i, n := k[0]&mask, 0; n < len(x.table); i, n = (i+1)&mask, n+1 {
		at := x.table[i].Load()
		if at == 0 || uint64(at) > x.h.blocks {
			return -1
		}
		if e := &x.entries[at-1]; e.key[0].Load() == k[0] && e.key[1].Load() == k[1] {
			return int(at - 1)
		}
	}
	return -1
}

// insert adds a block to the look-up. The lock is held.
func (x *index) insert(k key, block int) {
	mask := uint64(len(x.table) - 1)
	i := k[0] & mask
	for x.table[i].Load() != 0 {
		i = (i + 1) & mask
	}
	x.table[i].Store(uint32(block + 1))
}

// remove takes a block out of the look-up, and moves those that stood behind it. The lock is held.
func (x *index) remove(k key, block int) {
	mask := uint64(len(x.table) - 1)
	i := k[0] & mask
	for n := 0; x.table[i].Load() != uint32(block+1); n++ {
		if x.table[i].Load() == 0 || n == len(x.table) {
			return
		}
		i = (i + 1) & mask
	}
	for j := i; ; {
		j = (j + 1) & mask
		at := x.table[j].Load()
		if at == 0 || uint64(at) > x.h.blocks {
			break
		}
		home := x.entries[at-1].key[0].Load() & mask
		if (j-home)&mask >= (j-i)&mask { // its own place is at i or before
			x.table[i].Store(at)
			i = j
		}
	}
	x.table[i].Store(0)
}

// begin and end bracket a change of an entry.
func (e *entry) begin() { e.number.Store(e.number.Load() | 1) }
func (e *entry) end()   { e.number.Store(e.number.Load()&^1 + 2) }

func (e *entry) keyOf() key        { return key{e.key[0].Load(), e.key[1].Load()} }
func (e *entry) state() int        { return int(e.about.Load() & 0xFF) }
func (e *entry) length() int       { return int(e.about.Load() >> 8) }
func (e *entry) set(length, s int) { e.about.Store(uint64(length)<<8 | uint64(s)) }

func (e *entry) setKey(k key) {
	e.key[0].Store(k[0])
	e.key[1].Store(k[1])
}

// apart is how far two uses must be from each other to count as two.
const apart = 10 // seconds

// touch counts a use.
func (e *entry) touch(now time.Time) {
	second := uint32(now.Unix())
	if second-e.usedAt.Load() < apart {
		return
	}
	e.usedAt.Store(second)
	if n := e.uses.Load(); n < 3 {
		e.uses.Store(n + 1)
	}
}

// ring returns the queue of a state, and its ring.
func (x *index) ring(state int) (*queue, []uint32) {
	if state == stateSmall {
		return &x.h.small, x.rings[0]
	}
	return &x.h.main, x.rings[1]
}

func (x *index) push(state, block int) {
	q, ring := x.ring(state)
	ring[q.tail%uint64(len(ring))] = uint32(block)
	q.tail++
}

func (x *index) pop(state int) int {
	q, ring := x.ring(state)
	block := ring[q.head%uint64(len(ring))]
	q.head++
	return int(block)
}

// remember notes that a key was evicted from the small queue.
func (x *index) remember(k key) {
	x.h.ghosts++
	x.ghost[k[1]%uint64(len(x.ghost))] = k[1]>>32<<32 | x.h.ghosts&0xFFFFFFFF
}

// remembers reports whether a key was evicted from the small queue not long ago.
func (x *index) remembers(k key) bool {
	g := x.ghost[k[1]%uint64(len(x.ghost))]
	return g != 0 && g>>32 == k[1]>>32 && uint32(x.h.ghosts)-uint32(g) < uint32(len(x.ghost))
}

// take returns a block for a new key: one that is free, or that is evicted; -1: all are claimed. The lock is held.
func (x *index) take() int {
	if x.h.free != 0 && x.h.free <= x.h.blocks {
		block := int(x.h.free - 1)
		x.h.free = uint64(x.entries[block].next)
		return block
	}
	if x.h.used < x.h.blocks {
		x.h.used++
		return int(x.h.used - 1)
	}
	for x.h.small.len()+x.h.main.len() > 0 {
		state := stateMain
		if x.h.small.len() > x.h.blocks/10 || x.h.main.len() == 0 {
			state = stateSmall
		}
		block := x.pop(state)
		if uint64(block) >= x.h.blocks || x.entries[block].state() != state { // the index is damaged
			continue
		}
		e := &x.entries[block]
		uses := e.uses.Load()
		switch {
		case uses > 0 && state == stateSmall:
			e.uses.Store(0)
			e.set(e.length(), stateMain)
			x.push(stateMain, block)
			continue
		case uses > 0:
			e.uses.Store(uses - 1)
			x.push(stateMain, block)
			continue
		case state == stateSmall:
			x.remember(e.keyOf())
		}
		x.h.evicted.Add(1)
		x.remove(e.keyOf(), block)
		return block
	}
	return -1
}

// claim gives a block to a key that is fetched. The lock is held.
func (x *index) claim(k key, block int) {
	e := &x.entries[block]
	e.begin()
	e.setKey(k)
	e.set(0, stateClaimed)
	e.uses.Store(0)
	x.insert(k, block)
}

// fill says what a claimed block holds. The lock is held.
func (x *index) fill(block, length int, crcs [sums]uint32) {
	e := &x.entries[block]
	state := stateSmall
	if x.remembers(e.keyOf()) {
		state = stateMain
	}
	for i, c := range crcs {
		e.sums[i].Store(c)
	}
	e.check.Store(checkOf(e.keyOf(), length, &crcs))
	e.usedAt.Store(uint32(time.Now().Unix()))
	e.set(length, state)
	e.end()
	x.push(state, block)
}

// drop frees a block. One that is in a queue is freed when its turn comes there: it has no key until then. The lock is
// held.
func (x *index) drop(block int) {
	e := &x.entries[block]
	state := e.state()
	e.begin()
	x.remove(e.keyOf(), block)
	e.setKey(key{})
	switch state {
	case stateClaimed:
		x.release(block)
	case stateSmall, stateMain:
		e.uses.Store(0)
		e.set(0, state)
	}
	e.end()
}

// release puts a block on the list of free ones.
func (x *index) release(block int) {
	e := &x.entries[block]
	e.set(0, stateFree)
	e.next = uint32(x.h.free)
	x.h.free = uint64(block + 1)
}

// sound reports whether the header may be that of the index.
func (x *index) sound(blocks uint64) bool {
	h := x.h
	return h.magic == magic && h.blocks == blocks && h.used <= blocks && h.free <= blocks &&
		h.small.len() <= blocks && h.main.len() <= blocks
}

// rebuild makes look-up, queues and the list of free blocks of the entries anew, after a process died while it changed
// them. What was being changed or fetched is free then. The lock is held.
func (x *index) rebuild() {
	clear32(x.table)
	x.h.small, x.h.main, x.h.free = queue{}, queue{}, 0
	x.h.used = min(x.h.used, x.h.blocks)
	for block := range int(x.h.used) {
		e := &x.entries[block]
		k := e.keyOf()
		state := e.state()
		whole := e.number.Load()&1 == 0 && k != key{} && (state == stateSmall || state == stateMain) &&
			e.length() <= blockBytes && x.find(k) < 0
		if !whole {
			e.begin()
			e.setKey(key{})
			x.release(block)
			e.end()
			continue
		}
		x.insert(k, block)
		x.push(state, block)
	}
}

func clear32(s []atomic.Uint32) {
	for i := range s {
		s[i].Store(0)
	}
}
