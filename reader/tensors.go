package reader

import (
	"github.com/dsistore/dsistore/format/vector"
)

// Tensors are a batch as a trainer takes it. B is the batch's Rows. The caller must not write to them.
type Tensors struct {
	Dense      Matrix   // the dense features that are neither label nor key
	Labels     Matrix   // the dense labels
	Embeddings []Matrix // one an embedding feature, [B, dim]
	Sparse     Jagged   // id lists: Values
	Weighted   Jagged   // id lists with scores: Values and Weights
	Floats     Jagged   // lists of float numbers: FloatValues
	// Groups, where the plan's Dedup is not DedupKJT, hold the lists that have an inverse, each in one group; Sparse,
	// Weighted and Floats then hold the others. Which features are in which group may change from batch to batch.
	Groups []Group
	// Inverses are those of Groups one after the other: [len(Groups) * B].
	Inverses []int32

	memory [listKinds]listMemory
}

// list returns the Jagged of a kind.
func (t *Tensors) list(k listKind) *Jagged {
	return [...]*Jagged{&t.Sparse, &t.Weighted, &t.Floats}[k]
}

// Joined is the lists of one kind of all features, which lie one after the other in memory: those of each group in turn, then
// those of Sparse (or Weighted, or Floats) of Tensors.
type Joined struct {
	Lengths     []int32
	Offsets     []int32 // those of each in turn begin at 0; nil where lists have Starts
	Values      []int64
	FloatValues []float32
	Weights     []float32
	Present     []uint64
}

// JoinedSparse returns the memory of Sparse and of all groups' Sparse. Borrowed, as they are.
func (t *Tensors) JoinedSparse() Joined { return t.joined(sparseLists) }

// JoinedWeighted is JoinedSparse for Weighted.
func (t *Tensors) JoinedWeighted() Joined { return t.joined(weightedLists) }

// JoinedFloats is JoinedSparse for Floats.
func (t *Tensors) JoinedFloats() Joined { return t.joined(floatLists) }

func (t *Tensors) joined(k listKind) Joined {
	var lengths, offsets, values, floats, weights, present int
	count := func(j *Jagged) {
		lengths += len(j.Lengths)
		offsets += len(j.Offsets)
		values += len(j.Values)
		floats += len(j.FloatValues)
		weights += len(j.Weights)
		present += len(j.Present)
	}
	for i := range t.Groups {
		count(t.Groups[i].list(k))
	}
	count(t.list(k))
	m := &t.memory[k]
	return Joined{
		Lengths: m.lengths.view[:lengths:lengths], Offsets: m.offsets.view[:offsets:offsets], Values: m.values.view[:values:values],
		FloatValues: m.floatValues.view[:floats:floats], Weights: m.weights.view[:weights:weights],
		Present: m.present.view[:present:present],
	}
}

// A Matrix is [B, Width] float32, row-major. Null is 0.
//
// A float64 is rounded to the nearest float32, and is infinite beyond its range. An integer is exact: one that float32 does not
// hold is an InexactError, unless Options.RoundIntegers asks for the nearest. uint64 is unsigned, bool is 0 or 1, NaN and -0 stay
// what they are. A feature with a Logical gives the number that is stored: days of a date, microseconds since 1970 of a
// timestamp[us], ticks of a duration, the unscaled digits of a decimal. Batch.Columns has the exact values of keys, of
// PlanOptions.Integers, and with OutputColumns of all features.
type Matrix struct {
	Features []int32 // places in Plan.Features: one a column, or one in all for an embedding
	Width    int
	Values   []float32 // [B * Width]
	// Present, when Options.Presence asks for it, has a bitmap of B bits a feature, each beginning a word: see PresentOf.
	Present []uint64

	values  buffer[float32]
	present buffer[uint64]
}

// PresentOf returns the presence of the i-th of m's features: a bit a row. It is nil without Options.Presence.
func (m *Matrix) PresentOf(i int) vector.Bitmap { return presentOf(m.Present, i, len(m.Features)) }

// A Jagged is the parts of a keyed jagged tensor: for each feature in turn, B lists. In a Group B is its Slots.
type Jagged struct {
	Features []int32 // places in Plan.Features, in order
	Lengths  []int32 // [F * B]; 0 for null and for empty
	// Offsets [F * B + 1], from 0: list (f, b) is [Offsets[f*B+b], Offsets[f*B+b+1]) of the values. nil where Starts is not.
	Offsets []int32
	// Starts [F * B], of a plan with DedupWindowed only: list (f, b) is Lengths[f*B+b] values from Starts[f*B+b] on, and
	// lists of one feature may overlap.
	Starts []int32
	// Values are the ids of Sparse and Weighted, uint64 bit for bit; FloatValues are the numbers of Floats, float64 rounded as
	// in a Matrix, and so are Weights.
	Values      []int64
	FloatValues []float32
	Weights     []float32 // Weighted only: one a value
	// Present, when Options.Presence asks for it, tells null from empty: a bitmap of B bits a feature, each beginning a
	// word. See PresentOf.
	Present []uint64
}

// PresentOf returns the presence of the i-th of j's features: a bit a row. It is nil without Options.Presence.
func (j *Jagged) PresentOf(i int) vector.Bitmap { return presentOf(j.Present, i, len(j.Features)) }

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
		Sparse:     Jagged{Features: l.sparse},
		Weighted:   Jagged{Features: l.weighted},
		Floats:     Jagged{Features: l.floats},
	}
	for i, f := range l.embeddings {
		t.Embeddings[i] = Matrix{Features: l.embeddings[i : i+1 : i+1], Width: l.plan.Features[f].Type.Width()}
	}
	return t
}

// fillMatrices makes what has a row a sample in every mode.
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

// fillLists makes the lists of every row.
func (t *Tensors) fillLists(b *Batch, l *batchLayout) error {
	for k := range listKind(listKinds) {
		if err := t.list(k).fill(b, l, k, &t.memory[k]); err != nil {
			return err
		}
	}
	return nil
}

// denseBlock is how many rows of a matrix are filled for all its features before the next: they should stay in the
// nearest caches.
const denseBlock = 64

// fill makes m of b's pieces. It appends to inexact the first integer of each feature that float32 does not hold.
func (m *Matrix) fill(b *Batch, l *batchLayout, inexact []InexactInteger) []InexactInteger {
	m.Values = m.values.resize(l.allocator, b.Rows*m.Width)
	width := 1
	if len(m.Features) == 1 {
		width = m.Width
	}
	for i := range b.pieces {
		p := &b.pieces[i]
		for lo := p.lo; lo < p.hi; lo += denseBlock {
			hi := min(lo+denseBlock, p.hi)
			row := m.Values[(p.at+lo-p.lo)*m.Width:]
			for k, f := range m.Features {
				if c := p.column(f); scatterColumn(row[k:], m.Width, c, width, lo, hi) > maxInexact && !l.round {
					inexact = appendInexact(inexact, l.plan.Features[f].Name, c, width, lo, hi, b.FirstRow+uint64(p.at-p.lo))
				}
			}
		}
	}
	m.Present = nil
	if l.presence {
		m.Present = presenceOf(&m.present, m.Features, b, l)
	}
	return inexact
}

// scatterColumn writes rows [lo, hi) of c, zeros when it is nil, to the rows of dst, which are stride apart. It returns what
// scatterInts does of integers, else 0.
func scatterColumn(dst []float32, stride int, c *vector.Column, width, lo, hi int) (seen uint64) {
	switch {
	case c == nil:
		scatterZero(dst, stride, width, hi-lo)
	case c.Type.Elem == vector.Uint64:
		return scatterUnsigned(dst, stride, c.Ints, c, width, lo, hi)
	case c.Type.Physical() == vector.Int64Values:
		return scatterInts(dst, stride, c.Ints, c, width, lo, hi)
	case c.Type.Physical() == vector.Float32Values:
		scatter(dst, stride, c.Floats, c, width, lo, hi)
	default:
		scatter(dst, stride, c.Doubles, c, width, lo, hi)
	}
	return 0
}

// presenceOf fills a bitmap a feature.
func presenceOf(buf *buffer[uint64], features []int32, b *Batch, l *batchLayout) []uint64 {
	words := vector.BitmapWords(b.Rows)
	all := buf.resize(l.allocator, words*len(features))
	clear(all)
	for k, f := range features {
		fillPresence(vector.Bitmap(all[k*words:(k+1)*words]), b, f)
	}
	return all
}

// fill expands the lists of b's pieces into m.
func (j *Jagged) fill(b *Batch, l *batchLayout, kind listKind, m *listMemory) error {
	rows := b.Rows
	j.Lengths = m.lengths.resize(l.allocator, len(j.Features)*rows)
	j.Offsets = m.offsets.resize(l.allocator, len(j.Features)*rows+1)
	j.Offsets[0] = 0
	n := 0
	for k, f := range j.Features {
		lengths := j.Lengths[k*rows : (k+1)*rows]
		var ok bool
		if n, ok = fillRanges(lengths, j.Offsets[1+k*rows:1+(k+1)*rows], b, f, n); !ok {
			return tooLarge(b, l, f)
		}
	}
	if kind == floatLists {
		j.FloatValues = m.floatValues.resize(l.allocator, n)
	} else {
		j.Values = m.values.resize(l.allocator, n)
	}
	if kind == weightedLists {
		j.Weights = m.weights.resize(l.allocator, n)
	}
	bytes := 8*len(j.Values) + 4*len(j.FloatValues)
	for k, f := range j.Features {
		for i := range b.pieces {
			p := &b.pieces[i]
			if c := p.column(f); c != nil {
				at, past := j.Offsets[k*rows+p.at], goesPast(bytes, p.hi-p.lo)
				if kind == floatLists {
					putFloats(j.FloatValues[at:], c.Floats, c.Doubles, c, p.lo, p.hi, past)
				} else {
					putLists(j.Values[at:], c.Ints, c, p.lo, p.hi, past)
				}
				if kind == weightedLists {
					putFloats(j.Weights[at:], c.ScoreFloats, c.ScoreDoubles, c, p.lo, p.hi, past)
				}
			}
		}
	}
	j.Present = nil
	if l.presence {
		j.Present = presenceOf(&m.present, j.Features, b, l)
	}
	return nil
}

// putFloats copies lists of float32, or of float64 as float32: one of the two holds the values.
func putFloats(dst, floats []float32, doubles []float64, c *vector.Column, lo, hi int, past bool) {
	if len(doubles) > 0 {
		putConvertedLists(dst, doubles, c, lo, hi)
		return
	}
	putLists(dst, floats, c, lo, hi, past)
}

func (t *Tensors) buffers() []anyBuffer {
	all := append(t.Dense.buffers(), t.Labels.buffers()...)
	for i := range t.Embeddings {
		all = append(all, t.Embeddings[i].buffers()...)
	}
	for k := range t.memory {
		all = append(all, t.memory[k].buffers()...)
	}
	return all
}

func (m *Matrix) buffers() []anyBuffer { return []anyBuffer{&m.values, &m.present} }
