package memory

import "unsafe"

// alignedBytes returns n bytes of Go's heap that start at a multiple of 64.
func alignedBytes(n int) []byte {
	b := make([]byte, n+63)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[skip : skip+n : skip+n]
}
