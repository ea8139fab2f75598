package format

import (
	"fmt"

	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// The functions of this file are shared by DecodeStripe and DecodeRows. spans are the elements to decode, n of them in
// all; nil: all elements of the stripe, which is faster.

// decodeFixed decodes the values of dense features and embeddings.
func (d *StripeDecoder) decodeFixed(dst *vector.Column, m *FileMeta, s *StripeMeta, n int,
	spans []encoding.Span) error {
	all := dst.Slots * dst.Type.Width()
	if err := d.decodeValues(dst, m, s, n, all, spans); err != nil || n == all {
		return err
	}
	switch dst.Type.Physical() {
	case vector.Int64Values:
		spread(dst.Ints, dst.Present, dst.Slots, dst.Type.Width())
	case vector.Float32Values:
		spread(dst.Floats, dst.Present, dst.Slots, dst.Type.Width())
	case vector.Float64Values:
		spread(dst.Doubles, dst.Present, dst.Slots, dst.Type.Width())
	}
	return nil
}

// decodeElements decodes the values and the scores of lists, or the bytes of strings. strings are the offsets of all
// strings of the stripe.
func (d *StripeDecoder) decodeElements(dst *vector.Column, m *FileMeta, s *StripeMeta, n int, spans []encoding.Span,
	strings []int32) error {
	if dst.Type.Physical() == vector.ByteValues {
		return d.decodeStrings(dst, s, n, spans, strings)
	}
	if err := d.decodeValues(dst, m, s, n, n, spans); err != nil {
		return err
	}
	if dst.Type.Kind != vector.Weighted {
		return nil
	}
	var err error
	if dst.Type.Score == vector.Float64 {
		if dst.ScoreDoubles = vector.Resize(dst.ScoreDoubles, n); n > 0 {
			err = d.codec.DoublesAt(dst.ScoreDoubles, int(s.Elements), spans, d.chunks[Scores])
		}
	} else if dst.ScoreFloats = vector.Resize(dst.ScoreFloats, n); n > 0 {
		err = d.codec.FloatsAt(dst.ScoreFloats, int(s.Elements), spans, d.chunks[Scores])
	}
	if err != nil {
		return d.fail(Scores, err)
	}
	return nil
}

// decodeStrings decodes the bytes of strings. With spans it decodes all bytes and copies the spans.
func (d *StripeDecoder) decodeStrings(dst *vector.Column, s *StripeMeta, n int, spans []encoding.Span,
	strings []int32) error {
	if dst.Data = vector.Resize(dst.Data, n); n == 0 {
		return nil
	}
	data := dst.Data
	if spans != nil {
		d.data = vector.Resize(d.data, int(s.Elements))
		data = d.data
	}
	if err := d.codec.Strings(data, strings, d.chunks[Values]); err != nil {
		return d.fail(Values, err)
	}
	to := dst.Data
	for _, x := range spans {
		to = to[copy(to, data[x.From:x.To]):]
	}
	return nil
}

// decodeValues resizes dst's values to all of them and decodes n to the front.
func (d *StripeDecoder) decodeValues(dst *vector.Column, m *FileMeta, s *StripeMeta, n, all int,
	spans []encoding.Span) error {
	stored, chunk := int(s.Elements), d.chunks[Values]
	var err error
	switch dst.Type.Physical() {
	case vector.Int64Values:
		if dst.Ints = vector.Resize(dst.Ints, all); n == 0 {
			return nil
		}
		vals := dst.Ints[:n]
		if d.chunks[Codes] != nil {
			return d.decodeCodes(vals, m, s, spans)
		}
		if err = d.codec.IntsAt(vals, stored, spans, chunk); err == nil {
			err = outOfRange(m.Type, vals, spans)
		}
	case vector.Float32Values:
		if dst.Floats = vector.Resize(dst.Floats, all); n > 0 {
			err = d.codec.FloatsAt(dst.Floats[:n], stored, spans, chunk)
		}
	case vector.Float64Values:
		if dst.Doubles = vector.Resize(dst.Doubles, all); n > 0 {
			err = d.codec.DoublesAt(dst.Doubles[:n], stored, spans, chunk)
		}
	}
	if err != nil {
		return d.fail(Values, err)
	}
	return nil
}

// outOfRange returns an error if a value is out of the range of the type. vals are the values of spans.
func outOfRange(t vector.Type, vals []int64, spans []encoding.Span) error {
	i := t.Elem.FirstOutOfRange(vals)
	if i < 0 {
		return nil
	}
	place := i
	for _, x := range spans {
		if k := int(x.To - x.From); place >= k {
			place -= k
			continue
		}
		place += int(x.From)
		break
	}
	return fmt.Errorf("value %d is %d, out of the range of %v", place, vals[i], t.Elem)
}

// decodeCodes sets vals to the values of the stripe's codes, from the dictionary and the stripe's own values. Without
// spans, codes are looked up while they are decoded.
func (d *StripeDecoder) decodeCodes(vals []int64, m *FileMeta, s *StripeMeta, spans []encoding.Span) error {
	if d.dictionary == nil || uint32(len(d.dictionary.values)) != m.Dictionary.Values {
		return fmt.Errorf("stripe %d: call Use with the dictionary of its file, of %d values, before decoding it",
			d.stripe, m.Dictionary.Values)
	}
	if spans != nil {
		return d.decodeCodesAt(vals, m, s, spans)
	}
	shared := d.dictionary.values
	d.own = vector.Resize(d.own, int(s.Own))
	if s.Own > 0 {
		err := d.codec.Ints(d.own, d.chunks[Values])
		if err == nil {
			err = outOfRange(m.Type, d.own, nil)
		}
		if err != nil {
			return d.fail(Values, err)
		}
	}
	bad, code, err := d.codec.LookUp(vals, shared, d.own, d.chunks[Codes])
	if err != nil {
		return d.fail(Codes, err)
	}
	if bad >= 0 {
		return d.fail(Codes, fmt.Errorf("code %d of value %d, of %d values of the file and %d of the stripe", code, bad,
			len(shared), len(d.own)))
	}
	return nil
}

// decodeCodesAt is decodeCodes for spans. It decodes only those of the stripe's own values that a code refers to.
func (d *StripeDecoder) decodeCodesAt(vals []int64, m *FileMeta, s *StripeMeta, spans []encoding.Span) error {
	if err := d.codec.IntsAt(vals, int(s.Elements), spans, d.chunks[Codes]); err != nil {
		return d.fail(Codes, err)
	}
	shared := d.dictionary.values
	own, ownSpans := d.ownAt[:0], d.ownSpans[:0]
	for i, c := range vals {
		if uint64(c) < uint64(len(shared)) {
			continue
		}
		if c -= int64(len(shared)); uint64(c) >= uint64(s.Own) {
			return d.fail(Codes, fmt.Errorf("a code is %d, of %d values of the file and %d of the stripe", vals[i],
				len(shared), s.Own))
		}
		vals[i] = 0 // any valid code: LookUpIn looks it up with its neighbours, and it is overwritten below
		own = append(own, int32(i))
		ownSpans = append(ownSpans, encoding.Span{From: int32(c), To: int32(c) + 1})
	}
	d.ownAt, d.ownSpans = own, ownSpans
	if len(own) < len(vals) {
		encoding.LookUpIn(vals, shared)
	}
	if len(own) == 0 {
		return nil
	}
	d.own = vector.Resize(d.own, len(own))
	err := d.codec.IntsAt(d.own, int(s.Own), ownSpans, d.chunks[Values])
	if err == nil {
		err = outOfRange(m.Type, d.own, ownSpans)
	}
	if err != nil {
		return d.fail(Values, err)
	}
	for i, place := range own {
		vals[place] = d.own[i]
	}
	return nil
}

// decodeEnds sets ends to 0 followed by the ends of the lists of all present slots.
func (d *StripeDecoder) decodeEnds(ends []int32, s *StripeMeta) error {
	ends[0] = 0
	lengths := ends[1:]
	if err := d.codec.Int32s(lengths, d.chunks[Lengths]); err != nil {
		return d.fail(Lengths, err)
	}
	sum, signs := int64(0), int32(0)
	for i, n := range lengths {
		signs |= n
		sum += int64(n)
		lengths[i] = int32(sum)
	}
	if signs < 0 || sum != int64(s.Elements) {
		return d.fail(Lengths, fmt.Errorf("lengths sum to %d, want %d, none negative", sum, s.Elements))
	}
	return nil
}

// decodeSlices decodes the lengths of the lists of present slots and their starts in the elements.
func (d *StripeDecoder) decodeSlices(lengths, starts []int32, s *StripeMeta, spans []encoding.Span) error {
	if err := d.codec.Int32sAt(lengths, int(s.Present), spans, d.chunks[Lengths]); err != nil {
		return d.fail(Lengths, err)
	}
	if err := d.codec.Int32sAt(starts, int(s.Present), spans, d.chunks[Starts]); err != nil {
		return d.fail(Starts, err)
	}
	for i, length := range lengths {
		if start := starts[i]; start < 0 || length < 0 || int64(start)+int64(length) > int64(s.Elements) {
			return d.fail(Starts, fmt.Errorf("slice of %d values at %d, of %d", length, start, s.Elements))
		}
	}
	return nil
}
