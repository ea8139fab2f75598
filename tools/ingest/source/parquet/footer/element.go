package footer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/thrift"
)

// An Element is a node of the schema in a Parquet footer.
type Element struct {
	Name       string
	Children   []*Element
	Group      bool
	Physical   int32 // -1: none
	Length     int32
	Repetition int32 // -1: none
	Converted  int32 // -1: none
	Scale      int32 // -1: none, and of the two below
	Precision  int32
	FieldID    int32
	Logical    []byte // the union LogicalType, encoded; nil: none
	logicalID  int16
	Node       schema.Node // e without its children, as the library has it; nil where it is refused
	// Refused says why the element has no place in a table.
	Refused   string
	Encrypted bool // its values, and even its levels, are encrypted
	depth     int  // of the tree below, this one included
}

// Parquet's repetition types.
const (
	RepetitionOptional = 1
	repetitionRepeated = 2
)

// Members of Parquet's LogicalType union, of which 9 is none.
const (
	logicalUnknown = 11
	lastLogical    = 18 // GEOGRAPHY
)

// Parquet's physical types and ConvertedTypes by their numbers, and which physical types a converted type annotates.
// The first three without any annotate groups.
var (
	physicalNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
		"FIXED_LEN_BYTE_ARRAY"}
	convertedTypes = map[int32]struct {
		name     string
		physical []int32
	}{
		0: {"UTF8", []int32{6}}, 1: {"MAP", nil}, 2: {"MAP_KEY_VALUE", nil}, 3: {"LIST", nil},
		4: {"ENUM", []int32{6}}, 5: {"DECIMAL", []int32{1, 2, 6, 7}}, 6: {"DATE", []int32{1}},
		7: {"TIME_MILLIS", []int32{1}}, 8: {"TIME_MICROS", []int32{2}}, 9: {"TIMESTAMP_MILLIS", []int32{2}},
		10: {"TIMESTAMP_MICROS", []int32{2}},
		11: {"UINT_8", []int32{1}}, 12: {"UINT_16", []int32{1}}, 13: {"UINT_32", []int32{1}},
		14: {"UINT_64", []int32{2}},
		15: {"INT_8", []int32{1}}, 16: {"INT_16", []int32{1}}, 17: {"INT_32", []int32{1}}, 18: {"INT_64", []int32{2}},
		19: {"JSON", []int32{6}}, 20: {"BSON", []int32{6}}, 21: {"INTERVAL", []int32{7}},
	}
)

// fault sets e.node, and returns why there is none, else nothing.
func (e *Element) fault() string {
	converted, known := convertedTypes[e.Converted]
	switch {
	case e.logicalID < 0 || e.logicalID == 9 || e.logicalID > lastLogical:
		return fmt.Sprintf("its logical type (number %d of Parquet's) is unknown to this reader", e.logicalID)
	case e.Converted >= 0 && !known:
		return fmt.Sprintf("its converted type (number %d of Parquet's) is unknown to this reader", e.Converted)
	case e.Group:
	case int(e.Physical) >= len(physicalNames):
		return fmt.Sprintf("its physical type (number %d of Parquet's) is unknown to this reader", e.Physical)
	case e.Converted >= 0 && !slices.Contains(converted.physical, e.Physical):
		return fmt.Sprintf("its converted type %s does not go with its physical type %s", converted.name,
			physicalNames[e.Physical])
	}
	var err error
	if e.Node, err = e.build(); err != nil {
		return fmt.Sprintf("what the footer says of its type makes no sense (%s)",
			strings.Join(strings.Fields(err.Error()), " "))
	}
	return ""
}

// build returns the library's node of e.
func (e *Element) build() (schema.Node, error) {
	logical, err := e.logicalType()
	if err != nil {
		return nil, err
	}
	repetition, converted := parquet.Repetition(max(e.Repetition, 0)), schema.ConvertedType(e.Converted)
	var group *schema.GroupNode
	var leaf *schema.PrimitiveNode
	switch {
	case e.Group && logical != nil:
		group, err = schema.NewGroupNodeLogical(e.Name, repetition, nil, logical, e.FieldID)
	case e.Group:
		group, err = schema.NewGroupNodeConverted(e.Name, repetition, nil, converted, e.FieldID)
	case logical == nil && e.Converted >= 0:
		leaf, err = schema.NewPrimitiveNodeConverted(e.Name, repetition, parquet.Type(e.Physical), converted,
			int(e.Length), int(max(e.Precision, 0)), int(max(e.Scale, 0)), e.FieldID)
	default:
		leaf, err = schema.NewPrimitiveNodeLogical(e.Name, repetition, logical, parquet.Type(e.Physical), int(e.Length),
			e.FieldID)
	}
	if err != nil {
		return nil, err
	}
	if e.Group {
		return group, nil
	}
	return leaf, nil
}

// plainLogicalTypes are the members of the union LogicalType that say nothing more.
var plainLogicalTypes = map[int16]schema.LogicalType{
	1: schema.StringLogicalType{}, 2: schema.MapLogicalType{}, 3: schema.ListLogicalType{}, 4: schema.EnumLogicalType{},
	6:              schema.DateLogicalType{},
	logicalUnknown: schema.NullLogicalType{}, 12: schema.JSONLogicalType{}, 13: schema.BSONLogicalType{},
	14: schema.UUIDLogicalType{},
	15: schema.Float16LogicalType{}, 16: schema.VariantLogicalType{}, 17: schema.GeometryLogicalType{},
	18: schema.GeographyLogicalType{},
}

// logicalType returns the member of the union LogicalType, nil where there is none.
//
//	DECIMAL 1 scale, 2 precision · TIME, TIMESTAMP 1 is UTC, 2 unit (1 ms, 2 us, 3 ns) · INTEGER 1 bits, 2 is signed
func (e *Element) logicalType() (schema.LogicalType, error) {
	if e.Logical == nil || plainLogicalTypes[e.logicalID] != nil {
		return plainLogicalTypes[e.logicalID], nil
	}
	var says [3]int64
	t := &thrift.Reader{Buf: e.Logical}
	t.Fields(1, func(_ int16, typ byte) {
		if typ != thrift.Struct {
			t.Skip(typ, 2)
			return
		}
		t.Ints(2, says[:], func(id int16, typ byte) bool {
			if id != 2 || typ != thrift.Struct {
				return false
			}
			t.Fields(3, func(unit int16, typ byte) { says[id] = int64(unit); t.Skip(typ, 4) })
			return true
		})
	})
	switch unit := schema.TimeUnitType(says[2] - 1); {
	case t.Err != nil:
		return nil, t.Err
	case e.logicalID == 5:
		_, err := column.Decimal(int(says[2]), int(says[1]))
		if err == nil && says[1] < 0 {
			err = fmt.Errorf("decimal(%d, %d): a negative scale", says[2], says[1])
		}
		if err != nil {
			return nil, err
		}
		return schema.NewDecimalLogicalType(int32(says[2]), int32(says[1])), nil
	case e.logicalID == 10:
		if !slices.Contains([]int64{8, 16, 32, 64}, says[1]) {
			return nil, fmt.Errorf("an integer of %d bits", says[1])
		}
		return schema.NewIntLogicalType(int8(says[1]), says[2] != 0), nil
	case unit < schema.TimeUnitMillis || unit > schema.TimeUnitNanos:
		return nil, errors.New("a time of an unknown unit")
	case e.logicalID == 7:
		return schema.NewTimeLogicalType(says[1] != 0, unit), nil
	default:
		return schema.NewTimestampLogicalType(says[1] != 0, unit), nil
	}
}

const emptyStruct = "a struct without members has no values to store"

// readSchema reads the flattened schema tree: each element is followed by its children.
func (f *Footer) readSchema(t *thrift.Reader, limits column.Limits) (*Element, error) {
	n, elem := t.List()
	if t.Err != nil {
		return nil, t.Err
	}
	if elem != thrift.Struct {
		return nil, errors.New("its schema is no list of structs")
	}
	type level struct {
		e    *Element
		left int32
	}
	var root *Element
	var open []level // groups that miss children, each within the one before
	for i := range n {
		e, children := readElement(t)
		if t.Err != nil {
			return nil, t.Err
		}
		if e.Name == "" && i > 0 && children < 0 && e.Physical < 0 {
			return nil, fmt.Errorf("element %d of its schema has neither a name nor a type", i)
		}
		if children < -1 || int(children) > n {
			return nil, fmt.Errorf("the schema's element %q claims %d children", e.Name, children)
		}
		e.Group = i == 0 || children > 0 || e.Physical < 0
		if i == 0 {
			root = e
		} else {
			if len(open) == 0 {
				return nil, errors.New("the schema has elements outside its root")
			}
			above := &open[len(open)-1]
			above.e.Children = append(above.e.Children, e)
			above.left--
		}
		if e.Group {
			open = append(open, level{e, max(children, 0)})
		} else if f.Columns++; f.Columns > limits.Columns {
			return nil, fmt.Errorf("%d columns: the limit is %d", f.Columns, limits.Columns)
		} else {
			f.close(e, limits)
		}
		for len(open) > 0 && open[len(open)-1].left == 0 {
			f.close(open[len(open)-1].e, limits)
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("the schema ends within %q", open[len(open)-1].e.Name)
	}
	if root == nil {
		return nil, errors.New("its schema is empty")
	}
	root.Refused = ""
	return root, nil
}

// close judges an element all of whose children are known.
func (f *Footer) close(e *Element, limits column.Limits) {
	e.depth = 1
	for _, k := range e.Children {
		e.depth = max(e.depth, 1+k.depth)
	}
	// parquet-mr says that the logical type is UNKNOWN where there is none for the converted one, MAP_KEY_VALUE and
	// INTERVAL, and the library takes it at its word.
	if e.logicalID == logicalUnknown && (e.Group || e.Converted >= 0) {
		e.Logical, e.logicalID = nil, 0
	}
	if e.Group && len(e.Kept()) == 0 {
		e.Refused = emptyStruct
		// a LIST takes three levels of the schema
	} else if e.Refused = e.fault(); e.Refused == "" && e.depth > 4*limits.Depth {
		e.Refused = fmt.Sprintf("nested deeper than %d", limits.Depth)
	}
	if e.Refused != "" {
		e.depth, e.Node = 1, nil
	}
}

// Repeats reports whether e is repeated. A group that is refused is passed over as a whole.
func (e *Element) Repeats() bool {
	return e.Repetition == repetitionRepeated && (e.Refused == "" || !e.Group)
}

// Annotation returns list, map, the name of another annotation of a group, or nothing.
func (e *Element) Annotation() string {
	g := e.Node
	switch g.ConvertedType() {
	case schema.ConvertedTypes.List:
		return "list"
	case schema.ConvertedTypes.Map, schema.ConvertedTypes.MapKeyValue:
		return "map"
	}
	switch t := g.LogicalType().(type) {
	case nil, schema.NoLogicalType, schema.UnknownLogicalType, schema.NullLogicalType:
	case schema.ListLogicalType:
		return "list"
	case schema.MapLogicalType:
		return "map"
	default:
		return t.String()
	}
	return ""
}

// Kept returns the children that have columns, or are none themselves and have their place.
func (e *Element) Kept() []*Element {
	gone := func(k *Element) bool { return k.Refused != "" && len(k.Leaves(nil)) == 0 }
	if !slices.ContainsFunc(e.Children, gone) {
		return e.Children
	}
	return slices.DeleteFunc(slices.Clone(e.Children), gone)
}

// Leaves appends the columns of the file under e, in their order.
func (e *Element) Leaves(out []*Element) []*Element {
	for todo := []*Element{e}; len(todo) > 0; {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !last.Group {
			out = append(out, last)
		}
		for i := len(last.Children) - 1; i >= 0; i-- {
			todo = append(todo, last.Children[i])
		}
	}
	return out
}

// readElement reads a SchemaElement. children is -1 where it does not say how many it has.
func readElement(t *thrift.Reader) (e *Element, children int32) {
	e = &Element{}
	says := [10]int64{1: -1, 3: -1, 5: -1, 6: -1, 7: -1, 8: -1, 9: -1}
	t.Ints(2, says[:], func(id int16, typ byte) bool {
		switch {
		case id == 4 && typ == thrift.Binary:
			e.Name = string(t.Bytes())
		case id == 10 && typ == thrift.Struct:
			from := t.Pos
			t.Fields(3, func(id int16, typ byte) {
				e.logicalID = id
				t.Skip(typ, 4)
			})
			if t.Err == nil {
				e.Logical = t.Buf[from:t.Pos]
			}
		default:
			return false
		}
		return true
	})
	for i, p := range []*int32{1: &e.Physical, 2: &e.Length, 3: &e.Repetition, 5: &children, 6: &e.Converted,
		7: &e.Scale, 8: &e.Precision, 9: &e.FieldID} {
		if p != nil {
			*p = int32(says[i])
		}
	}
	return e, children
}
