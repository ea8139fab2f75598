package column

import (
	"fmt"
	"sort"

	"github.com/dsistore/dsistore/format/vector"
)

// An Array holds the values of a Type: what Arrow calls an array, with the few shapes that Type has.
//
//	shape        values                                       children
//	null         none                                         none
//	number       Ints, Floats or Doubles[Len], as Elem says   none
//	bytes        Data[Offsets[i]:Offsets[i+1]]                none
//	list, map    entries Offsets[i] to Offsets[i+1]           1 element, or key and value; all of Offsets[Len] entries
//	fixed list   entries i*Dim to (i+1)*Dim                   1 element of Len*Dim entries
//	struct       none                                         a member each, of Len entries
//
// Null entries may hold anything; mapping clears them. Offsets start at 0 and never decrease.
type Array struct {
	Type     *Type
	Len      int
	Valid    vector.Bitmap // nil: all
	Offsets  []int32
	Ints     []int64
	Floats   []float32
	Doubles  []float64
	Data     []byte
	Children []*Array
	// Borrowed: the numbers are memory of somebody else's, which is read and never written.
	Borrowed bool
	// Faults are entries whose value could not be taken over. The rows that hold them are bad.
	Faults []Fault
}

// A Fault is an entry whose value cannot be stored, and why.
type Fault struct {
	Entry int
	Err   error
}

// NewArray returns an empty array of a type.
func NewArray(n *Type) *Array {
	if n.Unread {
		return Unread(n, 0)
	}
	a := &Array{Type: n}
	switch n.Shape {
	case List, Map, Bytes, String:
		a.Offsets = []int32{0}
	}
	for _, c := range n.Children {
		a.Children = append(a.Children, NewArray(c))
	}
	return a
}

// Unread returns an array of n entries that nobody looks at, in the place of what the mapping drops.
func Unread(of *Type, n int) *Array {
	return &Array{Type: &Type{Name: of.Name, Shape: Null, Unread: true}, Len: n}
}

// IsNull reports whether an entry is null.
func (a *Array) IsNull(i int) bool {
	return a.Type.Shape == Null || a.Valid != nil && !a.Valid.Get(i)
}

// AppendNull appends a null entry; a struct's members and a fixed list's elements are null with it.
func (a *Array) AppendNull() {
	a.AppendEntry(false)
	switch a.Type.Shape {
	case Number:
		switch a.Type.Elem.Physical() {
		case vector.Float32Values:
			a.Floats = append(a.Floats, 0)
		case vector.Float64Values:
			a.Doubles = append(a.Doubles, 0)
		default:
			a.Ints = append(a.Ints, 0)
		}
	case Struct:
		for _, c := range a.Children {
			c.AppendNull()
		}
	case FixedList:
		for range a.Type.Dim {
			a.Children[0].AppendNull()
		}
	}
}

// AppendEntry ends an entry whose values the caller has appended.
func (a *Array) AppendEntry(valid bool) {
	switch a.Type.Shape {
	case List, Map:
		a.Offsets = append(a.Offsets, int32(a.Children[0].Len))
	case Bytes, String:
		a.Offsets = append(a.Offsets, int32(len(a.Data)))
	}
	a.Mark(valid)
}

// AppendBool appends a bool.
func (a *Array) AppendBool(v bool) {
	i := int64(0)
	if v {
		i = 1
	}
	a.Ints = append(a.Ints, i)
	a.AppendEntry(true)
}

// Mark adds an entry, null or not, whose values and offsets the caller sets.
func (a *Array) Mark(valid bool) {
	a.Len++
	if a.Valid == nil {
		if valid {
			return
		}
		a.Valid = make(vector.Bitmap, 0, vector.BitmapWords(a.Len+63)).Grow(a.Len)
		a.Valid.SetRange(0, a.Len-1)
		return
	}
	a.Valid = a.Valid.Grow(a.Len)
	if valid {
		a.Valid.Set(a.Len - 1)
	}
}

// Fault says that the next entry to be appended cannot be stored.
func (a *Array) Fault(err error) { a.Faults = append(a.Faults, Fault{a.Len, err}) }

// Truncate drops the entries from n on, so that a row half appended can be taken back.
func (a *Array) Truncate(n int) {
	if n > a.Len {
		return // at n itself the children may hold parts of an entry that was given up
	}
	a.Len = n
	if a.Valid != nil {
		a.Valid = a.Valid[:vector.BitmapWords(n)]
		if r := n & 63; r != 0 {
			a.Valid[len(a.Valid)-1] &= 1<<uint(r) - 1
		}
	}
	for len(a.Faults) > 0 && a.Faults[len(a.Faults)-1].Entry >= n {
		a.Faults = a.Faults[:len(a.Faults)-1]
	}
	switch a.Type.Shape {
	case Number:
		a.Ints, a.Floats, a.Doubles = part(a.Ints, 0, n), part(a.Floats, 0, n), part(a.Doubles, 0, n)
	case Bytes, String:
		a.Offsets = a.Offsets[:n+1]
		a.Data = a.Data[:a.Offsets[n]]
	case List, Map:
		a.Offsets = a.Offsets[:n+1]
		for _, c := range a.Children {
			c.Truncate(int(a.Offsets[n]))
		}
	case FixedList:
		a.Children[0].Truncate(n * a.Type.Dim)
	case Struct:
		for _, c := range a.Children {
			c.Truncate(n)
		}
	}
}

// SizeBytes is the memory that a's values use.
func (a *Array) SizeBytes() int64 {
	s := int64(8*len(a.Valid) + 4*len(a.Offsets) + 8*len(a.Ints) + 4*len(a.Floats) + 8*len(a.Doubles) + len(a.Data))
	for _, c := range a.Children {
		s += c.SizeBytes()
	}
	return s
}

// A Lineage leads from an entry of an array back to the row that holds it.
type Lineage struct {
	parent  *Lineage
	Offsets []int32 // of the list or map above
	dim     int     // of the fixed list above
}

// Row returns the row that holds an entry.
func (l *Lineage) Row(entry int) int {
	for ; l != nil; l = l.parent {
		if l.Offsets != nil {
			entry = sort.Search(len(l.Offsets)-1, func(i int) bool { return int(l.Offsets[i+1]) > entry })
		} else {
			entry /= l.dim
		}
	}
	return entry
}

// ValidCount returns how many of a's entries are not null.
func (a *Array) ValidCount() int {
	switch {
	case a.Type.Shape == Null:
		return 0
	case a.Valid == nil:
		return a.Len
	}
	return a.Valid.Count()
}

// Masked returns a with every entry null that is null in mask too (nil: none). a is not changed.
func (a *Array) Masked(mask vector.Bitmap) *Array {
	if mask == nil {
		return a
	}
	out := *a
	if a.Valid == nil {
		out.Valid = mask
		return &out
	}
	out.Valid = make(vector.Bitmap, len(a.Valid))
	for i := range out.Valid {
		out.Valid[i] = a.Valid[i] & mask[i]
	}
	return &out
}

// Check returns an error when a is not what the comment of Array says: format readers that build arrays from foreign
// offsets call it.
func (a *Array) Check() error {
	n := a.Len
	if a.Valid != nil && len(a.Valid) != vector.BitmapWords(n) {
		return fmt.Errorf("%d words of validity for %d entries", len(a.Valid), n)
	}
	want := -1
	switch a.Type.Shape {
	case Number:
		if len(a.Ints)+len(a.Floats)+len(a.Doubles) != n {
			return fmt.Errorf("%d values for %d entries", len(a.Ints)+len(a.Floats)+len(a.Doubles), n)
		}
	case Bytes, String, List, Map:
		if len(a.Offsets) != n+1 || a.Offsets[0] != 0 {
			return fmt.Errorf("%d offsets for %d entries", len(a.Offsets), n)
		}
		for i := range n {
			if a.Offsets[i+1] < a.Offsets[i] {
				return fmt.Errorf("offsets decrease at entry %d", i)
			}
		}
		want = int(a.Offsets[n])
		if a.Type.Shape == Bytes || a.Type.Shape == String {
			if want != len(a.Data) {
				return fmt.Errorf("offsets end at %d of %d bytes", want, len(a.Data))
			}
		}
	case FixedList:
		want = n * a.Type.Dim
	case Struct:
		want = n
	}
	for _, c := range a.Children {
		if c.Len != want {
			return fmt.Errorf("%d entries under %d", c.Len, want)
		}
		if err := c.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Lent returns how many bytes of c's values are a's, borrowed.
func (a *Array) Lent(c *vector.Column) int64 {
	n := int64(0)
	if a.Borrowed {
		n = 8*(shared(a.Ints, c.Ints)+shared(a.Doubles, c.Doubles)+shared(a.Doubles, c.ScoreDoubles)) +
			4*(shared(a.Floats, c.Floats)+shared(a.Floats, c.ScoreFloats))
	}
	for _, child := range a.Children {
		n += child.Lent(c)
	}
	return n
}

// shared returns y's capacity where x and y are the same memory, else 0.
func shared[T any](x, y []T) int64 {
	if len(x) == 0 || len(y) == 0 || &x[0] != &y[0] {
		return 0
	}
	return int64(cap(y))
}

// part returns s[lo:hi], nothing of a slice that an array of another type uses.
func part[T any](s []T, lo, hi int) []T {
	if len(s) == 0 {
		return s
	}
	return s[lo:hi]
}

// Resize returns a slice of length n, s where it is large enough. What is in it may be anything.
func Resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
