package page

import (
	"errors"

	"github.com/dsistore/dsistore/tools/ingest/source/parquet/thrift"
)

// Page types, in PageHeader.type.
const (
	Data           = 0
	index          = 1
	dictionaryPage = 2
	DataV2         = 3
)

// A Header is Parquet's PageHeader; fields of the struct that the type does not use are zero.
type Header struct {
	Typ                      int32
	uncompressed, compressed int32
	crc                      int32
	hasCRC                   bool
	values                   int32
	Encoding                 int32
	DefEncoding, RepEncoding int32 // Data
	nulls, rows              int32 // DataV2
	defBytes, repBytes       int32 // DataV2
	IsCompressed             bool  // DataV2
	body                     bool  // the struct that the type calls for was there
}

// ParseHeader reads the header at the start of buf and returns its length. It returns thrift.ErrShort when buf ends
// within it.
func ParseHeader(buf []byte) (h Header, n int, err error) {
	t := &thrift.Reader{Buf: buf}
	head := [5]int64{1: -1} // 1 type · 2, 3 sizes · 4 checksum
	said := t.Ints(1, head[:], func(id int16, typ byte) bool {
		if id != 5 && id != 7 && id != 8 {
			return false
		}
		if typ != thrift.Struct {
			t.Fail(errors.New("a field of the page header has the wrong type"))
			return true
		}
		part := [8]int64{7: 1}
		t.Ints(2, part[:], nil)
		says := func(i int) int32 { return int32(part[i]) }
		h.body, h.values = true, says(1)
		switch id {
		case 5:
			h.Encoding, h.DefEncoding, h.RepEncoding = says(2), says(3), says(4)
		case 7:
			h.Encoding = says(2)
		case 8:
			h.nulls, h.rows, h.Encoding, h.defBytes, h.repBytes = says(2), says(3), says(4), says(5), says(6)
			h.IsCompressed = part[7] != 0
		}
		return true
	})
	h.Typ, h.uncompressed, h.compressed, h.crc = int32(head[1]), int32(head[2]), int32(head[3]), int32(head[4])
	h.hasCRC = said&(1<<4) != 0
	return h, t.Pos, t.Err
}
