package page

import (
	"encoding/binary"
	"errors"

	"github.com/pierrec/lz4/v4"
)

// Parquet's deprecated codec LZ4 says nothing of its framing, and writers chose two: parquet-mr Hadoop's, parquet-cpp
// at first one LZ4 block without any. The first is tried first: a block cannot pass for it by chance, since every
// length must fit.
//
//	+---------------------+--------------------+-----------+
//	| bytes become (4 BE) | block bytes (4 BE) | LZ4 block | the last two repeat until the bytes are there
//	+---------------------+--------------------+-----------+   and the whole until the page is
var errLZ4 = errors.New("lz4: neither in Hadoop's framing nor one block")

// decodeOldLZ4 fills dst with what src becomes.
func decodeOldLZ4(dst, src []byte) error {
	if decodeHadoopLZ4(dst, src) {
		return nil
	}
	if n, err := lz4.UncompressBlock(src, dst); err != nil || n != len(dst) {
		return errLZ4
	}
	return nil
}

func decodeHadoopLZ4(dst, src []byte) bool {
	for len(src) > 0 {
		if len(src) < 4 {
			return false
		}
		left := uint64(binary.BigEndian.Uint32(src))
		src = src[4:]
		if left > uint64(len(dst)) {
			return false
		}
		for left > 0 {
			if len(src) < 4 {
				return false
			}
			size := uint64(binary.BigEndian.Uint32(src))
			src = src[4:]
			if size > uint64(len(src)) {
				return false
			}
			n, err := lz4.UncompressBlock(src[:size], dst[:left])
			if err != nil || n <= 0 {
				return false
			}
			src, dst, left = src[size:], dst[n:], left-uint64(n)
		}
	}
	return len(dst) == 0
}
