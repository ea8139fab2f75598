package vector

import "unsafe"

// Bits32 returns the bits of floats, in the same memory. Borrowed.
func Bits32(s []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// Bits64 returns the bits of doubles, in the same memory. Borrowed.
func Bits64(s []float64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// BytesOf returns the bytes of numbers, in the same memory. Borrowed.
func BytesOf[T int64 | float32 | float64](s []T) []byte {
	var v T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(v)))
}
