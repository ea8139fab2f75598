package versus

import "unsafe"

// bytesOf returns the bytes of numbers. It shares their memory.
func bytesOf[T int64 | float32](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}
