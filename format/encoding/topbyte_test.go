package encoding

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// appendTopByte returns a chunk of vals as earlier versions wrote it.
func appendTopByte(vals []int64, s *intStats) []byte {
	low := max(0, s.width-8)
	top := make([]byte, len(vals))
	for i, v := range vals {
		top[i] = byte(uint64(v-s.base) >> low)
	}
	dst := binary.AppendVarint([]byte{byte(IDTopByte), byte(low)}, s.base)
	dst = appendNested(dst, newZstdEncoder(zstd.SpeedFastest).EncodeAll(top, nil))
	return appendPacked(dst, vals, low, s.base)
}
