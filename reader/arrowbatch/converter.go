package arrowbatch

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/dsistore/dsistore/reader"
)

// Options say how batches are converted to records. The zero value works.
type Options struct {
	// Fold combines the features of one source map or struct into one column of that type, if the plan has the feature
	// that marks it. Default: a column for each feature.
	Fold bool
	// Plain expands duplicates to one value for each row, whatever the plan's Dedup is. Default: lists are dictionaries
	// of lists with reader.DedupIKJT, and list views with reader.DedupPartial. Folded columns are always plain.
	Plain bool
	// Dictionaries also makes dictionaries of dense features, embeddings, bytes and strings, unless the plan's Dedup is
	// reader.DedupKJT or the type is an extension type (uuid, json). Without a stored inverse, a dictionary has an
	// entry for each row.
	Dictionaries bool
}

// Schema returns the Arrow schema of a plan's records.
func Schema(p *reader.Plan, opts Options) (*arrow.Schema, error) {
	c, err := NewConverter(p, opts)
	if err != nil {
		return nil, err
	}
	return c.Schema(), nil
}

// A Converter converts the batches of one plan to Arrow records. It is immutable and safe for concurrent use.
type Converter struct {
	schema  *arrow.Schema
	columns []column
}

// A column is one column of the records: a feature, or several folded into one.
type column interface {
	arrowType() arrow.DataType
	// data returns the rows of a batch.
	data(b *reader.Batch) (arrow.ArrayData, error)
}

// NewConverter returns a Converter for a plan whose Output is reader.OutputColumns.
func NewConverter(p *reader.Plan, opts Options) (*Converter, error) {
	if p.Output != reader.OutputColumns {
		return nil, fmt.Errorf("arrow: the plan's output is %v: want columns", p.Output)
	}
	names, columns, err := columnsOf(p, opts)
	if err != nil {
		return nil, err
	}
	c := &Converter{columns: columns}
	fields := make([]arrow.Field, len(columns))
	seen := make(map[string]bool, len(names))
	for i, col := range columns {
		if seen[names[i]] {
			return nil, fmt.Errorf("arrow: two columns are named %q", names[i])
		}
		seen[names[i]] = true
		fields[i] = arrow.Field{Name: names[i], Type: col.arrowType(), Nullable: true}
	}
	c.schema = arrow.NewSchema(fields, nil)
	return c, nil
}

// Schema returns the schema of every record.
func (c *Converter) Schema() *arrow.Schema { return c.schema }

// Record converts b to a record. The record shares b's memory where the layouts match, so release it before b.
func (c *Converter) Record(b *reader.Batch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, len(c.columns))
	defer func() {
		for _, a := range columns {
			if a != nil {
				a.Release()
			}
		}
	}()
	for i, col := range c.columns {
		d, err := col.data(b)
		if err != nil {
			return nil, fmt.Errorf("arrow: column %q, batch %d: %w", c.schema.Field(i).Name, b.Index, err)
		}
		columns[i] = array.MakeFromData(d)
		d.Release()
	}
	return array.NewRecordBatch(c.schema, columns, int64(b.Rows)), nil
}

// A featureColumn is a column of one feature.
type featureColumn struct {
	leaf
	position int // in the plan
	form     form
}

func (f *featureColumn) arrowType() arrow.DataType { return f.form.arrowTypeOf(&f.leaf) }

func (f *featureColumn) data(b *reader.Batch) (arrow.ArrayData, error) {
	c := b.Columns[f.position]
	switch f.form {
	case dictionaryForm:
		return f.dictionaryData(c)
	case viewForm:
		return f.viewData(c)
	}
	rows, err := c.Expanded() // a copy, where rows share what they have
	if err != nil {
		return nil, fmt.Errorf("%w: use smaller batches", err)
	}
	return f.leaf.data(rows)
}
