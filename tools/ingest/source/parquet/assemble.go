package parquet

import (
	"errors"
	"slices"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// leafUse says what is read of a column.
type leafUse uint8

const (
	useAll     leafUse = 0
	useLevels  leafUse = 1 // of a struct whose members are all dropped: whether it is null
	useNothing leafUse = 2
)

// choose sets what is read of the columns under n, by what the mapping drops, and reports whether anything is. Where a
// struct is kept and all its members are dropped, the levels of one of them say whether it is null.
func (n *levelNode) choose(path string) (bool, error) {
	if n.children == nil {
		if n.use = useAll; n.node.Unread || n.first == n.last {
			n.use = useNothing
		}
		return n.use == useAll, nil
	}
	some := false
	for _, c := range n.children {
		if n.node.Unread {
			c.node.Drop()
		}
		read, err := c.choose(column.Path(path, c.node.Name))
		if err != nil {
			return false, err
		}
		some = some || read
	}
	if some || n.node.Unread {
		return some, nil
	}
	leaf := n.shallowest()
	if leaf == nil {
		return false,
			column.RefuseToDrop(path, "none of its members can be read, so that nothing says where it is null")
	}
	leaf.use = useLevels
	return true, nil
}

// shallowest returns the column under n with the fewest levels whose levels can be read, or nil.
func (n *levelNode) shallowest() *levelNode {
	if n.children == nil {
		if n.encrypted || n.first == n.last {
			return nil
		}
		return n
	}
	var best *levelNode
	for _, c := range n.children {
		if l := c.shallowest(); l != nil && (best == nil || l.rep < best.rep) {
			best = l
		}
	}
	return best
}

// A leafSpan is what one leaf of a column holds for the rows of a batch.
type leafSpan struct {
	leaf           *leafReader
	levels, values int
}

func (s *leafSpan) def(i int) int16 {
	if len(s.leaf.defs) == 0 {
		return 0
	}
	return s.leaf.defs[i]
}

func (s *leafSpan) rep(i int) int16 {
	if len(s.leaf.reps) == 0 {
		return 0
	}
	return s.leaf.reps[i]
}

var (
	errSiblings   = errors.New("the parts of the column disagree about its nulls and lengths")
	errImpossible = errors.New("the column's levels describe no value")
)

// assemble builds the array of n from the levels of its leaves, spans[i] being leaf first+i of the top column. It takes
// the values, not the levels: parents need them too.
func (n *levelNode) assemble(spans []leafSpan, first int) (*column.Array, error) {
	mine := spans[n.first-first : n.last-first]
	if n.children == nil {
		s := &mine[0]
		return s.leaf.take(s.levels, s.values, n.slot), nil
	}
	a := &column.Array{Type: n.node}
	isList := n.node.Shape != column.Struct
	begun := false
	for i := range mine {
		if mine[i].leaf == nil { // it is not read
			continue
		}
		var other column.Array
		into := a
		if begun {
			into = &other
		}
		var err error
		if isList {
			err = n.lists(&mine[i], into)
		} else {
			n.members(&mine[i], into)
		}
		if err != nil {
			return nil, err
		}
		if begun && (other.Len != a.Len || !slices.Equal(other.Valid, a.Valid) ||
			!slices.Equal(other.Offsets, a.Offsets)) {
			return nil, errSiblings
		}
		begun = true
	}
	for _, c := range n.children {
		want := a.Len
		if isList {
			want = int(a.Offsets[a.Len])
		}
		if c.node.Unread {
			a.Children = append(a.Children, column.Unread(c.node, want))
			continue
		}
		child, err := c.assemble(spans, first)
		if err != nil {
			return nil, err
		}
		if child.Len != want {
			return nil, errSiblings
		}
		a.Children = append(a.Children, child)
	}
	return a, nil
}

// members sets the number and validity of a struct's entries by the levels of one leaf.
func (n *levelNode) members(s *leafSpan, a *column.Array) {
	for i := range s.levels {
		if s.rep(i) > n.rep {
			continue
		}
		if d := s.def(i); d >= n.slot {
			a.Mark(d >= n.present)
		}
	}
}

// lists sets the offsets and validity of a list or map by the levels of one leaf.
func (n *levelNode) lists(s *leafSpan, a *column.Array) error {
	a.Offsets = append(make([]int32, 0, s.levels+1), 0)
	elements := int32(0)
	open := int32(-1) // elements at the start of the open entry; -1: none is open
	for i := range s.levels {
		d, r := s.def(i), s.rep(i)
		switch {
		case r <= n.rep:
			if open >= 0 {
				a.Offsets = append(a.Offsets, elements)
			}
			open = -1
			if d < n.slot {
				continue
			}
			open = elements
			a.Mark(d >= n.present)
			if d > n.present {
				elements++
			}
		case r == n.rep+1:
			// One more element: of an entry that has elements.
			if open < 0 || open == elements || d <= n.present {
				return errImpossible
			}
			elements++
		default:
			if open < 0 || open == elements {
				return errImpossible
			}
		}
	}
	if open >= 0 {
		a.Offsets = append(a.Offsets, elements)
	}
	return nil
}
