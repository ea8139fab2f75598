package source

import (
	"fmt"
	"sort"

	"github.com/dsistore/dsistore/format/vector"
)

// An array holds the values of a node: what Arrow calls an array, with the few shapes that node has.
//
//	shape        values                                       children
//	null         none                                         none
//	number       ints, floats or doubles[n], as elem says     none
//	bytes        data[offsets[i]:offsets[i+1]]                none
//	list, map    entries offsets[i] to offsets[i+1]           1 element, or key and value; all of offsets[n] entries
//	fixed list   entries i*dim to (i+1)*dim                   1 element of n*dim entries
//	struct       none                                         a member each, of n entries
//
// Null entries may hold anything; the binding clears them. Offsets start at 0 and never decrease.
type array struct {
	node     *node
	n        int
	valid    vector.Bitmap // nil: all
	offsets  []int32
	ints     []int64
	floats   []float32
	doubles  []float64
	data     []byte
	children []*array
	// borrowed: the numbers are memory of somebody else's, which is read and never written.
	borrowed bool
	// faults are entries whose value could not be taken over. The rows that hold them are bad.
	faults []fault
}

type fault struct {
	entry int
	err   error
}

func newArray(n *node) *array {
	if n.unread {
		return unreadArray(n, 0)
	}
	a := &array{node: n}
	switch n.shape {
	case shapeList, shapeMap, shapeBytes, shapeString:
		a.offsets = []int32{0}
	}
	for _, c := range n.children {
		a.children = append(a.children, newArray(c))
	}
	return a
}

// unreadArray returns an array of n entries that nobody looks at, in the place of what the mapping drops.
func unreadArray(of *node, n int) *array {
	return &array{node: &node{name: of.name, shape: shapeNull, unread: true}, n: n}
}

func (a *array) isNull(i int) bool {
	return a.node.shape == shapeNull || a.valid != nil && !a.valid.Get(i)
}

// appendNull appends a null entry; a struct's members and a fixed list's elements are null with it.
func (a *array) appendNull() {
	if a.valid == nil {
		a.valid = make(vector.Bitmap, 0, vector.BitmapWords(a.n+64)).Grow(a.n)
		a.valid.SetRange(0, a.n)
	}
	a.appendEntry(false)
	switch a.node.shape {
	case shapeNumber:
		switch a.node.elem.Physical() {
		case vector.Float32Values:
			a.floats = append(a.floats, 0)
		case vector.Float64Values:
			a.doubles = append(a.doubles, 0)
		default:
			a.ints = append(a.ints, 0)
		}
	case shapeStruct:
		for _, c := range a.children {
			c.appendNull()
		}
	case shapeFixedList:
		for range a.node.dim {
			a.children[0].appendNull()
		}
	}
}

// appendEntry ends an entry whose values the caller has appended.
func (a *array) appendEntry(valid bool) {
	switch a.node.shape {
	case shapeList, shapeMap:
		a.offsets = append(a.offsets, int32(a.children[0].n))
	case shapeBytes, shapeString:
		a.offsets = append(a.offsets, int32(len(a.data)))
	}
	a.n++
	if a.valid != nil {
		a.valid = a.valid.Grow(a.n)
		if valid {
			a.valid.Set(a.n - 1)
		}
	}
}

// mark adds an entry, null or not.
func (a *array) mark(valid bool) {
	a.n++
	if a.valid == nil {
		if valid {
			return
		}
		a.valid = make(vector.Bitmap, 0, vector.BitmapWords(a.n+63)).Grow(a.n)
		a.valid.SetRange(0, a.n-1)
		return
	}
	a.valid = a.valid.Grow(a.n)
	if valid {
		a.valid.Set(a.n - 1)
	}
}

// truncate drops the entries from n on, so that a row half appended can be taken back.
func (a *array) truncate(n int) {
	if n > a.n {
		return // at n itself the children may hold parts of an entry that was given up
	}
	a.n = n
	if a.valid != nil {
		a.valid = a.valid[:vector.BitmapWords(n)]
		if r := n & 63; r != 0 {
			a.valid[len(a.valid)-1] &= 1<<uint(r) - 1
		}
	}
	for len(a.faults) > 0 && a.faults[len(a.faults)-1].entry >= n {
		a.faults = a.faults[:len(a.faults)-1]
	}
	switch a.node.shape {
	case shapeNumber:
		switch a.node.elem.Physical() {
		case vector.Float32Values:
			a.floats = a.floats[:n]
		case vector.Float64Values:
			a.doubles = a.doubles[:n]
		default:
			a.ints = a.ints[:n]
		}
	case shapeBytes, shapeString:
		a.offsets = a.offsets[:n+1]
		a.data = a.data[:a.offsets[n]]
	case shapeList, shapeMap:
		a.offsets = a.offsets[:n+1]
		for _, c := range a.children {
			c.truncate(int(a.offsets[n]))
		}
	case shapeFixedList:
		a.children[0].truncate(n * a.node.dim)
	case shapeStruct:
		for _, c := range a.children {
			c.truncate(n)
		}
	}
}

// sizeBytes is the memory that a's values use.
func (a *array) sizeBytes() int64 {
	s := int64(8*len(a.valid) + 4*len(a.offsets) + 8*len(a.ints) + 4*len(a.floats) + 8*len(a.doubles) + len(a.data))
	for _, c := range a.children {
		s += c.sizeBytes()
	}
	return s
}

// A lineage leads from an entry of an array back to the row that holds it.
type lineage struct {
	parent  *lineage
	offsets []int32 // of the list or map above
	dim     int     // of the fixed list above
}

func (l *lineage) row(entry int) int {
	for ; l != nil; l = l.parent {
		if l.offsets != nil {
			entry = sort.Search(len(l.offsets)-1, func(i int) bool { return int(l.offsets[i+1]) > entry })
		} else {
			entry /= l.dim
		}
	}
	return entry
}

// validCount returns how many of a's entries are not null.
func (a *array) validCount() int {
	switch {
	case a.node.shape == shapeNull:
		return 0
	case a.valid == nil:
		return a.n
	}
	return a.valid.Count()
}

// masked returns a with every entry null that is null in mask too (nil: none). a is not changed.
func (a *array) masked(mask vector.Bitmap) *array {
	if mask == nil {
		return a
	}
	out := *a
	if a.valid == nil {
		out.valid = mask
		return &out
	}
	out.valid = make(vector.Bitmap, len(a.valid))
	for i := range out.valid {
		out.valid[i] = a.valid[i] & mask[i]
	}
	return &out
}

// check returns an error when a is not what the comment of array says: format readers that build arrays from foreign
// offsets call it.
func (a *array) check() error {
	n := a.n
	if a.valid != nil && len(a.valid) != vector.BitmapWords(n) {
		return fmt.Errorf("%d words of validity for %d entries", len(a.valid), n)
	}
	want := -1
	switch a.node.shape {
	case shapeNumber:
		if len(a.ints)+len(a.floats)+len(a.doubles) != n {
			return fmt.Errorf("%d values for %d entries", len(a.ints)+len(a.floats)+len(a.doubles), n)
		}
	case shapeBytes, shapeString, shapeList, shapeMap:
		if len(a.offsets) != n+1 || a.offsets[0] != 0 {
			return fmt.Errorf("%d offsets for %d entries", len(a.offsets), n)
		}
		for i := range n {
			if a.offsets[i+1] < a.offsets[i] {
				return fmt.Errorf("offsets decrease at entry %d", i)
			}
		}
		want = int(a.offsets[n])
		if a.node.shape == shapeBytes || a.node.shape == shapeString {
			if want != len(a.data) {
				return fmt.Errorf("offsets end at %d of %d bytes", want, len(a.data))
			}
		}
	case shapeFixedList:
		want = n * a.node.dim
	case shapeStruct:
		want = n
	}
	for _, c := range a.children {
		if c.n != want {
			return fmt.Errorf("%d entries under %d", c.n, want)
		}
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// lent returns how many bytes of c's values are a's, borrowed.
func (a *array) lent(c *vector.Column) int64 {
	n := int64(0)
	if a.borrowed {
		if same(a.ints, c.Ints) {
			n += 8 * int64(cap(c.Ints))
		}
		if same(a.floats, c.Floats) {
			n += 4 * int64(cap(c.Floats))
		}
		if same(a.floats, c.ScoreFloats) {
			n += 4 * int64(cap(c.ScoreFloats))
		}
		if same(a.doubles, c.Doubles) {
			n += 8 * int64(cap(c.Doubles))
		}
		if same(a.doubles, c.ScoreDoubles) {
			n += 8 * int64(cap(c.ScoreDoubles))
		}
	}
	for _, child := range a.children {
		n += child.lent(c)
	}
	return n
}

// same reports whether two slices that are not empty start at the same place.
func same[T any](x, y []T) bool { return len(x) > 0 && len(y) > 0 && &x[0] == &y[0] }

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
