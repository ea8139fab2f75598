package encoding

import "encoding/binary"

// Constant (id 1): one value for all.
//
//	+-------+----------------+
//	| 1 (1) | value (varint) |
//	+-------+----------------+
func appendConstant(dst []byte, v int64) []byte {
	dst = append(dst, byte(IDConstant))
	return binary.AppendVarint(dst, v)
}

func decodeConstant(dst []int64, p []byte) error {
	v, p, err := takeVarint(p)
	if err != nil {
		return err
	}
	if len(p) != 0 {
		return errLength
	}
	for i := range dst {
		dst[i] = v
	}
	return nil
}
