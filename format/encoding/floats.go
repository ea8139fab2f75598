package encoding

import (
	"encoding/binary"
	"math"
)

// Floats (32 bits) and doubles (64 bits) share their codecs; width is 4 or 8. Encoding works on the bits of the values,
// so that NaNs keep their payloads and -0 its sign.
//
// Constant (id 16):
//
//	+--------+---------------+
//	| 16 (1) | value (width) |
//	+--------+---------------+
//
// Plain (id 17):
//
//	+--------+-------------------+
//	| 17 (1) | n * width, LE     |
//	+--------+-------------------+
//
// Dictionary (id 20) is that of ints, with a floats chunk of the distinct values, and run-length (id 21) likewise:
//
//	+--------+-----------------+-------------------+-------------------+----------------+
//	| 20 (1) | distinct k      | length of values  | values: floats, k | codes: ints, n |
//	|        | (uvarint)       | chunk (uvarint)   |                   |                |
//	+--------+-----------------+-------------------+-------------------+----------------+
//	| 21 (1) | runs r (uvarint)| length of values  | values: floats, r | lengths: ints, |
//	|        |                 | chunk (uvarint)   |                   | r              |
//	+--------+-----------------+-------------------+-------------------+----------------+
//
// Zstd (id 22):
//
//	+--------+---------------------------------------------+
//	| 22 (1) | one zstd frame of n * width bytes, as plain |
//	+--------+---------------------------------------------+

// AppendFloats appends a chunk of vals, bit for bit.
func (c *Chooser) AppendFloats(dst []byte, stream int, vals []float32) []byte {
	e := c.encoder()
	m := e.ints.mark()
	raw := e.ints.grab(len(vals))
	for i, v := range vals {
		raw[i] = int64(math.Float32bits(v))
	}
	dst = e.appendFloats(dst, c.stream(stream), raw, 4, 0)
	e.ints.release(m)
	encoders.Put(e)
	return dst
}

// AppendDoubles appends a chunk of vals, bit for bit.
func (c *Chooser) AppendDoubles(dst []byte, stream int, vals []float64) []byte {
	e := c.encoder()
	m := e.ints.mark()
	raw := e.ints.grab(len(vals))
	for i, v := range vals {
		raw[i] = int64(math.Float64bits(v))
	}
	dst = e.appendFloats(dst, c.stream(stream), raw, 8, 0)
	e.ints.release(m)
	encoders.Put(e)
	return dst
}

// appendFloats appends a floats chunk of values of width bytes, given by their bits.
func (e *encoder) appendFloats(dst []byte, m *memory, raw []int64, width, depth int) []byte {
	if len(raw) == 0 {
		return append(dst, byte(IDFloatPlain))
	}
	runs := 1
	for i, v := range raw[1:] {
		if v != raw[i] {
			runs++
		}
	}
	if runs == 1 {
		return appendFloatBytes(append(dst, byte(IDFloatConstant)), raw[:1], width)
	}
	start := len(dst)
	var seen traits
	if m != nil && len(raw) >= rememberFrom {
		seen = floatTraits(raw, width)
	}
	if codec := m.recall(len(raw)); codec != 0 && !seen.turned(m.traits) {
		var ok bool
		if dst, ok = e.appendFloatsAs(codec, m.exponents, dst, m, raw, width, runs, depth); ok && !m.drifted(len(raw), len(dst)-start) {
			m.note(codec, len(raw), 0, false)
			return dst
		}
		dst = dst[:start]
	}
	without := uint64(0)
	for {
		codec, exponents := e.chooseFloats(raw, width, runs, depth, without)
		m.turn(codec)
		var ok bool
		if dst, ok = e.appendFloatsAs(codec, exponents, dst, m, raw, width, runs, depth); ok {
			m.note(codec, len(raw), len(dst)-start, true)
			if m != nil {
				m.exponents, m.traits = exponents, seen
			}
			return dst
		}
		dst, without = dst[:start], without|1<<codec
	}
}

// appendFloatsAs appends raw in a codec, or returns false when a dictionary or repeats serve badly after all.
func (e *encoder) appendFloatsAs(codec ID, exponents uint16, dst []byte, m *memory, raw []int64, width, runs, depth int) ([]byte, bool) {
	mark, bmark := e.ints.mark(), e.bytes.mark()
	defer e.ints.release(mark)
	defer e.bytes.release(bmark)
	switch codec {
	case IDFloatRuns:
		values, lengths := e.ints.grab(runs), e.ints.grab(runs)
		splitRuns(values, lengths, raw)
		dst = binary.AppendUvarint(append(dst, byte(IDFloatRuns)), uint64(runs))
		chunk := e.appendFloats(e.bytes.grab(chunkRoom(runs))[:0], m.kid(0), values, width, depth+1)
		dst = appendNested(dst, chunk)
		return e.appendInts(dst, m.kid(1), lengths, depth+1), true
	case IDFloatDictionary:
		codes := e.ints.grab(len(raw))
		if !e.table.add(codes, raw, max(1, len(raw)/2)) {
			return dst, false
		}
		values := e.ints.grab(len(e.table.keys))
		e.orderDictionary(values, &e.table, codes)
		dst = binary.AppendUvarint(append(dst, byte(IDFloatDictionary)), uint64(len(values)))
		chunk := e.appendFloats(e.bytes.grab(chunkRoom(len(values)))[:0], m.kid(0), values, width, depth+1)
		dst = appendNested(dst, chunk)
		return e.appendInts(dst, m.kid(1), codes, depth+1), true
	case IDFloatRepeats:
		p := e.newSteps(len(raw))
		if e.findRepeats(&p, raw); len(p.skips) == 0 {
			return dst, false
		}
		dst = e.appendSteps(append(dst, byte(IDFloatRepeats)), m, &p, depth)
		return e.appendFloats(dst, m.kid(0), p.literals, width, depth+1), true
	case IDFloatSplit:
		return e.appendSplit(dst, raw, width), true
	case IDFloatDecimal:
		return e.appendDecimal(dst, m, raw, width, exponents, depth), true
	case IDFloatZstd:
		plain := appendFloatBytes(e.bytes.grab(len(raw) * width)[:0], raw, width)
		start := len(dst)
		dst = e.compress(append(dst, byte(IDFloatZstd)), plain)
		if float64(len(dst)-start) < (1-zstdMargin)*float64(len(plain)) {
			return dst, true
		}
		dst = dst[:start]
	}
	return appendFloatBytes(append(dst, byte(IDFloatPlain)), raw, width), true
}

// chooseFloats returns the codec that should cost least, and for decimals the exponents.
func (e *encoder) chooseFloats(raw []int64, width, runs, depth int, without uint64) (ID, uint16) {
	n, w := float64(len(raw)), float64(width)
	b := best{profile: e.profile}
	b.offer(IDFloatPlain, 1+n*w, n*nsPlain)
	if depth >= maxDepth {
		return b.codec, 0
	}
	mark, bmark := e.ints.mark(), e.bytes.mark()
	defer e.ints.release(mark)
	defer e.bytes.release(bmark)
	if r := float64(runs); runs < len(raw)/2 {
		b.offer(IDFloatRuns, r*(w+1)+16, n*nsRunFill+r*(nsRun+nsPlain+nsFOR))
	}
	sample := sampleInts(&e.ints, raw, 16, 256)
	sn := len(sample)
	var exponents uint16
	if depth < maxDepth-1 {
		x, bytes, exceptions := chooseDecimal(sample, width)
		exponents = x
		b.offer(IDFloatDecimal, bytes*n/float64(sn)+20, n*(nsFOR+nsDecimal)+nsPatch*exceptions*n/float64(sn))
	}
	distinct := 0
	if without>>IDFloatDictionary&1 == 0 {
		codes := e.ints.grab(sn)
		e.table.add(codes, sample, sn)
		if k := estimateDistinct(&e.table, sn, len(raw)); k <= len(raw)/2 {
			bytes := float64(k)*w + n*float64(bitsFor(k))/8 + 16
			distinct = k
			b.offer(IDFloatDictionary, bytes, n*(nsFOR+lookUpCost(k)))
		}
	}
	if len(raw) >= 128 {
		long := sampleInts(&e.ints, raw, 4, 1024)
		scale := n / float64(len(long))
		if bytes, packed := e.splitSize(long, width); bytes*scale+16 < (1-zstdMargin)*b.bytes {
			b.offer(IDFloatSplit, bytes*scale+16, n*w*nsSplitByte+packed*scale*nsZstdByte)
		}
	}
	copied := 0.0
	if len(raw) >= 256 && depth <= 1 && without>>IDFloatRepeats&1 == 0 && b.bytes > n/8 {
		perValue := 8 * b.bytes / n
		if b.codec == IDFloatDictionary {
			perValue = float64(bitsFor(distinct))
		}
		copied = e.tryRepeats(&b, IDFloatRepeats, raw, perValue)
	}
	if len(raw) >= 128 && copied < 0.5 {
		long := sampleInts(&e.ints, raw, 4, 1024)
		scale := n / float64(len(long))
		plain := appendFloatBytes(e.bytes.grab(len(long) * width)[:0], long, width)
		bytes := scale * float64(len(e.compress(e.bytes.grab(len(plain) + 64)[:0], plain)))
		if bytes < (1-zstdMargin)*b.bytes {
			b.offer(IDFloatZstd, bytes, n*(nsPlain+nsZstdByte*w))
		}
	}
	return b.codec, exponents
}

// appendFloatBytes appends the width low bytes of each value.
func appendFloatBytes(dst []byte, raw []int64, width int) []byte {
	pos := len(dst)
	dst = grow(dst, len(raw)*width)
	p := dst[pos:]
	if width == 4 {
		for _, v := range raw {
			binary.LittleEndian.PutUint32(p, uint32(v))
			p = p[4:]
		}
		return dst
	}
	for _, v := range raw {
		binary.LittleEndian.PutUint64(p, uint64(v))
		p = p[8:]
	}
	return dst
}

// Floats decodes a chunk of len(dst) floats, bit for bit.
func (d *Decoder) Floats(dst []float32, src []byte) error { return d.decodeFloats(dst, src, 0) }

// Doubles decodes a chunk of len(dst) doubles, bit for bit.
func (d *Decoder) Doubles(dst []float64, src []byte) error { return d.decodeDoubles(dst, src, 0) }

func (d *Decoder) decodeFloats(dst []float32, src []byte, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	switch id {
	case IDFloatConstant:
		if len(p) != 4 {
			return errLength
		}
		fill(dst, math.Float32frombits(binary.LittleEndian.Uint32(p)))
		return nil
	case IDFloatPlain:
		return plainFloats(dst, p)
	case IDFloatSplit:
		return d.splitFloats(dst, p)
	case IDFloatDecimal:
		return d.decimalFloats(dst, p, depth)
	case IDFloatDictionary:
		m := d.floats.mark()
		defer d.floats.release(m)
		return floatDictionary(d, dst, p, depth, &d.floats, (*Decoder).decodeFloats)
	case IDFloatRuns:
		m := d.floats.mark()
		defer d.floats.release(m)
		return floatRuns(d, dst, p, depth, &d.floats, (*Decoder).decodeFloats)
	case IDFloatRepeats:
		return decodeSteps(d, dst, p, depth, (*Decoder).decodeFloats)
	case IDFloatZstd:
		m := d.bytes.mark()
		defer d.bytes.release(m)
		plain := d.bytes.grab(4 * len(dst))
		if err := d.inflate(plain, p); err != nil {
			return err
		}
		return plainFloats(dst, plain)
	}
	return wrongCodec(id)
}

func (d *Decoder) decodeDoubles(dst []float64, src []byte, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	switch id {
	case IDFloatConstant:
		if len(p) != 8 {
			return errLength
		}
		fill(dst, math.Float64frombits(binary.LittleEndian.Uint64(p)))
		return nil
	case IDFloatPlain:
		return plainDoubles(dst, p)
	case IDFloatSplit:
		return d.splitDoubles(dst, p)
	case IDFloatDecimal:
		return d.decimalDoubles(dst, p, depth)
	case IDFloatDictionary:
		m := d.doubles.mark()
		defer d.doubles.release(m)
		return floatDictionary(d, dst, p, depth, &d.doubles, (*Decoder).decodeDoubles)
	case IDFloatRuns:
		m := d.doubles.mark()
		defer d.doubles.release(m)
		return floatRuns(d, dst, p, depth, &d.doubles, (*Decoder).decodeDoubles)
	case IDFloatRepeats:
		return decodeSteps(d, dst, p, depth, (*Decoder).decodeDoubles)
	case IDFloatZstd:
		m := d.bytes.mark()
		defer d.bytes.release(m)
		plain := d.bytes.grab(8 * len(dst))
		if err := d.inflate(plain, p); err != nil {
			return err
		}
		return plainDoubles(dst, plain)
	}
	return wrongCodec(id)
}

func plainFloats(dst []float32, p []byte) error {
	if len(p)%4 != 0 || len(p)/4 != len(dst) {
		return errLength
	}
	for i := 0; i < len(dst) && len(p) >= 4; i++ {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(p))
		p = p[4:]
	}
	return nil
}

func plainDoubles(dst []float64, p []byte) error {
	if len(p)%8 != 0 || len(p)/8 != len(dst) {
		return errLength
	}
	for i := 0; i < len(dst) && len(p) >= 8; i++ {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(p))
		p = p[8:]
	}
	return nil
}

// floatDictionary decodes the payload of a dictionary; values come out of a, which the caller releases.
func floatDictionary[T any](d *Decoder, dst []T, p []byte, depth int, a *arena[T], decode func(*Decoder, []T, []byte, int) error) error {
	k, p, err := takeCount(p, len(dst))
	if err != nil {
		return err
	}
	chunk, p, err := takeNested(p)
	if err != nil {
		return err
	}
	values := a.grab(k)
	if err := decode(d, values, chunk, depth+1); err != nil {
		return err
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	return lookUp(d, dst, values, p, d.ints.grab(len(dst)), depth+1)
}

// floatRuns decodes the payload of run-length; values come out of a, which the caller releases.
func floatRuns[T any](d *Decoder, dst []T, p []byte, depth int, a *arena[T], decode func(*Decoder, []T, []byte, int) error) error {
	r, p, err := takeCount(p, len(dst))
	if err != nil {
		return err
	}
	chunk, p, err := takeNested(p)
	if err != nil {
		return err
	}
	values := a.grab(r)
	if err := decode(d, values, chunk, depth+1); err != nil {
		return err
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	lengths := d.ints.grab(r)
	if err := d.decodeInts(lengths, p, depth+1); err != nil {
		return err
	}
	return fillRuns(dst, values, lengths)
}

func fill[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}
