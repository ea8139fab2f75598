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
	h.Typ, h.IsCompressed = -1, true
	read := func(typ byte, into map[int16]*int32, compressed int16) {
		if typ != thrift.Struct {
			t.Fail(errors.New("a field of the page header has the wrong type"))
			return
		}
		h.body = true
		t.Fields(2, func(id int16, typ byte) {
			p := into[id]
			switch {
			case p != nil && typ == thrift.I32:
				*p = t.I32()
			case id == compressed && compressed != 0 && (typ == thrift.True || typ == thrift.False):
				h.IsCompressed = typ == thrift.True
			default:
				t.Skip(typ, 3)
			}
		})
	}
	t.Fields(1, func(id int16, typ byte) {
		switch {
		case id >= 1 && id <= 4 && typ == thrift.I32:
			v := t.I32()
			switch id {
			case 1:
				h.Typ = v
			case 2:
				h.uncompressed = v
			case 3:
				h.compressed = v
			case 4:
				h.crc, h.hasCRC = v, true
			}
		case id == 5:
			read(typ, map[int16]*int32{1: &h.values, 2: &h.Encoding, 3: &h.DefEncoding, 4: &h.RepEncoding}, 0)
		case id == 7:
			read(typ, map[int16]*int32{1: &h.values, 2: &h.Encoding}, 0)
		case id == 8:
			read(typ, map[int16]*int32{1: &h.values, 2: &h.nulls, 3: &h.rows, 4: &h.Encoding, 5: &h.defBytes,
				6: &h.repBytes}, 7)
		default:
			t.Skip(typ, 2)
		}
	})
	if t.Err != nil {
		return h, 0, t.Err
	}
	return h, t.Pos, nil
}
