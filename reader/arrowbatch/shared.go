package arrowbatch

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
)

// A form says how a feature's column keeps what rows share.
type form uint8

const (
	plainForm      form = 0 // a value a row
	dictionaryForm form = 1 // dictionary<int32, the leaf's type>: the slots are the dictionary, the inverse the indices
	viewForm       form = 2 // list_view: each row has its slot's start and length among shared values
)

// formOf returns the form of a feature's column.
func formOf(p *reader.Plan, t vector.Type, l *leaf, opts Options) form {
	if opts.Plain || p.Dedup == reader.DedupKJT {
		return plainForm
	}
	switch {
	case t.Kind != vector.Sparse && t.Kind != vector.Weighted:
		if !opts.Dictionaries || l.arrow.ID() == arrow.EXTENSION {
			return plainForm // a dictionary of an extension type is read back as an extension of a dictionary
		}
	case p.Dedup == reader.DedupPartial:
		if l.arrow.ID() == arrow.MAP {
			return plainForm // Arrow has no view of maps
		}
		return viewForm
	}
	return dictionaryForm
}

// arrowTypeOf returns the type of a leaf's column in a form.
func (f form) arrowTypeOf(l *leaf) arrow.DataType {
	switch f {
	case dictionaryForm:
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: l.arrow}
	case viewForm:
		return arrow.ListViewOfField(l.arrow.(*arrow.ListType).ElemField())
	}
	return l.arrow
}

// slotColumn returns the slots of c as rows. It shares c's memory, but for partial duplicates.
func slotColumn(c *vector.Column) (*vector.Column, error) {
	slots := *c
	slots.Rows, slots.Inverse, slots.Monotone, slots.InverseBorrowed = c.Slots, nil, false, false
	return slots.Expanded()
}

// dictionaryData returns c as a dictionary of its slots. Rows of a null slot are null.
func (l *leaf) dictionaryData(c *vector.Column) (arrow.ArrayData, error) {
	plain, err := slotColumn(c)
	if err != nil {
		return nil, err
	}
	slots, err := l.data(plain)
	if err != nil {
		return nil, err
	}
	defer slots.Release()
	inverse := c.Inverse
	if inverse == nil {
		inverse = make([]int32, c.Rows)
		for row := range inverse {
			inverse[row] = int32(row)
		}
	}
	valid, nulls := rowValidity(c)
	buffers := []*memory.Buffer{valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(inverse))}
	return array.NewDataWithDictionary(dictionaryForm.arrowTypeOf(l), c.Rows, buffers, nulls, 0,
		slots.(*array.Data)), nil
}

// viewData returns c, of lists, as views of its values.
func (l *leaf) viewData(c *vector.Column) (arrow.ArrayData, error) {
	child, err := l.elements(c)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	starts, lengths := make([]int32, c.Rows), make([]int32, c.Rows)
	for row := range c.Rows {
		from, to := c.RowRange(row)
		starts[row], lengths[row] = int32(from), int32(to-from)
	}
	valid, nulls := rowValidity(c)
	buffers := []*memory.Buffer{
		valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(starts)),
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(lengths)),
	}
	return array.NewData(viewForm.arrowTypeOf(l), c.Rows, buffers, []arrow.ArrayData{child}, nulls, 0), nil
}

// rowValidity is validity of the rows of a column that may have an inverse.
func rowValidity(c *vector.Column) (*memory.Buffer, int) {
	if c.Inverse == nil || c.Present == nil {
		return validity(c)
	}
	present := make(vector.Bitmap, vector.BitmapWords(c.Rows))
	for row, s := range c.Inverse {
		if c.Present.Get(int(s)) {
			present.Set(row)
		}
	}
	return memory.NewBufferBytes(arrow.Uint64Traits.CastToBytes(present)), c.Rows - present.Count()
}
