package source

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/footer"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/thrift"
)

// editSchema changes the schema in the footer of a Parquet file.
func editSchema(t *testing.T, data []byte, edit func(root *footer.Element)) []byte {
	t.Helper()
	f, err := footer.Read(bytes.NewReader(data), int64(len(data)), column.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	edit(f.Root)
	end := len(data) - 8
	raw := data[end-int(binary.LittleEndian.Uint32(data[end:])) : end]
	r := &thrift.Reader{Buf: raw}
	var foot []byte
	last := int16(0)
	const schema = 2
	r.Fields(1, func(id int16, typ byte) {
		from := r.Pos
		r.Skip(typ, 2)
		foot = appendField(foot, &last, id, typ)
		if id == schema {
			n := countElements(f.Root)
			foot = appendElement(binary.AppendUvarint(append(foot, 15<<4|thrift.Struct), uint64(n)), f.Root)
		} else {
			foot = append(foot, raw[from:r.Pos]...)
		}
	})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	foot = append(foot, thrift.Stop)
	data = append(bytes.Clone(data[:end-len(raw)]), foot...)
	return append(binary.LittleEndian.AppendUint32(data, uint32(len(foot))), "PAR1"...)
}

func countElements(e *footer.Element) int {
	n := 1
	for _, k := range e.Children {
		n += countElements(k)
	}
	return n
}

// appendElement appends e as a SchemaElement, and its children.
func appendElement(out []byte, e *footer.Element) []byte {
	last := int16(0)
	number := func(id int16, v int32, said bool) {
		if said {
			out = binary.AppendVarint(appendField(out, &last, id, thrift.I32), int64(v))
		}
	}
	number(1, e.Physical, e.Physical >= 0)
	number(2, e.Length, e.Length != 0)
	number(3, e.Repetition, e.Repetition >= 0)
	out = append(binary.AppendUvarint(appendField(out, &last, 4, thrift.Binary), uint64(len(e.Name))), e.Name...)
	number(5, int32(len(e.Children)), e.Group)
	for i, v := range []int32{e.Converted, e.Scale, e.Precision, e.FieldID} {
		number(int16(6+i), v, v >= 0)
	}
	if e.Logical != nil {
		out = append(appendField(out, &last, 10, thrift.Struct), e.Logical...)
	}
	out = append(out, thrift.Stop)
	for _, k := range e.Children {
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
