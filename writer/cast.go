package writer

import "unsafe"

// bytesOf returns numbers as the bytes that they are in memory. Borrowed.
func bytesOf[T int64 | float32 | float64](s []T) []byte {
	var v T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(v)))
}

// bits32 returns numbers as their bits. Borrowed.
func bits32(s []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// bits64 returns numbers as their bits. Borrowed.
func bits64(s []float64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
