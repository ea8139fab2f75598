package arrowbatch

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// dictionary returns the name of a column that is a dictionary, if any is.
func (c *Converter) dictionary() (name string, ok bool) {
	for i, x := range c.columns {
		if f, isFeature := x.(*featureColumn); isFeature && f.form == dictionaryForm {
			return c.schema.Field(i).Name, true
		}
	}
	return "", false
}

// A dictionaryWriter writes a stream of records with dictionaries, each record's its own.
//
// arrow-go's writer leaves a dictionary out when it is as long as the one that it wrote last for the column and its
// values are about the same: floats up to 1e-5, and the last one's memory may be a batch's that holds other rows by
// now. So that it never looks, a dictionary as long as the last one gets one entry more, a null that no row has.
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
