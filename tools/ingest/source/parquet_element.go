package source

import (
	"errors"
	"fmt"
	"slices"

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
	// refused says why the element has no place in a table: the library sees its leaves as plain columns, or nothing where it has none.
	refused string
	sealed  bool // its values, and even its levels, are encrypted
	depth   int  // of the tree below, this one included
}

// Parquet's repetition types.
const (
	repetitionRequired = 0
	repetitionRepeated = 2
)

const physicalBytes = 6 // BYTE_ARRAY

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

// fault returns why the library would make no schema of a file that has e; empty when it does.
func (e *schemaElement) fault() string {
	converted, known := convertedTypes[e.converted]
	switch {
	case e.logicalID != 0 && logicalTypeNames[e.logicalID] == "":
		return fmt.Sprintf("its logical type (number %d of Parquet's) is unknown to this reader", e.logicalID)
	case e.converted >= 0 && !known:
		return fmt.Sprintf("its converted type (number %d of Parquet's) is unknown to this reader", e.converted)
	case e.group:
		return ""
	case int(e.physical) >= len(physicalNames):
		return fmt.Sprintf("its physical type (number %d of Parquet's) is unknown to this reader", e.physical)
	case e.converted >= 0 && !slices.Contains(converted.physical, e.physical):
		return fmt.Sprintf("its converted type %s does not go with its physical type %s", converted.name, physicalNames[e.physical])
	}
	return ""
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
		e.logical, e.logicalID, f.edited = nil, 0, true
	}
	if e.group && len(e.kept()) == 0 {
		e.refused = emptyStruct
	} else if e.refused = e.fault(); e.refused == "" && e.depth > 4*limits.Depth { // a LIST takes three levels of the schema
		e.refused = fmt.Sprintf("nested deeper than %d", limits.Depth)
	}
	if e.refused != "" {
		e.depth, f.edited = 1, true
	}
}

// kept returns the children that the library sees.
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

// appendSchema appends the list of elements of the tree under e, as the library takes it.
func (e *schemaElement) appendSchema(out []byte) []byte {
	list := e.flatten(nil)
	out = appendThriftList(out, len(list), thriftStruct)
	for _, x := range list {
		out = x.element.append(out, x.children)
	}
	return out
}

// A flatElement is an element and how many of those after it are its children; -1: it is a column.
type flatElement struct {
	element  *schemaElement
	children int
}

// flatten appends e and what is below it, each element before its children. What is refused is flat and without annotations.
func (e *schemaElement) flatten(out []flatElement) []flatElement {
	if !e.group {
		if e.refused != "" {
			e = e.plain(e.repetition)
		}
		return append(out, flatElement{e, -1})
	}
	if e.refused == "" {
		kept := e.kept()
		out = append(out, flatElement{e, len(kept)})
		for _, k := range kept {
			out = k.flatten(out)
		}
		return out
	}
	leaves := e.leaves(nil)
	out = append(out, flatElement{&schemaElement{name: e.name, group: true, physical: -1, repetition: repetitionRequired, converted: -1, scale: -1, precision: -1, fieldID: e.fieldID}, len(leaves)})
	for i, l := range leaves {
		l = l.plain(repetitionRequired)
		l.name = fmt.Sprint(i)
		out = append(out, flatElement{l, -1})
	}
	return out
}

// plain returns a column without annotations, of bytes where its physical type is unknown.
func (e *schemaElement) plain(repetition int32) *schemaElement {
	p := &schemaElement{name: e.name, physical: e.physical, length: e.length, repetition: repetition, converted: -1, scale: -1, precision: -1, fieldID: e.fieldID}
	if int(p.physical) >= len(physicalNames) || p.physical < 0 {
		p.physical = physicalBytes
	}
	return p
}

// append appends e as a SchemaElement.
func (e *schemaElement) append(out []byte, children int) []byte {
	last := int16(0)
	number := func(id int16, v int32) {
		out = appendThriftI32(appendThriftHeader(out, &last, id, thriftI32), v)
	}
	if e.physical >= 0 {
		number(1, e.physical)
	}
	if e.length != 0 {
		number(2, e.length)
	}
	if e.repetition >= 0 {
		number(3, e.repetition)
	}
	out = appendThriftBytes(appendThriftHeader(out, &last, 4, thriftBinary), e.name)
	if children >= 0 {
		number(5, int32(children))
	}
	for i, v := range []int32{e.converted, e.scale, e.precision, e.fieldID} {
		if v >= 0 {
			number(int16(6+i), v)
		}
	}
	if e.logical != nil {
		out = append(appendThriftHeader(out, &last, 10, thriftStruct), e.logical...)
	}
	return append(out, thriftStop)
}
