package source

import (
	"errors"

	"github.com/apache/arrow-go/v18/parquet"
)

// pageValues is what the values of a page are decoded into: the slice of their physical type.
type pageValues struct {
	index []int32 // scratch
	bools []bool
	i32   []int32
	i64   []int64
	i96   []parquet.Int96
	f32   []float32
	f64   []float64
	bytes []parquet.ByteArray
	fixed []parquet.FixedLenByteArray
}

var errShortPage = errors.New("a page holds fewer values than its header says")
