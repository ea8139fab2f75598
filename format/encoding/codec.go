package encoding

import "encoding/binary"

// An ID names a codec in stored bytes. It is the first byte of every chunk. Ids never change meaning and are never
// used again.
type ID uint8

// The codecs. 0 is none, so that zeroed bytes are refused.
const (
	IDConstant   ID = 1 // ints
	IDPlain      ID = 2
	IDFOR        ID = 3
	IDDelta      ID = 4
	IDPatched    ID = 5
	IDDictionary ID = 6
	IDRuns       ID = 7
	IDZstd       ID = 8
	IDRepeats    ID = 10
	IDRANS       ID = 11

	IDFloatConstant   ID = 16 // floats and doubles
	IDFloatPlain      ID = 17
	IDFloatSplit      ID = 18
	IDFloatDecimal    ID = 19
	IDFloatDictionary ID = 20
	IDFloatRuns       ID = 21
	IDFloatZstd       ID = 22
	IDFloatRepeats    ID = 23

	IDBitsConstant  ID = 32 // bits
	IDBitsPlain     ID = 33
	IDBitsRuns      ID = 34
	IDBitsPositions ID = 35

	IDStringPlain      ID = 48 // byte strings
	IDStringZstd       ID = 49
	IDStringDictionary ID = 50
)

// maxDepth is how deep chunks may lie within chunks: the outermost has depth 0.
const maxDepth = 4

// names is the registry: the codecs that this version knows, as Describe spells them.
var names = map[ID]string{
	IDConstant: "constant", IDPlain: "plain", IDFOR: "for", IDDelta: "delta", IDPatched: "patched",
	IDDictionary: "dict", IDRuns: "runs", IDZstd: "zstd", IDRepeats: "repeats", IDRANS: "rans",
	IDFloatConstant: "constant", IDFloatPlain: "plain", IDFloatSplit: "split", IDFloatDecimal: "decimal",
	IDFloatDictionary: "dict", IDFloatRuns: "runs", IDFloatZstd: "zstd", IDFloatRepeats: "repeats",
	IDBitsConstant: "constant", IDBitsPlain: "plain", IDBitsRuns: "runs", IDBitsPositions: "positions",
	IDStringPlain: "plain", IDStringZstd: "zstd", IDStringDictionary: "dict",
}

// String returns the codec's name, or "unknown".
func (id ID) String() string {
	if s, ok := names[id]; ok {
		return s
	}
	return "unknown"
}

// head takes the codec id off a chunk.
func head(src []byte) (ID, []byte, error) {
	if len(src) == 0 {
		return 0, nil, errShort
	}
	return ID(src[0]), src[1:], nil
}

func takeUvarint(p []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(p)
	if n <= 0 {
		return 0, nil, errVarint
	}
	return v, p[n:], nil
}

func takeVarint(p []byte) (int64, []byte, error) {
	v, n := binary.Varint(p)
	if n <= 0 {
		return 0, nil, errVarint
	}
	return v, p[n:], nil
}

// takeCount takes a count of nested values, at most limit.
func takeCount(p []byte, limit int) (int, []byte, error) {
	v, p, err := takeUvarint(p)
	if err != nil {
		return 0, nil, err
	}
	if v > uint64(limit) {
		return 0, nil, errCount
	}
	return int(v), p, nil
}

// takeNested takes a nested chunk, which stands behind its length.
func takeNested(p []byte) (chunk, rest []byte, err error) {
	v, p, err := takeUvarint(p)
	if err != nil {
		return nil, nil, err
	}
	if v > uint64(len(p)) {
		return nil, nil, errNested
	}
	return p[:v], p[v:], nil
}

// appendNested appends a chunk behind its length.
func appendNested(dst, chunk []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(chunk)))
	return append(dst, chunk...)
}
