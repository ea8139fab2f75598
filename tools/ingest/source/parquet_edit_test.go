package source

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// editSchema changes the schema in the footer of a Parquet file.
func editSchema(t *testing.T, data []byte, edit func(root *schemaElement)) []byte {
	t.Helper()
	f, err := readFooter(bytes.NewReader(data), int64(len(data)), column.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	edit(f.root)
	end := len(data) - 8
	raw := data[end-int(binary.LittleEndian.Uint32(data[end:])) : end]
	r := &thriftReader{buf: raw}
	var foot []byte
	last := int16(0)
	const schema = 2
	r.fields(1, func(id int16, typ byte) {
		from := r.pos
		r.skip(typ, 2)
		foot = appendField(foot, &last, id, typ)
		if id == schema {
			n := countElements(f.root)
			foot = appendElement(binary.AppendUvarint(append(foot, 15<<4|thriftStruct), uint64(n)), f.root)
		} else {
			foot = append(foot, raw[from:r.pos]...)
		}
	})
	if r.err != nil {
		t.Fatal(r.err)
	}
	foot = append(foot, thriftStop)
	data = append(bytes.Clone(data[:end-len(raw)]), foot...)
	return append(binary.LittleEndian.AppendUint32(data, uint32(len(foot))), "PAR1"...)
}

func countElements(e *schemaElement) int {
	n := 1
	for _, k := range e.kids {
		n += countElements(k)
	}
	return n
}

// appendElement appends e as a SchemaElement, and its children.
func appendElement(out []byte, e *schemaElement) []byte {
	last := int16(0)
	number := func(id int16, v int32, said bool) {
		if said {
			out = binary.AppendVarint(appendField(out, &last, id, thriftI32), int64(v))
		}
	}
	number(1, e.physical, e.physical >= 0)
	number(2, e.length, e.length != 0)
	number(3, e.repetition, e.repetition >= 0)
	out = append(binary.AppendUvarint(appendField(out, &last, 4, thriftBinary), uint64(len(e.name))), e.name...)
	number(5, int32(len(e.kids)), e.group)
	for i, v := range []int32{e.converted, e.scale, e.precision, e.fieldID} {
		number(int16(6+i), v, v >= 0)
	}
	if e.logical != nil {
		out = append(appendField(out, &last, 10, thriftStruct), e.logical...)
	}
	out = append(out, thriftStop)
	for _, k := range e.kids {
		out = appendElement(out, k)
	}
	return out
}

// appendField appends the header of a field whose id is greater than *last, which it sets.
func appendField(out []byte, last *int16, id int16, typ byte) []byte {
	delta := id - *last
	*last = id
	return append(out, byte(delta)<<4|typ)
}
