package encoding

import "sort"

// A Span is values [From, To) of a chunk.
type Span struct{ From, To int32 }

// The methods whose names end in At decode parts of a chunk: of its n values those of spans, which lie in [0, n), one
// after the other in the order given, to dst, which has room for just these. Spans may overlap; where spans is nil, all
// n values are decoded, as by Ints and the others. What each codec allows is used:
//
//	constant, plain, frame of reference, patched, byte planes   a value is where its number says
//	runs                                                        searched by their ends
//	dictionary, decimal                                         codes or digits as above
//	sequences                                                   copies are followed back to the literals they come from
//	zstd                                                        decompressed whole, then what is inside
//	delta, rans                                                 decoded whole
//
// What is decoded is what Ints and the others give for those values. Damage elsewhere in the chunk may go unnoticed.

// wholeShare is the share of a chunk's values from which all are decoded: 1 in so many.
const wholeShare = 4

// spanCost is about how many values decode in the time that a span takes beyond its own.
const spanCost = 12

// mostly reports whether n values in so many spans are better decoded with all others.
func mostly(n, spans, all int) bool { return wholeShare*(n+spanCost*spans) >= all }

// IntsAt decodes spans of a chunk of n integers.
func (d *Decoder) IntsAt(dst []int64, n int, spans []Span, src []byte) error {
	return d.intsAt(dst, n, spans, src, 0)
}

// Int32sAt decodes spans of a chunk of n integers and refuses those that do not fit in 32 bits.
func (d *Decoder) Int32sAt(dst []int32, n int, spans []Span, src []byte) error {
	if spans == nil {
		return d.Int32s(dst, src)
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	wide := d.ints.grab(len(dst))
	if err := d.intsAt(wide, n, spans, src, 0); err != nil {
		return err
	}
	return narrow(dst, wide)
}

// FloatsAt decodes spans of a chunk of n floats, bit for bit.
func (d *Decoder) FloatsAt(dst []float32, n int, spans []Span, src []byte) error {
	return floatFamily.decodeAt(d, dst, n, spans, src, 0)
}

// DoublesAt decodes spans of a chunk of n doubles, bit for bit.
func (d *Decoder) DoublesAt(dst []float64, n int, spans []Span, src []byte) error {
	return doubleFamily.decodeAt(d, dst, n, spans, src, 0)
}

// eachPosition calls f with the number among the values of spans, and that among positions, of each position that lies
// in spans. Positions ascend.
func eachPosition(positions []int64, spans []Span, f func(i, x int)) {
	if len(positions) == 0 {
		return
	}
	i := 0
	for _, s := range spans {
		x := sort.Search(len(positions), func(x int) bool { return positions[x] >= int64(s.From) })
		for ; x < len(positions) && positions[x] < int64(s.To); x++ {
			f(i+int(positions[x]-int64(s.From)), x)
		}
		i += int(s.To - s.From)
	}
}

// checkPositions returns an error unless positions increase and lie in [0, n).
func checkPositions(positions []int64, n int) error {
	last := int64(-1)
	for _, at := range positions {
		if at <= last || at >= int64(n) {
			return errPosition
		}
		last = at
	}
	return nil
}
