package report

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

var list64 = vector.Type{Kind: vector.Sparse, Elem: vector.Int64}

// stripe returns a stripe whose streams take the given bytes.
func stripe(rows, slots, runs uint32, elements, stored uint64, streams map[format.StreamKind]uint64) format.StripeMeta {
	s := format.StripeMeta{Rows: rows, Slots: slots, Present: slots, Runs: runs, Elements: stored}
	s.Stats.Elements, s.Stats.RawBytes = elements, 8*elements
	for k := format.Presence; k <= format.Codes; k++ {
		if n, ok := streams[k]; ok {
			s.Streams = append(s.Streams, format.StreamMeta{Kind: k, Length: n})
			s.Length += n
		}
	}
	return s
}

func file(stripes ...format.StripeMeta) *format.FileMeta {
	m := &format.FileMeta{Type: list64, Stripes: stripes}
	for _, s := range stripes {
		m.Rows += uint64(s.Rows)
		m.Stats.Elements += s.Stats.Elements
		m.Stats.RawBytes += s.Stats.RawBytes
	}
	return m
}

// TestChain: what the links of a stripe save follows from its counts.
func TestChain(t *testing.T) {
	tests := []struct {
		name   string
		stripe format.StripeMeta
		want   map[string]int64
		split  uint64
	}{
		{"a slot a row", stripe(10, 10, 0, 50, 50,
			map[format.StreamKind]uint64{format.Lengths: 20, format.Values: 100}),
			map[string]int64{CauseEncodings: 300, CauseShape: -20, CauseFrames: -30}, 0},
		{"runs", stripe(10, 4, 0, 50, 20, map[format.StreamKind]uint64{format.Lengths: 20, format.Values: 100,
			format.InverseRuns: 7}),
			map[string]int64{CauseRuns: 240, CauseEncodings: 60, CauseShape: -20, CauseInverses: -7, CauseFrames: -30},
			0},
		{"one slot for all rows", stripe(10, 1, 0, 50, 5,
			map[format.StreamKind]uint64{format.Lengths: 9, format.Values: 30}),
			map[string]int64{CauseRuns: 360, CauseEncodings: 10, CauseShape: -9, CauseFrames: -30}, 0},
		// 30 of 50 values are not stored: of 10 rows are 7 runs, of 4 slots. So half of them are runs', half slots'.
		{"runs and slots", stripe(10, 4, 7, 50, 20, map[format.StreamKind]uint64{format.Values: 100,
			format.InverseRuns: 7, format.InverseCodes: 5}),
			map[string]int64{CauseRuns: 120, CauseSlots: 120, CauseEncodings: 60, CauseInverses: -12, CauseFrames: -30},
			120},
		{"slots, each row a run", stripe(10, 4, 0, 50, 20, map[format.StreamKind]uint64{format.Values: 100,
			format.InverseCodes: 5}),
			map[string]int64{CauseSlots: 240, CauseEncodings: 60, CauseInverses: -5, CauseFrames: -30}, 0},
		{"partial duplicates, a slot a row", stripe(10, 10, 0, 50, 12,
			map[format.StreamKind]uint64{format.Values: 50, format.Starts: 11}),
			map[string]int64{CausePartial: 304, CauseEncodings: 46, CauseShape: -11, CauseFrames: -30}, 0},
		// 5 slots of 10 rows have 25 of the 50 values, about, and store 12.
		{"partial duplicates of runs", stripe(10, 5, 0, 50, 12,
			map[format.StreamKind]uint64{format.Values: 50, format.Starts: 11, format.InverseRuns: 3}),
			map[string]int64{CauseRuns: 200, CausePartial: 104, CauseEncodings: 46, CauseShape: -11, CauseInverses: -3,
				CauseFrames: -30}, 104},
		{"codes and scores", stripe(10, 10, 0, 50, 50, map[format.StreamKind]uint64{format.Values: 10,
			format.Scores: 20, format.Codes: 30, format.Presence: 3}),
			map[string]int64{CauseEncodings: 340, CauseShape: -3, CauseFrames: -30}, 0},
		{"no value", stripe(10, 1, 0, 0, 0, nil), map[string]int64{CauseFrames: -30}, 0},
	}
	for _, test := range tests {
		m := file(test.stripe)
		length := test.stripe.Length + 30
		c := chainOf(m, length)
		if got := c.saved(); !maps.Equal(got, test.want) || c.split != test.split {
			t.Errorf("%s: %v, %d split; want %v, %d", test.name, got, c.split, test.want, test.split)
		}
		if want := int64(c.raw) - int64(length); sumOf(c.chain) != want {
			t.Errorf("%s: comes to %d, want %d", test.name, sumOf(c.chain), want)
		}
	}
}

// TestChainDictionary: a dictionary is a part of the values.
func TestChainDictionary(t *testing.T) {
	m := file(stripe(10, 10, 0, 50, 50, map[format.StreamKind]uint64{format.Codes: 40}),
		stripe(10, 10, 0, 50, 50, map[format.StreamKind]uint64{format.Codes: 40}))
	m.Dictionary = format.DictionaryMeta{Values: 9, Length: 60}
	c := chainOf(m, 40+40+60+16)
	if want := map[string]int64{CauseEncodings: 800 - 140, CauseFrames: -16}; !maps.Equal(c.saved(), want) {
		t.Errorf("%v, want %v", c.saved(), want)
	}
}

// TestChainAddsUp: whatever a directory says, also what no writer writes, the links come to raw less stored.
func TestChainAddsUp(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		var stripes []format.StripeMeta
		for range random.IntN(4) {
			streams := map[format.StreamKind]uint64{}
			for k := format.Presence; k <= format.Codes; k++ {
				if random.IntN(2) == 0 {
					streams[k] = random.Uint64N(1000)
				}
			}
			n := func() uint32 { return random.Uint32N(1 << (1 + random.Uint32N(24))) }
			s := stripe(n(), n(), n(), uint64(n()), uint64(n()), streams)
			s.Present = min(s.Present, n())
			s.Stats.NullRows = uint64(n())
			stripes = append(stripes, s)
		}
		m := file(stripes...)
		if random.IntN(3) == 0 {
			m.Group = 7
		}
		length := uint64(50)
		for _, s := range stripes {
			length += s.Length
		}
		c := chainOf(m, length)
		for i, bytes := range c.repeated {
			c.divide(repeat{uint64(stripes[i].Rows), uint64(random.Uint32N(100)), uint64(stripes[i].Slots)}, bytes)
		}
		if want := int64(c.raw) - int64(length); sumOf(c.chain) != want {
			t.Fatalf("seed %d: comes to %d, want %d: %+v", seed, sumOf(c.chain), want, m)
		}
	}
}

func TestMulDiv(t *testing.T) {
	tests := []struct {
		v           int64
		part, whole uint64
		want        int64
	}{
		{10, 1, 3, 3}, {-10, 1, 3, -3}, {0, 1, 1, 0}, {math.MaxInt64, 1 << 60, 1 << 60, math.MaxInt64},
		{math.MinInt64, 3, 3, math.MinInt64},
		{1 << 62, 1 << 62, 1 << 63, 1 << 61}, {5, 9, 3, 5},
	}
	for _, test := range tests {
		if got := mulDiv(test.v, test.part, test.whole); got != test.want {
			t.Errorf("%d * %d / %d is %d, want %d", test.v, test.part, test.whole, got, test.want)
		}
	}
}

// sumOf is what the links of a chain come to.
func sumOf(c chain) (sum int64) {
	for _, l := range c.links() {
		sum += l.bytes
	}
	return sum
}
