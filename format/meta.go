package format

import (
	"fmt"
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// StreamKind tells the streams of a stripe apart. The numbers are written to disk and never change meaning.
type StreamKind uint8

const (
	Presence       StreamKind = 1 // a bit per slot
	InverseRuns    StreamKind = 2 // lengths of the inverse's runs
	InverseChanges StreamKind = 3 // a bit per row: a run starts
	InverseCodes   StreamKind = 4 // the slot of each run
	Lengths        StreamKind = 5 // of each present slot
	Values         StreamKind = 6
	Scores         StreamKind = 7
	Starts         StreamKind = 8 // where each present slot starts in the values
	Codes          StreamKind = 9 // of each value, in the file's dictionary and the stripe's own values

	streamKinds = 9 // the last of them
)

var streamNames = [...]string{
	Presence: "presence", InverseRuns: "inverse runs", InverseChanges: "inverse changes", InverseCodes: "inverse codes",
	Lengths: "lengths", Values: "values", Scores: "scores", Starts: "starts", Codes: "codes",
}

func (k StreamKind) String() string {
	if k != 0 && int(k) < len(streamNames) {
		return streamNames[k]
	}
	return fmt.Sprintf("stream(%d)", uint8(k))
}

// StreamMeta locates one stream of a stripe.
type StreamMeta struct {
	Kind   StreamKind
	Length uint64 // bytes, its checksum included
}

// StripeMeta says where a stripe is and what it holds. The streams are contiguous, in the order of their kinds, from
// Offset.
type StripeMeta struct {
	Offset   uint64 // from the start of the feature file
	Length   uint64 // of all streams
	Rows     uint32
	Slots    uint32
	Present  uint32 // slots that are not null
	Runs     uint32 // of an inverse that has codes and runs shorter than rows; else 0
	Own      uint32 // with Codes: values of the stripe's own, beside the dictionary's; else 0
	Elements uint64 // values stored: ids, bytes, or numbers
	Streams  []StreamMeta
	Stats    Stats
}

// has reports whether the stripe has a stream of kind k.
func (s *StripeMeta) has(k StreamKind) bool {
	for i := range s.Streams {
		if s.Streams[i].Kind == k {
			return true
		}
	}
	return false
}

// Stats of a stripe or a whole file, over rows.
type Stats struct {
	NullRows uint64
	Elements uint64 // over rows: what an expanded reader would see
	RawBytes uint64 // those elements, and their scores, in their source width
	// HasMinMax: every present number (list elements too) that is not NaN lies between Min and Max, inclusive. The
	// bounds are exact for dense features, rounded outward for lists, absent for embeddings, bytes and strings. Ints
	// hold integers and bools (uint64 bit for bit, and compared unsigned), floats float32 and float64.
	HasMinMax          bool
	MinInt, MaxInt     int64
	MinFloat, MaxFloat float64
}

// FileMeta is a feature file's directory: its footer holds it, and the segment's index too. Nothing in this package
// writes to one that it has returned: it may be read concurrently.
type FileMeta struct {
	Type    vector.Type
	Feature uint64 // feature id
	Name    string // the feature's name when it was written
	Group   uint64 // the feature id of the dedup group's inverse file, or 0
	// Dictionary is of values that several stripes share.
	Dictionary DictionaryMeta
	Stripes    []StripeMeta
	Found      Found
	// Rows and Stats are over all stripes. They are not stored: DecodeMeta and Finish add them up.
	Rows  uint64
	Stats Stats
}

// Found is what a writer says of the duplicates that it found in a feature; nothing is read by it. Rows, slots and
// values before and after are in the stripes.
type Found struct {
	Partial uint64 // slots whose values other slots store too
	// SavedBytes estimates how many bytes more the file would take with a slot for each row.
	SavedBytes uint64
}

// End returns the offset in the feature file at which the last stripe ends.
func (m *FileMeta) End() uint64 {
	if len(m.Stripes) == 0 {
		return headerLength + m.Dictionary.Length
	}
	s := &m.Stripes[len(m.Stripes)-1]
	return s.Offset + s.Length
}

// addTotals computes Rows and Stats from the stripes.
func (m *FileMeta) addTotals() {
	m.Rows, m.Stats = 0, Stats{}
	for i := range m.Stripes {
		m.Rows += uint64(m.Stripes[i].Rows)
		m.Stats.add(m.Type, &m.Stripes[i].Stats)
	}
}

// add widens s, statistics of type t, by those of more rows.
func (s *Stats) add(t vector.Type, o *Stats) {
	s.NullRows += o.NullRows
	s.Elements += o.Elements
	s.RawBytes += o.RawBytes
	if !o.HasMinMax {
		return
	}
	if !s.HasMinMax {
		s.HasMinMax = true
		s.MinInt, s.MaxInt, s.MinFloat, s.MaxFloat = o.MinInt, o.MaxInt, o.MinFloat, o.MaxFloat
		return
	}
	switch {
	case t.Elem == vector.Uint64:
		s.MinInt = int64(min(uint64(s.MinInt), uint64(o.MinInt)))
		s.MaxInt = int64(max(uint64(s.MaxInt), uint64(o.MaxInt)))
	case t.Elem.IsInteger():
		s.MinInt, s.MaxInt = min(s.MinInt, o.MinInt), max(s.MaxInt, o.MaxInt)
	default:
		s.MinFloat, s.MaxFloat = min(s.MinFloat, o.MinFloat), max(s.MaxFloat, o.MaxFloat)
	}
}

// check returns what is wrong with the counts of one stripe under limits (defaults filled in), or "". Everything that a
// decoder allocates follows from counts that passed.
func (m *FileMeta) check(s *StripeMeta, limits Limits) string {
	t := m.Type
	list := t.IsList()
	inverse := s.has(InverseRuns) || s.has(InverseChanges) || s.has(InverseCodes)
	switch {
	case uint64(s.Rows) > limits.StripeRows:
		return fmt.Sprintf("%d rows, over the limit of %d", s.Rows, limits.StripeRows)
	case uint64(s.Slots) > limits.StripeRows:
		return fmt.Sprintf("%d slots, over the limit of %d", s.Slots, limits.StripeRows)
	case s.Present > s.Slots:
		return fmt.Sprintf("%d present slots of %d", s.Present, s.Slots)
	case s.Rows > 0 && s.Slots == 0:
		return fmt.Sprintf("no slot for %d rows", s.Rows)
	case s.Rows == 0 && (s.Slots != 0 || inverse):
		return "slots without rows"
	case s.Stats.NullRows > uint64(s.Rows):
		return fmt.Sprintf("%d null rows of %d", s.Stats.NullRows, s.Rows)
	case s.Stats.Elements > maxRowElements:
		return fmt.Sprintf("%d row elements, over the limit of %d", s.Stats.Elements, uint64(maxRowElements))
	case m.Group != 0 && inverse:
		return "an inverse of its own in a feature of a group"
	case m.Group == 0 && !inverse && s.Slots != s.Rows && s.Slots != 1:
		return fmt.Sprintf("no inverse for %d rows of %d slots", s.Rows, s.Slots)
	case s.has(InverseRuns) && s.has(InverseChanges):
		return "both inverse runs and inverse changes"
	case uint64(s.Runs) > uint64(s.Rows):
		return fmt.Sprintf("%d runs of %d rows", s.Runs, s.Rows)
	case !s.has(InverseCodes) && inverse && s.Slots > s.Rows:
		return fmt.Sprintf("%d slots of %d rows in a monotone inverse", s.Slots, s.Rows)
	case t.Kind == vector.Inverse && (s.Present != s.Slots || s.Elements != 0 || s.has(Presence) || s.has(Lengths) ||
		s.has(Values) || s.has(Scores) || s.has(Starts)):
		return "more than an inverse in an inverse file"
	case !list && t.Kind != vector.Inverse && s.Elements != uint64(s.Present)*uint64(t.Width()):
		return fmt.Sprintf("%d elements for %d present slots of %v", s.Elements, s.Present, t)
	case t.Kind == vector.Inverse && m.Group != 0:
		return "an inverse file of a group"
	case s.has(Presence) != (s.Present != s.Slots && s.Present != 0):
		return fmt.Sprintf("presence does not fit %d present slots of %d", s.Present, s.Slots)
	case s.has(Lengths) != (list && s.Present != 0):
		return "lengths do not fit the present slots"
	case s.has(Starts) && (!list || s.Present == 0):
		return "starts without lists"
	case s.has(Codes) && (m.Dictionary.Length == 0 || !mayShare(t) || s.Elements == 0):
		return "codes without a dictionary or without values"
	case s.has(Codes) && (uint64(s.Own) > s.Elements || s.has(Values) != (s.Own != 0)):
		return fmt.Sprintf("values do not fit %d of the stripe's own, of %d elements", s.Own, s.Elements)
	case !s.has(Codes) && s.has(Values) != (s.Elements != 0):
		return fmt.Sprintf("values do not fit %d elements", s.Elements)
	case s.has(Scores) != (t.Kind == vector.Weighted && s.Elements != 0):
		return "scores do not fit the elements"
	}
	n, ok := decodedBytes(t, s)
	if !ok || s.Elements > vector.MaxElements {
		return fmt.Sprintf("more than %d elements", vector.MaxElements)
	}
	if n > limits.StripeBytes {
		return fmt.Sprintf("decodes to %d bytes, over the limit of %d", n, limits.StripeBytes)
	}
	stored := uint64(0) // cannot overflow: a stripe has a stream a kind, and each is checked first
	for _, f := range s.Streams {
		if f.Length <= checksumLength || f.Length > maxStreamLength {
			return fmt.Sprintf("stream %v of %d bytes", f.Kind, f.Length)
		}
		stored += f.Length
	}
	// A reader holds a stripe as it is stored, too. No encoding doubles what it encodes but in streams of a few bytes.
	if stored > storedSlack && (stored-storedSlack)/2 > limits.StripeBytes {
		return fmt.Sprintf("stored in %d bytes, over the limit for stripes that decode to %d", stored,
			limits.StripeBytes)
	}
	if st := &s.Stats; st.HasMinMax && !t.Elem.IsInteger() &&
		(math.IsNaN(st.MinFloat) || math.IsNaN(st.MaxFloat) || st.MinFloat > st.MaxFloat) {
		return "bounds that are no range"
	}
	return ""
}
