package expr

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
)

// Sample is true for a Fraction of all keys, chosen by hash. The chosen keys never change, and do not depend on where
// they are stored. They include all keys of a smaller Fraction with the same Seed. Sample is unknown if Key is null.
//
// The hash is xxHash64, seed 0, of Seed as 8 bytes, little-endian, and the key: an integer or bool as 8 bytes,
// little-endian, two's complement, whatever its width; a string or bytes as they are. A key is chosen when its
// hash is below Fraction * 2^64, rounded down.
type Sample struct {
	Fraction float64 // 0 to 1
	Key      *Name
	Seed     uint64
	Offset   int // in the text
}

func (e *Sample) String() string { return text(e) }

func (e *Sample) print(b *strings.Builder, _ precedence) {
	fraction := strconv.FormatFloat(e.Fraction, 'g', -1, 64)
	b.WriteString("sample(" + fraction + ", key=" + e.Key.String() + ", seed=" + strconv.FormatUint(e.Seed, 10) + ")")
}

// sample takes what follows sample( : fraction , key = name [ , seed = integer ] ).
func (p *parser) sample(offset int) Expr {
	const where = "in sample(fraction, key=name, seed=integer)"
	e, seeded := &Sample{Offset: offset}, false
	l := p.literal(" " + where)
	if l.Kind == NumberLiteral {
		if e.Fraction = l.Number.Float; l.Number.Integer {
			e.Fraction = float64(l.Number.Abs)
		}
	}
	if l.Kind != NumberLiteral || l.Number.Negative || !(e.Fraction >= 0 && e.Fraction <= 1) {
		p.failAt(l.Offset, "a sample is a fraction from 0 to 1, and %s is none", l)
	}
	if e.Fraction == 0 {
		e.Fraction = 0 // -0.0
	}
	for p.err == nil && !p.token.isSymbol(")") {
		p.symbol(",", where)
		argument := p.token
		key := argument.is("key")
		if !key && !argument.is("seed") || key && e.Key != nil || !key && seeded {
			p.fail("want key=name or seed=integer, found %s", argument.describe())
		}
		p.advance()
		p.symbol("=", "after "+argument.text)
		if key {
			e.Key = p.name(" " + where)
			continue
		}
		l := p.literal(" " + where)
		if l.Kind != NumberLiteral || !l.Number.Integer || l.Number.Negative {
			p.failAt(l.Offset, "a seed is an integer, 0 or above, and %s is none", l)
		}
		e.Seed, seeded = l.Number.Abs, true
	}
	if e.Key == nil {
		p.fail("want key=name, as in sample(0.1, key=request_id): it says what is kept or left as a whole")
	}
	p.advance()
	return e
}

func (e *Sample) operands(visit func(Operand)) { visit(e.Key) }

func (e *Sample) bind(b *binder) (node, error) {
	f := b.fields[e.Key.Name]
	t := f.Type
	switch {
	case f.Partition:
		return nil, b.fail(e.Offset, "sample(...) takes rows by a feature, and %s is a partition key", e.Key)
	case t.Kind != vector.String && t.Kind != vector.Bytes && !(t.Kind == vector.Dense && t.Elem.IsInteger()):
		return nil, b.fail(e.Key.Offset, "a sample's key is an integer or a string, and %s is %v", e.Key, t)
	}
	n := &sampleNode{feature: b.index[e.Key.Name], seed: e.Seed, all: e.Fraction >= 1}
	if !n.all {
		n.threshold = uint64(math.Ldexp(e.Fraction, 64))
	}
	return n, nil
}

// A sampleNode is a Sample of a feature.
type sampleNode struct {
	feature   int
	seed      uint64
	threshold uint64
	all       bool
}

// chosen reports whether a key, as the bytes that are hashed after the seed, is in the sample.
func (n *sampleNode) chosen(seedAndKey []byte) bool {
	return n.all || xxhash.Sum64(seedAndKey) < n.threshold
}

func (n *sampleNode) eval(x *Evaluator) ternary {
	t := x.get()
	c := x.in.columns[n.feature]
	if c == nil {
		return t
	}
	yes, no := x.slotBitmaps(c.Slots)
	buf := binary.LittleEndian.AppendUint64(make([]byte, 0, 64), n.seed)
	for s := range c.Slots {
		if c.Present != nil && !c.Present.Get(s) {
			continue
		}
		lo, hi := c.SlotRange(s)
		if c.Type.IsList() {
			buf = append(buf[:8], c.Data[lo:hi]...)
		} else {
			buf = binary.LittleEndian.AppendUint64(buf[:8], uint64(c.Ints[lo]))
		}
		if n.chosen(buf) {
			yes.Set(s)
		} else {
			no.Set(s)
		}
	}
	spread(t.yes, c, yes)
	spread(t.no, c, no)
	return t
}

func (n *sampleNode) outcomes(x *pruner) outcomes {
	o := presence(x.stats(n.feature))
	if o&canBeTrue == 0 {
		return o
	}
	out := o & canBeUnknown
	if n.all || n.threshold > 0 {
		out |= canBeTrue
	}
	if !n.all {
		out |= canBeFalse
	}
	return out
}
