package batch

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
)

// Tensors are a batch as a trainer takes it. B is the batch's Rows. The caller must not write to them.
type Tensors struct {
	Dense      Matrix   // the dense features that are neither label nor key
	Labels     Matrix   // the dense labels
	Embeddings []Matrix // one an embedding feature, [B, dim]
	Sparse     Jagged   // id lists: Values
	Weighted   Jagged   // id lists with scores: Values and Weights
	Floats     Jagged   // lists of float numbers: FloatValues
	// Groups, where the plan's Dedup is not DedupKJT, are the inverses that lists of Sparse, Weighted and Floats have:
	// those of the rows of this batch, whatever those of others are.
	Groups []Group
	// Inverses are those of Groups one after the other: [len(Groups) * B].
	Inverses []int32
}

// list returns the Jagged of a kind.
func (t *Tensors) list(k listKind) *Jagged {
	return [...]*Jagged{&t.Sparse, &t.Weighted, &t.Floats}[k]
}

// A Matrix is [B, Width] float32, row-major. Null is 0.
//
// A float64 is rounded to the nearest float32, and is infinite beyond its range. An integer is exact: one that float32
// does not hold is an InexactError, unless Options.RoundIntegers asks for the nearest. uint64 is unsigned, bool is 0 or
// 1, NaN and -0 stay what they are. A feature with a Logical gives the number that is stored: days of a date,
// microseconds since 1970 of a timestamp[us], ticks of a duration, the unscaled digits of a decimal. Batch.Columns has
// the exact values of keys, of PlanOptions.Integers, and with OutputColumns of all features.
type Matrix struct {
	Features []int32 // positions in Plan.Features: one per column, or one in all for an embedding
	Width    int
	Values   []float32 // [B * Width]
	// Present, when Options.Presence asks for it, has a bitmap of B bits per feature, each beginning a word: see
	// PresentOf.
	Present []uint64
}

// PresentOf returns the presence of the i-th of m's features: a bit per row. It is nil without Options.Presence.
func (m *Matrix) PresentOf(i int) vector.Bitmap { return presentOf(m.Present, i, len(m.Features)) }

// A Jagged is the parts of a keyed jagged tensor: the lists of each feature in turn, a list a slot where the feature is
// in a group, else a list a row. Features have the same order in every batch of a plan, whatever their groups are.
//
//	group of  f0: 0     f1: none  f2: 0     f3: 1
//	lists     s0 s1     r0 r1 r2  s0 s1     s0 s1 s2     First 0 2 5 7 10
type Jagged struct {
	Features []int32 // positions in Plan.Features, ascending
	// Dedup says of each of Features whether it may be in a group: none may with DedupKJT, else all but those that the
	// plan expands.
	Dedup []bool
	// Groups has for each feature the position of its group in Tensors.Groups; their number: it is in none. nil with
	// DedupKJT.
	Groups []int32
	// First is the position of each feature's first list, and after the last the number of lists. nil: each feature has
	// as many. FirstValue is the same of values: a feature's are those from FirstValue[i] to FirstValue[i+1].
	First, FirstValue []int32
	Lengths           []int32 // of each list; 0 for null and for empty
	// Offsets, one more than there are lists, from 0: list i is [Offsets[i], Offsets[i+1]) of the values. nil where
	// Starts is not.
	Offsets []int32
	// Starts, of a plan with DedupPartial only: list i is Lengths[i] values from Starts[i] on, and lists of one feature
	// may overlap.
	Starts []int32
	// Values are the ids of Sparse and Weighted, uint64 bit for bit; FloatValues are the numbers of Floats, float64
	// rounded as in a Matrix, and so are Weights.
	Values      []int64
	FloatValues []float32
	Weights     []float32 // Weighted only: one per value
	// RowValues, with Options.KeepSlots, are how many values all rows have of each feature.
	RowValues []int64
	// Present, when Options.Presence asks for it, tells null from empty: a bitmap per feature, of a bit per list, each
	// beginning a word. See PresentOf.
	Present []uint64
}

// Lists returns which lists are the i-th feature's: [from, to).
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

// use makes t's slices those of a block.
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

// fillMatrices fills what has a row a sample in every mode.
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

// denseBlock is how many rows of a matrix are filled for all its features before the next: they should stay in the
// nearest caches.
const denseBlock = 64

// fill fills m with b's pieces. It appends to inexact the first integer of each feature that float32 does not hold.
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

// scatterColumn writes rows [lo, hi) of c, zeros when it is nil, to the rows of dst, which are stride apart. It returns
// what scatterInts does of integers, else 0.
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
