package arrow

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// fieldType returns the type of an Arrow field.
func fieldType(f arrow.Field, depth int) *column.Type {
	n := typeOf(f.Type, depth)
	n.Name = f.Name
	if i := f.Metadata.FindKey("ARROW:extension:name"); i >= 0 {
		nameExtension(n, f.Metadata.Values()[i])
	}
	return n
}

// nameExtension gives n the meaning of a canonical extension type. Others are read as the type that stores them.
func nameExtension(n *column.Type, name string) {
	switch {
	case name == "arrow.uuid" && n.Shape == column.Bytes && n.Logical == "fixed_size_binary[16]":
		n.Logical = "uuid"
	case name == "arrow.json" && n.Shape == column.String:
		n.Logical = "json"
	}
}

var arrowNumbers = map[arrow.Type]vector.Elem{
	arrow.BOOL: vector.Bool, arrow.INT8: vector.Int8, arrow.INT16: vector.Int16, arrow.INT32: vector.Int32,
	arrow.INT64: vector.Int64, arrow.UINT8: vector.Uint8, arrow.UINT16: vector.Uint16, arrow.UINT32: vector.Uint32,
	arrow.UINT64: vector.Uint64, arrow.FLOAT32: vector.Float32, arrow.FLOAT64: vector.Float64,
}

const maxArrowDepth = 64

func typeOf(t arrow.DataType, depth int) *column.Type {
	if depth > maxArrowDepth {
		return &column.Type{Shape: column.Refused, Reason: "it is nested too deeply"}
	}
	number := func(e vector.Elem, format string, args ...any) *column.Type {
		return &column.Type{Shape: column.Number, Elem: e, Logical: fmt.Sprintf(format, args...)}
	}
	if e, ok := arrowNumbers[t.ID()]; ok {
		return &column.Type{Shape: column.Number, Elem: e}
	}
	switch t := t.(type) {
	case *arrow.NullType:
		return &column.Type{Shape: column.Null}
	case *arrow.Float16Type:
		return number(vector.Float32, "float16")
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return &column.Type{Shape: column.String}
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return &column.Type{Shape: column.Bytes}
	case *arrow.FixedSizeBinaryType:
		return &column.Type{Shape: column.Bytes, Logical: fmt.Sprintf("fixed_size_binary[%d]", t.ByteWidth)}
	case *arrow.Date32Type:
		return number(vector.Int32, "date32")
	case *arrow.Date64Type:
		return number(vector.Int64, "date64")
	case *arrow.Time32Type:
		return number(vector.Int32, "time32[%s]", t.Unit)
	case *arrow.Time64Type:
		return number(vector.Int64, "time64[%s]", t.Unit)
	case *arrow.DurationType:
		return number(vector.Int64, "duration[%s]", t.Unit)
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			// The value is an instant whatever the zone: only its display differs.
			return number(vector.Int64, "timestamp[%s, tz=UTC]", t.Unit)
		}
		return number(vector.Int64, "timestamp[%s]", t.Unit)
	case arrow.DecimalType:
		n, err := column.Decimal(int(t.GetPrecision()), int(t.GetScale()))
		if err != nil {
			return &column.Type{Shape: column.Refused, Reason: err.Error()}
		}
		return n
	case *arrow.MapType:
		return &column.Type{Shape: column.Map, Children: []*column.Type{fieldType(t.KeyField(), depth+1),
			fieldType(t.ItemField(), depth+1)}}
	case *arrow.FixedSizeListType:
		if t.Len() < 0 {
			return &column.Type{Shape: column.Refused, Reason: fmt.Sprintf("a list of %d values", t.Len())}
		}
		return &column.Type{Shape: column.FixedList, Dim: int(t.Len()),
			Children: []*column.Type{fieldType(t.ElemField(), depth+1)}}
	case *arrow.StructType:
		n := &column.Type{Shape: column.Struct}
		for _, f := range t.Fields() {
			n.Children = append(n.Children, fieldType(f, depth+1))
		}
		return n
	case *arrow.DictionaryType:
		return typeOf(t.ValueType, depth+1)
	case *arrow.RunEndEncodedType:
		return typeOf(t.Encoded(), depth+1)
	case arrow.ExtensionType:
		n := typeOf(t.StorageType(), depth+1)
		nameExtension(n, t.ExtensionName())
		return n
	case arrow.ListLikeType:
		return &column.Type{Shape: column.List, Children: []*column.Type{fieldType(t.ElemField(), depth+1)}}
	}
	return &column.Type{Shape: column.Refused, Reason: fmt.Sprintf("Arrow's type %v has no place in a table", t)}
}
