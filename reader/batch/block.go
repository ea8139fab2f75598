package batch

import (
	"encoding/binary"

	"github.com/dsistore/dsistore/reader/memory"
)

// BlockVersion is the version of the layout that reader/BATCH.md describes.
const BlockVersion = 1

const (
	blockMagic  = "DSIBATCH"
	headerBytes = 64
	entryBytes  = 16 // of the table: where an array begins, and its elements
	blockAlign  = 64 // of the block and of each array in it
)

// A block is the memory of one batch: a header, a table of its arrays, and the arrays. reader/BATCH.md describes it
// byte by byte.
//
// add reserves an array when its size becomes known, and allocate makes memory of all that was added. allocate may move
// the block and free its old memory: slices of arrays must be taken anew after it.
type block struct {
	raw     []byte // from the allocator; owned
	used    int    // bytes that arrays were added up to
	expects int    // bytes of the largest block of other batches: new memory has as many at least
}

// reset makes b the block of a batch with so many arrays, all of them absent.
func (b *block) reset(a memory.Allocator, arrays int) error {
	b.used = align(headerBytes + arrays*entryBytes)
	if len(b.raw) < b.used {
		b.free(a)
	}
	if err := b.allocate(a); err != nil {
		return err
	}
	clear(b.raw[:b.used])
	return nil
}

// add reserves an array of so many elements of size bytes. Its memory is there after allocate.
func (b *block) add(id arrayID, elements, size int) {
	if elements == 0 {
		return
	}
	entry := b.entry(id)
	binary.LittleEndian.PutUint64(entry, uint64(b.used))
	binary.LittleEndian.PutUint64(entry[8:], uint64(elements))
	b.used = align(b.used + elements*size)
}

// shorten keeps the first elements of an array; with 0 it is absent.
func (b *block) shorten(id arrayID, elements int) {
	entry := b.entry(id)
	if elements == 0 {
		clear(entry)
		return
	}
	binary.LittleEndian.PutUint64(entry[8:], uint64(elements))
}

func (b *block) entry(id arrayID) []byte {
	return b.raw[headerBytes+int(id)*entryBytes:][:entryBytes]
}

// allocate makes memory of all that was added, and copies what the arrays hold already. Without memory it changes
// nothing and returns ErrNoMemory.
func (b *block) allocate(a memory.Allocator) error {
	if b.used <= len(b.raw) {
		return nil
	}
	size := max(b.used, b.expects)
	raw := a.Allocate(align(size + size/8))
	if raw == nil {
		return memory.ErrNoMemory
	}
	copy(raw, b.raw)
	b.free(a)
	b.raw = raw
	return nil
}

// free gives the memory back.
func (b *block) free(a memory.Allocator) {
	if b.raw != nil {
		a.Free(b.raw)
	}
	b.raw = nil
}

// poison overwrites released memory in builds with the tag invariants, so that a read after the release shows.
func (b *block) poison() {
	for i := range b.raw {
		b.raw[i] = 0xDB
	}
}

// writeHeader completes the block of a batch.
func (b *block) writeHeader(arrays int, x *Batch) {
	h := b.raw[:headerBytes]
	copy(h, blockMagic)
	binary.LittleEndian.PutUint32(h[8:], BlockVersion)
	binary.LittleEndian.PutUint32(h[12:], uint32(arrays))
	binary.LittleEndian.PutUint64(h[16:], uint64(b.used))
	binary.LittleEndian.PutUint64(h[24:], x.Index)
	binary.LittleEndian.PutUint64(h[32:], x.FirstRow)
	binary.LittleEndian.PutUint64(h[40:], uint64(x.Rows))
	binary.LittleEndian.PutUint64(h[48:], uint64(x.NullLabels))
}

func align(n int) int { return (n + blockAlign - 1) &^ (blockAlign - 1) }

// number is what an array may hold.
type number interface {
	int32 | int64 | uint64 | float32 | float64 | byte
}

// add adds an array of n elements of type T.
func add[T number](b *block, id arrayID, n int) { b.add(id, n, bytesOf[T]()) }
