package format

import (
	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// A Sizer measures the size of a stripe in a feature file by encoding it. It chooses codecs again after each Reset. Its
// memory is proportional to the largest stripe. Not safe for concurrent use.
type Sizer struct {
	// Profile is used from the next Reset on. Default: balanced.
	Profile Profile

	w     Writer
	entry []byte
}

// Reset starts stripes of type t. grouped: the feature is in a dedup group, so its inverse is not counted.
func (s *Sizer) Reset(t vector.Type, grouped bool) {
	s.w.meta = FileMeta{Type: t}
	if grouped {
		s.w.meta.Group = 1
	}
	s.w.chooser = encoding.Chooser{Profile: s.Profile}
}

// Size returns the bytes of the streams of c, a valid column, with their checksums, and of its entry in the directory,
// which is stored twice: in the file and in the segment's index. c is borrowed for the call. It returns an error if
// Writer.WriteStripe would.
func (s *Sizer) Size(c *vector.Column) (int, error) {
	if err := s.w.build(c); err != nil {
		return 0, err
	}
	s.entry = appendEntry(s.entry[:0], s.w.meta.Type, &s.w.stripe, s.w.stripe.Rows)
	return len(s.w.buf) + 2*len(s.entry), nil
}
