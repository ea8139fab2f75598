package encoding

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sort"
)

// A Span is values [From, To) of a chunk.
type Span struct{ From, To int32 }

// The methods whose names end in At decode parts of a chunk: of its n values those of spans, which lie in [0, n), one after
// the other in the order given, to dst, which has room for just these. Spans may overlap. What each codec allows is used:
//
//	constant, plain, frame of reference, patched, raw byte planes   a value is where its number says
//	runs                                                            searched by their ends
//	dictionary, decimal                                             codes or digits as above
//	repeats                                                         copies are followed back to the literals that they come from
//	delta, top byte, zstd                                           decoded whole, or what is inside is taken from
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
	return d.floatsAt(dst, n, spans, src, 0)
}

// DoublesAt decodes spans of a chunk of n doubles, bit for bit.
func (d *Decoder) DoublesAt(dst []float64, n int, spans []Span, src []byte) error {
	return d.doublesAt(dst, n, spans, src, 0)
}

func (d *Decoder) intsAt(dst []int64, n int, spans []Span, src []byte, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	if id != IDConstant && mostly(len(dst), len(spans), n) {
		return d.wholeInts(dst, n, spans, src, depth)
	}
	switch id {
	case IDConstant:
		return decodeConstant(dst, p)
	case IDPlain:
		return plainAt(dst, n, spans, p)
	case IDFOR:
		packed, width, base, err := parseFOR(n, p)
		if err != nil {
			return err
		}
		d.unpackAt(dst, n, spans, packed, width, base)
		return nil
	case IDPatched:
		return d.patchedAt(dst, n, spans, p, depth)
	case IDDictionary:
		return dictionaryAt(d, dst, n, spans, p, depth, &d.ints, (*Decoder).decodeInts, (*Decoder).intsAt)
	case IDRuns:
		return runsAt(d, dst, n, spans, p, depth, &d.ints, (*Decoder).decodeInts)
	case IDRepeats:
		if done, err := stepsAt(d, dst, n, spans, p, depth, (*Decoder).intsAt); done || err != nil {
			return err
		}
	case IDZstd:
		return d.zstdIntsAt(dst, n, spans, p, depth)
	}
	return d.wholeInts(dst, n, spans, src, depth)
}

func (d *Decoder) wholeInts(dst []int64, n int, spans []Span, src []byte, depth int) error {
	return wholeAt(d, dst, n, spans, src, depth, &d.ints, (*Decoder).decodeInts)
}

// wholeAt decodes all values and copies those of the spans.
func wholeAt[T any](d *Decoder, dst []T, n int, spans []Span, src []byte, depth int, a *arena[T],
	decode func(*Decoder, []T, []byte, int) error) error {
	m := a.mark()
	defer a.release(m)
	all := a.grab(n)
	if err := decode(d, all, src, depth); err != nil {
		return err
	}
	copySpans(dst, all, spans)
	return nil
}

func copySpans[T any](dst, all []T, spans []Span) {
	for _, s := range spans {
		dst = dst[copy(dst, all[s.From:s.To]):]
	}
}

// each calls f with each place that spans name and its number among them.
func eachPlace(spans []Span, f func(i, place int)) {
	i := 0
	for _, s := range spans {
		for at := s.From; at < s.To; at++ {
			f(i, int(at))
			i++
		}
	}
}

func plainAt(dst []int64, n int, spans []Span, p []byte) error {
	if len(p) < 1 {
		return errShort
	}
	width := int(p[0])
	p = p[1:]
	if width != 1 && width != 2 && width != 4 && width != 8 {
		return errPlainWidth
	}
	if len(p)/width != n || len(p)%width != 0 {
		return errLength
	}
	eachPlace(spans, func(i, at int) {
		switch width {
		case 1:
			dst[i] = int64(int8(p[at]))
		case 2:
			dst[i] = int64(int16(binary.LittleEndian.Uint16(p[2*at:])))
		case 4:
			dst[i] = int64(int32(binary.LittleEndian.Uint32(p[4*at:])))
		case 8:
			dst[i] = int64(binary.LittleEndian.Uint64(p[8*at:]))
		}
	})
	return nil
}

func (d *Decoder) patchedAt(dst []int64, n int, spans []Span, p []byte, depth int) error {
	c, err := d.parsePatched(n, p, depth)
	if err != nil {
		return err
	}
	defer d.ints.release(c.mark)
	d.unpackAt(dst, n, spans, c.packed, c.width, c.base)
	eachPosition(c.positions, spans, func(i, x int) { dst[i] += c.highs[x] << c.width })
	return nil
}

// eachPosition calls f with the number among the places of spans, and that among positions, of each position that lies in
// spans. Positions ascend.
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

// dictionaryAt decodes spans of the payload of a dictionary, whose values come out of a: only those that codes name, where
// these are few.
func dictionaryAt[T any](d *Decoder, dst []T, n int, spans []Span, p []byte, depth int, a *arena[T],
	decode func(*Decoder, []T, []byte, int) error, at func(*Decoder, []T, int, []Span, []byte, int) error) error {
	k, p, err := takeCount(p, n)
	if err != nil {
		return err
	}
	chunk, p, err := takeNested(p)
	if err != nil {
		return err
	}
	m, am, sm := d.ints.mark(), a.mark(), d.spans.mark()
	defer d.ints.release(m)
	defer a.release(am)
	defer d.spans.release(sm)
	codes := d.ints.grab(len(dst))
	if err := d.intsAt(codes, n, spans, p, depth+1); err != nil {
		return err
	}
	if mostly(len(codes), len(codes), k) {
		values := a.grab(k)
		if err := decode(d, values, chunk, depth+1); err != nil {
			return err
		}
		return gather(dst, values, codes)
	}
	places := d.spans.grab(len(codes))
	for i, c := range codes {
		if uint64(c) >= uint64(k) {
			return errCode
		}
		places[i] = Span{int32(c), int32(c) + 1}
	}
	return at(d, dst, k, places, chunk, depth+1)
}

// runsAt decodes spans of the payload of run-length; values come out of a.
func runsAt[T any](d *Decoder, dst []T, n int, spans []Span, p []byte, depth int, a *arena[T],
	decode func(*Decoder, []T, []byte, int) error) error {
	r, p, err := takeCount(p, n)
	if err != nil {
		return err
	}
	chunk, p, err := takeNested(p)
	if err != nil {
		return err
	}
	m, am := d.ints.mark(), a.mark()
	defer d.ints.release(m)
	defer a.release(am)
	values, ends := a.grab(r), d.ints.grab(r)
	if err := decode(d, values, chunk, depth+1); err != nil {
		return err
	}
	if err := d.decodeInts(ends, p, depth+1); err != nil {
		return err
	}
	sum := int64(0)
	for i, l := range ends {
		if l < 1 || l > int64(n)-sum {
			return errRuns
		}
		sum += l
		ends[i] = sum
	}
	if sum != int64(n) {
		return errRuns
	}
	run := 0
	for _, s := range spans {
		from, to := int64(s.From), int64(s.To)
		if from == to {
			continue
		}
		if run >= r || ends[run] <= from || run > 0 && ends[run-1] > from {
			run = sort.Search(r, func(i int) bool { return ends[i] > from })
		}
		for from < to {
			k := min(ends[run], to) - from
			fill(dst[:k], values[run])
			dst = dst[k:]
			if from += k; from < to {
				run++
			}
		}
	}
	return nil
}

// stepsAt decodes spans of the payload of repeats: each is followed back, copy by copy, to the literals that it comes from,
// and those alone are decoded. done is false where that makes too many pieces. at decodes spans of the literals.
//
//	values     l l l l|c c c|l l|c c c c|l          l from the literals, c copies
//	asked                            ^^^
//	from           ^    ^^                          in two pieces
func stepsAt[T any](d *Decoder, dst []T, n int, spans []Span, p []byte, depth int,
	at func(*Decoder, []T, int, []Span, []byte, int) error) (done bool, err error) {
	m, p, err := takeCount(p, n)
	if err != nil {
		return false, err
	}
	s, p, err := takeCount(p, n-m)
	if err != nil {
		return false, err
	}
	mark, smark := d.ints.mark(), d.spans.mark()
	defer d.ints.release(mark)
	defer d.spans.release(smark)
	var parts [3][]int64
	for i := range parts {
		var chunk []byte
		if chunk, p, err = takeNested(p); err != nil {
			return false, err
		}
		parts[i] = d.ints.grab(s)
		if err := d.decodeInts(parts[i], chunk, depth+1); err != nil {
			return false, err
		}
	}
	// Where each step's copy begins and ends, and how many literals stand before it.
	copies, ends, literals := d.ints.grab(s), parts[1], parts[0]
	end, used := int64(0), int64(0)
	for i, distance := range parts[2] {
		skip, length := literals[i], ends[i]
		if uint64(skip) > uint64(int64(m)-used) {
			return false, errSteps
		}
		used += skip
		begin := end + skip
		if length < 1 || length > int64(n)-(int64(m)-used)-begin || distance < 1 || distance > begin {
			return false, errSteps
		}
		end = begin + length
		copies[i], ends[i], literals[i] = begin, end, used
	}
	if int64(n)-end != int64(m)-used {
		return false, errSteps
	}
	limit := 2*len(dst) + 8*len(spans) + 64
	pieces := d.spans.grab(limit)[:0]
	todo := make([]Span, 0, 64)
	for _, span := range spans {
		todo = append(todo[:0], span)
		for turns := 0; len(todo) > 0; turns++ {
			if len(pieces)+len(todo) >= limit || turns > limit {
				return false, nil
			}
			x := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if x.From >= x.To {
				continue
			}
			i := sort.Search(s, func(i int) bool { return ends[i] > int64(x.From) })
			// Literals before the copy of step i, or behind the last step.
			stop, before := int64(n), int64(m)
			if i < s {
				stop, before = copies[i], literals[i]
			}
			if from := int64(x.From); from < stop {
				to := min(int64(x.To), stop)
				pieces = append(pieces, Span{int32(before - (stop - from)), int32(before - (stop - to))})
				todo = append(todo, Span{int32(to), x.To})
				continue
			}
			// A copy that overlaps itself repeats what stands before it.
			distance := parts[2][i]
			into := (int64(x.From) - copies[i]) % distance
			k := min(int64(x.To), ends[i]) - int64(x.From)
			k = min(k, distance-into)
			source := copies[i] - distance + into
			todo = append(todo, Span{x.From + int32(k), x.To}, Span{int32(source), int32(source + k)})
		}
	}
	return true, at(d, dst, m, pieces, p, depth+1)
}

func (d *Decoder) zstdIntsAt(dst []int64, n int, spans []Span, p []byte, depth int) error {
	m := d.bytes.mark()
	defer d.bytes.release(m)
	chunk, err := d.inflateChunk(n, p)
	if err != nil {
		return err
	}
	return d.intsAt(dst, n, spans, chunk, depth+1)
}

// A floatKind is what decoding spans of floats of one width needs of it.
type floatKind[T float32 | float64] struct {
	size       int            // of a value, in bytes
	get        func([]byte) T // the value whose bits begin a slice
	arena      *arena[T]
	tens, frac []T // of decimals
	whole      func(*Decoder, []T, []byte, int) error
	spans      func(*Decoder, []T, int, []Span, []byte, int) error
	split      func(*Decoder, []T, int, []Span, []byte) error
}

func (d *Decoder) floatsAt(dst []float32, n int, spans []Span, src []byte, depth int) error {
	return someFloats(d, &floatKind[float32]{
		size: 4, get: func(p []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(p)) },
		arena: &d.floats, tens: tens32[:], frac: frac32[:],
		whole: (*Decoder).decodeFloats, spans: (*Decoder).floatsAt, split: (*Decoder).splitFloatsAt,
	}, dst, n, spans, src, depth)
}

func (d *Decoder) doublesAt(dst []float64, n int, spans []Span, src []byte, depth int) error {
	return someFloats(d, &floatKind[float64]{
		size: 8, get: func(p []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(p)) },
		arena: &d.doubles, tens: tens64[:], frac: frac64[:],
		whole: (*Decoder).decodeDoubles, spans: (*Decoder).doublesAt, split: (*Decoder).splitDoublesAt,
	}, dst, n, spans, src, depth)
}

// someFloats is floatsAt and doublesAt.
func someFloats[T float32 | float64](d *Decoder, k *floatKind[T], dst []T, n int, spans []Span, src []byte, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	if id == IDFloatConstant {
		return k.whole(d, dst, src, depth)
	}
	if !mostly(len(dst), len(spans), n) {
		switch id {
		case IDFloatPlain:
			if len(p) != k.size*n {
				return errLength
			}
			eachPlace(spans, func(i, at int) { dst[i] = k.get(p[k.size*at:]) })
			return nil
		case IDFloatSplit:
			return k.split(d, dst, n, spans, p)
		case IDFloatDecimal:
			return someDecimals(d, k, dst, n, spans, p, depth)
		case IDFloatDictionary:
			return dictionaryAt(d, dst, n, spans, p, depth, k.arena, k.whole, k.spans)
		case IDFloatRuns:
			return runsAt(d, dst, n, spans, p, depth, k.arena, k.whole)
		case IDFloatRepeats:
			if done, err := stepsAt(d, dst, n, spans, p, depth, k.spans); done || err != nil {
				return err
			}
		}
	}
	return wholeAt(d, dst, n, spans, src, depth, k.arena, k.whole)
}

// someDecimals decodes spans of the payload of decimals. The digits are multiplied as decimalFloats and decimalDoubles do.
func someDecimals[T float32 | float64](d *Decoder, k *floatKind[T], dst []T, n int, spans []Span, p []byte, depth int) error {
	m := d.ints.mark()
	defer d.ints.release(m)
	c, ints, positions, err := d.decimalAt(n, len(dst), spans, p, k.size, depth)
	if err != nil {
		return err
	}
	a, b := k.tens[c.f], k.frac[c.e]
	for i, v := range ints {
		dst[i] = T(v) * a * b
	}
	eachPosition(positions, spans, func(i, x int) { dst[i] = k.get(c.values[k.size*x:]) })
	return nil
}

func (d *Decoder) splitFloatsAt(dst []float32, n int, spans []Span, p []byte) error {
	m := d.bytes.mark()
	defer d.bytes.release(m)
	var planes [4][]byte
	if err := d.planes(planes[:], n, p); err != nil {
		return err
	}
	eachPlace(spans, func(i, at int) {
		v := uint32(planes[0][at]) | uint32(planes[1][at])<<8 | uint32(planes[2][at])<<16 | uint32(planes[3][at])<<24
		dst[i] = math.Float32frombits(bits.RotateLeft32(v, -1))
	})
	return nil
}

func (d *Decoder) splitDoublesAt(dst []float64, n int, spans []Span, p []byte) error {
	m := d.bytes.mark()
	defer d.bytes.release(m)
	var planes [8][]byte
	if err := d.planes(planes[:], n, p); err != nil {
		return err
	}
	eachPlace(spans, func(i, at int) {
		var v uint64
		for j := 7; j >= 0; j-- {
			v = v<<8 | uint64(planes[j][at])
		}
		dst[i] = math.Float64frombits(bits.RotateLeft64(v, -1))
	})
	return nil
}

// decimalAt decodes the digits of the spans and the positions of all exceptions: see decimalParts.
func (d *Decoder) decimalAt(n, taken int, spans []Span, p []byte, width, depth int) (c decimalChunk, ints, positions []int64, err error) {
	if c, err = parseDecimal(n, p, width); err != nil {
		return c, nil, nil, err
	}
	ints, positions = d.ints.grab(taken), d.ints.grab(c.exceptions)
	if err := d.intsAt(ints, n, spans, c.ints, depth+1); err != nil {
		return c, nil, nil, err
	}
	if err := d.decodeInts(positions, c.positions, depth+1); err != nil {
		return c, nil, nil, err
	}
	return c, ints, positions, checkPositions(positions, n)
}
