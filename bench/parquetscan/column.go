package parquetscan

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/dsistore/dsistore/format/vector"
)

// A dense column fills column k of a matrix of [rows, width] and the bits of the rows that are not null.
type dense interface {
	fill(matrix []float32, width, k, rows int, present vector.Bitmap) error
}

// denseOf is a dense column of a physical type.
type denseOf[T number] struct {
	leaf    leaf[T]
	values  []T
	convert func(T) float32
}

func (d *denseOf[T]) fill(matrix []float32, width, k, rows int, present vector.Bitmap) (err error) {
	if d.values, err = d.leaf.scalars(d.values[:0], rows); err != nil {
		return err
	}
	at := 0
	for row, def := range d.leaf.defs[:rows] {
		if def != 0 {
			matrix[row*width+k] = d.convert(d.values[at])
			present.Set(row)
			at++
		}
	}
	// What scalars left in defs are levels already used.
	d.leaf.defs = d.leaf.defs[:0]
	return nil
}

func newDense(at chunks, t parquet.Type) (dense, error) {
	switch t {
	case parquet.Types.Int64:
		return &denseOf[int64]{leaf: leaf[int64]{chunks: at}, convert: func(v int64) float32 { return float32(v) }}, nil
	case parquet.Types.Int32:
		return &denseOf[int32]{leaf: leaf[int32]{chunks: at}, convert: func(v int32) float32 { return float32(v) }}, nil
	case parquet.Types.Float:
		return &denseOf[float32]{leaf: leaf[float32]{chunks: at}, convert: func(v float32) float32 { return v }}, nil
	case parquet.Types.Double:
		return &denseOf[float64]{leaf: leaf[float64]{chunks: at},
			convert: func(v float64) float32 { return float32(v) }}, nil
	case parquet.Types.Boolean:
		return &denseOf[bool]{leaf: leaf[bool]{chunks: at}, convert: func(v bool) float32 {
			if v {
				return 1
			}
			return 0
		}}, nil
	}
	return nil, fmt.Errorf("no tensor holds a column of %v", t)
}

// An embedding column fills a matrix of its own.
type embedding struct {
	leaf    leaf[float32]
	deepest int16
	values  []float32
	lengths []int32
}

func (e *embedding) fill(matrix []float32, width, rows int, present vector.Bitmap) (err error) {
	e.lengths = sized(e.lengths, rows)
	if e.values, err = e.leaf.lists(e.values[:0], rows, e.deepest, e.lengths, present); err != nil {
		return err
	}
	at := 0
	for row, n := range e.lengths {
		if n != 0 && int(n) != width {
			return fmt.Errorf("a vector of %d numbers; want %d", n, width)
		}
		copy(matrix[row*width:], e.values[at:at+int(n)])
		at += int(n)
	}
	return nil
}

// A list column gives ids, and scores where it is weighted.
type list struct {
	ids           leaf[int64]
	scores        *leaf[float32]
	deepest       int16
	scoresDeepest int16
	scoreLengths  []int32
	scorePresent  vector.Bitmap

	// What was decoded, with several threads.
	ownIDs    []int64
	ownScores []float32
}

// read appends the ids of rows lists to ids and their scores to scores, and returns both.
func (c *list) read(ids []int64, scores []float32, lengths []int32,
	present vector.Bitmap) (_ []int64, _ []float32, err error) {
	rows, before := len(lengths), len(ids)
	if ids, err = c.ids.lists(ids, rows, c.deepest, lengths, present); err != nil || c.scores == nil {
		return ids, scores, err
	}
	c.scoreLengths, c.scorePresent = sized(c.scoreLengths, rows), c.scorePresent.Grow(rows)
	scored := len(scores)
	scores, err = c.scores.lists(scores, rows, c.scoresDeepest, c.scoreLengths, c.scorePresent)
	if err == nil && len(scores)-scored != len(ids)-before {
		err = errors.New("ids without scores")
	}
	return ids, scores, err
}

// find returns where the leaves of a column are in each file.
func (s *Scanner) find(c Column, leaves []map[string][]int) ([]chunks, error) {
	want := 1
	if c.Type.Kind == vector.Weighted {
		want = 2
	}
	at := make([]chunks, want)
	for i, f := range s.files {
		of := leaves[i][c.Name]
		if len(of) != want {
			return nil, fmt.Errorf("column %s has %d leaf columns; want %d for %v", c.Name, len(of), want, c.Type)
		}
		for k, leaf := range of {
			at[k].files, at[k].leaf = append(at[k].files, f), append(at[k].leaf, leaf)
			if f.MetaData().Schema.Column(leaf).MaxDefinitionLevel() == 0 {
				return nil, fmt.Errorf("column %s is required: want optional columns", c.Name)
			}
		}
	}
	return at, nil
}

// add finds a column and adds it to the tensor that holds it.
func (s *Scanner) add(place int32, c Column, leaves []map[string][]int) error {
	at, err := s.find(c, leaves)
	if err != nil {
		return err
	}
	schema := s.files[0].MetaData().Schema
	first := schema.Column(at[0].leaf[0])
	t := &s.tensors
	switch {
	case c.Type.Kind == vector.Dense:
		d, err := newDense(at[0], first.PhysicalType())
		if err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		s.dense = append(s.dense, d)
		t.Dense.Features = append(t.Dense.Features, place)
		t.Dense.Width++
	case c.Type.Kind == vector.Embedding && first.PhysicalType() == parquet.Types.Float:
		s.embeddings = append(s.embeddings, embedding{leaf: leaf[float32]{chunks: at[0]},
			deepest: first.MaxDefinitionLevel()})
		t.Embeddings = append(t.Embeddings, matrixOf(place, int(c.Type.Dim)))
	case c.Type.Kind == vector.Sparse && first.PhysicalType() == parquet.Types.Int64:
		s.sparse = append(s.sparse, list{ids: leaf[int64]{chunks: at[0]}, deepest: first.MaxDefinitionLevel()})
		t.Sparse.Features = append(t.Sparse.Features, place)
	case c.Type.Kind == vector.Weighted && first.PhysicalType() == parquet.Types.Int64:
		second := schema.Column(at[1].leaf[0])
		if second.PhysicalType() != parquet.Types.Float {
			return fmt.Errorf("column %s: scores are %v; want float", c.Name, second.PhysicalType())
		}
		s.weighted = append(s.weighted, list{
			ids: leaf[int64]{chunks: at[0]}, deepest: first.MaxDefinitionLevel(),
			scores: &leaf[float32]{chunks: at[1]}, scoresDeepest: second.MaxDefinitionLevel(),
		})
		t.Weighted.Features = append(t.Weighted.Features, place)
	default:
		return fmt.Errorf("column %s of %v: no tensor holds %v", c.Name, first.PhysicalType(), c.Type)
	}
	return nil
}

// leavesByColumn returns the leaf columns under each top-level column.
func leavesByColumn(f *file.Reader) map[string][]int {
	schema := f.MetaData().Schema
	out := make(map[string][]int, schema.NumColumns())
	for i := range schema.NumColumns() {
		name := schema.ColumnRoot(i).Name()
		out[name] = append(out[name], i)
	}
	return out
}
