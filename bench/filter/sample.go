package main

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
)

// sampled is sample(share, key, seed) as docs/reference/expressions.md says it.
func sampled(keys *vector.Column, row int, seed uint64, share float64) bool {
	if share >= 1 {
		return true
	}
	b := binary.LittleEndian.AppendUint64(nil, seed)
	lo, hi := keys.RowRange(row)
	if keys.Type.IsList() {
		b = append(b, keys.Data[lo:hi]...)
	} else {
		b = binary.LittleEndian.AppendUint64(b, uint64(keys.Ints[lo]))
	}
	return float64(xxhash.Sum64(b)) < share*0x1p64
}
