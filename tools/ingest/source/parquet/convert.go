package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

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
		b := int64(0)
		if v {
			b = 1
		}
		dst.Ints = append(dst.Ints, b)
	}
	dst.Len += n
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

func convertInt64(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	dst.Ints = append(dst.Ints, s.I64[:n]...)
	dst.Len += n
	return nil
}

func convertFloat(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	dst.Floats = append(dst.Floats, s.F32[:n]...)
	dst.Len += n
	return nil
}

func convertDouble(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
	dst.Doubles = append(dst.Doubles, s.F64[:n]...)
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
	for _, v := range s.Bytes[:n] {
		if err := column.AppendCell(dst, v, limits); err != nil {
			return err
		}
	}
	return nil
}

func convertFixed(dst *column.Array, s *page.Values, n int, limits *column.Limits) error {
	for _, v := range s.Fixed[:n] {
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

// cell returns value i of a byte array column, fixed or not.
func cell(s *page.Values, i int, fixed bool) []byte {
	if fixed {
		return s.Fixed[i]
	}
	return s.Bytes[i]
}

// convertDecimal64 takes decimals of up to 18 digits from big-endian two's complement bytes.
func convertDecimal64(fixed bool) leafConverter {
	return func(dst *column.Array, s *page.Values, n int, _ *column.Limits) error {
		for i := range n {
			v := column.TrimDecimal(cell(s, i, fixed))
			x := int64(0)
			switch {
			case len(v) == 0:
				dst.Fault(errors.New("a decimal of no bytes"))
			case len(v) > 8:
				dst.Fault(fmt.Errorf("%x does not fit %s", v, dst.Type.Logical))
			default:
				x = int64(int8(v[0]))
				for _, b := range v[1:] {
					x = x<<8 | int64(b)
				}
			}
			dst.Ints = append(dst.Ints, x)
			dst.Len++
		}
		return nil
	}
}

// convertDecimalBytes takes larger decimals, and makes all of them width bytes.
func convertDecimalBytes(fixed bool, width int) leafConverter {
	return func(dst *column.Array, s *page.Values, n int, limits *column.Limits) error {
		var wide [32]byte
		for i := range n {
			v := column.TrimDecimal(cell(s, i, fixed))
			if len(v) == 0 || len(v) > width {
				dst.Fault(fmt.Errorf("%x is no %s", v, dst.Type.Logical))
				v = []byte{0}
			}
			fill := byte(0)
			if v[0] >= 0x80 {
				fill = 0xff
			}
			for k := range width - len(v) {
				wide[k] = fill
			}
			copy(wide[width-len(v):], v)
			if err := column.AppendCell(dst, wide[:width], limits); err != nil {
				return err
			}
		}
		return nil
	}
}
