package format

import (
	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// A Sizer says what a stripe would take in a feature file, without making one: by encoding it. It chooses codecs anew
// after each Reset. Memory: scratch in proportion to the largest stripe. Not safe for concurrent use.
type Sizer struct {
	// Profile is that of the files; it counts from the next Reset. Default: balanced.
	Profile Profile

	w     Writer
	entry []byte
}

// Reset turns s to stripes of type t. grouped: the feature is in a dedup group, so that its inverse lies elsewhere.
func (s *Sizer) Reset(t vector.Type, grouped bool) {
	s.w.meta = FileMeta{Type: t}
	if grouped {
		s.w.meta.Group = 1
	}
	s.w.chooser = encoding.Chooser{Profile: s.Profile}
}

// Size returns the bytes of a valid column's streams with their checksums, and of its entry in the directory, which is
// stored twice: in the file and in the segment's index. c is borrowed for the call. It returns an error where
// Writer.WriteStripe would.
func (s *Sizer) Size(c *vector.Column) (int, error) {
	if err := s.w.build(c); err != nil {
		return 0, err
	}
	s.entry = appendEntry(s.entry[:0], s.w.meta.Type, &s.w.stripe, s.w.stripe.Rows)
	return len(s.w.buf) + 2*len(s.entry), nil
}
