package batch

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
)

// Tensors are a batch in the form of a trainer. B is the batch's Rows. The caller must not write to them.
type Tensors struct {
	Dense      Matrix   // the dense features that are neither label nor key, [B, features]
	Labels     Matrix   // the dense labels, [B, labels]
	Embeddings []Matrix // one for each embedding feature, [B, dim]
	Sparse     Jagged   // id lists: Values
	Weighted   Jagged   // id lists with scores: Values and Weights
	Floats     Jagged   // lists of float numbers: FloatValues
	// Groups are the groups of features of Sparse, Weighted and Floats that share an inverse; empty with DedupKJT. They
	// may differ from batch to batch.
	Groups []Group
	// Inverses are the inverses of Groups, one after the other: [len(Groups) * B].
	Inverses []int32
}

// list returns the Jagged of a kind.
func (t *Tensors) list(k listKind) *Jagged {
	return [...]*Jagged{&t.Sparse, &t.Weighted, &t.Floats}[k]
}

// A Matrix is [B, Width] float32, row-major. Null is 0.
//
// A float64 is rounded to the nearest float32, or to infinity beyond its range. An integer that float32 cannot
// represent is an InexactError, unless Options.RoundIntegers is set. uint64 is unsigned, bool is 0 or 1, NaN and -0 are
// preserved. A feature with a Logical type has its stored number: days of a date, microseconds since 1970 of a
// timestamp[us], ticks of a duration, the unscaled digits of a decimal. Batch.Columns has the exact values of keys, of
// PlanOptions.Integers, and with OutputColumns of all features.
type Matrix struct {
	Features []int32 // positions in Plan.Features: one for each column; for an embedding one in all
	Width    int
	Values   []float32 // [B * Width]
	// Present, with Options.Presence, has a bitmap of B bits for each feature. Each starts at a word. See PresentOf.
	Present []uint64
}

// PresentOf returns the presence of the i-th of m's features: a bit per row. It is nil without Options.Presence.
func (m *Matrix) PresentOf(i int) vector.Bitmap { return presentOf(m.Present, i, len(m.Features)) }

// A Jagged has the parts of a KeyedJaggedTensor: the lists of each feature, one feature after the other. A feature in a
// group has a list for each slot, another one for each row. Features have the same order in every batch of a plan.
//
//	group of  f0: 0     f1: none  f2: 0     f3: 1
//	lists     s0 s1     r0 r1 r2  s0 s1     s0 s1 s2     First 0 2 5 7 10
type Jagged struct {
	Features []int32 // positions in Plan.Features, ascending
	// Dedup says for each of Features whether it may be in a group: none may with DedupKJT, else all except those that
	// the plan expands.
	Dedup []bool
	// Groups is the position in Tensors.Groups of each feature's group; len(Tensors.Groups): it is in none. nil with
	// DedupKJT.
	Groups []int32
	// First is the position of each feature's first list, then the number of lists. nil: all features have equally
	// many. FirstValue is the position of each feature's first value, then the number of values.
	First, FirstValue []int32
	Lengths           []int32 // of each list; 0 for null and for empty
	// Offsets: list i is values [Offsets[i], Offsets[i+1]). It has one more element than there are lists. nil if Starts
	// is set.
	Offsets []int32
	// Starts, with DedupPartial only: list i is the Lengths[i] values from Starts[i] on. Lists of one feature may
	// overlap.
	Starts []int32
	// Values are the ids of Sparse and Weighted, uint64 with the same bits. FloatValues are the numbers of Floats. They
	// and Weights are rounded from float64 as in a Matrix.
	Values      []int64
	FloatValues []float32
	Weights     []float32 // Weighted only: one for each value
	// RowValues, with Options.KeepSlots, is for each feature the number of values of all rows, duplicates counted.
	RowValues []int64
	// Present, with Options.Presence, distinguishes null from empty lists: a bitmap for each feature, with a bit for
	// each list. Each starts at a word. See PresentOf.
	Present []uint64
}

// Lists returns the lists [from, to) of the i-th feature.
func (j *Jagged) Lists(i int) (from, to int) {
	if j.First != nil {
		return int(j.First[i]), int(j.First[i+1])
	}
	n := len(j.Lengths) / len(j.Features)
	return i * n, (i + 1) * n
}

// PresentOf returns the presence of the i-th of j's features: a bit per list. It is nil without Options.Presence.
func (j *Jagged) PresentOf(i int) vector.Bitmap {
	if j.Present == nil || j.First == nil {
		return presentOf(j.Present, i, len(j.Features))
	}
	at := 0
	for k := range i {
		at += vector.BitmapWords(int(j.First[k+1] - j.First[k]))
	}
	return vector.Bitmap(j.Present[at:][:vector.BitmapWords(int(j.First[i+1]-j.First[i]))])
}

func presentOf(present []uint64, i, features int) vector.Bitmap {
	if present == nil {
		return nil
	}
	words := len(present) / features
	return vector.Bitmap(present[i*words : (i+1)*words : (i+1)*words])
}

func newTensors(l *batchLayout) *Tensors {
	t := &Tensors{
		Dense:      Matrix{Features: l.dense, Width: len(l.dense)},
		Labels:     Matrix{Features: l.labels, Width: len(l.labels)},
		Embeddings: make([]Matrix, len(l.embeddings)),
		Sparse:     newJagged(&l.schema.Sparse),
		Weighted:   newJagged(&l.schema.Weighted),
		Floats:     newJagged(&l.schema.Floats),
	}
	for i, f := range l.embeddings {
		t.Embeddings[i] = Matrix{Features: l.embeddings[i : i+1 : i+1], Width: l.plan.Features[f].Type.Width()}
	}
	return t
}

func newJagged(s *ListsSchema) Jagged { return Jagged{Features: s.Features, Dedup: s.Dedup} }

// use sets t's slices to those of a block.
func (t *Tensors) use(k *block, s *Schema) {
	t.Dense.use(k, s.dense)
	t.Labels.use(k, s.labels)
	for i := range t.Embeddings {
		t.Embeddings[i].use(k, s.embeddings[i])
	}
	for kind := range listKind(listKinds) {
		t.list(kind).use(k, &s.lists[kind])
	}
}

func (m *Matrix) use(k *block, a matrixArrays) {
	m.Values, m.Present = arrayOf[float32](k, a.values), arrayOf[uint64](k, a.present)
}

func (j *Jagged) use(k *block, a *listArrays) {
	j.First, j.FirstValue = arrayOf[int32](k, a.firstList), arrayOf[int32](k, a.firstValue)
	j.Groups, j.Lengths = arrayOf[int32](k, a.groups), arrayOf[int32](k, a.lengths)
	j.Offsets, j.Starts = arrayOf[int32](k, a.offsets), arrayOf[int32](k, a.starts)
	j.Weights, j.Present = arrayOf[float32](k, a.weights), arrayOf[uint64](k, a.present)
	j.RowValues = arrayOf[int64](k, a.rowValues)
	j.Values, j.FloatValues = nil, nil
	if a.floats {
		j.FloatValues = arrayOf[float32](k, a.values)
	} else {
		j.Values = arrayOf[int64](k, a.values)
	}
}

// measureMatrices adds the matrices to the block.
func (t *Tensors) measureMatrices(b *Batch, l *batchLayout) {
	t.Dense.measure(b, l, l.schema.dense)
	t.Labels.measure(b, l, l.schema.labels)
	for i := range t.Embeddings {
		t.Embeddings[i].measure(b, l, l.schema.embeddings[i])
	}
}

func (m *Matrix) measure(b *Batch, l *batchLayout, a matrixArrays) {
	add[float32](&b.block, a.values, b.Rows*m.Width)
	if l.presence {
		add[uint64](&b.block, a.present, vector.BitmapWords(b.Rows)*len(m.Features))
	}
}

// fillMatrices fills Dense, Labels and Embeddings.
func (t *Tensors) fillMatrices(b *Batch, l *batchLayout) error {
	inexact := t.Dense.fill(b, l, nil)
	inexact = t.Labels.fill(b, l, inexact)
	for i := range t.Embeddings {
		inexact = t.Embeddings[i].fill(b, l, inexact)
	}
	if inexact != nil {
		return &InexactError{Integers: inexact}
	}
	return nil
}

// denseBlock is how many rows of a matrix are filled at a time for all its features, so that they stay in the L1 cache.
const denseBlock = 64

// fill fills m from b's pieces. It appends to inexact the first integer of each feature that float32 cannot represent.
func (m *Matrix) fill(b *Batch, l *batchLayout, inexact []InexactInteger) []InexactInteger {
	width := 1
	if len(m.Features) == 1 {
		width = m.Width
	}
	for i := range b.pieces {
		p := &b.pieces[i]
		for lo := p.Lo; lo < p.Hi; lo += denseBlock {
			hi := min(lo+denseBlock, p.Hi)
			row := m.Values[(p.At+lo-p.Lo)*m.Width:]
			for k, f := range m.Features {
				if c := p.Column(f); scatterColumn(row[k:], m.Width, c, width, lo, hi) > maxInexact && !l.round {
					inexact = appendInexact(inexact, l.plan.Features[f].Name, c, width, lo, hi,
						b.FirstRow+uint64(p.At-p.Lo))
				}
			}
		}
	}
	clear(m.Present)
	for k, f := range m.Features {
		if l.presence {
			b.maker.filler.putPresence(m.PresentOf(k), nil, f)
		}
	}
	return inexact
}

// nulls returns how many values of m, whose features have one each in a row, are null.
func (m *Matrix) nulls(b *Batch) (n int) {
	for i := range b.pieces {
		p := &b.pieces[i]
		for _, f := range m.Features {
			switch c := p.Column(f); {
			case c == nil:
				n += p.Hi - p.Lo
			case c.Present != nil:
				for row := p.Lo; row < p.Hi; row++ {
					if c.IsNull(row) {
						n++
					}
				}
			}
		}
	}
	return n
}

// scatterColumn writes rows [lo, hi) of c, zeros if it is nil, to the rows of dst, which are stride apart. For integers
// it returns the result of expand.ScatterInts, else 0.
func scatterColumn(dst []float32, stride int, c *vector.Column, width, lo, hi int) (seen uint64) {
	switch {
	case c == nil:
		expand.ScatterZero(dst, stride, width, hi-lo)
	case c.Type.Elem == vector.Uint64:
		return expand.ScatterUnsigned(dst, stride, c.Ints, c, width, lo, hi)
	case c.Type.Physical() == vector.Int64Values:
		return expand.ScatterInts(dst, stride, c.Ints, c, width, lo, hi)
	case c.Type.Physical() == vector.Float32Values:
		expand.Scatter(dst, stride, c.Floats, c, width, lo, hi)
	default:
		expand.Scatter(dst, stride, c.Doubles, c, width, lo, hi)
	}
	return 0
}

// putFloats copies lists of float32, or of float64 as float32: one of the two holds the values.
func putFloats(dst, floats []float32, doubles []float64, c *vector.Column, lo, hi int, past bool) {
	if len(doubles) > 0 {
		expand.PutConvertedLists(dst, doubles, c, lo, hi)
		return
	}
	expand.PutLists(dst, floats, c, lo, hi, past)
}
