package metering

import (
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/storage/segment"
)

// Bytes of a range that nobody needs are shared in proportion, and those of a group's inverse equally; nothing is lost
// to rounding.
func TestMeterDealsOut(t *testing.T) {
	g := &ioplan.Segment{
		Files:       make([]ioplan.File, 4), // of features 0, 1, 2, and the inverse of 1 and 2
		Items:       []ioplan.Item{{Inverse: -1, Features: []int32{0}}, {Inverse: 3, Features: []int32{1, 2}}},
		FeatureFile: []int32{0, 1, 2},
	}
	g.SetOwners()
	u := &ioplan.IOTask{Segment: g, From: 2, To: 4, Asked: []uint64{10, 7}}
	u.Ranges = []ioplan.Range{{Object: "a", From: 0, To: 150}, {Object: "b", From: 50, To: 57}}
	u.Needs = []ioplan.Need{
		{File: 0, Bytes: 30, Range: 0}, {File: 1, Bytes: 60, Range: 0}, {File: 2, Bytes: 0, Range: -1}, {File: 3,
			Bytes: 7, Range: 1},
		{File: 0, Bytes: 10, Range: 0}, // its dictionary
	}
	m := Meter{size: 3}
	m.count(u)
	m.count(u)
	want := []FeatureReads{
		{Stripes: 4, Rows: 34, Needed: 2 * 40, Unneeded: 2 * 20},
		{Stripes: 4, Rows: 34, Needed: 2 * (60 + 3), Unneeded: 2 * 30},
		{Stripes: 4, Rows: 34, Needed: 2 * 4},
	}
	for i := range want {
		if m.Features[i] != want[i] {
			t.Errorf("feature %d: %+v, want %+v", i, m.Features[i], want[i])
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.count(u) }); n > 0 {
		t.Errorf("%v allocations for each I/O task", n)
	}
	// Parts that do not divide, and amounts that do not fit 64 bits when they are multiplied.
	s, sum := share{amount: 1<<63 + 11, total: 1 << 62}, uint64(0)
	for range 1 << 10 {
		sum += s.take(1 << 52)
	}
	if sum != s.amount {
		t.Errorf("dealt out %d of %d", sum, s.amount)
	}
	nothing := share{amount: 9}
	if a, b := nothing.take(0), nothing.take(0); a != 9 || b != 0 {
		t.Errorf("of nothing needed: %d, %d", a, b)
	}
}

// What counting an I/O task of 400 features costs: a task has 32 MiB at the most, and takes milliseconds to read and
// decode.
func BenchmarkMeter(b *testing.B) {
	const features = 400
	g := &ioplan.Segment{Files: make([]ioplan.File, features), FeatureFile: make([]int32, features)}
	u := &ioplan.IOTask{Segment: g, To: 3, Asked: []uint64{16384, 16384, 16384}, Ranges: make([]ioplan.Range,
		features/8)}
	for i := range features {
		g.FeatureFile[i] = int32(i)
		g.Items = append(g.Items, ioplan.Item{Inverse: -1, Features: []int32{int32(i)}})
		u.Needs = append(u.Needs, ioplan.Need{File: int32(i), Bytes: 1000, Range: int32(i / 8)})
	}
	for i := range u.Ranges {
		u.Ranges[i].To = 8 * 1100
	}
	g.SetOwners()
	m := Meter{size: features}
	b.ReportAllocs()
	for b.Loop() {
		m.count(u)
	}
}

// Gaps are counted range by range: bytes that two files need do not make up for a gap elsewhere, and what is counted in
// all is what is dealt out.
func TestGapsAreCountedByRange(t *testing.T) {
	entry := func(object string, offset uint64) *segment.Entry {
		return &segment.Entry{Object: object, Offset: offset,
			Meta: &format.FileMeta{Stripes: []format.StripeMeta{{Rows: 10, Length: 40}}}}
	}
	g := &ioplan.Segment{
		Files: []ioplan.File{{Entry: entry("a", 0)}, {Entry: entry("a", 0)}, {Entry: entry("b", 0)},
			{Entry: entry("b", 50)}},
		Items: []ioplan.Item{{Inverse: -1, Features: []int32{0}}, {Inverse: -1, Features: []int32{1}},
			{Inverse: -1, Features: []int32{2}}, {Inverse: -1, Features: []int32{3}}},
		FeatureFile: []int32{0, 1, 2, 3},
	}
	g.SetOwners()
	u := &ioplan.IOTask{Segment: g, To: 1, Asked: []uint64{10}}
	for range g.Files {
		u.Needed += 40
	}
	u.Sizes.Request = 1 << 20
	u.Coalesce(16)
	c := &Counters{Meter: Meter{size: 4}}
	c.CountTask(u)
	if u.Stored != 40+90 || u.Unneeded != 10 || c.Unneeded.Load() != 10 || c.Needed.Load() != 160 {
		t.Errorf("%d bytes stored, %d unneeded, %d and %d counted", u.Stored, u.Unneeded, c.Unneeded.Load(),
			c.Needed.Load())
	}
	for i, want := range []FeatureReads{{Needed: 40}, {Needed: 40}, {Needed: 40, Unneeded: 5},
		{Needed: 40, Unneeded: 5}} {
		if got := c.Meter.Features[i]; got.Needed != want.Needed || got.Unneeded != want.Unneeded {
			t.Errorf("feature %d: %+v, want %+v", i, got, want)
		}
	}
}
