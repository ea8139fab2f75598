package parquet

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/footer"
)

// A levelNode ties a column.Type to Parquet's definition and repetition levels.
//
//	optional group tags (LIST)        def 1: tags is not null            list: present = 1, slot = 0, rep = 0
//	  repeated group list             def 2, rep 1: there is an element
//	    optional int64 element        def 3: it is not null              leaf: present = 3, slot = 2, rep = 1
type levelNode struct {
	node    *column.Type
	slot    int16 // from this definition level on the node has an entry, perhaps a null one
	present int16 // from this definition level on that entry is not null
	rep     int16 // an entry begins where the repetition level is at most this
	// leaves of the subtree are columns [first, last) of the file.
	first, last int
	children    []*levelNode
	convert     leafConverter  // leaves only
	leaf        *schema.Column // leaves only; nil where it is refused
	use         leafUse        // leaves only
	encrypted   bool           // a refused column whose levels cannot be read either
}

// schemaWalker turns the tree of a Parquet schema into levelNodes.
type schemaWalker struct {
	leaf int // the next column of the file
}

// members gives n the node of each child of a group.
func (w *schemaWalker) members(n *levelNode, e *footer.Element, slot, above, rep int16) {
	for _, k := range e.Children {
		c := w.field(k, slot, above, rep)
		n.children, n.node.Children = append(n.children, c), append(n.node.Children, c.node)
	}
}

// refused returns the node of an element that has no place in a table.
func (w *schemaWalker) refused(e *footer.Element, slot, present, rep int16) *levelNode {
	n := &levelNode{
		node: &column.Type{Name: e.Name, Shape: column.Refused, Reason: e.Refused}, slot: slot, present: present,
		rep: rep, first: w.leaf,
	}
	w.leaf += len(e.Leaves(nil))
	n.last = w.leaf
	n.encrypted = e.Encrypted || e.Group
	return n
}

// field returns the node of a field that has an entry from the definition level slot on, and that a required field has
// a value from the level above on: the two differ under structs, whose members are null with them. A repeated field
// without a LIST annotation around it is a list that is never null.
func (w *schemaWalker) field(e *footer.Element, slot, above, rep int16) *levelNode {
	if e.Refused != "" && e.Group {
		return w.refused(e, slot, above, rep)
	}
	if !e.Repeats() {
		present := above
		if e.Repetition == footer.RepetitionOptional {
			present++
		}
		return w.value(e, slot, present, rep)
	}
	l := &levelNode{slot: slot, present: above, rep: rep, first: w.leaf}
	el := w.value(e, above+1, above+1, rep+1)
	l.node = &column.Type{Name: e.Name, Shape: column.List, Children: []*column.Type{el.node}}
	l.children, l.last = []*levelNode{el}, w.leaf
	return l
}

// value returns the node of a field apart from its repetition, which the caller has taken care of.
func (w *schemaWalker) value(e *footer.Element, slot, present, rep int16) *levelNode {
	if e.Refused != "" {
		return w.refused(e, slot, present, rep)
	}
	n := &levelNode{slot: slot, present: present, rep: rep, first: w.leaf}
	if p, ok := e.Node.(*schema.PrimitiveNode); ok {
		n.node, n.convert = leafNode(p)
		n.leaf = schema.NewColumn(p, present, rep)
		w.leaf++
	} else {
		switch e.Annotation() {
		case "list":
			w.list(e, n)
		case "map":
			w.mapOf(e, n)
		case "":
			w.structOf(e, n)
		default:
			w.structOf(e, n)
			n.node = &column.Type{Shape: column.Refused,
				Reason: fmt.Sprintf("its logical type %s has no place in a table", e.Annotation())}
		}
	}
	n.node.Name = e.Name
	n.last = w.leaf
	return n
}

func (w *schemaWalker) structOf(e *footer.Element, n *levelNode) {
	n.node = &column.Type{Shape: column.Struct}
	w.members(n, e, n.slot, n.present, n.rep)
}

// list reads a group annotated LIST in each of the forms that writers have used. The repeated field is the element
// itself when it is primitive, has several fields, has one that repeats, or is called array or <list>_tuple; a repeated
// field that is itself annotated is the element too. Else its only field is the element.
func (w *schemaWalker) list(e *footer.Element, n *levelNode) {
	kept := e.Kept()
	if len(kept) != 1 || !kept[0].Repeats() {
		w.structOf(e, n)
		n.node = &column.Type{Shape: column.Refused, Reason: "it is annotated LIST, and has no single repeated field " +
			"inside"}
		return
	}
	r := kept[0]
	var el *levelNode
	if r.Group && r.Refused == "" && len(r.Children) == 1 && r.Annotation() == "" && !r.Children[0].Repeats() &&
		r.Name != "array" && r.Name != e.Name+"_tuple" {
		el = w.field(r.Children[0], n.present+1, n.present+1, n.rep+1)
	} else {
		el = w.value(r, n.present+1, n.present+1, n.rep+1)
	}
	n.node = &column.Type{Shape: column.List, Children: []*column.Type{el.node}}
	n.children = []*levelNode{el}
}

// mapOf reads a group annotated MAP, or MAP_KEY_VALUE in old files. Without a value field it is the list of its keys.
func (w *schemaWalker) mapOf(e *footer.Element, n *levelNode) {
	kept := e.Kept()
	if len(kept) != 1 || !kept[0].Repeats() || !kept[0].Group || kept[0].Refused != "" ||
		len(kept[0].Children) != len(kept[0].Kept()) || len(kept[0].Children) > 2 {
		w.structOf(e, n)
		n.node = &column.Type{Shape: column.Refused, Reason: "it is annotated MAP, and has no repeated group of a " +
			"key and a value inside"}
		return
	}
	n.node = &column.Type{Shape: column.Map}
	w.members(n, kept[0], n.present+1, n.present+1, n.rep+1)
	if len(n.children) == 1 {
		n.node.Shape = column.List
	}
}

// timeUnits are the names of Parquet's.
var timeUnits = map[schema.TimeUnitType]string{
	schema.TimeUnitMillis: "ms", schema.TimeUnitMicros: "us", schema.TimeUnitNanos: "ns",
}

// leafNode returns the node of a primitive field and what turns Parquet's values into its own.
func leafNode(p *schema.PrimitiveNode) (*column.Type, leafConverter) {
	refused := func(format string, args ...any) (*column.Type, leafConverter) {
		return &column.Type{Shape: column.Refused, Reason: fmt.Sprintf(format, args...)}, nil
	}
	number := func(e vector.Elem, format string, args ...any) *column.Type {
		return &column.Type{Shape: column.Number, Elem: e, Logical: fmt.Sprintf(format, args...)}
	}
	bytes := func(logical string) *column.Type { return &column.Type{Shape: column.Bytes, Logical: logical} }
	logical := p.LogicalType()
	switch t := logical.(type) {
	case *schema.IntLogicalType:
		logical = *t
	case *schema.DecimalLogicalType:
		logical = *t
	}
	if p.ConvertedType() == schema.ConvertedTypes.Interval {
		return refused("its logical type INTERVAL has no place in a table")
	}
	phys, size := p.PhysicalType(), p.TypeLength()
	isInt32, isInt64 := phys == parquet.Types.Int32, phys == parquet.Types.Int64
	isBytes, isFixed := phys == parquet.Types.ByteArray, phys == parquet.Types.FixedLenByteArray
	switch t := logical.(type) {
	case nil, schema.NoLogicalType, schema.UnknownLogicalType:
		return physicalNode(phys, size, refused, number)
	case schema.NullLogicalType:
		return &column.Type{Shape: column.Null}, convertNull
	case schema.StringLogicalType, schema.EnumLogicalType:
		if isBytes {
			return &column.Type{Shape: column.String}, convertBytes
		}
	case schema.JSONLogicalType:
		if isBytes {
			return &column.Type{Shape: column.String, Logical: "json"}, convertBytes
		}
	case schema.BSONLogicalType:
		if isBytes {
			return bytes(""), convertBytes
		}
	case schema.UUIDLogicalType:
		if isFixed && size == 16 {
			return bytes("uuid"), convertFixed
		}
	case schema.Float16LogicalType:
		if isFixed && size == 2 {
			return number(vector.Float32, "float16"), convertFloat16
		}
	case schema.DateLogicalType:
		if isInt32 {
			return number(vector.Int32, "date32"), convertInt32
		}
	case schema.TimeLogicalType:
		switch unit := timeUnits[t.TimeUnit()]; {
		case unit == "ms" && isInt32:
			return number(vector.Int32, "time32[ms]"), convertInt32
		case (unit == "us" || unit == "ns") && isInt64:
			return number(vector.Int64, "time64[%s]", unit), convertPlain
		}
	case schema.TimestampLogicalType:
		if unit := timeUnits[t.TimeUnit()]; isInt64 && unit != "" {
			if t.IsAdjustedToUTC() {
				unit += ", tz=UTC"
			}
			return number(vector.Int64, "timestamp[%s]", unit), convertPlain
		}
	case schema.IntLogicalType:
		e, ok := map[string]vector.Elem{
			"8true": vector.Int8, "16true": vector.Int16, "32true": vector.Int32, "64true": vector.Int64,
			"8false": vector.Uint8, "16false": vector.Uint16, "32false": vector.Uint32, "64false": vector.Uint64,
		}[fmt.Sprintf("%d%v", t.BitWidth(), t.IsSigned())]
		switch {
		case ok && t.BitWidth() == 64 && isInt64:
			return number(e, ""), convertPlain
		case ok && e == vector.Uint32 && isInt32:
			return number(e, ""), convertUint32
		case ok && e == vector.Int32 && isInt32:
			return number(e, ""), convertInt32
		case ok && isInt32:
			return number(e, ""), convertNarrow
		}
	case schema.DecimalLogicalType:
		n, err := column.Decimal(int(t.Precision()), int(t.Scale()))
		switch {
		case err != nil:
			return refused("%v", err)
		case isInt32 && n.Shape == column.Number:
			return n, convertInt32
		case isInt64 && n.Shape == column.Number:
			return n, convertPlain
		case isBytes || isFixed:
			return n, convertDecimals(isFixed, column.DecimalWidth(n))
		}
	default:
		return refused("its logical type %s has no place in a table", strings.TrimSpace(t.String()))
	}
	return refused("its logical type %v does not go with its physical type %v", logical, phys)
}

// physicalNode is leafNode of a field without a logical type.
func physicalNode(phys parquet.Type, size int, refused func(string, ...any) (*column.Type, leafConverter),
	number func(vector.Elem, string, ...any) *column.Type) (*column.Type, leafConverter) {
	switch phys {
	case parquet.Types.Boolean:
		return number(vector.Bool, ""), convertBool
	case parquet.Types.Int32:
		return number(vector.Int32, ""), convertInt32
	case parquet.Types.Int64:
		return number(vector.Int64, ""), convertPlain
	case parquet.Types.Int96:
		n := number(vector.Int64, "timestamp[ns]")
		n.AnyUnit = true
		return n, convertInt96
	case parquet.Types.Float:
		return number(vector.Float32, ""), convertPlain
	case parquet.Types.Double:
		return number(vector.Float64, ""), convertPlain
	case parquet.Types.ByteArray:
		return &column.Type{Shape: column.Bytes}, convertBytes
	case parquet.Types.FixedLenByteArray:
		if size <= 0 {
			return refused("a fixed-length byte array of length %d", size)
		}
		return &column.Type{Shape: column.Bytes, Logical: fmt.Sprintf("fixed_size_binary[%d]", size)}, convertFixed
	}
	return refused("its physical type %v is unknown to this reader", phys)
}
