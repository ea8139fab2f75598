package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The leafConverters: what Parquet's values of each physical and logical type become.

func convertNull(_ *array, _ *pageValues, n int, _ *Limits) error {
	if n > 0 {
		return errors.New("a value in a column whose type says that all are null")
	}
	return nil
}

func convertBool(dst *array, s *pageValues, n int, _ *Limits) error {
	for _, v := range s.bools[:n] {
		b := int64(0)
		if v {
			b = 1
		}
		dst.ints = append(dst.ints, b)
	}
	dst.n += n
	return nil
}

func convertInt32(dst *array, s *pageValues, n int, _ *Limits) error {
	for _, v := range s.i32[:n] {
		dst.ints = append(dst.ints, int64(v))
	}
	dst.n += n
	return nil
}

func convertUint32(dst *array, s *pageValues, n int, _ *Limits) error {
	for _, v := range s.i32[:n] {
		dst.ints = append(dst.ints, int64(uint32(v)))
	}
	dst.n += n
	return nil
}

// convertNarrow takes 8- and 16-bit integers from 32 bits.
func convertNarrow(dst *array, s *pageValues, n int, _ *Limits) error {
	for _, v := range s.i32[:n] {
		if !elemHolds(dst.node.elem, int64(v)) {
			dst.faults = append(dst.faults, fault{dst.n, fmt.Errorf("%d does not fit %v", v, dst.node.elem)})
			v = 0
		}
		dst.ints = append(dst.ints, int64(v))
		dst.n++
	}
	return nil
}

func convertInt64(dst *array, s *pageValues, n int, _ *Limits) error {
	dst.ints = append(dst.ints, s.i64[:n]...)
	dst.n += n
	return nil
}

func convertFloat(dst *array, s *pageValues, n int, _ *Limits) error {
	dst.floats = append(dst.floats, s.f32[:n]...)
	dst.n += n
	return nil
}

func convertDouble(dst *array, s *pageValues, n int, _ *Limits) error {
	dst.doubles = append(dst.doubles, s.f64[:n]...)
	dst.n += n
	return nil
}

// convertInt96 takes Impala's and Spark's timestamps: nanoseconds of the day (8 bytes LE), Julian day (4 bytes LE).
func convertInt96(dst *array, s *pageValues, n int, _ *Limits) error {
	const epochDay, daySeconds = 2440588, 86400
	for _, v := range s.i96[:n] {
		nanos := binary.LittleEndian.Uint64(v[:8])
		days := int64(int32(binary.LittleEndian.Uint32(v[8:]))) - epochDay
		m := moment{days*daySeconds + int64(nanos/1e9), int64(nanos % 1e9)}
		var err error
		ts := int64(0)
		switch {
		case nanos > math.MaxInt64:
			err = fmt.Errorf("a timestamp that is %d nanoseconds after the start of its day", int64(nanos))
		case dst.node.seen != nil:
			dst.node.seen.add(m)
		default:
			ts, err = m.value(dst.node, "the timestamp "+m.String())
		}
		if err != nil {
			dst.faults = append(dst.faults, fault{dst.n, err})
		}
		dst.ints = append(dst.ints, ts)
		dst.n++
	}
	return nil
}

func convertBytes(dst *array, s *pageValues, n int, limits *Limits) error {
	for _, v := range s.bytes[:n] {
		if err := appendCell(dst, v, limits); err != nil {
			return err
		}
	}
	return nil
}

func convertFixed(dst *array, s *pageValues, n int, limits *Limits) error {
	for _, v := range s.fixed[:n] {
		if err := appendCell(dst, v, limits); err != nil {
			return err
		}
	}
	return nil
}

func convertFloat16(dst *array, s *pageValues, n int, _ *Limits) error {
	for _, v := range s.fixed[:n] {
		if len(v) != 2 {
			return fmt.Errorf("a float16 of %d bytes", len(v))
		}
		dst.floats = append(dst.floats, halfValue(binary.LittleEndian.Uint16(v)))
	}
	dst.n += n
	return nil
}

// cell returns value i of a byte array column, fixed or not.
func cell(s *pageValues, i int, fixed bool) []byte {
	if fixed {
		return s.fixed[i]
	}
	return s.bytes[i]
}

// convertDecimal64 takes decimals of up to 18 digits from big-endian two's complement bytes.
func convertDecimal64(fixed bool) leafConverter {
	return func(dst *array, s *pageValues, n int, _ *Limits) error {
		for i := range n {
			v := trimDecimal(cell(s, i, fixed))
			x := int64(0)
			switch {
			case len(v) == 0:
				dst.faults = append(dst.faults, fault{dst.n, errors.New("a decimal of no bytes")})
			case len(v) > 8:
				dst.faults = append(dst.faults, fault{dst.n, fmt.Errorf("%x does not fit %s", v, dst.node.logical)})
			default:
				x = int64(int8(v[0]))
				for _, b := range v[1:] {
					x = x<<8 | int64(b)
				}
			}
			dst.ints = append(dst.ints, x)
			dst.n++
		}
		return nil
	}
}

// convertDecimalBytes takes larger decimals, and makes all of them width bytes.
func convertDecimalBytes(fixed bool, width int) leafConverter {
	return func(dst *array, s *pageValues, n int, limits *Limits) error {
		var wide [32]byte
		for i := range n {
			v := trimDecimal(cell(s, i, fixed))
			if len(v) == 0 || len(v) > width {
				dst.faults = append(dst.faults, fault{dst.n, fmt.Errorf("%x is no %s", v, dst.node.logical)})
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
			if err := appendCell(dst, wide[:width], limits); err != nil {
				return err
			}
		}
		return nil
	}
}
