package source

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dsistore/dsistore/format/vector"
)

// arrowNode returns the node of an Arrow field.
func arrowNode(f arrow.Field, depth int) *node {
	n := arrowTypeNode(f.Type, depth)
	n.name, n.nullable = f.Name, f.Nullable
	if i := f.Metadata.FindKey("ARROW:extension:name"); i >= 0 {
		nameExtension(n, f.Metadata.Values()[i])
	}
	return n
}

// nameExtension gives n the meaning of a canonical extension type. Others are read as the type that stores them.
func nameExtension(n *node, name string) {
	switch {
	case name == "arrow.uuid" && n.shape == shapeBytes && n.logical == "fixed_size_binary[16]":
		n.logical = "uuid"
	case name == "arrow.json" && n.shape == shapeString:
		n.logical = "json"
	}
}

var arrowNumbers = map[arrow.Type]vector.Elem{
	arrow.BOOL: vector.Bool, arrow.INT8: vector.Int8, arrow.INT16: vector.Int16, arrow.INT32: vector.Int32,
	arrow.INT64: vector.Int64, arrow.UINT8: vector.Uint8, arrow.UINT16: vector.Uint16, arrow.UINT32: vector.Uint32,
	arrow.UINT64: vector.Uint64, arrow.FLOAT32: vector.Float32, arrow.FLOAT64: vector.Float64,
}

const maxArrowDepth = 64

func arrowTypeNode(t arrow.DataType, depth int) *node {
	if depth > maxArrowDepth {
		return &node{shape: shapeRefused, reason: "it is nested too deeply"}
	}
	number := func(e vector.Elem, format string, args ...any) *node {
		return &node{shape: shapeNumber, elem: e, logical: fmt.Sprintf(format, args...)}
	}
	list := func(el arrow.Field) *node {
		return &node{shape: shapeList, children: []*node{arrowNode(el, depth+1)}}
	}
	if e, ok := arrowNumbers[t.ID()]; ok {
		return &node{shape: shapeNumber, elem: e}
	}
	switch t := t.(type) {
	case *arrow.NullType:
		return &node{shape: shapeNull}
	case *arrow.Float16Type:
		return number(vector.Float32, "float16")
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return &node{shape: shapeString}
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return &node{shape: shapeBytes}
	case *arrow.FixedSizeBinaryType:
		return &node{shape: shapeBytes, logical: fmt.Sprintf("fixed_size_binary[%d]", t.ByteWidth)}
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
		n, err := decimalNode(int(t.GetPrecision()), int(t.GetScale()))
		if err != nil {
			return &node{shape: shapeRefused, reason: err.Error()}
		}
		return n
	case *arrow.MapType:
		n := &node{shape: shapeMap, children: []*node{arrowNode(t.KeyField(), depth+1), arrowNode(t.ItemField(), depth+1)}}
		return n
	case *arrow.ListType:
		return list(t.ElemField())
	case *arrow.LargeListType:
		return list(t.ElemField())
	case *arrow.ListViewType:
		return list(t.ElemField())
	case *arrow.LargeListViewType:
		return list(t.ElemField())
	case *arrow.FixedSizeListType:
		if t.Len() < 0 {
			return &node{shape: shapeRefused, reason: fmt.Sprintf("a list of %d values", t.Len())}
		}
		return &node{shape: shapeFixedList, dim: int(t.Len()), children: []*node{arrowNode(t.ElemField(), depth+1)}}
	case *arrow.StructType:
		n := &node{shape: shapeStruct}
		for _, f := range t.Fields() {
			n.children = append(n.children, arrowNode(f, depth+1))
		}
		return n
	case *arrow.DictionaryType:
		return arrowTypeNode(t.ValueType, depth+1)
	case *arrow.RunEndEncodedType:
		return arrowTypeNode(t.Encoded(), depth+1)
	case arrow.ExtensionType:
		n := arrowTypeNode(t.StorageType(), depth+1)
		nameExtension(n, t.ExtensionName())
		return n
	}
	return &node{shape: shapeRefused, reason: fmt.Sprintf("Arrow's type %v has no place in a table", t)}
}
