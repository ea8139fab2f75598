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
	entryBytes  = 16 // of the table: offset of an array, and number of its elements
	blockAlign  = 64 // alignment of the block and of each array in it
)

// A block is the memory of one batch: a header, a table of its arrays, and the arrays. reader/BATCH.md describes it
// byte by byte.
//
// Arrays are added when their sizes are known, and then allocated together. allocate may move the block: slices
// returned before then refer to the old one.
type block struct {
	raw     []byte // from the allocator; owned
	used    int    // end of the arrays that were added
	expects int    // bytes of the largest block of other batches; allocate allocates at least as much
}

// reset makes b an empty block with a table for so many arrays.
func (b *block) reset(a memory.Allocator, arrays int) {
	b.used = align(headerBytes + arrays*entryBytes)
	if len(b.raw) < b.used {
		b.free(a)
	}
	b.allocate(a)
	clear(b.raw[:b.used])
}

// add adds an array of so many elements of size bytes. Its memory exists after allocate.
func (b *block) add(id arrayID, elements, size int) {
	if elements == 0 {
		return
	}
	entry := b.entry(id)
	binary.LittleEndian.PutUint64(entry, uint64(b.used))
	binary.LittleEndian.PutUint64(entry[8:], uint64(elements))
	b.used = align(b.used + elements*size)
}

// shorten reduces an array to its first elements; with 0 it is absent.
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

// allocate allocates memory for all arrays that were added. It keeps the contents of those allocated before.
func (b *block) allocate(a memory.Allocator) {
	if b.used <= len(b.raw) {
		return
	}
	size := max(b.used, b.expects)
	raw := a.Allocate(align(size + size/8))
	copy(raw, b.raw)
	b.free(a)
	b.raw = raw
}

// free returns the memory to the allocator.
func (b *block) free(a memory.Allocator) {
	if b.raw != nil {
		a.Free(b.raw)
	}
	b.raw = nil
}

// poison overwrites released memory in builds with the tag invariants, so that reads after Release are noticed.
func (b *block) poison() {
	for i := range b.raw {
		b.raw[i] = 0xDB
	}
}

// writeHeader writes the header of the block of batch x.
func (b *block) writeHeader(arrays int, x *Batch) {
	h := b.raw[:headerBytes]
	copy(h, blockMagic)
	binary.LittleEndian.PutUint32(h[8:], BlockVersion)
	binary.LittleEndian.PutUint32(h[12:], uint32(arrays))
	binary.LittleEndian.PutUint64(h[16:], uint64(b.used))
	binary.LittleEndian.PutUint64(h[24:], x.Index)
	binary.LittleEndian.PutUint64(h[32:], x.FirstRow)
	binary.LittleEndian.PutUint64(h[40:], uint64(x.Rows))
}

func align(n int) int { return (n + blockAlign - 1) &^ (blockAlign - 1) }

// number is the element type of an array.
type number interface {
	int32 | int64 | uint64 | float32 | float64 | byte
}

// add adds an array of n elements of type T.
func add[T number](b *block, id arrayID, n int) { b.add(id, n, bytesOf[T]()) }
