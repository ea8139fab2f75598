package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// WriterOptions are the options of NewWriter. The zero value works.
type WriterOptions struct {
	Feature uint64 // feature id
	Name    string // feature name, used only to inspect the file; at most 65,535 bytes
	Salt    uint32 // FileMeta.Salt; files that could be confused need different ones
	Group   uint64 // feature id of the dedup group's inverse file; default 0: the feature has its own inverse
	// Profile weighs stored size against decoding time. Default: balanced.
	Profile Profile
	// Inverse is the Writer of the group's inverse. If set, each stripe must be written to Inverse first, and
	// Column.Inverse must be the same slice in both, unchanged until all features of the group have their stripe. The
	// slice is then validated once for all features. Default: none.
	Inverse *Writer
	// Seen, if set, is called with every stripe that WriteStripe accepts. The column is borrowed for the call.
	Seen func(c *vector.Column)
}

// A Writer writes one feature file. It keeps the chosen codecs from stripe to stripe. For integers it holds back the
// first stripes, at most about 8 MiB, to find the values that they share. Not safe for concurrent use. After an error
// of the io.Writer every call returns that error. After any other error the Writer is as before the call.
type Writer struct {
	w       io.Writer
	meta    FileMeta
	chooser encoding.Chooser
	builder *dictionaryBuilder // nil: values are stored as they are
	offset  uint64
	err     error

	// The stripe being built; memory is reused from stripe to stripe.
	buf     []byte
	context streamContext // of the stripe
	alt     []byte        // the alternative form of a stream; the smaller one is kept
	stripe  StripeMeta    // its Streams alias streams
	streams []StreamMeta  // copied when the stripe is done
	runs    []int32       // lengths of the inverse's runs
	codes   []int32       // slot of each run, then its code
	changes vector.Bitmap // a bit per row: a run starts
	ints    []int64       // values and lengths of present slots only
	floats  []float32
	doubles []float64
	int32s  []int32
	vals    []int64 // values of the stripe, if builder is set: WriteStripe appends their streams last; borrowed

	inverse *Writer // WriterOptions.Inverse
	seen    func(c *vector.Column)
	shares  groupInverse
}

// NewWriter returns a Writer of a feature file of type t to w. Each stripe is one call of w.Write.
func NewWriter(w io.Writer, t vector.Type, opts WriterOptions) (*Writer, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if len(opts.Name) > maxNameBytes {
		return nil, fmt.Errorf("feature name of %d bytes: at most %d", len(opts.Name), maxNameBytes)
	}
	if opts.Group != 0 && t.Kind == vector.Inverse {
		return nil, errors.New("an inverse file belongs to no group")
	}
	out := &Writer{w: w, seen: opts.Seen, meta: FileMeta{Type: t, Feature: opts.Feature, Salt: opts.Salt,
		Name: opts.Name, Group: opts.Group}}
	out.chooser.Profile = opts.Profile
	if opts.Inverse != nil {
		out.inverse = opts.Inverse
		out.inverse.shares.wanted = true
	}
	if mayShare(t) {
		out.builder = newDictionaryBuilder()
	}
	out.write(appendHeader(nil, fileMagic))
	return out, out.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	_, w.err = w.w.Write(b)
	w.offset += uint64(len(b))
}

// WriteStripe appends one stripe. It stores the column's Inverse, Lengths (partial duplicates) and Present unchanged.
// If opts.Group is set it does not store the Inverse: the group's file has it, with the same slots in every stripe. c
// is borrowed for the call. It returns an error for strings that are not UTF-8 and integers out of the range of c.Type.
func (w *Writer) WriteStripe(c *vector.Column) error {
	if w.err != nil {
		return w.err
	}
	if c.Type != w.meta.Type {
		return fmt.Errorf("stripe of type %v in a file of type %v", c.Type, w.meta.Type)
	}
	err := w.validate(c)
	if err == nil {
		err = w.build(c)
	}
	if err != nil {
		return fmt.Errorf("stripe %d: %w", len(w.meta.Stripes)+w.waiting(), err)
	}
	if w.seen != nil {
		w.seen(c)
	}
	if w.builder != nil && w.builder.open {
		w.hold(w.vals)
		w.vals = nil
		return w.err
	}
	w.insertValues(w.vals)
	w.vals = nil
	w.writeStripe()
	return w.err
}

// writeStripe writes the stripe that is in w.stripe, w.streams and w.buf.
func (w *Writer) writeStripe() {
	s := w.stripe
	s.Length = uint64(len(w.buf))
	s.Offset = w.offset
	s.Streams = append([]StreamMeta(nil), w.streams...)
	w.write(w.buf)
	if w.err == nil {
		w.meta.Stripes = append(w.meta.Stripes, s)
	}
}

// Note sets FileMeta.Found: the duplicates found in all stripes.
func (w *Writer) Note(f Found) { w.meta.Found = f }

// Finalize writes the stripes that are held back, and frees the memory for finding shared values. No stripe may follow.
// Finish calls it; call it before to finalize several files in parallel.
func (w *Writer) Finalize() error {
	if w.err == nil {
		w.finishDictionary()
		w.dropBuilder()
	}
	return w.err
}

// Finish writes directory and tail and returns the directory and the file's length. The Writer cannot be used
// afterwards.
func (w *Writer) Finish() (*FileMeta, int64, error) {
	if err := w.Finalize(); err != nil {
		return nil, 0, err
	}
	if len(w.meta.Stripes) > MaxFileStripes {
		return nil, 0, fmt.Errorf("file of %d stripes: at most %d", len(w.meta.Stripes), MaxFileStripes)
	}
	w.meta.addTotals()
	b := AppendMeta(nil, &w.meta)
	if len(b) > defaultDirectoryBytes {
		return nil, 0, fmt.Errorf("directory of %d bytes: at most %d", len(b), defaultDirectoryBytes)
	}
	w.write(appendTail(b, 0, fileMagic))
	if w.err != nil {
		return nil, 0, w.err
	}
	w.err = errors.New("feature file: already finished")
	return &w.meta, int64(w.offset), nil
}

// build makes the stripe's bytes in w.buf and its entry in w.stripe and w.streams.
func (w *Writer) build(c *vector.Column) error {
	w.buf, w.streams, w.vals = w.buf[:0], w.streams[:0], nil
	w.context = newStreamContext(w.meta.Salt, len(w.meta.Stripes)+w.waiting())
	slots := c.Slots
	if c.Rows == 0 {
		slots = 0
	}
	w.stripe = StripeMeta{Rows: uint32(c.Rows), Slots: uint32(slots), Present: uint32(slots)}
	if c.Rows > 0 {
		if c.Present != nil {
			w.stripe.Present = uint32(c.Present.Count())
		}
		if w.stripe.Present != w.stripe.Slots && w.stripe.Present != 0 {
			w.buf = w.chooser.AppendBits(w.buf, int(Presence), c.Present, slots)
			w.endStream(Presence)
		}
		if w.meta.Group == 0 {
			w.appendInverse(c)
		}
		if w.stripe.Present != 0 && c.Type.Kind != vector.Inverse {
			if err := w.appendValues(c); err != nil {
				return err
			}
		}
	}
	w.countRows(c)
	w.stripe.Streams = w.streams
	if len(w.vals) > 0 { // for check, a placeholder of the values' stream, which WriteStripe appends later
		w.stripe.Streams = append(w.stripe.Streams, StreamMeta{Kind: Values, Length: checksumLength + 1})
	}
	if reason := w.meta.check(&w.stripe, Limits{}.withDefaults()); reason != "" {
		return errors.New(reason)
	}
	return nil
}

// endStream appends the checksum of the chunk at the end of w.buf, and adds the stream to w.streams.
func (w *Writer) endStream(kind StreamKind) {
	start := uint64(0)
	for _, s := range w.streams {
		start += s.Length
	}
	w.buf = binary.LittleEndian.AppendUint32(w.buf, w.context.sum(kind, w.buf[start:]))
	w.streams = append(w.streams, StreamMeta{Kind: kind, Length: uint64(len(w.buf)) - start})
}

// appendValues appends lengths, values, scores and starts, and sets the bounds; some slot is present.
func (w *Writer) appendValues(c *vector.Column) error {
	s := &w.stripe
	if c.Type.IsList() {
		s.Elements = uint64(c.Elements())
		if c.Type.Kind == vector.String {
			if err := checkUTF8(c); err != nil {
				return err
			}
		}
		w.buf = w.chooser.AppendInt32s(w.buf, int(Lengths), w.lengths(c))
		w.endStream(Lengths)
	} else {
		s.Elements = uint64(s.Present) * uint64(c.Type.Width())
	}
	if s.Elements != 0 {
		switch c.Type.Physical() {
		case vector.Int64Values:
			vals := compact(&w.ints, c, c.Ints)
			s.Stats.boundInts(c.Type, vals)
			if w.builder != nil {
				w.vals = vals
				break
			}
			w.buf = w.chooser.AppendInts(w.buf, int(Values), vals)
		case vector.Float32Values:
			vals := compact(&w.floats, c, c.Floats)
			boundFloats(&s.Stats, c.Type, vals)
			w.buf = w.chooser.AppendFloats(w.buf, int(Values), vals)
		case vector.Float64Values:
			vals := compact(&w.doubles, c, c.Doubles)
			boundFloats(&s.Stats, c.Type, vals)
			w.buf = w.chooser.AppendDoubles(w.buf, int(Values), vals)
		case vector.ByteValues:
			w.buf = w.chooser.AppendStrings(w.buf, int(Values), c.Data, w.stringOffsets(c))
		}
		if w.vals == nil {
			w.endStream(Values)
		}
		if c.Type.Kind == vector.Weighted {
			if c.Type.Score == vector.Float64 {
				w.buf = w.chooser.AppendDoubles(w.buf, int(Scores), c.ScoreDoubles)
			} else {
				w.buf = w.chooser.AppendFloats(w.buf, int(Scores), c.ScoreFloats)
			}
			w.endStream(Scores)
		}
	}
	if c.Lengths != nil {
		w.int32s = w.int32s[:0]
		for i := range c.Slots {
			if c.Present == nil || c.Present.Get(i) {
				w.int32s = append(w.int32s, c.Offsets[i])
			}
		}
		w.buf = w.chooser.AppendInt32s(w.buf, int(Starts), w.int32s)
		w.endStream(Starts)
	}
	return nil
}

// compact returns the values of the present slots: vals itself for lists, where null slots have none, else the values
// gathered in *scratch if some slot is null.
func compact[T any](scratch *[]T, c *vector.Column, vals []T) []T {
	if c.Present == nil || c.Type.IsList() {
		return vals
	}
	out, width := (*scratch)[:0], c.Type.Width()
	for w, word := range c.Present {
		for ; word != 0; word &= word - 1 {
			i := 64*w + bits.TrailingZeros64(word)
			if width == 1 {
				out = append(out, vals[i])
			} else {
				out = append(out, vals[i*width:(i+1)*width]...)
			}
		}
	}
	*scratch = out
	return out
}

// lengths returns the lengths of the present slots; borrowed until the next call.
func (w *Writer) lengths(c *vector.Column) []int32 {
	out := w.int32s[:0]
	for i := range c.Slots {
		if c.Present == nil || c.Present.Get(i) {
			lo, hi := c.SlotRange(i)
			out = append(out, int32(hi-lo))
		}
	}
	w.int32s = out
	return out
}

// stringOffsets returns the offsets in c.Data of the strings of the values stream: of present slots or, with partial
// duplicates, of all data as one string. Borrowed until the next call.
func (w *Writer) stringOffsets(c *vector.Column) []int32 {
	out := append(w.int32s[:0], 0)
	switch {
	case c.Lengths != nil:
		out = append(out, int32(len(c.Data)))
	case c.Present == nil:
		return c.Offsets
	default:
		for i := range c.Slots {
			if c.Present.Get(i) {
				out = append(out, c.Offsets[i+1])
			}
		}
	}
	w.int32s = out
	return out
}
