package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/dsistore/dsistore/format/vector"
)

// leafScratch holds what the library's readers decode into. A worker has one.
type leafScratch struct {
	defs, reps []int16
	bools      []bool
	i32        []int32
	i64        []int64
	i96        []parquet.Int96
	f32        []float32
	f64        []float64
	bytes      []parquet.ByteArray
	fixed      []parquet.FixedLenByteArray
}

// A leafConverter appends n values, which are in the scratch slice of the column's physical type, to dst.
type leafConverter func(dst *array, s *leafScratch, n int, limits *Limits) error

// A leafReader reads one column chunk. Its pending levels and values always begin at the start of a row.
type leafReader struct {
	col     *schema.Column
	reader  file.ColumnChunkReader
	pages   *pageReader
	convert leafConverter
	limits  *Limits

	levels     int     // pending
	defs, reps []int16 // of the pending entries; empty when the column has no such levels
	vals       *array  // the values of the pending entries that are not null
}

var errShortPage = errors.New("a page holds fewer values than its header says")

const levelBatch = 8192

// fill reads until rows whole rows are pending, and returns how many levels and values they have.
func (l *leafReader) fill(rows int, s *leafScratch) (levels, values int, err error) {
	if l.col.MaxRepetitionLevel() == 0 {
		for l.levels < rows {
			if err := l.read(rows-l.levels, s); err != nil {
				return 0, 0, err
			}
		}
		return rows, l.countValues(rows), nil
	}
	begun, scan, last := 0, 0, 0
	for {
		for ; scan < l.levels; scan++ {
			if l.reps[scan] == 0 {
				if begun == rows {
					return scan, l.countValues(scan), nil
				}
				begun++
				last = scan
			}
		}
		if int64(l.levels-last) > l.limits.CellValues {
			return 0, 0, fmt.Errorf("a row of more than %d values", l.limits.CellValues)
		}
		if l.pages.left == 0 && l.pages.remaining == 0 {
			if begun != rows {
				return 0, 0, fmt.Errorf("the column has %d rows too few", rows-begun)
			}
			return l.levels, l.vals.n, nil
		}
		if err := l.read(min(levelBatch, max(64, 2*rows)), s); err != nil {
			return 0, 0, err
		}
	}
}

func (l *leafReader) countValues(levels int) int {
	if l.col.MaxDefinitionLevel() == 0 {
		return levels
	}
	if levels == l.levels {
		return l.vals.n
	}
	n, top := 0, l.col.MaxDefinitionLevel()
	for _, d := range l.defs[:levels] {
		if d == top {
			n++
		}
	}
	return n
}

// read appends at least one and up to n levels with their values to what is pending, all from one page: a page's bytes
// are borrowed until the next.
func (l *leafReader) read(n int, s *leafScratch) error {
	if l.pages.left == 0 {
		if !l.reader.HasNext() {
			if err := l.reader.Err(); err != nil {
				return err
			}
			if l.pages.err != nil {
				return l.pages.err
			}
			return errors.New("the column ends before its last row")
		}
	}
	n = int(min(int64(n), l.pages.left, levelBatch))
	s.defs, s.reps = sized(s.defs, n), sized(s.reps, n)
	var defs, reps []int16
	if l.col.MaxDefinitionLevel() > 0 {
		defs = s.defs
	}
	if l.col.MaxRepetitionLevel() > 0 {
		reps = s.reps
	}
	levels, values, err := l.decode(n, defs, reps, s)
	if err != nil {
		return err
	}
	if levels <= 0 || levels > int64(n) {
		return errShortPage
	}
	l.pages.left -= levels
	if err := l.check(defs, reps, int(levels), values); err != nil {
		return err
	}
	if defs != nil {
		l.defs = append(l.defs, defs[:levels]...)
	}
	if reps != nil {
		l.reps = append(l.reps, reps[:levels]...)
	}
	l.levels += int(levels)
	if err := l.convert(l.vals, s, values, l.limits); err != nil {
		return err
	}
	if size := int64(4*l.levels) + l.vals.sizeBytes(); size > l.limits.BatchBytes {
		return fmt.Errorf("%d rows hold more than %d bytes", l.levels, l.limits.BatchBytes)
	}
	return nil
}

// check verifies the levels of a batch against the column's schema and the number of values.
func (l *leafReader) check(defs, reps []int16, levels, values int) error {
	present := levels
	if defs != nil {
		present = 0
		top := l.col.MaxDefinitionLevel()
		for _, d := range defs[:levels] {
			if d < 0 || d > top {
				return fmt.Errorf("a definition level of %d, the greatest is %d", d, top)
			}
			if d == top {
				present++
			}
		}
	}
	if present != values {
		return errShortPage
	}
	if reps != nil {
		top := l.col.MaxRepetitionLevel()
		for _, r := range reps[:levels] {
			if r < 0 || r > top {
				return fmt.Errorf("a repetition level of %d, the greatest is %d", r, top)
			}
		}
		if l.levels == 0 && reps[0] != 0 {
			return errors.New("the column does not begin with the start of a row")
		}
	}
	return nil
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (l *leafReader) decode(n int, defs, reps []int16, s *leafScratch) (int64, int, error) {
	switch r := l.reader.(type) {
	case *file.BooleanColumnChunkReader:
		s.bools = sized(s.bools, n)
		return r.ReadBatchInPage(int64(n), s.bools, defs, reps)
	case *file.Int32ColumnChunkReader:
		s.i32 = sized(s.i32, n)
		return r.ReadBatchInPage(int64(n), s.i32, defs, reps)
	case *file.Int64ColumnChunkReader:
		s.i64 = sized(s.i64, n)
		return r.ReadBatchInPage(int64(n), s.i64, defs, reps)
	case *file.Int96ColumnChunkReader:
		s.i96 = sized(s.i96, n)
		return r.ReadBatchInPage(int64(n), s.i96, defs, reps)
	case *file.Float32ColumnChunkReader:
		s.f32 = sized(s.f32, n)
		return r.ReadBatchInPage(int64(n), s.f32, defs, reps)
	case *file.Float64ColumnChunkReader:
		s.f64 = sized(s.f64, n)
		return r.ReadBatchInPage(int64(n), s.f64, defs, reps)
	case *file.ByteArrayColumnChunkReader:
		s.bytes = sized(s.bytes, n)
		return r.ReadBatchInPage(int64(n), s.bytes, defs, reps)
	case *file.FixedLenByteArrayColumnChunkReader:
		s.fixed = sized(s.fixed, n)
		return r.ReadBatchInPage(int64(n), s.fixed, defs, reps)
	}
	return 0, 0, fmt.Errorf("no reader of physical type %v", l.col.PhysicalType())
}

// take returns the entries of the first levels pending levels, which hold the first values pending values, and forgets
// them. An entry begins where the definition level is at least slot.
func (l *leafReader) take(levels, values int, slot int16) *array {
	a := &array{node: l.vals.node}
	whole := values == l.vals.n
	src := l.vals
	if whole {
		l.vals = newArray(src.node)
	}
	top := l.col.MaxDefinitionLevel()
	if top > 0 {
		n := 0
		for _, d := range l.defs[:levels] {
			if d >= slot {
				n++
			}
		}
		a.n = n
		if n != values {
			a.valid = make(vector.Bitmap, vector.BitmapWords(n))
			i := 0
			for _, d := range l.defs[:levels] {
				if d == top {
					a.valid.Set(i)
				}
				if d >= slot {
					i++
				}
			}
		}
	} else {
		a.n = levels
	}
	a.fillFrom(src, values, whole)
	if !whole {
		src.dropFirst(values)
	}
	return a
}

// forget drops pending levels.
func (l *leafReader) forget(levels int) {
	l.levels -= levels
	if len(l.defs) > 0 {
		l.defs = l.defs[:copy(l.defs, l.defs[levels:])]
	}
	if len(l.reps) > 0 {
		l.reps = l.reps[:copy(l.reps, l.reps[levels:])]
	}
}

// fillFrom gives a, whose n and valid are set, the first values values of src, which holds no nulls. steal: src is not
// used again.
func (a *array) fillFrom(src *array, values int, steal bool) {
	if a.valid == nil && steal {
		a.ints, a.floats, a.doubles, a.data, a.offsets = src.ints, src.floats, src.doubles, src.data, src.offsets
		a.faults = src.faults
		return
	}
	switch a.node.shape {
	case shapeNumber:
		switch a.node.elem.Physical() {
		case vector.Float32Values:
			a.floats = spread(a, src.floats[:values])
		case vector.Float64Values:
			a.doubles = spread(a, src.doubles[:values])
		default:
			a.ints = spread(a, src.ints[:values])
		}
	case shapeBytes, shapeString:
		a.offsets = make([]int32, 1, a.n+1)
		next := 0
		for i := range a.n {
			if a.valid == nil || a.valid.Get(i) {
				next++
			}
			a.offsets = append(a.offsets, src.offsets[next])
		}
		a.data = append([]byte(nil), src.data[:src.offsets[values]]...)
	}
	if len(src.faults) == 0 {
		return
	}
	next, f := 0, 0
	for i := 0; i < a.n && f < len(src.faults); i++ {
		if a.valid == nil || a.valid.Get(i) {
			if src.faults[f].entry == next {
				a.faults = append(a.faults, fault{i, src.faults[f].err})
				f++
			}
			next++
		}
	}
}

// spread returns vals with a zero wherever a is null.
func spread[T int64 | float32 | float64](a *array, vals []T) []T {
	if a.valid == nil {
		return append([]T(nil), vals...)
	}
	out := make([]T, a.n)
	next := 0
	for i := range out {
		if a.valid.Get(i) {
			out[i] = vals[next]
			next++
		}
	}
	return out
}

// dropFirst drops the first n entries of a leaf that holds no nulls.
func (a *array) dropFirst(n int) {
	a.n -= n
	switch a.node.shape {
	case shapeNumber:
		switch a.node.elem.Physical() {
		case vector.Float32Values:
			a.floats = a.floats[:copy(a.floats, a.floats[n:])]
		case vector.Float64Values:
			a.doubles = a.doubles[:copy(a.doubles, a.doubles[n:])]
		default:
			a.ints = a.ints[:copy(a.ints, a.ints[n:])]
		}
	case shapeBytes, shapeString:
		at := a.offsets[n]
		a.data = a.data[:copy(a.data, a.data[at:])]
		for i := range a.n + 1 {
			a.offsets[i] = a.offsets[i+n] - at
		}
		a.offsets = a.offsets[:a.n+1]
	}
	kept := a.faults[:0]
	for _, f := range a.faults {
		if f.entry >= n {
			kept = append(kept, fault{f.entry - n, f.err})
		}
	}
	a.faults = kept
}

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
	const epochDay, dayNanos = 2440588, 86400 * 1_000_000_000
	for _, v := range s.i96[:n] {
		nanos := binary.LittleEndian.Uint64(v[:8])
		days := int64(int32(binary.LittleEndian.Uint32(v[8:]))) - epochDay
		ts := days*dayNanos + int64(nanos)
		if days > math.MaxInt64/dayNanos || days < math.MinInt64/dayNanos || nanos > math.MaxInt64 ||
			(days >= 0 && ts < 0) {
			dst.faults = append(dst.faults, fault{dst.n, fmt.Errorf("day %d of the Julian calendar is not in the years 1677 to 2262 that 64 bits of nanoseconds hold", days+epochDay)})
			ts = 0
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
