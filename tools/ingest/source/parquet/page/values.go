package page

import (
	"errors"

	"github.com/apache/arrow-go/v18/parquet"
)

// Values is what the values of a page are decoded into: the slice of their physical type.
type Values struct {
	index []int32 // scratch
	Bools []bool
	I32   []int32
	I64   []int64
	I96   []parquet.Int96
	F32   []float32
	F64   []float64
	Bytes []parquet.ByteArray
	Fixed []parquet.FixedLenByteArray
}

// ErrShortPage is returned when a page ends before its last level or value.
var ErrShortPage = errors.New("a page holds fewer values than its header says")
