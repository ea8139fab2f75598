package vector

import "fmt"

// A Column holds Rows rows of one feature; doc.go has a picture. NewColumn and Reset make it ready for the Append
// methods. A function that returns a Column documents who owns its slices.
type Column struct {
	Type Type
	Rows int

	// Slots is the number of distinct values. Slots == Rows when Inverse is nil.
	Slots int
	// Inverse[row] is the row's slot, in [0, Slots). nil: row i is slot i.
	Inverse []int32
	// Monotone: Inverse starts at 0 and each row has its predecessor's slot or the next one, ending at Slots-1, so that
	// rows [a, b) use exactly the slots Inverse[a] to Inverse[b-1].
	Monotone bool
	// InverseBorrowed: Inverse is the memory of another column, that of the dedup group. It is never written or reused
	// through this column.
	InverseBorrowed bool

	// Present has a bit per slot; nil: no slot is null.
	Present Bitmap

	// Lists only. Without Lengths, slot s is [Offsets[s], Offsets[s+1]), Offsets has Slots+1 entries and starts at 0.
	// With Lengths (partial duplicates), slot s is [Offsets[s], Offsets[s]+Lengths[s]), both have Slots entries, and
	// slots may overlap.
	Offsets []int32
	Lengths []int32

	// Exactly one of these holds the values, see Type.Physical. It has one entry per element of a list, or Width
	// entries per slot.
	Ints    []int64
	Floats  []float32
	Doubles []float64
	Data    []byte

	// Weighted only: a score for each id, in the slice of type Type.Score.
	ScoreFloats  []float32
	ScoreDoubles []float64
}

// NewColumn returns an empty column of type t.
func NewColumn(t Type) *Column {
	c := &Column{Type: t}
	c.Reset()
	return c
}

// Reset empties c, keeping its memory and its Type.
func (c *Column) Reset() {
	t := c.Type
	*c = Column{
		Type: t, Offsets: c.Offsets[:0],
		Ints: c.Ints[:0], Floats: c.Floats[:0], Doubles: c.Doubles[:0], Data: c.Data[:0],
		ScoreFloats: c.ScoreFloats[:0], ScoreDoubles: c.ScoreDoubles[:0],
	}
	if t.IsList() {
		c.Offsets = append(c.Offsets, 0)
	}
}

// Slot returns the slot of a row.
func (c *Column) Slot(row int) int {
	if c.Inverse == nil {
		return row
	}
	return int(c.Inverse[row])
}

// IsNull reports whether a row is null.
func (c *Column) IsNull(row int) bool {
	return c.Present != nil && !c.Present.Get(c.Slot(row))
}

// SlotRange returns the range of the values that slot s holds.
func (c *Column) SlotRange(s int) (lo, hi int) {
	if !c.Type.IsList() {
		w := c.Type.Width()
		return s * w, (s + 1) * w
	}
	if c.Lengths != nil {
		lo = int(c.Offsets[s])
		return lo, lo + int(c.Lengths[s])
	}
	return int(c.Offsets[s]), int(c.Offsets[s+1])
}

// RowRange returns the range of the values that a row holds.
func (c *Column) RowRange(row int) (lo, hi int) { return c.SlotRange(c.Slot(row)) }

// Elements returns the number of stored values: ids or numbers, or bytes for Bytes and String.
func (c *Column) Elements() int {
	switch c.Type.Physical() {
	case Int64Values:
		return len(c.Ints)
	case Float32Values:
		return len(c.Floats)
	case Float64Values:
		return len(c.Doubles)
	case ByteValues:
		return len(c.Data)
	}
	return 0
}

// SizeBytes returns the memory that c's slices use, by length.
func (c *Column) SizeBytes() int {
	return 4*(len(c.Inverse)+len(c.Offsets)+len(c.Lengths)+len(c.Floats)+len(c.ScoreFloats)) +
		8*(len(c.Present)+len(c.Ints)+len(c.Doubles)+len(c.ScoreDoubles)) + len(c.Data)
}

// HeldBytes returns the memory that c's slices hold, by capacity.
func (c *Column) HeldBytes() int64 {
	return 4*int64(cap(c.Inverse)+cap(c.Offsets)+cap(c.Lengths)+cap(c.Floats)+cap(c.ScoreFloats)) +
		8*int64(cap(c.Present)+cap(c.Ints)+cap(c.Doubles)+cap(c.ScoreDoubles)) + int64(cap(c.Data))
}

// Validate checks the rules that the fields' comments state, in time linear in c. Its error names the first one that is
// broken. Tests and writers call it; readers build columns that satisfy it by construction.
func (c *Column) Validate() error {
	if err := c.validateInverse(); err != nil {
		return err
	}
	return c.ValidateSlots()
}

// ValidateSlots is Validate without Rows and Inverse, for columns that share an inverse which has been validated.
func (c *Column) ValidateSlots() error {
	if err := c.Type.Validate(); err != nil {
		return err
	}
	if c.Type.Kind == Inverse {
		return nil
	}
	if c.Present != nil && len(c.Present) != BitmapWords(c.Slots) {
		return fmt.Errorf("presence has %d words for %d slots", len(c.Present), c.Slots)
	}
	if r := c.Slots & 63; c.Present != nil && r != 0 && c.Present[len(c.Present)-1]>>uint(r) != 0 {
		return fmt.Errorf("presence has bits set past slot %d", c.Slots-1)
	}
	if i := c.Type.Elem.FirstOutOfRange(c.Ints); i >= 0 {
		return fmt.Errorf("value %d is %d, out of the range of %v", i, c.Ints[i], c.Type.Elem)
	}
	n := c.Elements()
	if !c.Type.IsList() {
		if n != c.Slots*c.Type.Width() {
			return fmt.Errorf("%d values for %d slots of %v", n, c.Slots, c.Type)
		}
		return nil
	}
	if err := c.validateRanges(n); err != nil {
		return err
	}
	if c.Type.Kind == Weighted {
		scores := len(c.ScoreFloats)
		if c.Type.Score == Float64 {
			scores = len(c.ScoreDoubles)
		}
		if scores != n {
			return fmt.Errorf("%d scores for %d ids", scores, n)
		}
	}
	return nil
}

func (c *Column) validateInverse() error {
	if c.Inverse == nil {
		if c.Slots != c.Rows {
			return fmt.Errorf("%d slots for %d rows without an inverse", c.Slots, c.Rows)
		}
		return nil
	}
	if len(c.Inverse) != c.Rows {
		return fmt.Errorf("inverse has %d entries for %d rows", len(c.Inverse), c.Rows)
	}
	prev := int32(-1)
	for row, s := range c.Inverse {
		if s == prev && row > 0 {
			continue
		}
		if s < 0 || int(s) >= c.Slots {
			return fmt.Errorf("row %d has slot %d of %d", row, s, c.Slots)
		}
		if c.Monotone && s != prev && s != prev+1 {
			return fmt.Errorf("row %d has slot %d after %d in a monotone inverse", row, s, prev)
		}
		prev = s
	}
	if c.Monotone && int(prev) != c.Slots-1 {
		return fmt.Errorf("a monotone inverse ends at slot %d of %d", prev, c.Slots)
	}
	return nil
}

func (c *Column) validateRanges(n int) error {
	want := c.Slots + 1
	if c.Lengths != nil {
		want = c.Slots
		if len(c.Lengths) != c.Slots {
			return fmt.Errorf("%d lengths for %d slots", len(c.Lengths), c.Slots)
		}
	}
	if len(c.Offsets) != want {
		return fmt.Errorf("%d offsets for %d slots", len(c.Offsets), c.Slots)
	}
	if c.Lengths == nil && (c.Offsets[0] != 0 || int(c.Offsets[c.Slots]) != n) {
		return fmt.Errorf("offsets run from %d to %d over %d values", c.Offsets[0], c.Offsets[c.Slots], n)
	}
	for s := range c.Slots {
		lo, hi := c.SlotRange(s)
		if lo < 0 || hi < lo || hi > n {
			return fmt.Errorf("slot %d is [%d, %d) of %d values", s, lo, hi, n)
		}
		if c.Present != nil && !c.Present.Get(s) && hi != lo {
			return fmt.Errorf("null slot %d has %d values", s, hi-lo)
		}
	}
	return nil
}
