package format

import (
	"fmt"
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// StreamKind identifies a stream of a stripe. The numbers are written to disk and never change meaning.
type StreamKind uint8

const (
	Presence       StreamKind = 1 // a bit per slot
	InverseRuns    StreamKind = 2 // lengths of the inverse's runs
	InverseChanges StreamKind = 3 // a bit per row: a run starts
	InverseCodes   StreamKind = 4 // the slot of each run
	Lengths        StreamKind = 5 // the length of each present slot
	Values         StreamKind = 6 // values of present slots; with Codes, the stripe's own distinct values
	Scores         StreamKind = 7
	Starts         StreamKind = 8 // partial duplicates: the start of each present slot in the values
	Codes          StreamKind = 9 // the code of each value: in the file's dictionary, then in the stripe's own values

	streamKinds = 9 // the largest
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

// StripeMeta describes a stripe. Its streams are contiguous, in the order of their kinds, from Offset on.
type StripeMeta struct {
	Offset   uint64 // from the start of the feature file
	Length   uint64 // of all streams
	Rows     uint32
	Slots    uint32
	Present  uint32 // slots that are not null
	Runs     uint32 // runs of an inverse that has codes and fewer runs than rows; else 0
	Own      uint32 // with Codes: the stripe's own distinct values, which are not in the dictionary; else 0
	Elements uint64 // stored values: ids, bytes, or numbers
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

// Stats are statistics over the rows of a stripe or file, duplicates counted.
type Stats struct {
	NullRows uint64
	Elements uint64 // values of all rows
	RawBytes uint64 // bytes of these elements and their scores in the source
	// HasMinMax: every present number (list elements too) that is not NaN lies between Min and Max, inclusive. The
	// bounds are exact for dense features, rounded outward for lists, absent for embeddings, bytes and strings. MinInt
	// and MaxInt are for integers and bools (uint64 with the same bits, compared unsigned), MinFloat and MaxFloat for
	// float32 and float64.
	HasMinMax          bool
	MinInt, MaxInt     int64
	MinFloat, MaxFloat float64
}

// FileMeta is a feature file's directory. It is stored at the end of the file, and in the segment's index. This package
// never changes one that it has returned, so it may be read concurrently.
type FileMeta struct {
	Type       vector.Type
	Feature    uint64         // feature id
	Salt       uint32         // the checksums of streams begin with it
	Name       string         // the feature's name when it was written
	Group      uint64         // the feature id of the dedup group's inverse file, or 0
	Dictionary DictionaryMeta // of values that several stripes share
	Stripes    []StripeMeta
	Found      Found
	// Rows and Stats are over all stripes. They are not stored: DecodeMeta and Finish add them up.
	Rows  uint64
	Stats Stats
}

// Found is statistics of the duplicates that the writer found in a feature. Decoding does not need them. The stripes
// have the numbers of rows, slots and values.
type Found struct {
	Partial uint64 // slots that are partial duplicates
	// SavedBytes estimates how many more bytes the file would take with one slot per row.
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

// add adds the statistics of more rows to s. Both are of type t.
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

// check returns what is wrong with the counts of a stripe, or "". limits have their defaults. A decoder allocates
// memory only for counts that passed this check.
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
	stored := uint64(0) // cannot overflow: a stripe has one stream per kind, and each length is checked first
	for _, f := range s.Streams {
		if f.Length <= checksumLength || f.Length > maxStreamLength {
			return fmt.Sprintf("stream %v of %d bytes", f.Kind, f.Length)
		}
		stored += f.Length
	}
	// A reader also holds the stored stripe. No encoding doubles the size of its input, except in very small streams.
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
