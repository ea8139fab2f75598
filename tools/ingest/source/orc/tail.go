package orc

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Tail is what the end of an ORC file says, as far as it is read here: pyarrow reads the file, but for the
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
	stripes []stripe
	Types   []typeNode
	meta    map[string]string
	stats   []timestampStats // by type; nil: there are none
	rows    int64
}

type stripe struct{ offset, index, data, footer, rows uint64 }

// A typeNode is a node of the schema, by its number.
type typeNode struct {
	Kind       uint64
	Subtypes   []uint64
	Names      []string
	precision  uint64 // of a decimal; 0: none is said
	attributes map[string]string
}

// Kinds of ORC's types that matter here.
const (
	Timestamp   = 9
	kindStruct  = 12
	kindDecimal = 14
	Instant     = 18
)

// timestampStats are the least and the greatest timestamp of a column, in milliseconds.
type timestampStats struct {
	known    bool
	min, max int64
}

const (
	maxFooter = 1 << 28
	maxBlock  = 1 << 24 // a chunk says its length in 23 bits
)

var errDamagedTail = errors.New("the end of the ORC file is damaged")

// A protoReader reads messages of Protocol Buffers. err is that of the first one that is damaged.
type protoReader struct{ err error }

// A protoValue is that of a field: a number or bytes.
type protoValue struct {
	number uint64
	text   []byte
}

// fields gives the fields of a message, up to the last or to damage.
func (p *protoReader) fields(message []byte) iter.Seq2[uint64, protoValue] {
	return func(yield func(uint64, protoValue) bool) {
		for len(message) > 0 {
			field, kind, n := protowire.ConsumeTag(message)
			if n < 0 {
				p.err = errDamagedTail
				return
			}
			message = message[n:]
			var v protoValue
			switch kind {
			case protowire.VarintType:
				v.number, n = protowire.ConsumeVarint(message)
			case protowire.BytesType:
				v.text, n = protowire.ConsumeBytes(message)
			default:
				n = protowire.ConsumeFieldValue(field, kind, message)
			}
			if n < 0 {
				p.err = errDamagedTail
				return
			}
			message = message[n:]
			if !yield(uint64(field), v) {
				return
			}
		}
	}
}

// numbers reads a message: numbers into the elements of into that have the numbers of their fields. It returns which
// fields below 64 there were, a bit each.
func (p *protoReader) numbers(message []byte, into []uint64) (said uint64) {
	for field, v := range p.fields(message) {
		if said |= 1 << field; field < uint64(len(into)) {
			into[field] = v.number
		}
	}
	return said
}

// ReadTail reads the end of a file.
func ReadTail(r io.ReaderAt, size int64) (*Tail, error) {
	t := &Tail{size: size, meta: map[string]string{}}
	var last [256]byte
	n := min(size, int64(len(last)))
	if n == 0 {
		return nil, errDamagedTail
	}
	if _, err := r.ReadAt(last[:n], size-n); err != nil {
		return nil, err
	}
	length := int64(last[n-1])
	if length == 0 || length >= n {
		return nil, errDamagedTail
	}
	var p protoReader
	says := [4]uint64{1: math.MaxUint64, 3: 256 << 10} // bytes of the footer, codec, greatest chunk
	p.numbers(last[n-1-length:n-1], says[:])
	footer := says[1]
	if p.err != nil || footer > uint64(min(size-1-length, maxFooter)) || says[3] == 0 || says[3] > maxBlock {
		return nil, errDamagedTail
	}
	t.codec, t.block = says[2], int64(says[3])
	raw, err := t.whole(r, size-1-length-int64(footer), int64(footer))
	if err != nil {
		return nil, err
	}
	return t, t.parseFooter(raw)
}

// whole returns what a compressed part of the file holds.
func (t *Tail) whole(r io.ReaderAt, at, length int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(t.stream(r, at, length), maxFooter+1))
	if err == nil && len(b) > maxFooter {
		err = errDamagedTail
	}
	return b, err
}

func (t *Tail) parseFooter(raw []byte) error {
	var p protoReader
	for field, v := range p.fields(raw) {
		switch field {
		case 3:
			var says [6]uint64
			p.numbers(v.text, says[:])
			t.stripes = append(t.stripes, stripe{says[1], says[2], says[3], says[4], says[5]})
		case 4:
			t.Types = append(t.Types, p.typeNode(v.text))
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
		return errDamagedTail
	}
	for i, typ := range t.Types {
		for _, s := range typ.Subtypes {
			if s <= uint64(i) || s >= uint64(len(t.Types)) { // a tree, in the order of its walk
				return errDamagedTail
			}
		}
	}
	for _, s := range t.stripes {
		end := uint64(t.size)
		if s.offset > end || s.index > end || s.data > end || s.footer > end || s.offset+s.index+s.data+s.footer > end {
			return errDamagedTail
		}
	}
	return nil
}

func (p *protoReader) typeNode(text []byte) typeNode {
	t := typeNode{attributes: map[string]string{}}
	for field, v := range p.fields(text) {
		switch field {
		case 1:
			t.Kind = v.number
		case 2:
			if v.text == nil {
				t.Subtypes = append(t.Subtypes, v.number)
			}
			for packed := v.text; len(packed) > 0; {
				subtype, n := protowire.ConsumeVarint(packed)
				if n < 0 {
					p.err = errDamagedTail
					return t
				}
				t.Subtypes = append(t.Subtypes, subtype)
				packed = packed[n:]
			}
		case 3:
			t.Names = append(t.Names, string(v.text))
		case 5:
			t.precision = v.number
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
		var says [5]uint64
		said := p.numbers(v.text, says[:])
		for _, i := range []int{3, 1} { // in UTC, or in the writer's zone: a day more or less is of no account
			if said>>i&3 == 3 {
				s = timestampStats{true, protowire.DecodeZigZag(says[i]), protowire.DecodeZigZag(says[i+1])}
				break
			}
		}
	}
	return s
}

// outOfRange reports whether the statistics say of a timestamp whether it may be out of the range of nanoseconds: known
// is false where they say nothing.
func (t *Tail) outOfRange(typ uint64) (out, known bool) {
	if typ >= uint64(len(t.stats)) || !t.stats[typ].known {
		return true, false
	}
	const margin = 2 * 86400 * 1000 // of zones
	const greatest = int64(math.MaxInt64/1_000_000) - margin
	s := t.stats[typ]
	return s.min <= -greatest || s.max >= greatest, true
}

// hasOldDecimal reports whether a type, or one in it, is a decimal without a precision: each value has a scale of its
// own.
func (t *Tail) hasOldDecimal(typ uint64) bool {
	of := t.Types[typ]
	return of.Kind == kindDecimal && of.precision == 0 || slices.ContainsFunc(of.Subtypes, t.hasOldDecimal)
}

// exceedsNanoseconds reports whether a type, or one in it, is a timestamp that may be out of the range of nanoseconds;
// surely: only where the statistics say that some are.
func (t *Tail) exceedsNanoseconds(typ uint64, surely bool) bool {
	of := t.Types[typ]
	if of.Kind == Timestamp || of.Kind == Instant {
		out, known := t.outOfRange(typ)
		return out && (known || !surely)
	}
	return slices.ContainsFunc(of.Subtypes, func(s uint64) bool { return t.exceedsNanoseconds(s, surely) })
}

// A stripeFooter says where the streams of a stripe are.
type stripeFooter struct {
	streams   []streamAt
	encodings []uint64 // by type
	zone      string
}

type streamAt struct {
	kind, column uint64
	at, length   int64
}

func (t *Tail) stripeFooter(r io.ReaderAt, s stripe) (*stripeFooter, error) {
	raw, err := t.whole(r, int64(s.offset+s.index+s.data), int64(s.footer))
	if err != nil {
		return nil, err
	}
	f := &stripeFooter{}
	var p protoReader
	at, end := s.offset, s.offset+s.index+s.data
	for field, v := range p.fields(raw) {
		switch field {
		case 1:
			var says [4]uint64 // kind, column, length, from 1 on
			p.numbers(v.text, says[:])
			length := says[3]
			if length > end-at {
				return nil, fmt.Errorf("a stream of %d bytes, its stripe has %d left", length, end-at)
			}
			f.streams = append(f.streams, streamAt{says[1], says[2], int64(at), int64(length)})
			at += length
		case 2:
			var says [2]uint64
			p.numbers(v.text, says[:])
			f.encodings = append(f.encodings, says[1])
		case 3:
			f.zone = string(v.text)
		}
	}
	return f, p.err
}

// find returns the stream of a kind that a column has, and false where it has none.
func (f *stripeFooter) find(kind, column uint64) (streamAt, bool) {
	for _, s := range f.streams {
		if s.kind == kind && s.column == column {
			return s, true
		}
	}
	return streamAt{}, false
}
