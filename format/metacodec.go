package format

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// Flags of the directory and of a stripe entry (SPEC.md, sections 3 and 4).
const (
	flagGroup      = 1 << 0
	flagFields     = 1 << 1
	flagDictionary = 1 << 2
	allFlags       = flagGroup | flagFields | flagDictionary

	stripeSlots    = 1 << 0
	stripeNulls    = 1 << 1
	stripeAllNull  = 1 << 2
	stripeExpanded = 1 << 3
	stripeBounds   = 1 << 4
	stripeDoubles  = 1 << 5
	allStripeFlags = stripeSlots | stripeNulls | stripeAllNull | stripeExpanded | stripeBounds | stripeDoubles

	// Tags of fields (SPEC.md, section 5). A reader skips unknown even tags, and refuses unknown odd ones.
	foundField = 2

	// minEntryBytes is the length of the shortest stripe entry: streams, flags, rows.
	minEntryBytes = 3
)

// AppendMeta appends the byte form of m:
//
//	+---------+-------+------+--------------------+---------+---------+---------+
//	| version | flags | kind | elem, score, dim   | feature |  salt   | [group] |
//	|   (1)   |  (1)  | (1)  | (as the kind says) | (8 LE)  | (4 LE)  | (8 LE)  |
//	+---------+----+--+---+--+--------+-----------+---------+-+-------+---------+
//	| [dictionary] | name | n stripes | n entries | [fields]  |
//	| (2 uvarints) |      | (uvarint) |           |           |
//	+--------------+------+-----------+-----------+-----------+
//
// m was returned by Finish or DecodeMeta. DecodeMeta decodes it, and computes the totals again.
func AppendMeta(dst []byte, m *FileMeta) []byte {
	flags := byte(0)
	if m.Group != 0 {
		flags |= flagGroup
	}
	if m.Found != (Found{}) {
		flags |= flagFields
	}
	if m.Dictionary.Length != 0 {
		flags |= flagDictionary
	}
	dst = append(dst, formatVersion, flags, byte(m.Type.Kind))
	if m.Type.Elem != vector.NoElem {
		dst = append(dst, byte(m.Type.Elem))
	}
	switch m.Type.Kind {
	case vector.Weighted:
		dst = append(dst, byte(m.Type.Score))
	case vector.Embedding:
		dst = binary.AppendUvarint(dst, uint64(m.Type.Dim))
	}
	dst = binary.LittleEndian.AppendUint64(dst, m.Feature)
	dst = binary.LittleEndian.AppendUint32(dst, m.Salt)
	if m.Group != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, m.Group)
	}
	if m.Dictionary.Length != 0 {
		dst = binary.AppendUvarint(dst, uint64(m.Dictionary.Values))
		dst = binary.AppendUvarint(dst, m.Dictionary.Length)
	}
	dst = binary.AppendUvarint(dst, uint64(len(m.Name)))
	dst = append(dst, m.Name...)
	dst = binary.AppendUvarint(dst, uint64(len(m.Stripes)))
	rows := uint32(0)
	for i := range m.Stripes {
		dst = appendEntry(dst, m.Type, &m.Stripes[i], rows)
		rows = m.Stripes[i].Rows
	}
	if flags&flagFields != 0 {
		dst = appendFound(dst, m.Found)
	}
	return dst
}

// appendFound appends the list of fields, which has one field:
//
//	+-------+---------+------------+---------+-------------+
//	| 1 (1) | tag (1) | length (1) | partial | saved bytes |
//	+-------+---------+------------+---------+-------------+
func appendFound(dst []byte, f Found) []byte {
	dst = append(dst, 1, foundField, 0)
	at := len(dst)
	dst = binary.AppendUvarint(dst, f.Partial)
	dst = binary.AppendUvarint(dst, f.SavedBytes)
	dst[at-1] = byte(len(dst) - at)
	return dst
}

// appendEntry appends a stripe's entry:
//
//	+---------+-------+---------+-----------------------------------------+------------+------------+---------+
//	| streams | flags | rows -  | [slots] [nulls] [elements] [runs]       |   [min]    |   [max]    | lengths |
//	|         |  (1)  | before  | [own] [null rows, row elements]         | (at most 9 bytes each) |         |
//	+---------+-------+---------+-----------------------------------------+------------+------------+---------+
func appendEntry(dst []byte, t vector.Type, s *StripeMeta, before uint32) []byte {
	streams := uint64(0)
	for _, f := range s.Streams {
		streams |= 1 << (f.Kind - 1)
	}
	nulls := s.Slots - s.Present
	flags := byte(0)
	if s.Slots != s.Rows {
		flags |= stripeSlots
	}
	switch {
	case s.Present == 0 && s.Slots != 0:
		flags |= stripeAllNull
	case nulls != 0:
		flags |= stripeNulls
	}
	if s.Stats.NullRows != uint64(nulls) || s.Stats.Elements != s.Elements {
		flags |= stripeExpanded
	}
	if s.Stats.HasMinMax {
		flags |= stripeBounds
		if !t.Elem.IsInteger() && (!isFloat32(s.Stats.MinFloat) || !isFloat32(s.Stats.MaxFloat)) {
			flags |= stripeDoubles
		}
	}
	dst = binary.AppendUvarint(dst, streams)
	dst = append(dst, flags)
	dst = binary.AppendVarint(dst, int64(s.Rows)-int64(before))
	if flags&stripeSlots != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Slots))
	}
	if flags&stripeNulls != 0 {
		dst = binary.AppendUvarint(dst, uint64(nulls))
	}
	if t.IsList() && s.Present != 0 {
		dst = binary.AppendUvarint(dst, s.Elements)
	}
	if s.hasRuns() {
		dst = binary.AppendUvarint(dst, uint64(s.Runs))
	}
	if s.has(Codes) {
		dst = binary.AppendUvarint(dst, uint64(s.Own))
	}
	if flags&stripeExpanded != 0 {
		dst = binary.AppendUvarint(dst, s.Stats.NullRows)
		dst = binary.AppendUvarint(dst, s.Stats.Elements)
	}
	if flags&stripeBounds != 0 {
		dst = appendBounds(dst, t, flags, &s.Stats)
	}
	for _, f := range s.Streams {
		dst = binary.AppendUvarint(dst, f.Length)
	}
	return dst
}

// hasRuns reports whether the entry holds Runs.
func (s *StripeMeta) hasRuns() bool {
	return s.has(InverseCodes) && (s.has(InverseRuns) || s.has(InverseChanges))
}

func appendBounds(dst []byte, t vector.Type, flags byte, s *Stats) []byte {
	switch {
	case t.Elem.IsInteger():
		dst = appendIntBound(dst, s.MinInt, t.Elem != vector.Uint64, 0)
		dst = appendIntBound(dst, s.MaxInt, t.Elem != vector.Uint64, 0xff)
	case flags&stripeDoubles != 0:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.MinFloat))
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.MaxFloat))
	default:
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(s.MinFloat)))
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(s.MaxFloat)))
	}
	return dst
}

func isFloat32(v float64) bool { return float64(float32(v)) == v }

// appendIntBound appends v without the low bytes that equal fill and without the high bytes that only repeat the sign:
//
//	+-----------------------------+------------------------+
//	| n kept | d dropped << 4 (1) | n bytes, most significant first |
//	+-----------------------------+------------------------+
func appendIntBound(dst []byte, v int64, signed bool, fill byte) []byte {
	d := 0
	for d < 8 && byte(v>>(8*d)) == fill {
		d++
	}
	if d == 8 {
		return append(dst, 8<<4)
	}
	prefix := v >> (8 * d)
	if !signed {
		prefix = int64(uint64(v) >> (8 * d))
	}
	n := 8 - d
	for n > 1 && fits(prefix, n-1, signed) {
		n--
	}
	if n == 1 && prefix == 0 {
		n = 0
	}
	dst = append(dst, byte(n|d<<4))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(prefix>>(8*i)))
	}
	return dst
}

// fits reports whether v survives being cut to n bytes.
func fits(v int64, n int, signed bool) bool {
	shift := 64 - 8*n
	if signed {
		return v<<shift>>shift == v
	}
	return uint64(v)<<shift>>shift == uint64(v)
}

// DecodeMeta decodes what AppendMeta appended, and checks every field against limits. src has nothing else. The result
// shares no memory with src. Errors match ErrCorrupt or ErrUnsupported; their Offset is -1, and their Stripe is set if
// they concern one.
func DecodeMeta(src []byte, limits Limits) (*FileMeta, error) {
	r := metaReader{src: src}
	m := new(FileMeta)
	if err := r.file(m, limits.withDefaults()); err != nil {
		return nil, err
	}
	return m, nil
}

// A metaReader reads fields from the front of src. If src is too short for one, it sets bad, and returns 0 for all
// later fields.
type metaReader struct {
	src []byte
	bad bool
}

func (r *metaReader) byte() byte {
	if len(r.src) == 0 {
		r.bad = true
		return 0
	}
	b := r.src[0]
	r.src = r.src[1:]
	return b
}

func (r *metaReader) bytes(n uint64) []byte {
	if n > uint64(len(r.src)) {
		r.bad = true
		r.src = nil
		return nil
	}
	b := r.src[:n]
	r.src = r.src[n:]
	return b
}

func (r *metaReader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *metaReader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *metaReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.src)
	if n <= 0 {
		r.bad = true
		r.src = nil
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (r *metaReader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *metaReader) file(m *FileMeta, limits Limits) error {
	switch v := r.byte(); {
	case r.bad:
		return corrupt(-1, "directory ends early")
	case v == 0:
		return corrupt(-1, "directory version 0")
	case v != formatVersion:
		return unsupported(-1, "directory version %d", v)
	}
	flags := r.byte()
	if flags&^allFlags != 0 {
		return unsupported(-1, "directory flags %#x", flags&^allFlags)
	}
	m.Type.Kind = vector.Kind(r.byte())
	switch m.Type.Kind {
	case vector.Dense, vector.Sparse, vector.Weighted, vector.Embedding:
		m.Type.Elem = vector.Elem(r.byte())
	case vector.Bytes, vector.String, vector.Inverse:
	default:
		if r.bad {
			return corrupt(-1, "directory ends early")
		}
		return unsupported(-1, "feature kind %d", uint8(m.Type.Kind))
	}
	switch m.Type.Kind {
	case vector.Weighted:
		m.Type.Score = vector.Elem(r.byte())
	case vector.Embedding:
		dim := r.uvarint()
		if dim > vector.MaxDim {
			return corrupt(-1, "embedding of %d dimensions", dim)
		}
		m.Type.Dim = uint32(dim)
	}
	m.Feature, m.Salt = r.u64(), r.u32()
	if flags&flagGroup != 0 {
		if m.Group = r.u64(); m.Group == 0 && !r.bad {
			return corrupt(-1, "group 0")
		}
	}
	if flags&flagDictionary != 0 {
		m.Dictionary.Values = uint32(min(r.uvarint(), math.MaxUint32)) // check refuses a larger number
		m.Dictionary.Length = r.uvarint()
	}
	n := r.uvarint()
	if n > maxNameBytes {
		return corrupt(-1, "name of %d bytes", n)
	}
	m.Name = string(r.bytes(n))
	n = r.uvarint()
	if r.bad {
		return corrupt(-1, "directory ends early")
	}
	for _, e := range [...]vector.Elem{m.Type.Elem, m.Type.Score} {
		if e > vector.Float64 {
			return unsupported(-1, "element type %d", uint8(e))
		}
	}
	if err := m.Type.Validate(); err != nil {
		return corrupt(-1, "%v", err)
	}
	if flags&flagDictionary != 0 {
		if reason := m.Dictionary.check(m.Type, limits); reason != "" {
			return corrupt(-1, "%s", reason)
		}
	}
	if n > limits.FileStripes {
		return corrupt(-1, "%d stripes, over the limit of %d", n, limits.FileStripes)
	}
	if n > uint64(len(r.src))/minEntryBytes {
		return corrupt(-1, "%d stripes in %d bytes", n, len(r.src))
	}
	if err := r.stripes(m, int(n), limits); err != nil {
		return err
	}
	if flags&flagFields != 0 {
		if err := r.fields(m); err != nil {
			return err
		}
	}
	if len(r.src) != 0 {
		return corrupt(-1, "%d bytes after the directory", len(r.src))
	}
	m.addTotals()
	return nil
}

func (r *metaReader) stripes(m *FileMeta, n int, limits Limits) error {
	if n == 0 {
		return nil
	}
	m.Stripes = make([]StripeMeta, n)
	streams := make([]StreamMeta, 0, 4*n) // usually one array for all stripes
	offset := headerLength + m.Dictionary.Length
	before := uint32(0)
	for i := range m.Stripes {
		s := &m.Stripes[i]
		s.Offset = offset
		if len(streams)+streamKinds > cap(streams) {
			streams = make([]StreamMeta, 0, max(4*(n-i), streamKinds))
		}
		s.Streams = streams[len(streams):]
		err := r.stripe(m, s, before, limits)
		if err == nil {
			if reason := m.check(s, limits); reason != "" {
				err = corrupt(-1, "%s", reason)
			}
		}
		if err != nil {
			return inStripe(err, i)
		}
		streams = streams[:len(streams)+len(s.Streams)]
		if s.Streams = slices.Clip(s.Streams); len(s.Streams) == 0 {
			s.Streams = nil
		}
		before = s.Rows
		offset += s.Length
		if offset > math.MaxInt64 {
			return inStripe(corrupt(-1, "stripes of more than %d bytes", int64(math.MaxInt64)), i)
		}
	}
	return nil
}

// inStripe sets the Stripe of a CorruptError or UnsupportedError, and returns it.
func inStripe(err error, stripe int) error {
	switch e := err.(type) {
	case *CorruptError:
		e.Stripe = stripe
	case *UnsupportedError:
		e.Stripe = stripe
	}
	return err
}

func (r *metaReader) stripe(m *FileMeta, s *StripeMeta, before uint32, limits Limits) error {
	streams := r.uvarint()
	flags := r.byte()
	if streams>>streamKinds != 0 {
		for k := streamKinds; k < 64; k++ {
			if streams>>k&1 != 0 {
				return unsupported(-1, "stream kind %d", k+1)
			}
		}
	}
	if flags&^allStripeFlags != 0 {
		return unsupported(-1, "stripe flags %#x", flags&^allStripeFlags)
	}
	for k := range streamKinds {
		if streams>>k&1 != 0 {
			s.Streams = append(s.Streams, StreamMeta{Kind: StreamKind(k + 1)})
		}
	}
	change := r.varint()
	rows := int64(before) + change // before fits an int32; a change that could overflow is refused below
	if change > math.MaxInt32 || rows < 0 || uint64(rows) > limits.StripeRows {
		return corrupt(-1, "%d rows more than the stripe before, which has %d; the limit is %d", change, before,
			limits.StripeRows)
	}
	slots := uint64(rows)
	if flags&stripeSlots != 0 {
		slots = r.uvarint()
	}
	if slots > limits.StripeRows {
		return corrupt(-1, "%d slots, over the limit of %d", slots, limits.StripeRows)
	}
	nulls := uint64(0)
	if flags&stripeNulls != 0 {
		nulls = r.uvarint()
	}
	if flags&stripeAllNull != 0 {
		if nulls != 0 {
			return corrupt(-1, "stripe flags %#x", flags)
		}
		nulls = slots
	}
	if nulls > slots {
		return corrupt(-1, "%d null slots of %d", nulls, slots)
	}
	s.Rows, s.Slots, s.Present = uint32(rows), uint32(slots), uint32(slots-nulls)
	if m.Type.IsList() {
		if s.Present != 0 {
			s.Elements = r.uvarint()
		}
	} else {
		s.Elements = uint64(s.Present) * uint64(m.Type.Width())
	}
	if s.hasRuns() {
		runs := r.uvarint()
		if runs > uint64(rows) {
			return corrupt(-1, "%d runs of %d rows", runs, rows)
		}
		s.Runs = uint32(runs)
	}
	if s.has(Codes) {
		own := r.uvarint()
		if own > s.Elements || own > vector.MaxElements {
			return corrupt(-1, "%d values of the stripe's own, of %d elements", own, s.Elements)
		}
		s.Own = uint32(own)
	}
	s.Stats.NullRows, s.Stats.Elements = nulls, s.Elements
	if flags&stripeExpanded != 0 {
		s.Stats.NullRows = r.uvarint()
		s.Stats.Elements = r.uvarint()
	}
	if flags&stripeBounds != 0 {
		if err := r.bounds(m.Type, flags, &s.Stats); err != nil {
			return err
		}
	}
	if s.Stats.Elements <= maxRowElements {
		s.Stats.RawBytes = s.Stats.Elements * sourceBytes(m.Type)
	}
	for i := range s.Streams {
		length := min(r.uvarint(), maxStreamLength+1) // so that the sum cannot overflow; check refuses it
		s.Streams[i].Length = length
		s.Length += length
	}
	if r.bad {
		return corrupt(-1, "directory ends early")
	}
	return nil
}

func (r *metaReader) bounds(t vector.Type, flags byte, s *Stats) error {
	switch t.Kind {
	case vector.Dense, vector.Sparse, vector.Weighted:
	default:
		return corrupt(-1, "bounds of a feature of kind %v", t.Kind)
	}
	s.HasMinMax = true
	switch {
	case t.Elem.IsInteger():
		signed := t.Elem != vector.Uint64
		var ok1, ok2 bool
		s.MinInt, ok1 = r.intBound(signed, 0)
		s.MaxInt, ok2 = r.intBound(signed, 0xff)
		if !ok1 || !ok2 {
			return corrupt(-1, "bounds of more than 8 bytes")
		}
		if signed && s.MinInt > s.MaxInt || !signed && uint64(s.MinInt) > uint64(s.MaxInt) {
			return corrupt(-1, "bounds that are no range")
		}
	case flags&stripeDoubles != 0:
		s.MinFloat = math.Float64frombits(r.u64())
		s.MaxFloat = math.Float64frombits(r.u64())
	default:
		s.MinFloat = float64(math.Float32frombits(r.u32()))
		s.MaxFloat = float64(math.Float32frombits(r.u32()))
	}
	return nil
}

func (r *metaReader) intBound(signed bool, fill byte) (int64, bool) {
	head := r.byte()
	n, d := int(head&15), int(head>>4)
	if n+d > 8 {
		return 0, false
	}
	v := int64(0)
	for i, b := range r.bytes(uint64(n)) {
		if i == 0 && signed {
			v = int64(int8(b))
		} else {
			v = v<<8 | int64(b)
		}
	}
	for range d {
		v = v<<8 | int64(fill)
	}
	return v, true
}

// fields reads the fields that this version knows, skips unknown ones with even tags, and refuses unknown odd ones.
func (r *metaReader) fields(m *FileMeta) error {
	count := r.uvarint()
	for range count {
		tag := r.uvarint()
		value := r.bytes(r.uvarint())
		if r.bad {
			break
		}
		switch {
		case tag == foundField:
			// A later version may append to the value: ignore the rest.
			v := metaReader{src: value}
			m.Found = Found{Partial: v.uvarint(), SavedBytes: v.uvarint()}
			if v.bad {
				return corrupt(-1, "directory field %d ends early", tag)
			}
		case tag%2 == 1:
			return unsupported(-1, "directory field %d", tag)
		}
	}
	if r.bad {
		return corrupt(-1, "directory ends early")
	}
	return nil
}
