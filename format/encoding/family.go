package encoding

// A decodeFunc decodes the payload p of a chunk of n values: all of them where spans is nil, otherwise those of spans,
// one after the other. dst has room for just these. p may hold anything: see Decoder.
type decodeFunc[T any] func(d *Decoder, dst []T, n int, spans []Span, p []byte, depth int) error

// seeking is how a codec decodes some of a chunk's values.
type seeking uint8

const (
	seekNever  seeking = 0 // all are decoded, and those of spans copied; spans is always nil
	seekFew    seeking = 1 // those of spans alone, where they are few
	seekAlways seeking = 2 // those of spans alone
)

// A reader is what decoding needs of a codec.
type reader[T any] struct {
	decode decodeFunc[T]
	seeks  seeking
}

// A family is the values that chunks of some codecs decode to.
type family[T any] struct {
	readers [idEnd]reader[T]
	arena   func(d *Decoder) *arena[T]
}

var (
	intFamily   = family[int64]{arena: func(d *Decoder) *arena[int64] { return &d.ints }}
	floatFamily = floatKind[float32]{family[float32]{arena: func(d *Decoder) *arena[float32] { return &d.floats }},
		4, tens32[:], frac32[:]}
	doubleFamily = floatKind[float64]{family[float64]{arena: func(d *Decoder) *arena[float64] { return &d.doubles }},
		8, tens64[:], frac64[:]}
)

// A floatKind is a family of floats.
type floatKind[T float32 | float64] struct {
	family[T]
	size       int // of a value, in bytes
	tens, frac []T // powers of ten that decimals are multiplied by
}

// decode decodes a chunk of len(dst) values.
func (f *family[T]) decode(d *Decoder, dst []T, src []byte, depth int) error {
	return f.decodeAt(d, dst, len(dst), nil, src, depth)
}

// decodeAt decodes spans of a chunk of n values, or all of them where spans is nil.
func (f *family[T]) decodeAt(d *Decoder, dst []T, n int, spans []Span, src []byte, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	if id >= idEnd || f.readers[id].decode == nil {
		return wrongCodec(id)
	}
	r := &f.readers[id]
	if spans != nil && (r.seeks == seekNever || r.seeks == seekFew && mostly(len(dst), len(spans), n)) {
		return f.decodeWhole(d, r.decode, dst, n, spans, p, depth)
	}
	return r.decode(d, dst, n, spans, p, depth)
}

// decodeWhole decodes all values of a payload and copies those of the spans.
func (f *family[T]) decodeWhole(d *Decoder, decode decodeFunc[T], dst []T, n int, spans []Span, p []byte,
	depth int) error {
	a := f.arena(d)
	m := a.mark()
	defer a.release(m)
	all := a.grab(n)
	if err := decode(d, all, n, nil, p, depth); err != nil {
		return err
	}
	for _, s := range spans {
		dst = dst[copy(dst, all[s.From:s.To]):]
	}
	return nil
}

// decodeInts decodes a chunk of len(dst) ints.
func (d *Decoder) decodeInts(dst []int64, src []byte, depth int) error {
	return intFamily.decodeAt(d, dst, len(dst), nil, src, depth)
}

// intsAt decodes spans of a chunk of n ints, or all of them where spans is nil.
func (d *Decoder) intsAt(dst []int64, n int, spans []Span, src []byte, depth int) error {
	return intFamily.decodeAt(d, dst, n, spans, src, depth)
}
