package engine

import (
	"strconv"

	"github.com/dsistore/dsistore/internal/jsontext"
	"github.com/dsistore/dsistore/reader"
)

// schemaText returns a schema as _block.Schema of the Python package reads it: JSON, with the names and types of the
// arrays in one string, as they are many.
func schemaText(s *reader.Schema) string {
	var arrays []byte
	for i, a := range s.Arrays {
		if i > 0 {
			arrays = append(arrays, ' ')
		}
		arrays = append(append(append(arrays, a.Name...), ' '), a.Type...)
	}
	b := jsontext.AppendText([]byte{'{'}, "arrays", string(arrays))
	b = appendNumbers(b, "dense", s.Dense)
	b = appendNumbers(b, "labels", s.Labels)
	b = appendNumbers(b, "embeddings", s.Embeddings)
	b = appendNumbers(b, "widths", s.Widths)
	b = appendNumbers(b, "columns", s.Columns)
	for _, lists := range [...]struct {
		kind string
		reader.ListsSchema
	}{{"sparse", s.Sparse}, {"weighted", s.Weighted}, {"floats", s.Floats}} {
		dedup := make([]int, len(lists.Dedup))
		for i, may := range lists.Dedup {
			if may {
				dedup[i] = 1
			}
		}
		b = appendNumbers(append(jsontext.AppendMember(b, lists.kind), '{'), "features", lists.Features)
		b = append(appendNumbers(b, "dedup", dedup), '}')
	}
	return string(append(b, '}'))
}

// appendNumbers appends a member that is a list of numbers.
func appendNumbers[T int | int32](b []byte, name string, values []T) []byte {
	b = append(jsontext.AppendMember(b, name), '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, ']')
}
