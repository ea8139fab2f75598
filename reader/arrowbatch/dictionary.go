package arrowbatch

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// dictionary returns the name of the first column that is a dictionary; ok is false if there is none.
func (c *Converter) dictionary() (name string, ok bool) {
	for i, x := range c.columns {
		if f, isFeature := x.(*featureColumn); isFeature && f.form == dictionaryForm {
			return c.schema.Field(i).Name, true
		}
	}
	return "", false
}

// A dictionaryWriter writes a stream of records, each with its own dictionaries.
//
// arrow-go's writer omits a dictionary that has the same length as the last one of the column and equal values. This is
// wrong here: it compares floats only up to 1e-5, and the memory of the last one may already hold another batch. To
// avoid the comparison, a dictionary as long as the last one gets one more entry, a null that no row uses.
type dictionaryWriter struct {
	w    *ipc.Writer
	last []int // by column, the length of the dictionary written last
}

func (d *dictionaryWriter) Close() error { return d.w.Close() }

func (d *dictionaryWriter) Write(rec arrow.RecordBatch) error {
	columns := append([]arrow.Array(nil), rec.Columns()...)
	for i, c := range columns {
		x, ok := c.(*array.Dictionary)
		if !ok {
			continue
		}
		n := x.Dictionary().Len()
		if n == d.last[i] {
			longer, err := withNull(x)
			if err != nil {
				return err
			}
			defer longer.Release()
			columns[i] = longer
			n++
		}
		d.last[i] = n
	}
	out := array.NewRecordBatch(rec.Schema(), columns, rec.NumRows())
	defer out.Release()
	return d.w.Write(out)
}

// withNull returns x with a null at the end of its dictionary, which is copied.
func withNull(x *array.Dictionary) (arrow.Array, error) {
	null := array.MakeArrayOfNull(memory.DefaultAllocator, x.Dictionary().DataType(), 1)
	defer null.Release()
	dict, err := array.Concatenate([]arrow.Array{x.Dictionary(), null}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer dict.Release()
	return array.NewDictionaryArray(x.DataType(), x.Indices(), dict), nil
}
