package expr

import (
	"math"
	"math/big"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

// A cell is a value of the model: nil, *big.Int, float64, string, or a []cell; a literal may be a *big.Rat too.
type cell any

// A modelColumn is a feature of the model: its rows, and the same as a column.
type modelColumn struct {
	name   string
	field  Field
	rows   []cell
	column *vector.Column // nil: null in every row
	stats  FieldStats
}

func dense(e vector.Elem) vector.Type  { return vector.Type{Kind: vector.Dense, Elem: e} }
func sparse(e vector.Elem) vector.Type { return vector.Type{Kind: vector.Sparse, Elem: e} }

// modelTypes are the features of every drawn table, by name.
var modelTypes = []struct {
	name string
	typ  vector.Type
}{
	{"i", dense(vector.Int64)}, {"j", dense(vector.Int8)}, {"u", dense(vector.Uint64)}, {"f", dense(vector.Float32)},
	{"d", dense(vector.Float64)},
	{"b", dense(vector.Bool)}, {"s", vector.Type{Kind: vector.String}}, {"raw", vector.Type{Kind: vector.Bytes}},
	{"li", sparse(vector.Int64)}, {"lu", sparse(vector.Uint64)}, {"lf", sparse(vector.Float32)},
	{"w", vector.Type{Kind: vector.Weighted, Elem: vector.Int32, Score: vector.Float32}},
}

func drawElement(t *rapid.T, e vector.Elem) cell {
	switch e {
	case vector.Bool:
		return big.NewInt(rapid.Int64Range(0, 1).Draw(t, "bool"))
	case vector.Uint64:
		return new(big.Int).SetUint64(rapid.SampledFrom([]uint64{0, 1, 3, 1 << 53, 1<<53 + 1, 1 << 63,
			math.MaxUint64}).Draw(t, "uint"))
	case vector.Int64:
		return big.NewInt(rapid.SampledFrom([]int64{-3, 0, 1, 2, 3, 1 << 53, 1<<53 + 1, math.MaxInt64,
			math.MinInt64}).Draw(t, "int"))
	case vector.Float32:
		return float64(rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 0.1, 1, 3, -2.5,
			float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}).Draw(t, "float"))
	case vector.Float64:
		return rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 0.1, 1, 3, 1 << 53, math.NaN(), math.Inf(1),
			math.Inf(-1)}).Draw(t, "double")
	}
	return big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "small"))
}

func drawCell(t *rapid.T, typ vector.Type) cell {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return nil
	}
	switch typ.Kind {
	case vector.Dense:
		return drawElement(t, typ.Elem)
	case vector.String, vector.Bytes:
		return rapid.SampledFrom([]string{"", "a", "ab", "abc", "é", "b%", "B"}).Draw(t, "text")
	}
	list := []cell{}
	for range rapid.IntRange(0, 3).Draw(t, "length") {
		list = append(list, drawElement(t, typ.Elem))
	}
	return list
}

func appendElement(c *vector.Column, v cell) {
	switch v := v.(type) {
	case *big.Int:
		if v.Sign() >= 0 {
			c.Ints = append(c.Ints, int64(v.Uint64()))
		} else {
			c.Ints = append(c.Ints, v.Int64())
		}
	case float64:
		if c.Type.Elem == vector.Float32 {
			c.Floats = append(c.Floats, float32(v))
		} else {
			c.Doubles = append(c.Doubles, v)
		}
	}
	if c.Type.Kind == vector.Weighted {
		c.ScoreFloats = append(c.ScoreFloats, 0)
	}
}

// drawColumn draws slots, and rows that have them.
func drawColumn(t *rapid.T, name string, typ vector.Type, rows int) *modelColumn {
	m := &modelColumn{name: name, field: Field{Type: typ}}
	if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
		m.rows = make([]cell, rows)
		return m
	}
	var slots []cell
	c := vector.NewColumn(typ)
	for range rows {
		v := drawCell(t, typ)
		slots = append(slots, v)
		switch v := v.(type) {
		case nil:
			c.AppendNulls(1)
			continue
		case string:
			c.Data = append(c.Data, v...)
		case []cell:
			for _, e := range v {
				appendElement(c, e)
			}
		default:
			appendElement(c, v)
		}
		c.AddSlot()
	}
	m.rows = slots
	if rapid.Bool().Draw(t, "inverse") {
		c.Inverse, m.rows = nil, nil
		for range rows {
			s := rapid.IntRange(0, len(slots)-1).Draw(t, "slot")
			c.Inverse = append(c.Inverse, int32(s))
			m.rows = append(m.rows, slots[s])
		}
	}
	if err := c.Validate(); err != nil {
		panic(err)
	}
	m.column, m.stats = c, modelStats(typ, m.rows, slots)
	return m
}

// modelStats are the statistics of a stripe as the format's specification has them.
func modelStats(typ vector.Type, rows, slots []cell) FieldStats {
	st := &format.Stats{}
	for _, r := range rows {
		if r == nil {
			st.NullRows++
		}
		if l, ok := r.([]cell); ok {
			st.Elements += uint64(len(l))
		}
	}
	var bound func(v cell)
	bound = func(v cell) {
		switch v := v.(type) {
		case []cell:
			for _, e := range v {
				bound(e)
			}
		case float64:
			if math.IsNaN(v) {
				return
			}
			if !st.HasMinMax {
				st.HasMinMax, st.MinFloat, st.MaxFloat = true, v, v
			}
			st.MinFloat, st.MaxFloat = min(st.MinFloat, v), max(st.MaxFloat, v)
		case *big.Int:
			n := v.Int64()
			if typ.Elem == vector.Uint64 {
				u := v.Uint64()
				if !st.HasMinMax {
					st.HasMinMax, st.MinInt, st.MaxInt = true, int64(u), int64(u)
				}
				st.MinInt, st.MaxInt = int64(min(uint64(st.MinInt), u)), int64(max(uint64(st.MaxInt), u))
				return
			}
			if !st.HasMinMax {
				st.HasMinMax, st.MinInt, st.MaxInt = true, n, n
			}
			st.MinInt, st.MaxInt = min(st.MinInt, n), max(st.MaxInt, n)
		}
	}
	for _, s := range slots {
		bound(s)
	}
	return FieldStats{Type: typ, Rows: uint64(len(rows)), Stats: st}
}
