package vector

import (
	"encoding/binary"
	"math"
)

// AppendFloats appends numbers, little-endian.
func AppendFloats(dst []byte, s []float32) []byte {
	for _, v := range s {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

// AppendDoubles appends numbers, little-endian.
func AppendDoubles(dst []byte, s []float64) []byte {
	for _, v := range s {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

// TakeFloats appends the numbers that src holds, as AppendFloats wrote them.
func TakeFloats(dst []float32, src []byte) []float32 {
	for ; len(src) >= 4; src = src[4:] {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(src)))
	}
	return dst
}

// TakeDoubles appends the numbers that src holds, as AppendDoubles wrote them.
func TakeDoubles(dst []float64, src []byte) []float64 {
	for ; len(src) >= 8; src = src[8:] {
		dst = append(dst, math.Float64frombits(binary.LittleEndian.Uint64(src)))
	}
	return dst
}
