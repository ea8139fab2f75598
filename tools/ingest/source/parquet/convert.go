package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/page"
)

// The leafConverters: what Parquet's values of each physical and logical type become.

func convertNull(_ *column.Array, _ *page.Values, n int, _ *column.Limits) error {
	if n > 0 {
		return errors.New("a value in a column whose type says that all are null")
	}
	return nil
}

func convertBool(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	for _, v := range s.Bools[:n] {
		dst.AppendBool(v)
	}
	return nil
}

func convertInt32(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	for _, v := range s.I32[:n] {
		dst.Ints = append(dst.Ints, int64(v))
	}
	dst.Len += n
	return nil
}

func convertUint32(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	for _, v := range s.I32[:n] {
		dst.Ints = append(dst.Ints, int64(uint32(v)))
	}
	dst.Len += n
	return nil
}

// convertNarrow takes 8- and 16-bit integers from 32 bits.
func convertNarrow(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	for _, v := range s.I32[:n] {
		if !column.ElemHolds(dst.Type.Elem, int64(v)) {
			dst.Fault(fmt.Errorf("%d does not fit %v", v, dst.Type.Elem))
			v = 0
		}
		dst.Ints = append(dst.Ints, int64(v))
		dst.Len++
	}
	return nil
}

// convertPlain takes numbers that are stored as they are.
func convertPlain(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	switch dst.Type.Elem.Physical() {
	case vector.Float32Values:
		dst.Floats = append(dst.Floats, s.F32[:n]...)
	case vector.Float64Values:
		dst.Doubles = append(dst.Doubles, s.F64[:n]...)
	default:
		dst.Ints = append(dst.Ints, s.I64[:n]...)
	}
	dst.Len += n
	return nil
}

// convertInt96 takes Impala's and Spark's timestamps: nanoseconds of the day (8 bytes LE), Julian day (4 bytes LE).
func convertInt96(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	const epochDay, daySeconds = 2440588, 86400
	for _, v := range s.I96[:n] {
		nanos := binary.LittleEndian.Uint64(v[:8])
		days := int64(int32(binary.LittleEndian.Uint32(v[8:]))) - epochDay
		m := column.Timestamp{Seconds: days*daySeconds + int64(nanos/1e9), Nanos: int64(nanos % 1e9)}
		var err error
		ts := int64(0)
		switch {
		case nanos > math.MaxInt64:
			err = fmt.Errorf("a timestamp that is %d nanoseconds after the start of its day", int64(nanos))
		case dst.Type.Seen != nil:
			dst.Type.Seen.Add(m)
		default:
			ts, err = m.Value(dst.Type, "the timestamp "+m.String())
		}
		if err != nil {
			dst.Fault(err)
		}
		dst.Ints = append(dst.Ints, ts)
		dst.Len++
	}
	return nil
}

func convertBytes(dst *column.Array, s *page.Values, n int, limits *column.Limits) error {
	return appendCells(dst, s.Bytes[:n], limits)
}

func convertFixed(dst *column.Array, s *page.Values, n int, limits *column.Limits) error {
	return appendCells(dst, s.Fixed[:n], limits)
}

func appendCells[T ~[]byte](dst *column.Array, cells []T, limits *column.Limits) error {
	for _, v := range cells {
		if err := column.AppendCell(dst, v, limits); err != nil {
			return err
		}
	}
	return nil
}

func convertFloat16(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	for _, v := range s.Fixed[:n] {
		if len(v) != 2 {
			return fmt.Errorf("a float16 of %d bytes", len(v))
		}
		dst.Floats = append(dst.Floats, column.HalfValue(binary.LittleEndian.Uint16(v)))
	}
	dst.Len += n
	return nil
}

// convertDecimals takes decimals from big-endian two's complement bytes, of one length or of any.
func convertDecimals(fixed bool, width int) leafConverter {
	return func(dst *column.Array, s *page.Values, n int, limits *column.Limits) error {
		for i := range n {
			var v []byte
			if fixed {
				v = s.Fixed[i]
			} else {
				v = s.Bytes[i]
			}
			if err := column.AppendDecimal(dst, v, width, limits); err != nil {
				return err
			}
		}
		return nil
	}
}
