package reader

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage/catalog"
)

// The model of transforms: written from what the comments of transform.Op say, a value of a row at a time, in rational
// numbers where that is possible. It reads the text of a transform, and shares no code with what it is compared with.
type modelTransform struct {
	name   string
	scores bool
	args   []string
	seed   string
}

func (m modelTransform) String() string {
	args := m.args
	if m.seed != "" {
		args = append(slices.Clone(args), map[string]string{"hash": "seed=", "sigrid_hash": "salt="}[m.name]+m.seed)
	}
	prefix := ""
	if m.scores {
		prefix = "scores."
	}
	if len(args) == 0 {
		return prefix + m.name
	}
	return prefix + m.name + "(" + strings.Join(args, ", ") + ")"
}

// outputType is the type that m gives.
func (m modelTransform) outputType(in vector.Type) vector.Type {
	out := in
	switch m.name {
	case "mod":
		n := rational(m.args[0])
		limits := map[vector.Elem]int64{vector.Int8: 128, vector.Int16: 1 << 15, vector.Int32: 1 << 31}
		if most, ok := limits[in.Elem]; ok && n.Cmp(new(big.Rat).SetInt64(most)) > 0 {
			out.Elem = vector.Int64
		}
	case "hash", "sigrid_hash":
		if in.Kind == vector.String || in.Kind == vector.Bytes {
			out.Kind = vector.Dense
		}
		out.Elem = vector.Int64
	case "log1p":
		if !m.scores && in.Elem != vector.Float64 {
			out.Elem = vector.Float32
		}
	case "bucketize":
		out.Elem = vector.Int32
	case "cast":
		e, err := vector.ParseElem(m.args[0])
		if err != nil {
			panic(err)
		}
		if m.scores {
			out.Score = e
		} else {
			out.Elem = e
		}
	case "list":
		out.Kind = vector.Sparse
	}
	return out
}

// apply gives what m makes of a value of type in.
func (m modelTransform) apply(in vector.Type, v value) value {
	out := value{null: v.null, text: v.text}
	switch m.name {
	case "first":
		n := min(int(rational(m.args[0]).Num().Int64()), len(v.numbers))
		out.numbers = v.numbers[:n]
		if in.Kind == vector.Weighted {
			out.scores = v.scores[:n]
		}
		return out
	case "list":
		out.numbers = v.numbers
		return out
	case "fill":
		if !v.null {
			return v
		}
		out = value{}
		for _, a := range m.args {
			n := modelConstant(a, in.Elem)
			for range max(1, in.Width()) {
				out.numbers = append(out.numbers, n)
			}
		}
		return out
	}
	if v.null {
		return out
	}
	if in.Kind == vector.String || in.Kind == vector.Bytes {
		out.text = ""
		out.numbers = []number64{{i: m.hash([]byte(v.text))}}
		return out
	}
	for i := range v.numbers {
		n := v.numbers[i]
		if !m.scores {
			n = m.applyNumber(in.Elem, n)
		}
		out.numbers = append(out.numbers, n)
		if in.Kind == vector.Weighted {
			s := v.scores[i]
			if m.scores {
				s = m.applyNumber(in.Score, number64{f: s}).f
			}
			out.scores = append(out.scores, s)
		}
	}
	return out
}

func (m modelTransform) hash(b []byte) int64 {
	seed := uint64(0)
	if m.seed != "" {
		seed = rational(m.seed).Num().Uint64()
	}
	d := xxhash.NewWithSeed(seed)
	d.Write(b)
	h := new(big.Int).SetUint64(d.Sum64())
	return h.Mod(h, rational(m.args[0]).Num()).Int64()
}

// rational reads a finite decimal number.
func rational(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

// exact gives an integer of type e.
func exact(n number64, e vector.Elem) *big.Int {
	if e == vector.Uint64 {
		return new(big.Int).SetUint64(uint64(n.i))
	}
	return big.NewInt(n.i)
}

// stored gives an integer as a number64.
func stored(i *big.Int) number64 {
	if i.IsInt64() {
		return number64{i: i.Int64()}
	}
	return number64{i: int64(i.Uint64())}
}

// modelConstant reads a constant as a value of type e.
func modelConstant(s string, e vector.Elem) number64 {
	if e.IsInteger() {
		return stored(rational(s).Num())
	}
	return number64{f: modelFloat(s, e)}
}

func modelFloat(s string, e vector.Elem) float64 {
	switch s {
	case "inf":
		return math.Inf(1)
	case "-inf":
		return math.Inf(-1)
	case "nan":
		if e == vector.Float32 {
			return float64(float32(math.NaN()))
		}
		return math.NaN()
	case "-0.0":
		return math.Copysign(0, -1)
	}
	if e == vector.Float32 {
		f, _ := rational(s).Float32()
		return float64(f)
	}
	f, _ := rational(s).Float64()
	return f
}

func modelRange(e vector.Elem) (lo, hi *big.Int) {
	power := func(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }
	less1 := func(i *big.Int) *big.Int { return new(big.Int).Sub(i, big.NewInt(1)) }
	switch e {
	case vector.Bool:
		return new(big.Int), big.NewInt(1)
	case vector.Int8, vector.Int16, vector.Int32, vector.Int64:
		w := uint(8) << (e - vector.Int8)
		return new(big.Int).Neg(power(w - 1)), less1(power(w - 1))
	}
	return new(big.Int), less1(power(8 << (e - vector.Uint8)))
}

func (m modelTransform) applyNumber(e vector.Elem, n number64) number64 {
	round := func(f float64) number64 {
		if e == vector.Float32 {
			f = float64(float32(f))
		}
		return number64{f: f}
	}
	switch m.name {
	case "mod":
		return stored(new(big.Int).Mod(exact(n, e), rational(m.args[0]).Num())) // Euclid's: never negative
	case "hash":
		return number64{i: m.hash(binary.LittleEndian.AppendUint64(nil, uint64(n.i)))}
	case "sigrid_hash":
		return number64{i: modelSigrid(n.i, m.seed, m.args[0])}
	case "clamp":
		if !e.IsInteger() {
			lo, hi := modelFloat(m.args[0], e), modelFloat(m.args[1], e)
			if n.f < lo {
				n.f = lo
			}
			if n.f > hi {
				n.f = hi
			}
			return n
		}
		v := exact(n, e)
		if m.args[0] != "-inf" && v.Cmp(rational(m.args[0]).Num()) < 0 {
			v = rational(m.args[0]).Num()
		}
		if m.args[1] != "inf" && v.Cmp(rational(m.args[1]).Num()) > 0 {
			v = rational(m.args[1]).Num()
		}
		return stored(v)
	case "log1p":
		switch {
		case e == vector.Float64:
			return number64{f: math.Log1p(n.f)}
		case e == vector.Float32:
			return number64{f: float64(float32(math.Log1p(n.f)))}
		}
		f, _ := new(big.Float).SetInt(exact(n, e)).Float64()
		return number64{f: float64(float32(math.Log1p(f)))}
	case "bucketize":
		count := int64(0)
		for _, a := range m.args {
			switch {
			case a == "-inf":
				if !(n.f <= math.Inf(-1)) || e.IsInteger() {
					count++
				}
			case a == "inf":
				if n.f != n.f {
					count++
				}
			case e.IsInteger():
				if rational(a).Cmp(new(big.Rat).SetInt(exact(n, e))) < 0 {
					count++
				}
			case !(n.f <= modelFloat(a, e)):
				count++
			}
		}
		return number64{i: count}
	case "cast":
		to, _ := vector.ParseElem(m.args[0])
		switch {
		case !to.IsInteger() && e.IsInteger():
			r := new(big.Rat).SetInt(exact(n, e))
			if to == vector.Float32 {
				f, _ := r.Float32()
				return number64{f: float64(f)}
			}
			f, _ := r.Float64()
			return number64{f: f}
		case !to.IsInteger():
			e = to
			return round(n.f)
		case to == vector.Bool && e.IsInteger():
			return number64{i: int64(exact(n, e).CmpAbs(new(big.Int)))}
		case to == vector.Bool:
			if n.f == 0 {
				return number64{}
			}
			return number64{i: 1}
		}
		lo, hi := modelRange(to)
		var v *big.Int
		switch {
		case e.IsInteger():
			v = exact(n, e)
		case n.f != n.f:
			return number64{}
		case math.IsInf(n.f, -1):
			v = lo
		case math.IsInf(n.f, 1):
			v = hi
		default:
			v, _ = big.NewFloat(n.f).Int(nil) // towards zero
		}
		if v.Cmp(lo) < 0 {
			v = lo
		}
		if v.Cmp(hi) > 0 {
			v = hi
		}
		return stored(v)
	}
	panic(m.name)
}

// modelSigrid is TorchArrow's sigrid_hash in integers without a size.
func modelSigrid(v int64, salt, n string) int64 {
	one := big.NewInt(1)
	wrap := new(big.Int).Lsh(one, 64)
	word := func(i *big.Int) *big.Int { return i.Mod(i, wrap) }
	shifted := func(k *big.Int, up int) *big.Int {
		if up < 0 {
			return new(big.Int).Rsh(k, uint(-up))
		}
		return new(big.Int).Lsh(k, uint(up))
	}
	sum := func(terms ...*big.Int) *big.Int {
		out := new(big.Int)
		for _, t := range terms {
			out.Add(out, t)
		}
		return word(out)
	}
	xor := func(a, b *big.Int) *big.Int { return new(big.Int).Xor(a, b) }
	k := word(big.NewInt(v))
	k = sum(new(big.Int).Sub(new(big.Int).Sub(wrap, one), k), shifted(k, 21))
	k = xor(k, shifted(k, -24))
	k = sum(k, shifted(k, 3), shifted(k, 8))
	k = xor(k, shifted(k, -14))
	k = sum(k, shifted(k, 2), shifted(k, 4))
	k = xor(k, shifted(k, -28))
	k = sum(k, shifted(k, 31))
	s := new(big.Int)
	if salt != "" {
		s = word(rational(salt).Num())
	}
	mul, _ := new(big.Int).SetString("9ddfea08eb382d69", 16)
	times := func(a *big.Int) *big.Int { return word(new(big.Int).Mul(a, mul)) }
	a := times(xor(k, s))
	a = xor(a, shifted(a, -47))
	b := times(xor(s, a))
	b = times(xor(b, shifted(b, -47)))
	if b.Bit(63) == 1 {
		b.Sub(b, wrap)
	}
	return b.Mod(b, rational(n).Num()).Int64()
}

var (
	modelIntegers = []string{"-9223372036854775808", "-1000", "-129", "-128", "-2", "-1", "0", "1", "2", "5", "127",
		"128", "255", "1000",
		"2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615"}
	modelFloats = []string{"-inf", "-1e300", "-2.25", "-0.0", "0", "1e-310", "0.1", "1.1", "1.5", "7", "1000", "3e30",
		"1e300", "inf"}
)

// drawAscending draws n entries of an ascending list.
func drawAscending(t *rapid.T, list []string, n int) []string {
	positions := rapid.Permutation(indices(len(list))).Draw(t, "constants")[:n]
	slices.Sort(positions)
	var out []string
	for _, p := range positions {
		out = append(out, list[p])
	}
	return out
}

// drawTransform draws a transform that a type may take.
func drawTransform(t *rapid.T, in vector.Type) modelTransform {
	var m modelTransform
	bounds := func(e vector.Elem) []string {
		if e.IsInteger() {
			return drawAscending(t, slices.Concat([]string{"-inf"}, modelIntegers, []string{"inf"}), 2)
		}
		return drawAscending(t, modelFloats, 2)
	}
	if in.Kind == vector.String || in.Kind == vector.Bytes {
		m.name = "hash"
	} else {
		names := []string{"clamp", "cast", "bucketize", "log1p", "fill"}
		if in.Elem.IsInteger() {
			names = append(names, "mod", "mod", "hash", "sigrid_hash")
		}
		switch in.Kind {
		case vector.Dense:
			names = append(names, "list")
		case vector.Sparse:
			names = append(names, "first", "first", "first")
		case vector.Weighted:
			names = []string{"first", "first", "clamp", "mod", "hash", "bucketize", "cast", "fill", "scores.clamp",
				"scores.log1p", "scores.cast"}
		}
		m.name = rapid.SampledFrom(names).Draw(t, "transform")
		m.name, m.scores = strings.CutPrefix(m.name, "scores.")
	}
	switch m.name {
	case "first":
		m.args = []string{rapid.SampledFrom([]string{"1", "2", "3", "2147483647"}).Draw(t, "n")}
	case "mod", "hash", "sigrid_hash":
		m.args = []string{rapid.SampledFrom([]string{
			"1", "2", "3", "10", "128", "1000003", "4294967296", "9223372036854775807", "9223372036854775808",
		}).Draw(t, "n")}
		if m.name == "mod" && in.Elem == vector.Uint64 && rapid.Bool().Draw(t, "large") {
			m.args[0] = "18446744073709551615"
		}
		if m.name != "mod" {
			m.seed = rapid.SampledFrom([]string{"", "7", "9223372036854775807"}).Draw(t, "seed")
		}
	case "clamp":
		m.args = bounds(in.Elem)
		if m.scores {
			m.args = bounds(in.Score)
		}
	case "bucketize":
		list := modelFloats
		if in.Elem.IsInteger() {
			list = slices.Concat([]string{"-inf", "-1e30"}, modelIntegers, []string{"1e30"})
			if i := rapid.IntRange(0, len(list)-2).Draw(t, "half"); i >= 8 && i < 15 {
				list = slices.Insert(slices.Clone(list), i+1, list[i]+".5")
			}
		}
		list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "-0.0" }) // which is 0
		m.args = drawAscending(t, list, rapid.IntRange(1, len(list)).Draw(t, "borders"))
	case "cast":
		elems := vectortest.Elems
		if in.Kind == vector.Weighted {
			elems = vectortest.Elems[:9]
		}
		if m.scores {
			elems = vectortest.Elems[9:]
		}
		m.args = []string{rapid.SampledFrom(elems).Draw(t, "to").String()}
	case "fill":
		n := 1
		switch in.Kind {
		case vector.Sparse:
			n = rapid.IntRange(0, 3).Draw(t, "values")
		case vector.Weighted:
			n = 0
		}
		for range n {
			v := rapid.SampledFrom(append(slices.Clone(modelFloats), "nan")).Draw(t, "value")
			if in.Elem.IsInteger() {
				v = rapid.SampledFrom(modelIntegers).Draw(t, "value")
			}
			m.args = append(m.args, v)
		}
	}
	return m
}

// drawChain draws transforms that fit a type, and what the model says of them.
func drawChain(t *rapid.T, in vector.Type) ([]modelTransform, transform.Chain, vector.Type) {
	var model []modelTransform
	var chain transform.Chain
	for range rapid.IntRange(0, 4).Draw(t, "transforms") {
		m := drawTransform(t, in)
		c, err := transform.ParseChain(m.String())
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		f := transform.Bound{Chain: c, StoredType: in}
		out, _, err := f.Output()
		if err != nil {
			// Not every constant is one of every type.
			if !slices.ContainsFunc([]string{"lies between", "is no ", "beyond int64", "are one float32"},
				func(s string) bool {
					return strings.Contains(err.Error(), s)
				}) {
				t.Fatalf("%v of %v: %v", m, in, err)
			}
			continue
		}
		if want := m.outputType(in); out != want {
			t.Fatalf("%v of %v gives %v, want %v", m, in, out, want)
		}
		model, chain, in = append(model, m), append(chain, c...), out
	}
	return model, chain, in
}

// drawTransformed returns the table as the model transforms it, to compare batches with, and the plan that does it.
// No feature of the role plain is transformed.
func drawTransformed(t *rapid.T, table *testTable, features []int, plan Plan, plain catalog.Role) (*testTable, *Plan) {
	p := &plan
	p.Features, p.Transforms = nil, make([]transform.Bound, len(features))
	out := &testTable{
		model: model{features: slices.Clone(table.features)}, slots: table.slots, segments: table.segments,
		indexes:   table.indexes,
		positions: table.positions, stripeRows: table.stripeRows,
	}
	for _, row := range table.rows {
		out.rows = append(out.rows, slices.Clone(row))
	}
	some := false
	for i, f := range features {
		p.Features = append(p.Features, table.features[f])
		if IsPartitionKey(table.features[f]) || plain != 0 && table.features[f].Role == plain {
			continue
		}
		in := table.features[f].Type
		transforms, chain, typ := drawChain(t, in)
		if len(chain) == 0 {
			continue
		}
		some = true
		if err := p.SetTransform(i, chain); err != nil {
			t.Fatal(err)
		}
		out.features[f].Type = typ
		for r := range out.rows {
			v, at := out.rows[r][f], in
			for _, m := range transforms {
				v, at = m.apply(at, v), m.outputType(at)
			}
			out.rows[r][f] = v
		}
	}
	if !some {
		p.Transforms = nil
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return out, p
}

// Every batch of every plan with transforms equals the model, transformed a row at a time.
func TestTransformsEqualModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		want, p := drawTransformed(t, table, features, Plan{
			Table: "t", Snapshot: 1, BatchSize: drawBatchSize(t), Dedup: drawDedup(t),
			Output: rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output"),
		}, 0)
		l, err := table.newLayout(p)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, l, drawOptions(t))
		defer s.Close()
		for range 2 { // the second time into used memory
			row := 0
			for {
				b, err := s.Next(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				checkBatch(t, want, features, b, row)
				if p.Dedup != DedupKJT {
					rows := indices(b.Rows)
					for i := range rows {
						rows[i] += row
					}
					checkGroups(t, want, features, b, rows)
				}
				row += b.Rows
				b.Release()
			}
			if row != len(table.rows) {
				t.Fatalf("%d rows of %d", row, len(table.rows))
			}
			if err := s.Seek(Position{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A shuffle gives the same rows with transforms as without, also where the session key is transformed.
func TestTransformsShuffled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, shuffledShape)
		plain := open(t, x.layout, drawOptions(t))
		defer plain.Close()
		order := x.epoch(t, plain, Position{})
		want, p := drawTransformed(t, x.table, x.features, *x.layout.plan, catalog.RoleRequestKey)
		l, err := x.table.newLayout(p)
		if err != nil {
			t.Fatal(err)
		}
		x.table, x.layout = want, l
		s := open(t, l, drawOptions(t))
		defer s.Close()
		if got := x.epoch(t, s, Position{}); !slices.EqualFunc(got, order, slices.Equal[[]int]) {
			t.Fatalf("rows %v, without transforms %v", got, order)
		}
	})
}
