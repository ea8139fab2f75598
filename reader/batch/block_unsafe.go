package batch

import (
	"encoding/binary"
	"unsafe"
)

// arrayOf returns an array of a block, nil where it is absent. Borrowed until the block moves or is released.
func arrayOf[T number](b *block, id arrayID) []T {
	entry := b.entry(id)
	n := int(binary.LittleEndian.Uint64(entry[8:]))
	if n == 0 {
		return nil
	}
	at := binary.LittleEndian.Uint64(entry)
	return unsafe.Slice((*T)(unsafe.Pointer(&b.raw[at])), n)
}

// bytesOf returns the size of a T.
func bytesOf[T number]() int {
	var v T
	return int(unsafe.Sizeof(v))
}
