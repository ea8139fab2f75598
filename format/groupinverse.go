package format

import "github.com/dsistore/dsistore/format/vector"

// A groupInverse is what the Writer of a group's inverse knows of its last stripe, for the features of the group: that
// it is valid, and how many rows each slot has. They have the same slice, so that it need not be looked through again
// for each of them.
type groupInverse struct {
	wanted  bool    // some Writer has WriterOptions.Inverse
	inverse []int32 // borrowed, and compared by where it is alone
	slots   int
	rows    []int32 // by slot
}

// note takes note of a valid stripe.
func (g *groupInverse) note(c *vector.Column) {
	g.inverse, g.slots = c.Inverse, c.Slots
	g.rows = vector.Resize(g.rows, c.Slots)
	clear(g.rows)
	for _, s := range c.Inverse {
		g.rows[s]++
	}
}

// has reports whether c has the inverse of the stripe that w, nil where there is no such Writer, was given last.
func (w *Writer) has(c *vector.Column) bool {
	if w == nil {
		return false
	}
	g := &w.shares
	return c.Rows > 0 && len(c.Inverse) == c.Rows && len(g.inverse) == c.Rows && &c.Inverse[0] == &g.inverse[0] &&
		c.Slots == g.slots
}

// rowsOfSlots returns how many rows each slot of c has, borrowed, where w knows it, else nil.
func (w *Writer) rowsOfSlots(c *vector.Column) []int32 {
	if !w.has(c) {
		return nil
	}
	return w.shares.rows
}

// validate returns an error unless c is valid.
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
