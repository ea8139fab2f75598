package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

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

// logicalTypeNames are the members of Parquet's LogicalType union, by field id.
var logicalTypeNames = map[int16]string{
	1: "STRING", 2: "MAP", 3: "LIST", 4: "ENUM", 5: "DECIMAL", 6: "DATE", 7: "TIME", 8: "TIMESTAMP", 10: "INTEGER",
	11: "UNKNOWN", 12: "JSON", 13: "BSON", 14: "UUID", 15: "FLOAT16", 16: "VARIANT", 17: "GEOMETRY", 18: "GEOGRAPHY",
}

// Parquet's physical types and ConvertedTypes by their numbers, and which physical types a converted type annotates.
var (
	physicalNames  = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
	convertedTypes = map[int32]struct {
		name     string
		physical []int32
	}{
		0: {"UTF8", []int32{6}}, 4: {"ENUM", []int32{6}}, 5: {"DECIMAL", []int32{1, 2, 6, 7}}, 6: {"DATE", []int32{1}},
		7: {"TIME_MILLIS", []int32{1}}, 8: {"TIME_MICROS", []int32{2}}, 9: {"TIMESTAMP_MILLIS", []int32{2}}, 10: {"TIMESTAMP_MICROS", []int32{2}},
		11: {"UINT_8", []int32{1}}, 12: {"UINT_16", []int32{1}}, 13: {"UINT_32", []int32{1}}, 14: {"UINT_64", []int32{2}},
		15: {"INT_8", []int32{1}}, 16: {"INT_16", []int32{1}}, 17: {"INT_32", []int32{1}}, 18: {"INT_64", []int32{2}},
		19: {"JSON", []int32{6}}, 20: {"BSON", []int32{6}}, 21: {"INTERVAL", []int32{7}},
	}
)

// annotationFault returns why a column of a physical type cannot have a converted type; empty when it can.
func annotationFault(physical, converted int32) string {
	c, ok := convertedTypes[converted]
	if !ok || int(physical) >= len(physicalNames) || slices.Contains(c.physical, physical) {
		return ""
	}
	return fmt.Sprintf("its converted type %s does not go with its physical type %s", c.name, physicalNames[physical])
}

// A footer is what we read of Parquet's FileMetaData ourselves, before the library does: enough to refuse by name what
// the library cannot read, and to bound what it allocates.
type footer struct {
	raw       []byte // without what the library would not take
	encrypted bool
	// refused maps the path of a column to the reason why the library makes no schema of a file that has it.
	refused map[string]string
	columns int
}

const maxFooterBytes = 1 << 30

// readFooter reads the footer of a Parquet file of the given size.
//
//	+------+-----+----------+---------------+--------+
//	| PAR1 | ... | metadata | length (4 LE) | PAR1   |
//	+------+-----+----------+---------------+--------+
//
// A file whose metadata is encrypted ends with PARE.
func readFooter(r io.ReaderAt, size int64, limits Limits) (*footer, error) {
	if size < 12 {
		return nil, fmt.Errorf("%d bytes are no Parquet file", size)
	}
	var tail [8]byte
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case "PARE":
		return &footer{encrypted: true}, nil
	case "PAR1":
	default:
		return nil, fmt.Errorf("the file does not end with PAR1: it is cut short, or no Parquet file")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 || n > maxFooterBytes {
		return nil, fmt.Errorf("a footer of %d bytes in a file of %d", n, size)
	}
	f := &footer{raw: make([]byte, n), refused: map[string]string{}}
	if _, err := r.ReadAt(f.raw, size-8-n); err != nil {
		return nil, err
	}
	t := &thriftReader{buf: f.raw}
	var cuts []footerSpan
	t.fields(1, func(id int16, typ byte) {
		switch {
		case id == 2 && typ == thriftList:
			cuts = f.readSchema(t, limits)
		case id == 8:
			f.encrypted = true
			t.skip(typ, 2)
		default:
			t.skip(typ, 2)
		}
	})
	if t.err != nil {
		return nil, fmt.Errorf("footer: %w", t.err)
	}
	if len(cuts) > 0 {
		kept, at := f.raw[:0], 0
		for _, c := range cuts {
			kept = append(kept, f.raw[at:c.from]...)
			at = c.to
		}
		f.raw = append(kept, f.raw[at:]...)
	}
	return f, nil
}

// A footerSpan is bytes [from, to) of a footer.
type footerSpan struct{ from, to int }

// logicalUnknown is the member UNKNOWN of Parquet's LogicalType union.
const logicalUnknown = 11

// readSchema walks the flattened schema tree: each element is followed by its children. It returns where elements have the logical
// type UNKNOWN without being columns of nulls: parquet-mr put it where there is no logical type for the converted one, MAP_KEY_VALUE
// and INTERVAL, and the library takes it at its word.
func (f *footer) readSchema(t *thriftReader, limits Limits) (cuts []footerSpan) {
	n, elem := t.list()
	if elem != thriftStruct {
		t.fail(errors.New("the schema is no list of structs"))
		return nil
	}
	type level struct {
		name string
		left int32
	}
	var stack []level
	for i := 0; i < n && t.err == nil; i++ {
		var name string
		var children int32
		logical, physical, converted := int16(0), int32(-1), int32(-1)
		annotated, last := footerSpan{}, t.pos
		t.fields(2, func(id int16, typ byte) {
			switch {
			case id == 4 && typ == thriftBinary:
				name = string(t.bytes())
			case id == 1 && typ == thriftI32:
				physical = t.i32()
			case id == 5 && typ == thriftI32:
				children = t.i32()
			case id == 6 && typ == thriftI32:
				converted = t.i32()
			case id == 10 && typ == thriftStruct:
				t.fields(3, func(id int16, typ byte) {
					logical = id
					t.skip(typ, 4)
				})
				annotated = footerSpan{last, t.pos}
			default:
				t.skip(typ, 3)
			}
			last = t.pos
		})
		if t.err != nil {
			return nil
		}
		if logical == logicalUnknown && (children > 0 || converted >= 0) && annotated.to == last { // no field is numbered from it
			cuts = append(cuts, annotated)
		}
		if i > 0 {
			for len(stack) > 0 && stack[len(stack)-1].left == 0 {
				stack = stack[:len(stack)-1]
			}
			if len(stack) == 0 {
				t.fail(errors.New("the schema has elements outside its root"))
				return nil
			}
			stack[len(stack)-1].left--
		}
		if children < 0 || int(children) > n {
			t.fail(fmt.Errorf("the schema's element %q claims %d children", name, children))
			return nil
		}
		if children == 0 && i > 0 {
			f.columns++
		}
		reason := ""
		switch _, known := logicalTypeNames[logical]; {
		case logical != 0 && !known:
			reason = fmt.Sprintf("its logical type (number %d of Parquet's) is unknown to this reader", logical)
		case i > 0 && children == 0 && physical < 0:
			reason = "a struct without members has no values to store"
		case physical >= 0:
			reason = annotationFault(physical, converted)
		}
		if reason != "" {
			path := ""
			for _, l := range stack[min(1, len(stack)):] {
				path += l.name + "."
			}
			f.refused[path+name] = reason
		}
		// A LIST takes three levels of the schema, hence the factor.
		if len(stack) > 4*limits.Depth {
			t.fail(fmt.Errorf("the schema is nested deeper than %d", 4*limits.Depth))
			return nil
		}
		stack = append(stack, level{name, children})
	}
	for _, l := range stack {
		if l.left != 0 {
			t.fail(fmt.Errorf("the schema ends within %q", l.name))
			return nil
		}
	}
	if f.columns > limits.Columns {
		t.fail(fmt.Errorf("%d columns: the limit is %d", f.columns, limits.Columns))
	}
	return cuts
}
