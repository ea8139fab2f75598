package format_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

// A shape says what drawColumn makes; its fields are probabilities in percent.
type shape struct {
	rows        int
	null, empty int
	// 0 none, 1 monotone, 2 any, 3 first occurrence order, 4 one slot, 5 and 6 runs of 8 rows, in order or not
	inverse            int
	partial            bool
	maxLength          int
	constant, extremes bool
	style              string // of the values: "" at random; time, zipf, skewed, hashed, decimal, gauss, word
}

func drawShape(t *rapid.T, ty vector.Type) shape {
	s := shape{
		rows:      rapid.SampledFrom([]int{0, 1, 2, 3, 17, 63, 64, 65, 128, 500}).Draw(t, "rows"),
		null:      rapid.SampledFrom([]int{0, 0, 1, 50, 99, 100}).Draw(t, "null"),
		empty:     rapid.SampledFrom([]int{0, 10, 100}).Draw(t, "empty"),
		inverse:   rapid.IntRange(0, 6).Draw(t, "inverse"),
		partial:   ty.IsList() && rapid.Bool().Draw(t, "partial"),
		maxLength: rapid.SampledFrom([]int{1, 3, 40}).Draw(t, "max length"),
		constant:  rapid.IntRange(0, 4).Draw(t, "constant") == 0,
		extremes:  rapid.Bool().Draw(t, "extremes"),
	}
	return s
}

// drawColumn draws a column of any shape.
func drawColumn(t *rapid.T, ty vector.Type) *vector.Column {
	s := drawShape(t, ty)
	return makeColumn(rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))), ty, s)
}

// makeColumn makes a column of shape s: its inverse first, then its slots.
func makeColumn(rng *rand.Rand, ty vector.Type, s shape) *vector.Column {
	c := vector.NewColumn(ty)
	inverse, slots, monotone := makeInverse(rng, s)
	g := valueMaker{rng: rng, s: s}
	for range slots {
		if rng.IntN(100) < s.null {
			c.AppendNulls(1)
			continue
		}
		n := ty.Width()
		if ty.IsList() {
			n = rng.IntN(s.maxLength + 1)
			if rng.IntN(100) < s.empty {
				n = 0
			}
		}
		g.appendValues(c, n)
		c.AddSlot()
	}
	c.Rows, c.Inverse, c.Monotone = s.rows, inverse, monotone
	if s.partial {
		makePartial(rng, c)
	}
	if err := c.Validate(); err != nil {
		panic(fmt.Sprintf("the test's own column: %v", err))
	}
	return c
}

func makeInverse(rng *rand.Rand, s shape) (inverse []int32, slots int, monotone bool) {
	if s.rows == 0 || s.inverse == 0 {
		return nil, s.rows, false
	}
	inverse = make([]int32, s.rows)
	switch s.inverse {
	case 1:
		stay := rng.IntN(101)
		for i := 1; i < s.rows; i++ {
			inverse[i] = inverse[i-1]
			if rng.IntN(100) >= stay {
				inverse[i]++
			}
		}
		return inverse, int(inverse[s.rows-1]) + 1, true
	case 2:
		slots = 1 + rng.IntN(2*s.rows)
		for i := range inverse {
			inverse[i] = int32(rng.IntN(slots))
			if i > 0 && rng.IntN(2) == 0 {
				inverse[i] = inverse[i-1]
			}
		}
		return inverse, slots, false
	case 3:
		for i := range inverse {
			if slots == 0 || rng.IntN(3) > 0 {
				slots++
				inverse[i] = int32(slots - 1)
			} else {
				inverse[i] = int32(rng.IntN(slots))
			}
		}
		return inverse, slots, false
	case 5, 6:
		slots = (s.rows + 7) / 8
		for i := range inverse {
			inverse[i] = int32(i / 8)
			if s.inverse == 6 {
				inverse[i] = int32(slots-1) - inverse[i]
			}
		}
		return inverse, slots, s.inverse == 5 || slots == 1
	}
	return inverse, 1, true
}

// makePartial turns a list column into one of partial: values that no slot covers, slots that overlap, nulls anywhere.
func makePartial(rng *rand.Rand, c *vector.Column) {
	n := c.Elements()
	starts, lengths := make([]int32, c.Slots), make([]int32, c.Slots)
	for i := range c.Slots {
		if c.Present != nil && !c.Present.Get(i) {
			continue
		}
		lo, hi := c.SlotRange(i)
		starts[i], lengths[i] = int32(lo), int32(hi-lo)
		if rng.IntN(3) == 0 && c.Type.Kind != vector.String {
			starts[i] = int32(rng.IntN(n + 1))
			lengths[i] = int32(rng.IntN(n - int(starts[i]) + 1))
		}
	}
	c.Offsets, c.Lengths = starts, lengths
}

type valueMaker struct {
	rng  *rand.Rand
	s    shape
	time int64
}

// zipf returns a small number, most often a very small one.
func (g *valueMaker) zipf() int64 { return int64(100 / (0.2 + g.rng.Float64()*20)) }

var words = []string{"", "sports", "news/europe", "news/asia", "music", "naïve café",
	"the quick brown fox jumps over the lazy dog"}

func (g *valueMaker) appendValues(c *vector.Column, n int) {
	if g.s.style == "word" {
		c.Data = append(c.Data, words[g.zipf()%int64(len(words))]...)
		return
	}
	for range n {
		switch c.Type.Physical() {
		case vector.Int64Values:
			c.Ints = append(c.Ints, g.integer(c.Type.Elem))
		case vector.Float32Values:
			c.Floats = append(c.Floats, float32(g.float()))
		case vector.Float64Values:
			c.Doubles = append(c.Doubles, g.float())
		case vector.ByteValues:
			b := byte(g.integer(vector.Uint8))
			if c.Type.Kind == vector.String {
				b &= 0x7f
			}
			c.Data = append(c.Data, b)
		}
		if c.Type.Kind == vector.Weighted {
			if c.Type.Score == vector.Float64 {
				c.ScoreDoubles = append(c.ScoreDoubles, g.float())
			} else {
				c.ScoreFloats = append(c.ScoreFloats, float32(g.float()))
			}
		}
	}
	if c.Type.Kind == vector.String && n > 3 {
		copy(c.Data[len(c.Data)-3:], "€")
	}
}

var limitsOf = map[vector.Elem][2]int64{
	vector.Bool: {0, 1}, vector.Int8: {-128, 127}, vector.Int16: {-1 << 15, 1<<15 - 1}, vector.Int32: {-1 << 31,
		1<<31 - 1},
	vector.Int64: {math.MinInt64, math.MaxInt64}, vector.Uint8: {0, 255}, vector.Uint16: {0, 1<<16 - 1},
	vector.Uint32: {0, 1<<32 - 1}, vector.Uint64: {0, -1},
}

func (g *valueMaker) integer(e vector.Elem) int64 {
	l := limitsOf[e]
	switch {
	case g.s.constant:
		return l[1]
	case g.s.style == "time":
		g.time += int64(g.rng.IntN(30))
		return 1_790_000_000 + g.time
	case g.s.style == "zipf" && e != vector.Bool:
		return min(g.zipf(), l[1]&math.MaxInt64)
	case g.s.style == "skewed": // small, few large
		return min(int64(math.Exp(1+2*g.rng.NormFloat64())), l[1]&math.MaxInt64)
	case g.s.style == "hashed":
		return int64(uint64(g.zipf()+1) * 0x9e3779b97f4a7c15 >> 1)
	case g.s.style == "ids": // hashed, of few
		v := int64(uint64(g.rng.IntN(400)+1) * 0x9e3779b97f4a7c15 >> 1)
		if e == vector.Uint64 || e == vector.Int64 {
			return v
		}
		return v % (l[1] + 1)
	case g.s.extremes && g.rng.IntN(4) == 0:
		return l[g.rng.IntN(2)]
	case e == vector.Uint64 || e == vector.Int64:
		return int64(g.rng.Uint64() >> g.rng.IntN(64))
	}
	return l[0] + g.rng.Int64N(l[1]-l[0]+1)
}

func (g *valueMaker) float() float64 {
	switch {
	case g.s.constant:
		return 1.5
	case g.s.style == "decimal":
		return float64(g.rng.IntN(100_000)) / 100
	case g.s.style == "gauss":
		return 100 + g.rng.NormFloat64()
	case g.s.style == "zipf":
		return float64(g.zipf()) * 1.1
	case g.s.extremes && g.rng.IntN(4) == 0:
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, math.MaxFloat64,
			5e-324}[g.rng.IntN(7)]
	case g.rng.IntN(2) == 0:
		return float64(g.rng.IntN(1000)) / 100
	}
	return g.rng.NormFloat64()
}

// writeFile writes a feature file of the given stripes.
func writeFile(t interface{ Fatalf(string, ...any) }, ty vector.Type, opts format.WriterOptions,
	stripes ...*vector.Column) ([]byte, *format.FileMeta) {
	var b bytes.Buffer
	w, err := format.NewWriter(&b, ty, opts)
	if err != nil {
		t.Fatalf("new writer: %v", err)
	}
	for _, c := range stripes {
		if err := w.WriteStripe(c); err != nil {
			t.Fatalf("write stripe: %v", err)
		}
	}
	m, size, err := w.Finish()
	if err != nil {
		t.Fatalf("finish: %v", err)
	}
	if size != int64(b.Len()) {
		t.Fatalf("finish says %d bytes, the file has %d", size, b.Len())
	}
	return b.Bytes(), m
}

// stripeBytes returns the bytes of stripe i.
// use gives d the dictionary of a file, if it has one.
func use(d *format.StripeDecoder, file []byte, m *format.FileMeta) error {
	d.Use(nil)
	at, length := m.Dictionary.Range()
	if length == 0 {
		return nil
	}
	dictionary := new(format.Dictionary)
	if err := d.DecodeDictionary(dictionary, m, file[at:at+length]); err != nil {
		return err
	}
	d.Use(dictionary)
	return nil
}

func stripeBytes(file []byte, m *format.FileMeta, i int) []byte {
	s := m.Stripes[i]
	return file[s.Offset : s.Offset+s.Length]
}

// diff says how two columns' rows differ, or "".
func diff(got, want *vector.Column) string {
	if err := got.Validate(); err != nil {
		return "not valid: " + err.Error()
	}
	if got.Type != want.Type || got.Rows != want.Rows {
		return fmt.Sprintf("%d rows of %v, want %d of %v", got.Rows, got.Type, want.Rows, want.Type)
	}
	for row := range want.Rows {
		if !vector.RowsEqual(got, row, want, row) {
			return fmt.Sprintf("row %d differs", row)
		}
	}
	return ""
}
