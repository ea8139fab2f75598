package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The leafConverters: what Parquet's values of each physical and logical type become.

func convertNull(_ *array, _ *leafScratch, n int, _ *Limits) error {
	if n > 0 {
		return errors.New("a value in a column whose type says that all are null")
	}
	return nil
}

func convertBool(dst *array, s *leafScratch, n int, _ *Limits) error {
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

func convertInt32(dst *array, s *leafScratch, n int, _ *Limits) error {
	for _, v := range s.i32[:n] {
		dst.ints = append(dst.ints, int64(v))
	}
	dst.n += n
	return nil
}

func convertUint32(dst *array, s *leafScratch, n int, _ *Limits) error {
	for _, v := range s.i32[:n] {
		dst.ints = append(dst.ints, int64(uint32(v)))
	}
	dst.n += n
	return nil
}

// convertNarrow takes 8- and 16-bit integers from 32 bits.
func convertNarrow(dst *array, s *leafScratch, n int, _ *Limits) error {
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

func convertInt64(dst *array, s *leafScratch, n int, _ *Limits) error {
	dst.ints = append(dst.ints, s.i64[:n]...)
	dst.n += n
	return nil
}

func convertFloat(dst *array, s *leafScratch, n int, _ *Limits) error {
	dst.floats = append(dst.floats, s.f32[:n]...)
	dst.n += n
	return nil
}

func convertDouble(dst *array, s *leafScratch, n int, _ *Limits) error {
	dst.doubles = append(dst.doubles, s.f64[:n]...)
	dst.n += n
	return nil
}

// convertInt96 takes Impala's and Spark's timestamps: nanoseconds of the day (8 bytes LE), Julian day (4 bytes LE).
func convertInt96(dst *array, s *leafScratch, n int, _ *Limits) error {
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

// appendCell appends a byte string, or a fault in its place when it is too long.
func appendCell[T ~string | ~[]byte](a *array, v T, limits *Limits) error {
	if int64(len(v)) > limits.CellBytes {
		a.faults = append(a.faults, fault{a.n, fmt.Errorf("a value of %d bytes, the limit is %d", len(v), limits.CellBytes)})
		v = v[:0]
	}
	if int64(len(a.data)+len(v)) > min(limits.BatchBytes, math.MaxInt32) {
		return fmt.Errorf("%d values hold more than %d bytes", a.n+1, limits.BatchBytes)
	}
	a.data = append(a.data, v...)
	a.appendEntry(true)
	return nil
}

func convertBytes(dst *array, s *leafScratch, n int, limits *Limits) error {
	for _, v := range s.bytes[:n] {
		if err := appendCell(dst, v, limits); err != nil {
			return err
		}
	}
	return nil
}

func convertFixed(dst *array, s *leafScratch, n int, limits *Limits) error {
	for _, v := range s.fixed[:n] {
		if err := appendCell(dst, v, limits); err != nil {
			return err
		}
	}
	return nil
}

func convertFloat16(dst *array, s *leafScratch, n int, _ *Limits) error {
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
func (s *leafScratch) cell(i int, fixed bool) []byte {
	if fixed {
		return s.fixed[i]
	}
	return s.bytes[i]
}

// trimDecimal drops the leading bytes of a big-endian two's complement number that only repeat its sign.
func trimDecimal(v []byte) []byte {
	for len(v) > 1 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:]
	}
	return v
}

// convertDecimal64 takes decimals of up to 18 digits from big-endian two's complement bytes.
func convertDecimal64(fixed bool) leafConverter {
	return func(dst *array, s *leafScratch, n int, _ *Limits) error {
		for i := range n {
			v := trimDecimal(s.cell(i, fixed))
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
	return func(dst *array, s *leafScratch, n int, limits *Limits) error {
		var wide [32]byte
		for i := range n {
			v := trimDecimal(s.cell(i, fixed))
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
