package orc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
)

// An Tail is what the end of an ORC file says, as far as it is read here: pyarrow reads the file, but for the
// timestamps that it does not hold, and what tables keep in the footer.
//
//	+-----+---------+----------+--------+-------------+------------+
//	| ORC | stripes | metadata | footer | post script | length (1) |
//	+-----+---------+----------+--------+-------------+------------+
//
// Footer and post script are in Protocol Buffers. Footer, stripe footers and streams are compressed in chunks, where
// the post script says so.
type Tail struct {
	size    int64
	codec   uint64
	block   int64 // no chunk is longer when it is decompressed
	stripes []orcStripe
	Types   []orcType
	meta    map[string]string
	stats   []timestampStats // by type; nil: there are none
	rows    int64
}

type orcStripe struct{ offset, index, data, footer, rows uint64 }

// An orcType is a node of the schema, by its number.
type orcType struct {
	Kind       uint64
	Subtypes   []uint64
	Names      []string
	attributes map[string]string
}

// Kinds of ORC's types that matter here.
const (
	Timestamp = 9
	orcStruct = 12
	Instant   = 18
)

// timestampStats are the least and the greatest timestamp of a column, in milliseconds.
type timestampStats struct {
	known    bool
	min, max int64
}

const (
	maxORCFooter = 1 << 28
	maxORCBlock  = 1 << 24 // a chunk says its length in 23 bits
)

var errORCTail = errors.New("the end of the ORC file is damaged")

// A protoReader reads messages of Protocol Buffers. err is that of the first one that is damaged.
type protoReader struct {
	buf []byte
	err error
}

// A protoValue is that of a field: a number or bytes.
type protoValue struct {
	number uint64
	text   []byte
}

// fields gives the fields of a message, up to the last or to damage.
func (p *protoReader) fields(message []byte) iter.Seq2[uint64, protoValue] {
	return func(yield func(uint64, protoValue) bool) {
		in := protoReader{buf: message}
		for len(in.buf) > 0 && in.err == nil {
			var v protoValue
			key := in.varint()
			switch key & 7 {
			case 0:
				v.number = in.varint()
			case 1:
				in.take(8)
			case 2:
				v.text = in.take(in.varint())
			case 5:
				in.take(4)
			default:
				in.err = errORCTail
			}
			if in.err == nil && !yield(key>>3, v) {
				return
			}
		}
		if in.err != nil {
			p.err = in.err
		}
	}
}

func (p *protoReader) varint() uint64 {
	v, n := binary.Uvarint(p.buf)
	if n <= 0 {
		p.err, p.buf = errORCTail, nil
		return 0
	}
	p.buf = p.buf[n:]
	return v
}

func (p *protoReader) take(n uint64) []byte {
	if n > uint64(len(p.buf)) {
		p.err, p.buf = errORCTail, nil
		return nil
	}
	b := p.buf[:n]
	p.buf = p.buf[n:]
	return b
}

func zigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// ReadTail reads the end of a file.
func ReadTail(r io.ReaderAt, size int64) (*Tail, error) {
	t := &Tail{size: size, block: 256 << 10, meta: map[string]string{}}
	var last [256]byte
	n := min(size, int64(len(last)))
	if n == 0 {
		return nil, errORCTail
	}
	if _, err := r.ReadAt(last[:n], size-n); err != nil {
		return nil, err
	}
	length := int64(last[n-1])
	if length == 0 || length >= n {
		return nil, errORCTail
	}
	footer := int64(-1)
	var p protoReader
	for field, v := range p.fields(last[n-1-length : n-1]) {
		switch field {
		case 1:
			footer = int64(min(v.number, math.MaxInt64))
		case 2:
			t.codec = v.number
		case 3:
			t.block = int64(min(v.number, math.MaxInt64))
		}
	}
	if p.err != nil || footer < 0 || footer > min(size-1-length, maxORCFooter) || t.block <= 0 ||
		t.block > maxORCBlock {
		return nil, errORCTail
	}
	raw, err := t.whole(r, size-1-length-footer, footer)
	if err != nil {
		return nil, err
	}
	return t, t.parseFooter(raw)
}

// whole returns what a compressed part of the file holds.
func (t *Tail) whole(r io.ReaderAt, at, length int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(t.stream(r, at, length), maxORCFooter+1))
	if err == nil && len(b) > maxORCFooter {
		err = errORCTail
	}
	return b, err
}

func (t *Tail) parseFooter(raw []byte) error {
	var p protoReader
	for field, v := range p.fields(raw) {
		switch field {
		case 3:
			t.stripes = append(t.stripes, p.stripe(v.text))
		case 4:
			t.Types = append(t.Types, p.orcType(v.text))
		case 5:
			key, value := p.pair(v.text)
			t.meta[key] = value
		case 6:
			t.rows = int64(min(v.number, math.MaxInt64))
		case 7:
			t.stats = append(t.stats, p.timestampStats(v.text))
		}
	}
	if p.err != nil {
		return p.err
	}
	if len(t.Types) == 0 || len(t.Types[0].Subtypes) != len(t.Types[0].Names) {
		return errORCTail
	}
	for i, typ := range t.Types {
		for _, s := range typ.Subtypes {
			if s <= uint64(i) || s >= uint64(len(t.Types)) { // a tree, in the order of its walk
				return errORCTail
			}
		}
	}
	for _, s := range t.stripes {
		end := uint64(t.size)
		if s.offset > end || s.index > end || s.data > end || s.footer > end || s.offset+s.index+s.data+s.footer > end {
			return errORCTail
		}
	}
	return nil
}

func (p *protoReader) stripe(text []byte) (s orcStripe) {
	to := []*uint64{nil, &s.offset, &s.index, &s.data, &s.footer, &s.rows}
	for field, v := range p.fields(text) {
		if field >= 1 && field < uint64(len(to)) {
			*to[field] = v.number
		}
	}
	return s
}

func (p *protoReader) orcType(text []byte) orcType {
	t := orcType{attributes: map[string]string{}}
	for field, v := range p.fields(text) {
		switch field {
		case 1:
			t.Kind = v.number
		case 2:
			if v.text == nil {
				t.Subtypes = append(t.Subtypes, v.number)
			}
			for packed := (protoReader{buf: v.text}); len(packed.buf) > 0; {
				t.Subtypes = append(t.Subtypes, packed.varint())
			}
		case 3:
			t.Names = append(t.Names, string(v.text))
		case 7:
			key, value := p.pair(v.text)
			t.attributes[key] = value
		}
	}
	return t
}

func (p *protoReader) pair(text []byte) (key, value string) {
	for field, v := range p.fields(text) {
		switch field {
		case 1:
			key = string(v.text)
		case 2:
			value = string(v.text)
		}
	}
	return key, value
}

func (p *protoReader) timestampStats(text []byte) (s timestampStats) {
	for field, v := range p.fields(text) {
		if field == 1 && v.number == 0 {
			s.known = true // no value at all
		}
		if field != 9 {
			continue
		}
		bounds := [5]*int64{}
		for field, v := range p.fields(v.text) {
			if field >= 1 && field < uint64(len(bounds)) {
				z := zigzag(v.number)
				bounds[field] = &z
			}
		}
		for _, i := range []int{3, 1} { // in UTC, or in the writer's zone: a day more or less is of no account
			if bounds[i] != nil && bounds[i+1] != nil {
				s = timestampStats{true, *bounds[i], *bounds[i+1]}
				break
			}
		}
	}
	return s
}

// inNanoseconds reports whether all timestamps of a type are certain to be in the range of nanoseconds.
func (t *Tail) inNanoseconds(typ uint64) bool {
	if typ >= uint64(len(t.stats)) || !t.stats[typ].known {
		return false
	}
	const margin = 2 * 86400 * 1000 // of zones
	const greatest = int64(math.MaxInt64/1_000_000) - margin
	s := t.stats[typ]
	return s.min > -greatest && s.max < greatest
}

// mayExceedNanoseconds reports whether a type, or one in it, is a timestamp that may be out of the range of nanoseconds.
func (t *Tail) mayExceedNanoseconds(typ uint64) bool {
	of := t.Types[typ]
	if of.Kind == Timestamp || of.Kind == Instant {
		return !t.inNanoseconds(typ)
	}
	return slices.ContainsFunc(of.Subtypes, t.mayExceedNanoseconds)
}

// exceedsNanoseconds reports whether the statistics of a timestamp in a type say that some are out of the range of
// nanoseconds.
func (t *Tail) exceedsNanoseconds(typ uint64) bool {
	of := t.Types[typ]
	if of.Kind == Timestamp || of.Kind == Instant {
		return typ < uint64(len(t.stats)) && t.stats[typ].known && !t.inNanoseconds(typ)
	}
	return slices.ContainsFunc(of.Subtypes, t.exceedsNanoseconds)
}

// An orcStripeFooter says where the streams of a stripe are.
type orcStripeFooter struct {
	streams   []orcStreamAt
	encodings []uint64 // by type
	zone      string
}

type orcStreamAt struct {
	kind, column uint64
	at, length   int64
}

func (t *Tail) stripeFooter(r io.ReaderAt, s orcStripe) (*orcStripeFooter, error) {
	raw, err := t.whole(r, int64(s.offset+s.index+s.data), int64(s.footer))
	if err != nil {
		return nil, err
	}
	f := &orcStripeFooter{}
	var p protoReader
	at, end := s.offset, s.offset+s.index+s.data
	for field, v := range p.fields(raw) {
		switch field {
		case 1:
			var says [4]uint64 // kind, column, length, from 1 on
			for field, v := range p.fields(v.text) {
				if field < uint64(len(says)) {
					says[field] = v.number
				}
			}
			length := says[3]
			if length > end-at {
				return nil, fmt.Errorf("a stream of %d bytes, its stripe has %d left", length, end-at)
			}
			f.streams = append(f.streams, orcStreamAt{says[1], says[2], int64(at), int64(length)})
			at += length
		case 2:
			kind := uint64(0)
			for field, v := range p.fields(v.text) {
				if field == 1 {
					kind = v.number
				}
			}
			f.encodings = append(f.encodings, kind)
		case 3:
			f.zone = string(v.text)
		}
	}
	return f, p.err
}

// find returns the stream of a kind that a column has, and false where it has none.
func (f *orcStripeFooter) find(kind, column uint64) (orcStreamAt, bool) {
	i := slices.IndexFunc(f.streams, func(s orcStreamAt) bool { return s.kind == kind && s.column == column })
	if i < 0 {
		return orcStreamAt{}, false
	}
	return f.streams[i], true
}
