package source

import (
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// shape says what a node's values are made of.
type shape uint8

const (
	shapeNull   shape = iota + 1 // every value is null
	shapeNumber                  // a number or bool: node.elem
	shapeBytes
	shapeString
	shapeList      // children[0], any number of times
	shapeFixedList // children[0], node.dim times
	shapeMap       // children[0] is the key, children[1] the value
	shapeStruct    // one value of each child
	shapeRefused   // has no place here: node.reason
)

// A node is the type of an input column, or of a part of one.
type node struct {
	name     string
	nullable bool
	shape    shape
	elem     vector.Elem // shapeNumber
	logical  string      // of a leaf; see Field.Logical
	// dim is the length of a shapeFixedList, and of each list of a shapeList of which the file says that they have one; 0
	// where it does not.
	dim      int
	children []*node
	reason   string // shapeRefused
	// anyUnit: a timestamp whose source has seconds and nanoseconds: the reader gives it in the unit that logical says. Where seen is set, the
	// reader notes there what the values are, and need not give them.
	anyUnit bool
	seen    *momentRange
	noUnit  bool // anyUnit: no unit holds all values of the dump
	// unread: the mapping drops it, so that no reader looks at its values. Its array is unreadArray's.
	unread bool
	// given: JSON: the mapping file says the type, so that a number may be written as a string, and a string as a number.
	given bool
}

// clone returns a copy of n, for a reader that marks it.
func (n *node) clone() *node {
	c := *n
	c.children = nil
	for _, child := range n.children {
		c.children = append(c.children, child.clone())
	}
	return &c
}

// drop marks n and what is in it as unread.
func (n *node) drop() {
	n.unread = true
	for _, c := range n.children {
		c.drop()
	}
}

// give marks n and what is in it as given.
func (n *node) give() {
	n.given = true
	for _, c := range n.children {
		c.give()
	}
}

// String prints the type in Hive's spelling, extended where Hive has none.
func (n *node) String() string {
	switch n.shape {
	case shapeNull:
		return "null"
	case shapeNumber:
		if n.logical != "" {
			return n.logical
		}
		return n.elem.String()
	case shapeBytes:
		if n.logical != "" {
			return n.logical
		}
		return "binary"
	case shapeString:
		if n.logical != "" {
			return n.logical
		}
		return "string"
	case shapeList:
		return "list<" + n.children[0].String() + ">"
	case shapeFixedList:
		return fmt.Sprintf("list<%s>[%d]", n.children[0], n.dim)
	case shapeMap:
		return "map<" + n.children[0].String() + ", " + n.children[1].String() + ">"
	case shapeStruct:
		parts := make([]string, len(n.children))
		for i, c := range n.children {
			parts[i] = c.name + ": " + c.String()
		}
		return "struct<" + strings.Join(parts, ", ") + ">"
	}
	return "unsupported type"
}

// refused returns the first part of n that has no place here, or nil.
func (n *node) refused() *node {
	if n.shape == shapeRefused {
		return n
	}
	for _, c := range n.children {
		if r := c.refused(); r != nil {
			return r
		}
	}
	return nil
}

func (n *node) depth() int {
	d := 0
	for _, c := range n.children {
		d = max(d, c.depth())
	}
	return d + 1
}

// columnPath is the name of a part of a column: a member of a struct, or a key of a map.
func columnPath(parent, part string) string { return parent + "." + part }
