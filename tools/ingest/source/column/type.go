package column

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// Shape says what the values of a Type are made of.
type Shape uint8

const (
	Null   Shape = iota + 1 // every value is null
	Number                  // a number or bool: Elem
	Bytes
	String
	List      // Children[0], any number of times
	FixedList // Children[0], Dim times
	Map       // Children[0] is the key, Children[1] the value
	Struct    // one value of each child
	Refused   // has no place here: Reason
)

// A Type is the type of an input column, or of a part of one.
type Type struct {
	Name    string
	Shape   Shape
	Elem    vector.Elem // Number
	Logical string      // of a leaf; see Field.Logical
	// Dim is the length of a FixedList, and of each list of a List of which the file says that they have one; 0
	// where it does not.
	Dim      int
	Children []*Type
	Reason   string // Refused
	// AnyUnit: a timestamp whose source has seconds and nanoseconds. The reader gives it in the unit that Logical says.
	// Where Seen is set, the reader notes there what the values are, and need not give them.
	AnyUnit bool
	Seen    *TimestampRange
	NoUnit  bool // AnyUnit: no unit holds all values of the dump
	// Unread: the mapping drops it, so that no reader looks at its values. Its array is Unread's.
	Unread bool
	// Given: the mapping file says the type of a column of JSON, so that a number may be written as a string, and a
	// string as a number.
	Given bool
	// AnyJSON: the mapping file says that a column of JSON is a string, so that lists, objects and booleans are their
	// text.
	AnyJSON bool
	// IsJSON: a list of JSON, whose text the type string keeps.
	IsJSON bool
	// NoText is the name of the table's type where the type of a column of text is that of the values which are no text
	// by themselves: a value that is text is bad. Empty: every value had a say.
	NoText string
	// TimeFormat says how text spells a date or a timestamp; nil: as AppendText says.
	TimeFormat *TimeFormat
}

// Clone returns a copy of n, for a reader that marks it.
func (n *Type) Clone() *Type {
	c := *n
	c.Children = nil
	for _, child := range n.Children {
		c.Children = append(c.Children, child.Clone())
	}
	return &c
}

// Drop marks n and what is in it as unread.
func (n *Type) Drop() {
	n.Unread = true
	for _, c := range n.Children {
		c.Drop()
	}
}

// Give marks n and what is in it as given.
func (n *Type) Give() {
	n.Given = true
	for _, c := range n.Children {
		c.Give()
	}
}

// String prints the type, as hive.ParseType reads it.
func (n *Type) String() string {
	switch n.Shape {
	case Null:
		return "null"
	case Number:
		return cmp.Or(n.Logical, n.Elem.String())
	case Bytes:
		return cmp.Or(n.Logical, "binary")
	case String:
		return cmp.Or(n.Logical, "string")
	case List, FixedList:
		list := "list<" + n.Children[0].String() + ">"
		if n.Dim > 0 {
			list += fmt.Sprintf("[%d]", n.Dim)
		}
		return list
	case Map:
		return "map<" + n.Children[0].String() + ", " + n.Children[1].String() + ">"
	case Struct:
		parts := make([]string, len(n.Children))
		for i, c := range n.Children {
			parts[i] = c.Name + ": " + c.String()
		}
		return "struct<" + strings.Join(parts, ", ") + ">"
	}
	return "unsupported type"
}

// Refused returns the first part of n that has no place here, or nil.
func (n *Type) Refused() *Type {
	if n.Shape == Refused {
		return n
	}
	for _, c := range n.Children {
		if r := c.Refused(); r != nil {
			return r
		}
	}
	return nil
}

// Depth returns how many types are nested, this one included.
func (n *Type) Depth() int {
	d := 0
	for _, c := range n.Children {
		d = max(d, c.Depth())
	}
	return d + 1
}

// Path is the name of a part of a column: a member of a struct, or a key of a map.
func Path(parent, part string) string { return parent + "." + part }

// NullBytes returns what an entry takes in an array of the type, whatever its value.
func (n *Type) NullBytes() int64 {
	switch n.Shape {
	case Number:
		if n.Elem.Physical() == vector.Float32Values {
			return 4
		}
		return 8
	case Bytes, String, List, Map:
		return 4 // an offset
	case Struct:
		size := int64(0)
		for _, c := range n.Children {
			size += c.NullBytes()
		}
		return size
	case FixedList:
		return int64(n.Dim) * n.Children[0].NullBytes()
	}
	return 0
}
