package ioplan

import (
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/segment"
)

// The memory of a stripe has what is gathered: 4 bytes a selected row for a group, and for a feature with slots of its
// own.
func TestGatheredBytes(t *testing.T) {
	of := func(slots uint32) File {
		return File{Entry: &segment.Entry{Meta: &format.FileMeta{Stripes: []format.StripeMeta{{Rows: 100,
			Slots: slots}, {Rows: 100, Slots: slots}}}}}
	}
	g := &Segment{
		Starts: []uint64{0, 10, 110}, First: []uint64{0, 100, 200}, Files: []File{of(20), of(20), of(100), of(30),
			of(100)}, FeatureFile: []int32{0, 1, 3, 4, -1},
		Items: []Item{{Inverse: 2, Features: []int32{0, 1}}, {Inverse: -1, Features: []int32{2}},
			{Inverse: -1, Features: []int32{3}}, {Inverse: -1, Features: []int32{4}}},
	}
	if n := g.GatheredBytes(0); n != 2*4*10 {
		t.Errorf("%d bytes, want those of two inverses of ten rows", n)
	}
	if n := g.GatheredBytes(1); n != 0 {
		t.Errorf("%d bytes of a stripe that is read whole", n)
	}
}
