package report

import (
	"math/bits"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

// A chain leads from the raw bytes of rows to the bytes stored, link by link, with what each link saves. The links come
// to the raw bytes less those stored:
//
//	rows ── runs ──> a value per run ── slots ──> a value per slot ── partial ──> values stored once
//	     ── encodings ──> bytes of values
//	     + shape: which slots are null, how long lists are, where partial duplicates start
//	     + inverses: which slot each row has, per feature  ── groups ──> one for all features of a group
//	     + frames: headers, directories, packs, indexes  ==> stored
//
// The links before encodings are counted in values, and weigh what a value takes in its source.
type chain struct {
	runs, slots, partial, encodings, shape, inverses, groups, frames int64 // saved; negative: it costs that
	// split bytes of runs, slots and partial duplicates lie between two of them by an estimate; their sum is exact.
	split uint64
}

func (c *chain) add(o chain) {
	c.runs += o.runs
	c.slots += o.slots
	c.partial += o.partial
	c.encodings += o.encodings
	c.shape += o.shape
	c.inverses += o.inverses
	c.groups += o.groups
	c.frames += o.frames
	c.split += o.split
}

// A link is one of a chain.
type link struct {
	cause     string
	bytes     int64
	estimated bool // a part of it is, as split says
	meaning   string
}

// links are those of the chain, in its order.
func (c *chain) links() []link {
	return []link{
		{CauseRuns, c.runs, true, "values equal to those of the row before are not stored again; as plain numbers, " +
			"before encoding"},
		{CauseSlots, c.slots, true, "of the rest, values equal to those of an earlier row of the stripe are not " +
			"stored again; as plain numbers"},
		{CausePartial, c.partial, true, "of the rest, lists that are slices of stored lists store only where they " +
			"start; as plain numbers"},
		{CauseEncodings, c.encodings, false, "the remaining values take fewer bytes encoded than as plain numbers"},
		{CauseShape, c.shape, false, "costs: which rows are null, how long lists are, where partial duplicates start"},
		{CauseInverses, c.inverses, false,
			"costs: which stored value each row has, as if every feature stored it separately"},
		{CauseGroups, c.groups, false, "of that, features that repeat together store it once"},
		{CauseFrames, c.frames, false, "costs: directories, checksums, packs and indexes"},
	}
}

// saved names the links; those that say nothing are left out.
func (c *chain) saved() map[string]int64 {
	out := map[string]int64{}
	for _, l := range c.links() {
		if l.bytes != 0 {
			out[l.cause] = l.bytes
		}
	}
	return out
}

// causes are the links as a Report has them.
func (c *chain) causes() []Cause {
	var out []Cause
	for _, l := range c.links() {
		x := Cause{Cause: l.cause, Bytes: l.bytes, Meaning: l.meaning}
		if l.estimated {
			x.EstimatedBytes = min(c.split, uint64(abs(l.bytes)))
		}
		out = append(out, x)
	}
	return out
}

// A repeat says how the rows of a stripe share slots.
type repeat struct {
	rows, runs, slots uint64
}

// repeatOf reads it from the stripe that has the inverse: the feature's own, or its group's.
func repeatOf(s *format.StripeMeta) repeat {
	r := repeat{rows: uint64(s.Rows), slots: uint64(s.Slots)}
	codes, runs := false, false
	for _, f := range s.Streams {
		codes = codes || f.Kind == format.InverseCodes
		runs = runs || f.Kind == format.InverseRuns || f.Kind == format.InverseChanges
	}
	switch {
	case codes && runs:
		r.runs = uint64(s.Runs)
	case codes:
		r.runs = r.rows
	default:
		r.runs = r.slots // monotone: each slot is a run
	}
	return r
}

// share divides the bytes that rows have and slots have not between runs and slots. Of the values of runs the directory
// says nothing: they are taken to lie between those of rows and those of slots as the number of runs does between the
// other two.
func (r repeat) share(bytes int64) (runs, slots int64, estimated bool) {
	if r.runs <= r.slots || r.rows <= r.slots {
		return bytes, 0, false
	}
	slots = mulDiv(bytes, r.runs-r.slots, r.rows-r.slots)
	return bytes - slots, slots, r.runs < r.rows
}

// mulDiv returns v * part / whole, rounded to 0. part is at most whole.
func mulDiv(v int64, part, whole uint64) int64 {
	part = min(part, whole)
	n := uint64(v)
	if v < 0 {
		n = -n
	}
	hi, lo := bits.Mul64(n, part)
	q, _ := bits.Div64(hi, lo, whole) // n*part/whole is at most n, so that hi is less than whole
	if v < 0 {
		return -int64(q)
	}
	return int64(q)
}

// A fileChain is the chain of one feature file, but for what its group's inverse says.
type fileChain struct {
	chain
	raw uint64
	// repeated are the bytes of each stripe's values that rows have and slots have not, in a feature of a group: they
	// are divided when the group's inverse is known. Else nil.
	repeated []int64
}

// chainOf follows a feature file, or the inverse of a group, which has no values, of the given length.
func chainOf(m *format.FileMeta, length uint64) fileChain {
	c := fileChain{raw: m.Stats.RawBytes}
	width := int64(0) // of an element, with its score, in the source
	if m.Stats.Elements > 0 {
		width = int64(m.Stats.RawBytes / m.Stats.Elements)
	}
	if m.Group != 0 {
		c.repeated = make([]int64, len(m.Stripes))
	}
	encoded, streams := m.Dictionary.Length, m.Dictionary.Length
	for i := range m.Stripes {
		s := &m.Stripes[i]
		partial := false
		for _, f := range s.Streams {
			streams += f.Length
			switch f.Kind {
			case format.Values, format.Scores, format.Codes:
				encoded += f.Length
			case format.InverseRuns, format.InverseChanges, format.InverseCodes:
				c.inverses -= int64(f.Length)
			default:
				partial = partial || f.Kind == format.Starts
				c.shape -= int64(f.Length)
			}
		}
		ofSlots := int64(s.Elements)
		if partial {
			ofSlots = slotElements(s)
			c.partial += (ofSlots - int64(s.Elements)) * width
		}
		repeated := (int64(s.Stats.Elements) - ofSlots) * width
		if partial && s.Slots != s.Rows {
			c.split += uint64(min(abs((ofSlots-int64(s.Elements))*width), abs(repeated)))
		}
		if c.repeated != nil {
			c.repeated[i] = repeated
			continue
		}
		c.divide(repeatOf(s), repeated)
	}
	c.frames = -int64(length - streams)
	c.encodings = int64(m.Stats.RawBytes) - int64(encoded) - c.runs - c.slots - c.partial
	for _, r := range c.repeated {
		c.encodings -= r
	}
	return c
}

// divide adds what the slots of a stripe save.
func (c *chain) divide(r repeat, bytes int64) {
	runs, slots, estimated := r.share(bytes)
	c.runs += runs
	c.slots += slots
	if estimated {
		c.split += uint64(min(abs(runs), abs(slots)))
	}
}

// slotElements estimates how many values the slots of a stripe with partial duplicates have, those that several of them
// store together counted for each: as many as the same number of rows. It is exact where each row has its slot.
func slotElements(s *format.StripeMeta) int64 {
	rows := uint64(s.Rows) - min(s.Stats.NullRows, uint64(s.Rows))
	n := int64(s.Stats.Elements)
	if s.Slots != s.Rows && rows > 0 {
		n = mulDiv(n, uint64(s.Present), rows)
	}
	low, high := int64(s.Elements), int64(s.Stats.Elements)
	return max(min(low, high), min(n, max(low, high)))
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// isInverse reports whether a feature file is the inverse of a group.
func isInverse(m *format.FileMeta) bool { return m.Type.Kind == vector.Inverse }
