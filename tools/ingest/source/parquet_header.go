package source

import "errors"

// Page types, in PageHeader.type.
const (
	pageData       = 0
	pageIndex      = 1
	pageDictionary = 2
	pageDataV2     = 3
)

// A pageHeader is Parquet's PageHeader; fields of the struct that the type does not use are zero.
type pageHeader struct {
	typ                      int32
	uncompressed, compressed int32
	crc                      int32
	hasCRC                   bool
	values                   int32
	encoding                 int32
	defEncoding, repEncoding int32 // pageData
	nulls, rows              int32 // pageDataV2
	defBytes, repBytes       int32 // pageDataV2
	isCompressed             bool  // pageDataV2
	body                     bool  // the struct that the type calls for was there
}

// parsePageHeader reads the header at the start of buf and returns its length. It returns errThriftShort when buf ends
// within it.
func parsePageHeader(buf []byte) (h pageHeader, n int, err error) {
	t := &thriftReader{buf: buf}
	h.typ, h.isCompressed = -1, true
	read := func(typ byte, into map[int16]*int32, compressed int16) {
		if typ != thriftStruct {
			t.fail(errors.New("a field of the page header has the wrong type"))
			return
		}
		h.body = true
		t.fields(2, func(id int16, typ byte) {
			p := into[id]
			switch {
			case p != nil && typ == thriftI32:
				*p = t.i32()
			case id == compressed && compressed != 0 && (typ == thriftTrue || typ == thriftFalse):
				h.isCompressed = typ == thriftTrue
			default:
				t.skip(typ, 3)
			}
		})
	}
	t.fields(1, func(id int16, typ byte) {
		switch {
		case id >= 1 && id <= 4 && typ == thriftI32:
			v := t.i32()
			switch id {
			case 1:
				h.typ = v
			case 2:
				h.uncompressed = v
			case 3:
				h.compressed = v
			case 4:
				h.crc, h.hasCRC = v, true
			}
		case id == 5:
			read(typ, map[int16]*int32{1: &h.values, 2: &h.encoding, 3: &h.defEncoding, 4: &h.repEncoding}, 0)
		case id == 7:
			read(typ, map[int16]*int32{1: &h.values, 2: &h.encoding}, 0)
		case id == 8:
			read(typ, map[int16]*int32{1: &h.values, 2: &h.nulls, 3: &h.rows, 4: &h.encoding, 5: &h.defBytes, 6: &h.repBytes}, 7)
		default:
			t.skip(typ, 2)
		}
	})
	if t.err != nil {
		return h, 0, t.err
	}
	return h, t.pos, nil
}
