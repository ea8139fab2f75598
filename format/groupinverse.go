package format

import "github.com/dsistore/dsistore/format/vector"

// A groupInverse caches, in the Writer of a group's inverse, that its last stripe is valid and how many rows each slot
// has. The Writers of the group's features, which get the same slice, use it instead of reading the inverse again.
type groupInverse struct {
	wanted  bool    // this Writer is some other Writer's WriterOptions.Inverse
	inverse []int32 // borrowed; only its address is compared
	slots   int
	rows    []int32 // by slot
}

// note caches a valid stripe.
func (g *groupInverse) note(c *vector.Column) {
	g.inverse, g.slots = c.Inverse, c.Slots
	g.rows = vector.Resize(g.rows, c.Slots)
	clear(g.rows)
	for _, s := range c.Inverse {
		g.rows[s]++
	}
}

// has reports whether c has the inverse of w's last stripe. w may be nil.
func (w *Writer) has(c *vector.Column) bool {
	if w == nil {
		return false
	}
	g := &w.shares
	return c.Rows > 0 && len(c.Inverse) == c.Rows && len(g.inverse) == c.Rows && &c.Inverse[0] == &g.inverse[0] &&
		c.Slots == g.slots
}

// rowsOfSlots returns the number of rows of each slot of c if w has cached it, else nil. Borrowed.
func (w *Writer) rowsOfSlots(c *vector.Column) []int32 {
	if !w.has(c) {
		return nil
	}
	return w.shares.rows
}

// validate returns an error if c is not valid.
func (w *Writer) validate(c *vector.Column) error {
	if w.inverse.has(c) {
		return c.ValidateSlots()
	}
	err := c.Validate()
	if w.shares.wanted {
		if w.shares.inverse = nil; err == nil {
			w.shares.note(c)
		}
	}
	return err
}
