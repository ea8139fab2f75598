package batch

import (
	"strconv"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/plan"
)

// An arrayID is the position of an array in the table of a block.
type arrayID int32

// absent is the ID of an array that no batch of the plan has.
const absent arrayID = -1

// An Array is an array of a block. It has the same position in the table of every batch of a plan.
type Array struct {
	// Name is "sparse.values" for instance, or "column.3.values" of the fourth exact column: see BATCH.md.
	Name string
	// Type is int32, int64, uint64, float32, float64 or byte. Bitmaps are uint64.
	Type string
}

// A Schema describes the blocks of a plan's batches, which all have the same arrays. Features are positions in
// Plan.Features.
type Schema struct {
	Arrays     []Array // in the order of the table
	Dense      []int32 // feature of each column of the dense matrix
	Labels     []int32 // feature of each column of the label matrix
	Embeddings []int32 // feature of each embedding
	Widths     []int   // dimension of each embedding
	Sparse     ListsSchema
	Weighted   ListsSchema
	Floats     ListsSchema
	Columns    []int32 // feature of each exact column

	groups     groupArrays
	dense      matrixArrays
	labels     matrixArrays
	embeddings []matrixArrays
	lists      [listKinds]listArrays
	columns    []columnArrays // one for each exact column
}

// A ListsSchema lists the features with lists of one kind, in the order of a block.
type ListsSchema struct {
	Features []int32
	// Dedup says for each whether it may be in a group: none may with DedupKJT, else all except those that the plan
	// expands.
	Dedup []bool
}

type groupArrays struct {
	first, features, slots, inverses arrayID
	ofColumns                        arrayID // of each exact column, the position of its group
}

type matrixArrays struct{ values, present arrayID }

type listArrays struct {
	firstList, firstValue, groups, lengths, offsets, starts, values, weights, present, rowValues arrayID

	floats bool // values are float32
}

// columnArrays are the arrays of a column. Those that its type does not need are absent.
type columnArrays struct{ present, offsets, lengths, values, scores arrayID }

// NewSchema returns the schema of a plan's batches with or without Options.KeepSlots.
func NewSchema(p *plan.Plan, keepSlots bool) *Schema {
	return newBatchLayout(p, &Options{KeepSlots: keepSlots}).schema
}

// newSchema returns the schema of a layout, whose other fields are set.
func newSchema(l *batchLayout) *Schema {
	s := &Schema{Dense: l.dense, Labels: l.labels, Embeddings: l.embeddings, Columns: l.exact}
	s.Sparse, s.Weighted, s.Floats = l.listsSchema(l.sparse), l.listsSchema(l.weighted), l.listsSchema(l.floats)
	s.groups = groupArrays{
		first: s.add("groups.first", "int32"), features: s.add("groups.features", "int32"),
		slots: s.add("groups.slots", "int32"), inverses: s.add("groups.inverses", "int32"),
		ofColumns: s.add("groups.of_columns", "int32"),
	}
	s.dense = s.matrix("dense")
	s.labels = s.matrix("labels")
	for i, f := range l.embeddings {
		s.embeddings = append(s.embeddings, s.matrix("embedding."+strconv.Itoa(i)))
		s.Widths = append(s.Widths, l.plan.Features[f].Type.Width())
	}
	for k := range listKind(listKinds) {
		s.lists[k] = s.list(k)
	}
	for i, f := range l.exact {
		s.columns = append(s.columns, s.column("column."+strconv.Itoa(i), l.plan.Features[f].Type))
	}
	return s
}

func (l *batchLayout) listsSchema(features []int32) ListsSchema {
	s := ListsSchema{Features: features, Dedup: make([]bool, len(features))}
	for k, f := range features {
		s.Dedup[k] = l.dedup != plan.DedupKJT && !l.plan.Expands(f)
	}
	return s
}

func (s *Schema) add(name, of string) arrayID {
	s.Arrays = append(s.Arrays, Array{Name: name, Type: of})
	return arrayID(len(s.Arrays) - 1)
}

func (s *Schema) matrix(name string) matrixArrays {
	return matrixArrays{values: s.add(name+".values", "float32"), present: s.add(name+".present", "uint64")}
}

func (s *Schema) list(k listKind) listArrays {
	name := [...]string{"sparse", "weighted", "floats"}[k]
	values := "int64"
	if k == floatLists {
		values = "float32"
	}
	return listArrays{
		firstList: s.add(name+".first_list", "int32"), firstValue: s.add(name+".first_value", "int32"),
		groups: s.add(name+".groups", "int32"), lengths: s.add(name+".lengths", "int32"),
		offsets: s.add(name+".offsets", "int32"), starts: s.add(name+".starts", "int32"),
		values: s.add(name+".values", values), weights: s.add(name+".weights", "float32"),
		present: s.add(name+".present", "uint64"), rowValues: s.add(name+".row_values", "int64"),
		floats: k == floatLists,
	}
}

func (s *Schema) column(name string, t vector.Type) columnArrays {
	c := columnArrays{present: s.add(name+".present", "uint64"), offsets: absent, lengths: absent, values: absent,
		scores: absent}
	if t.IsList() {
		c.offsets, c.lengths = s.add(name+".offsets", "int32"), s.add(name+".lengths", "int32")
	}
	switch t.Physical() {
	case vector.Int64Values:
		c.values = s.add(name+".values", "int64")
	case vector.Float32Values:
		c.values = s.add(name+".values", "float32")
	case vector.Float64Values:
		c.values = s.add(name+".values", "float64")
	case vector.ByteValues:
		c.values = s.add(name+".values", "byte")
	}
	switch t.Score {
	case vector.Float32:
		c.scores = s.add(name+".scores", "float32")
	case vector.Float64:
		c.scores = s.add(name+".scores", "float64")
	}
	return c
}
