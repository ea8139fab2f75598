package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A schemaElement is a node of the schema in a Parquet footer.
type schemaElement struct {
	name       string
	kids       []*schemaElement
	group      bool
	physical   int32 // -1: none
	length     int32
	repetition int32 // -1: none
	converted  int32 // -1: none
	scale      int32 // -1: none, and of the two below
	precision  int32
	fieldID    int32
	logical    []byte // the union LogicalType, encoded; nil: none
	logicalID  int16
	node       schema.Node // e without its children, as the library has it; nil where it is refused
	// refused says why the element has no place in a table.
	refused string
	sealed  bool // its values, and even its levels, are encrypted
	depth   int  // of the tree below, this one included
}

// Parquet's repetition types.
const (
	repetitionOptional = 1
	repetitionRepeated = 2
)

// logicalTypeNames are the members of Parquet's LogicalType union, by field id.
var logicalTypeNames = map[int16]string{
	1: "STRING", 2: "MAP", 3: "LIST", 4: "ENUM", 5: "DECIMAL", 6: "DATE", 7: "TIME", 8: "TIMESTAMP", 10: "INTEGER",
	11: "UNKNOWN", 12: "JSON", 13: "BSON", 14: "UUID", 15: "FLOAT16", 16: "VARIANT", 17: "GEOMETRY", 18: "GEOGRAPHY",
}

// logicalUnknown is the member UNKNOWN of Parquet's LogicalType union.
const logicalUnknown = 11

// Parquet's physical types and ConvertedTypes by their numbers, and which physical types a converted type annotates. The first three
// without any annotate groups.
var (
	physicalNames  = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
	convertedTypes = map[int32]struct {
		name     string
		physical []int32
	}{
		0: {"UTF8", []int32{6}}, 1: {"MAP", nil}, 2: {"MAP_KEY_VALUE", nil}, 3: {"LIST", nil},
		4: {"ENUM", []int32{6}}, 5: {"DECIMAL", []int32{1, 2, 6, 7}}, 6: {"DATE", []int32{1}},
		7: {"TIME_MILLIS", []int32{1}}, 8: {"TIME_MICROS", []int32{2}}, 9: {"TIMESTAMP_MILLIS", []int32{2}}, 10: {"TIMESTAMP_MICROS", []int32{2}},
		11: {"UINT_8", []int32{1}}, 12: {"UINT_16", []int32{1}}, 13: {"UINT_32", []int32{1}}, 14: {"UINT_64", []int32{2}},
		15: {"INT_8", []int32{1}}, 16: {"INT_16", []int32{1}}, 17: {"INT_32", []int32{1}}, 18: {"INT_64", []int32{2}},
		19: {"JSON", []int32{6}}, 20: {"BSON", []int32{6}}, 21: {"INTERVAL", []int32{7}},
	}
)

// fault sets e.node, and returns why there is none, else nothing.
func (e *schemaElement) fault() string {
	converted, known := convertedTypes[e.converted]
	switch {
	case e.logicalID != 0 && logicalTypeNames[e.logicalID] == "":
		return fmt.Sprintf("its logical type (number %d of Parquet's) is unknown to this reader", e.logicalID)
	case e.converted >= 0 && !known:
		return fmt.Sprintf("its converted type (number %d of Parquet's) is unknown to this reader", e.converted)
	case e.group:
	case int(e.physical) >= len(physicalNames):
		return fmt.Sprintf("its physical type (number %d of Parquet's) is unknown to this reader", e.physical)
	case e.converted >= 0 && !slices.Contains(converted.physical, e.physical):
		return fmt.Sprintf("its converted type %s does not go with its physical type %s", converted.name, physicalNames[e.physical])
	}
	var err error
	if e.node, err = e.build(); err != nil {
		return fmt.Sprintf("what the footer says of its type makes no sense (%s)", strings.Join(strings.Fields(err.Error()), " "))
	}
	return ""
}

// build returns the library's node of e.
func (e *schemaElement) build() (schema.Node, error) {
	logical, err := e.logicalType()
	if err != nil {
		return nil, err
	}
	repetition, converted := parquet.Repetition(max(e.repetition, 0)), schema.ConvertedType(e.converted)
	var group *schema.GroupNode
	var leaf *schema.PrimitiveNode
	switch {
	case e.group && logical != nil:
		group, err = schema.NewGroupNodeLogical(e.name, repetition, nil, logical, e.fieldID)
	case e.group:
		group, err = schema.NewGroupNodeConverted(e.name, repetition, nil, converted, e.fieldID)
	case logical == nil && e.converted >= 0:
		leaf, err = schema.NewPrimitiveNodeConverted(e.name, repetition, parquet.Type(e.physical), converted, int(e.length),
			int(max(e.precision, 0)), int(max(e.scale, 0)), e.fieldID)
	default:
		leaf, err = schema.NewPrimitiveNodeLogical(e.name, repetition, logical, parquet.Type(e.physical), int(e.length), e.fieldID)
	}
	if err != nil {
		return nil, err
	}
	if e.group {
		return group, nil
	}
	return leaf, nil
}

// plainLogicalTypes are the members of the union LogicalType that say nothing more.
var plainLogicalTypes = map[int16]schema.LogicalType{
	1: schema.StringLogicalType{}, 2: schema.MapLogicalType{}, 3: schema.ListLogicalType{}, 4: schema.EnumLogicalType{}, 6: schema.DateLogicalType{},
	logicalUnknown: schema.NullLogicalType{}, 12: schema.JSONLogicalType{}, 13: schema.BSONLogicalType{}, 14: schema.UUIDLogicalType{},
	15: schema.Float16LogicalType{}, 16: schema.VariantLogicalType{}, 17: schema.GeometryLogicalType{}, 18: schema.GeographyLogicalType{},
}

// logicalType returns the member of the union LogicalType, nil where there is none.
//
//	DECIMAL 1 scale, 2 precision · TIME, TIMESTAMP 1 is UTC, 2 unit (1 ms, 2 us, 3 ns) · INTEGER 1 bits, 2 is signed
func (e *schemaElement) logicalType() (schema.LogicalType, error) {
	if e.logical == nil || plainLogicalTypes[e.logicalID] != nil {
		return plainLogicalTypes[e.logicalID], nil
	}
	var says [3]int64
	t := &thriftReader{buf: e.logical}
	t.fields(1, func(_ int16, typ byte) {
		if typ != thriftStruct {
			t.skip(typ, 2)
			return
		}
		t.fields(2, func(id int16, typ byte) {
			v := int64(0)
			switch typ {
			case thriftTrue:
				v = 1
			case thriftByte:
				v = int64(int8(t.byte()))
			case thriftI32:
				v = int64(t.i32())
			case thriftStruct:
				t.fields(3, func(id int16, typ byte) { v = int64(id); t.skip(typ, 4) })
			default:
				t.skip(typ, 3)
			}
			if id > 0 && int(id) < len(says) {
				says[id] = v
			}
		})
	})
	switch unit := schema.TimeUnitType(says[2] - 1); {
	case t.err != nil:
		return nil, t.err
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
func (f *footer) readSchema(t *thriftReader, limits column.Limits) (*schemaElement, error) {
	n, elem := t.list()
	if t.err != nil {
		return nil, t.err
	}
	if elem != thriftStruct {
		return nil, errors.New("its schema is no list of structs")
	}
	type level struct {
		e    *schemaElement
		left int32
	}
	var root *schemaElement
	var open []level // groups that miss children, each within the one before
	for i := range n {
		e, children := readElement(t)
		if t.err != nil {
			return nil, t.err
		}
		if e.name == "" && i > 0 && children < 0 && e.physical < 0 {
			return nil, fmt.Errorf("element %d of its schema has neither a name nor a type", i)
		}
		if children < -1 || int(children) > n {
			return nil, fmt.Errorf("the schema's element %q claims %d children", e.name, children)
		}
		e.group = i == 0 || children > 0 || e.physical < 0
		if i == 0 {
			root = e
		} else {
			if len(open) == 0 {
				return nil, errors.New("the schema has elements outside its root")
			}
			above := &open[len(open)-1]
			above.e.kids = append(above.e.kids, e)
			above.left--
		}
		if e.group {
			open = append(open, level{e, max(children, 0)})
		} else if f.columns++; f.columns > limits.Columns {
			return nil, fmt.Errorf("%d columns: the limit is %d", f.columns, limits.Columns)
		} else {
			f.close(e, limits)
		}
		for len(open) > 0 && open[len(open)-1].left == 0 {
			f.close(open[len(open)-1].e, limits)
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("the schema ends within %q", open[len(open)-1].e.name)
	}
	if root == nil {
		return nil, errors.New("its schema is empty")
	}
	root.refused = ""
	return root, nil
}

// close judges an element all of whose children are known.
func (f *footer) close(e *schemaElement, limits column.Limits) {
	e.depth = 1
	for _, k := range e.kids {
		e.depth = max(e.depth, 1+k.depth)
	}
	// parquet-mr says that the logical type is UNKNOWN where there is none for the converted one, MAP_KEY_VALUE and INTERVAL, and the
	// library takes it at its word.
	if e.logicalID == logicalUnknown && (e.group || e.converted >= 0) {
		e.logical, e.logicalID = nil, 0
	}
	if e.group && len(e.kept()) == 0 {
		e.refused = emptyStruct
	} else if e.refused = e.fault(); e.refused == "" && e.depth > 4*limits.Depth { // a LIST takes three levels of the schema
		e.refused = fmt.Sprintf("nested deeper than %d", limits.Depth)
	}
	if e.refused != "" {
		e.depth, e.node = 1, nil
	}
}

// repeats reports whether e is repeated. A group that is refused is passed over as a whole.
func (e *schemaElement) repeats() bool {
	return e.repetition == repetitionRepeated && (e.refused == "" || !e.group)
}

// annotation returns list, map, the name of another annotation of a group, or nothing.
func (e *schemaElement) annotation() string {
	g := e.node
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

// kept returns the children that have columns, or are none themselves and have their place.
func (e *schemaElement) kept() []*schemaElement {
	gone := func(k *schemaElement) bool { return k.refused != "" && len(k.leaves(nil)) == 0 }
	if !slices.ContainsFunc(e.kids, gone) {
		return e.kids
	}
	return slices.DeleteFunc(slices.Clone(e.kids), gone)
}

// leaves appends the columns of the file under e, in their order.
func (e *schemaElement) leaves(out []*schemaElement) []*schemaElement {
	for todo := []*schemaElement{e}; len(todo) > 0; {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !last.group {
			out = append(out, last)
		}
		for i := len(last.kids) - 1; i >= 0; i-- {
			todo = append(todo, last.kids[i])
		}
	}
	return out
}

// readElement reads a SchemaElement. children is -1 where it does not say how many it has.
func readElement(t *thriftReader) (e *schemaElement, children int32) {
	e, children = &schemaElement{physical: -1, repetition: -1, converted: -1, scale: -1, precision: -1, fieldID: -1}, -1
	numbers := map[int16]*int32{1: &e.physical, 2: &e.length, 3: &e.repetition, 5: &children, 6: &e.converted, 7: &e.scale, 8: &e.precision, 9: &e.fieldID}
	t.fields(2, func(id int16, typ byte) {
		p := numbers[id]
		switch {
		case p != nil && typ == thriftI32:
			*p = t.i32()
		case id == 4 && typ == thriftBinary:
			e.name = string(t.bytes())
		case id == 10 && typ == thriftStruct:
			from := t.pos
			t.fields(3, func(id int16, typ byte) {
				e.logicalID = id
				t.skip(typ, 4)
			})
			if t.err == nil {
				e.logical = t.buf[from:t.pos]
			}
		default:
			t.skip(typ, 3)
		}
	})
	return e, children
}
