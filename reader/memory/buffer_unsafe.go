package memory

import "unsafe"

// sizeOf returns the bytes of a T.
func sizeOf[T number]() int {
	var v T
	return int(unsafe.Sizeof(v))
}

// viewOf returns b, which is aligned for T, as a slice of T in the machine's byte order. It shares b's memory.
func viewOf[T number](b []byte) []T {
	n := len(b) / sizeOf[T]()
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// alignedBytes returns n bytes of Go's heap that start at a multiple of 64.
func alignedBytes(n int) []byte {
	b := make([]byte, n+63)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[skip : skip+n : skip+n]
}
