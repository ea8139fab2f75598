package execution

import (
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// The values of a merge are those of its parts, one part after the other. If a part is decoded whole, its values are
// decoded directly to their position in the merge: its column borrows ("is lent") the merge's memory meanwhile.
//
//	values of the merge   | part 0 | part 1     | part 2 ...
//	                        ^        ^ lent to part 1's column, whose own memory is kept in mergePart.own
//	                        only some rows are decoded: to the part's own memory, and copied

// maxLent is the largest number of values that are allocated before a stripe's checksums are verified, in case the
// directory is damaged.
const maxLent = 1 << 24

// lend lets the column of part p, of a list, decode its values to position at of to, if the part is decoded whole and
// needs no conversion. f is its file.
func (b *merge) lend(to *vector.Column, p int, f *ioplan.File, stripe, feature, at int) {
	part := &b.parts[p]
	n := wholeElements(part, f.Entry.Meta, stripe)
	if n < 0 || f.Entry.Meta.Type != f.Want {
		return
	}
	room := at + n // values to allocate, with those of later parts, as far as their number is known
	for q := p + 1; q < len(b.parts); q++ {
		if other := &b.parts[q]; other.count > 0 && other.of.Files[feature] >= 0 {
			room += max(wholeElements(other, b.files[other.of.Files[feature]].Entry.Meta, stripe), 0)
		}
	}
	if room > maxLent {
		return
	}
	c := &part.decoded.Stored
	part.own, part.borrows = *c, true
	switch f.Want.Physical() {
	case vector.Int64Values:
		lendValues(&to.Ints, &c.Ints, at, n, room)
	case vector.Float32Values:
		lendValues(&to.Floats, &c.Floats, at, n, room)
	case vector.Float64Values:
		lendValues(&to.Doubles, &c.Doubles, at, n, room)
	case vector.ByteValues:
		lendValues(&to.Data, &c.Data, at, n, room)
	}
	switch f.Want.Score {
	case vector.Float32:
		lendValues(&to.ScoreFloats, &c.ScoreFloats, at, n, room)
	case vector.Float64:
		lendValues(&to.ScoreDoubles, &c.ScoreDoubles, at, n, room)
	}
}

// wholeElements returns how many values a part has if it is decoded whole, else -1.
func wholeElements(part *mergePart, m *format.FileMeta, stripe int) int {
	if part.rows != nil {
		return -1
	}
	return int(m.Stripes[stripe].Elements)
}

// lendValues sets of to the n values of to from at on. to gets a capacity of room values.
func lendValues[T any](to, of *[]T, at, n, room int) {
	if cap(*to) < room {
		more := make([]T, at, room+room/8)
		copy(more, (*to)[:min(at, len(*to))])
		*to = more
	}
	*to = (*to)[:at+n]
	*of = (*to)[at : at : at+n]
}

// takeBack undoes lend: the part's column gets its own memory again.
func (x *mergePart) takeBack() {
	if !x.borrows {
		return
	}
	c, own := &x.decoded.Stored, &x.own
	c.Ints, c.Floats, c.Doubles, c.Data = own.Ints, own.Floats, own.Doubles, own.Data
	c.ScoreFloats, c.ScoreDoubles = own.ScoreFloats, own.ScoreDoubles
	x.own, x.borrows = vector.Column{}, false
}
