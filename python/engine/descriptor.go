package engine

import (
	"unsafe"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
)

// DescriptorVersion is the first word of every descriptor.
const DescriptorVersion = 5

// A descriptor describes a batch in 64-bit words, in memory of the Allocator. _descriptor.py reads it:
//
//	batch:   version, id, index in the global order, first row in the plan's order, rows, epoch,
//	         matrix (dense), matrix (labels), n, n x matrix (embeddings),
//	         n groups, n x (features, slots), array (n x rows: inverses),
//	         lists (sparse), lists (weighted), lists (floats),
//	         n, n x column (the exact columns: keys, strings, ...)
//	matrix:  features, width, array (values), array (present)
//	lists:   0 where no feature has lists of the kind; else 1, then
//	         features, for each of them the number of its lists (slots of its group, or rows), for each the number of
//	         its values,
//	         how many of them, the first, may be in groups, array (the group of each; n groups: none; empty with kjt),
//	         and the lists of each feature in turn: array (offsets, from 0, one more than lists), array (lengths),
//	         array (values), array (float values), array (weights), array (present: bitmaps, each beginning a word)
//	column:  place, rows, slots, array (present), array (inverse), array (offsets), array (lengths), array (ints),
//	         array (floats), array (doubles), array (data), array (score floats), array (score doubles)
//	features: n, n x place in the plan
//	array:   address, elements; 0, 0 where there is none
type descriptor struct {
	words []int64
	raw   []byte
}

func (d *descriptor) free(a reader.Allocator) {
	if d.raw != nil {
		a.Free(d.raw)
	}
	d.words, d.raw = nil, nil
}

// set makes d the descriptor of b, which is batch at of the global order.
func (d *descriptor) set(a reader.Allocator, b *reader.Batch, id int64, at, epoch uint64) {
	list := appendBatch(make([]int64, 0, 256), b, id, at, epoch)
	d.raw = a.Allocate(8 * len(list))
	d.words = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(d.raw))), len(list))
	copy(d.words, list)
}

func appendBatch(w []int64, b *reader.Batch, id int64, at, epoch uint64) []int64 {
	w = append(w, DescriptorVersion, id, int64(at), int64(b.FirstRow), int64(b.Rows), int64(epoch))
	t := b.Tensors
	if t == nil {
		t = new(reader.Tensors)
	}
	w = appendMatrix(w, &t.Dense)
	w = appendMatrix(w, &t.Labels)
	w = append(w, int64(len(t.Embeddings)))
	for i := range t.Embeddings {
		w = appendMatrix(w, &t.Embeddings[i])
	}
	w = append(w, int64(len(t.Groups)))
	for i := range t.Groups {
		g := &t.Groups[i]
		w = appendFeatures(w, g.Features)
		w = append(w, int64(g.Slots))
	}
	w = appendArray(w, t.Inverses)
	w = appendLists(w, &t.Sparse)
	w = appendLists(w, &t.Weighted)
	w = appendLists(w, &t.Floats)
	count := len(w)
	w = append(w, 0)
	for i, c := range b.Columns {
		if c != nil {
			w = appendColumn(w, i, c)
			w[count]++
		}
	}
	return w
}

func appendMatrix(w []int64, m *reader.Matrix) []int64 {
	w = appendFeatures(w, m.Features)
	w = append(w, int64(m.Width))
	w = appendArray(w, m.Values)
	return appendArray(w, m.Present)
}

func appendLists(w []int64, j *reader.Jagged) []int64 {
	if len(j.Features) == 0 {
		return append(w, 0)
	}
	w = appendFeatures(append(w, 1), j.Features)
	for k := range j.Features {
		from, to := j.Lists(k)
		w = append(w, int64(to-from))
	}
	for k := range j.Features {
		from, to := j.Lists(k)
		w = append(w, int64(j.Offsets[to]-j.Offsets[from]))
	}
	w = append(w, int64(j.Dedup))
	w = appendArray(w, j.Groups)
	w = appendArray(w, j.Offsets)
	w = appendArray(w, j.Lengths)
	w = appendArray(w, j.Values)
	w = appendArray(w, j.FloatValues)
	w = appendArray(w, j.Weights)
	return appendArray(w, j.Present)
}

func appendColumn(w []int64, place int, c *vector.Column) []int64 {
	w = append(w, int64(place), int64(c.Rows), int64(c.Slots))
	w = appendArray(w, c.Present)
	w = appendArray(w, c.Inverse)
	w = appendArray(w, c.Offsets)
	w = appendArray(w, c.Lengths)
	w = appendArray(w, c.Ints)
	w = appendArray(w, c.Floats)
	w = appendArray(w, c.Doubles)
	w = appendArray(w, c.Data)
	w = appendArray(w, c.ScoreFloats)
	return appendArray(w, c.ScoreDoubles)
}

func appendFeatures(w []int64, features []int32) []int64 {
	w = append(w, int64(len(features)))
	for _, f := range features {
		w = append(w, int64(f))
	}
	return w
}

func appendArray[T any](w []int64, a []T) []int64 {
	if len(a) == 0 {
		return append(w, 0, 0)
	}
	return append(w, int64(uintptr(unsafe.Pointer(unsafe.SliceData(a)))), int64(len(a)))
}
