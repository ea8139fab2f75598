package encoding

import "encoding/binary"

// Constant (id 1): one value for all.
//
//	+-------+----------------+
//	| 1 (1) | value (varint) |
//	+-------+----------------+
const IDConstant ID = 1

// It has no offer function: appendInts uses it before choosing.
func init() {
	registerInts(&intCodec{codec: codec{id: IDConstant, name: "constant"}, decode: decodeConstant, seeks: seekAlways})
}

func appendConstant(dst []byte, v int64) []byte {
	dst = append(dst, byte(IDConstant))
	return binary.AppendVarint(dst, v)
}

func decodeConstant(_ *Decoder, dst []int64, _ int, _ []Span, p []byte, _ int) error {
	v, p, err := takeVarint(p)
	if err != nil {
		return err
	}
	if len(p) != 0 {
		return errLength
	}
	fill(dst, v)
	return nil
}
