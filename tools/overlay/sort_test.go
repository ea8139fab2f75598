package overlay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/spill"
)

// TestSorter holds sorted streams to slices.SortFunc, from none to many runs, and gives each twice.
func TestSorter(t *testing.T) {
	for seed := range uint64(fewer(10) + 1) {
		r := rand.New(rand.NewPCG(seed, 4))
		dir := t.TempDir()
		s := newSorter(func() (string, error) { return dir, nil }, 1, 1)
		var want []entry
		for i := range []int{5000, 0, 1, 20000, 500}[seed%5] {
			e := entry{hi: r.Uint64N(50), lo: uint64(i), data: make([]byte, r.IntN(40))}
			if r.IntN(500) == 0 {
				e.data = make([]byte, 100_000) // more than a block
			}
			for k := range e.data {
				e.data[k] = byte(r.Uint32())
			}
			want = append(want, e)
			half := r.IntN(len(e.data) + 1)
			if err := s.add(t.Context(), e.hi, e.lo, e.data[:half], e.data[half:]); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(want, func(a, b entry) int { return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo)) })
		for range 2 {
			in, err := s.sorted(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				e := in.Head()
				if e == nil {
					t.Fatalf("entry %d of %d is missing", i, len(want))
				}
				if e.hi != want[i].hi || e.lo != want[i].lo || !bytes.Equal(e.data, want[i].data) {
					t.Fatalf("entry %d is %d, %d: want %d, %d", i, e.hi, e.lo, want[i].hi, want[i].lo)
				}
				if err := in.Advance(); err != nil {
					t.Fatal(err)
				}
			}
			if e := in.Head(); e != nil {
				t.Fatalf("after the last: %v", e)
			}
		}
		if len(want) > 10000 && s.spills < 8 || len(s.runs.All()) >= 3*s.fanIn() {
			t.Fatalf("%d spills, %d runs: too few to try what merges runs", s.spills, len(s.runs.All()))
		}
		s.close()
	}
}

// A spill file that is not what was written is an error.
func TestSpillFileDamaged(t *testing.T) {
	for _, at := range []int64{0, 3, 5, 9, 4000} {
		dir := t.TempDir()
		s := newSorter(func() (string, error) { return dir, nil }, 1, 1)
		for i := range uint64(2000) {
			if err := s.add(t.Context(), i*7919%2000, i, []byte("some data")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.sorted(t.Context()); err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := s.runs.All()[0].ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 0x40
		if _, err := s.runs.All()[0].WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		in, err := s.sorted(t.Context())
		for err == nil && in.Head() != nil {
			err = in.Advance()
		}
		if !errors.Is(err, spill.ErrDamaged) {
			t.Errorf("byte %d: %v", at, err)
		}
		s.close()
	}
}

var payloadTypes = [][]vector.Type{ // as a row may have it, the last being what all widen to
	{{Kind: vector.Dense, Elem: vector.Int8}, {Kind: vector.Dense, Elem: vector.Int32},
		{Kind: vector.Dense, Elem: vector.Float64}},
	{{Kind: vector.Dense, Elem: vector.Int16}, {Kind: vector.Dense, Elem: vector.Float32}},
	{{Kind: vector.Dense, Elem: vector.Uint64}},
	{{Kind: vector.Sparse, Elem: vector.Int32}, {Kind: vector.Sparse, Elem: vector.Int64}},
	{{Kind: vector.Sparse, Elem: vector.Uint8}, {Kind: vector.Sparse, Elem: vector.Float32},
		{Kind: vector.Sparse, Elem: vector.Float64}},
	{{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32},
		{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float64}},
	{{Kind: vector.Embedding, Elem: vector.Int8, Dim: 3}, {Kind: vector.Embedding, Elem: vector.Float32, Dim: 3}},
	{{Kind: vector.String}, {Kind: vector.Bytes}},
}

func randomColumn(r *rand.Rand, t vector.Type, rows int) *vector.Column {
	c := vector.NewColumn(t)
	for range rows {
		if r.IntN(4) == 0 {
			c.AppendNulls(1)
			continue
		}
		n := t.Width()
		if t.IsList() {
			n = r.IntN(4)
		}
		for range n {
			switch t.Physical() {
			case vector.Int64Values:
				c.Ints = append(c.Ints, r.Int64N(100))
			case vector.Float32Values:
				c.Floats = append(c.Floats, float32(r.IntN(100))/4)
			case vector.Float64Values:
				c.Doubles = append(c.Doubles, r.Float64())
			case vector.ByteValues:
				c.Data = append(c.Data, byte('a'+r.IntN(26)))
			}
			switch t.Score {
			case vector.Float32:
				c.ScoreFloats = append(c.ScoreFloats, float32(r.IntN(9))/8)
			case vector.Float64:
				c.ScoreDoubles = append(c.ScoreDoubles, r.Float64())
			}
		}
		c.AddSlot()
	}
	return c
}

// TestTransposer holds what comes out of a transposer to vector.Convert of what went in, over shapes that lack features
// and have narrower types, in memory and on disk, segment after segment.
func TestTransposer(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 5))
		var features []*fileFeature
		var types [][]vector.Type
		for i, p := range r.Perm(len(payloadTypes))[:1+r.IntN(len(payloadTypes))] {
			f := &fileFeature{}
			f.Name, f.Type = fmt.Sprint(i), payloadTypes[p][len(payloadTypes[p])-1]
			features, types = append(features, f), append(types, payloadTypes[p])
		}
		dir := t.TempDir()
		tr := newTransposer(features, []int64{1, 300, 1 << 20}[seed%3], func() (string, error) { return dir, nil })
		m := newSortMerge(&files{opts: &Options{}}, nil)
		for range 3 {
			tr.reset()
			want := make([]*vector.Column, len(features))
			for i, f := range features {
				want[i] = vector.NewColumn(f.Type)
			}
			for range r.IntN(5) {
				p := &filePart{rows: 1 + r.IntN(20)}
				var have []int
				for i, f := range features {
					if r.IntN(5) > 0 {
						have = append(have, i)
						p.features = append(p.features, f)
						p.columns = append(p.columns, randomColumn(r, types[i][r.IntN(len(types[i]))], p.rows))
					}
				}
				number := m.shapeOf(p)
				for row := range p.rows {
					b := []byte{byte(number)}
					for _, c := range p.columns {
						b = appendValue(b, c, row)
					}
					if err := tr.add(m.shapes, b); err != nil {
						t.Fatal(err)
					}
				}
				for i, f := range features {
					k := slices.Index(have, i)
					if k < 0 {
						want[i].AppendNulls(p.rows)
						continue
					}
					c, err := vector.Convert(p.columns[k], f.Type)
					if err != nil {
						t.Fatal(err)
					}
					want[i].AppendRows(c, 0, p.rows)
				}
			}
			for i, f := range features {
				read := tr.read(i)
				got := vector.NewColumn(f.Type)
				for got.Rows < want[i].Rows {
					if err := read(got, min(1+r.IntN(9), want[i].Rows-got.Rows)); err != nil {
						t.Fatal(err)
					}
				}
				if err := got.Validate(); err != nil {
					t.Fatal(err)
				}
				for row := range got.Rows {
					if textOf(got, row) != textOf(want[i], row) {
						t.Fatalf("%v, row %d: %s, want %s", f.Type, row, textOf(got, row), textOf(want[i], row))
					}
				}
				if err := read(got, 1); err == nil {
					t.Fatalf("%v: more values than rows", f.Type)
				}
			}
		}
		tr.close()
	}
}
