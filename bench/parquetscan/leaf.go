package parquetscan

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/dsistore/dsistore/format/vector"
)

// number is what a leaf column holds.
type number interface {
	bool | int32 | int64 | float32 | float64
}

// chunks hands out the column chunks of one leaf, row group by row group, file by file.
type chunks struct {
	files []*file.Reader
	leaf  []int // by file: the leaf's number
	file  int
	group int
}

// next returns the next chunk, or io.EOF.
func (c *chunks) next() (file.ColumnChunkReader, error) {
	for c.file < len(c.files) {
		f := c.files[c.file]
		if c.group < f.NumRowGroups() {
			c.group++
			return f.RowGroup(c.group - 1).Column(c.leaf[c.file])
		}
		c.file, c.group = c.file+1, 0
	}
	return nil, io.EOF
}

// A leaf reads one leaf column, row by row.
type leaf[T number] struct {
	chunks  chunks
	current file.ColumnChunkReader

	// Levels read and not yet used, and the values that belong to them.
	defs, reps []int16
	carried    []T
	perRow     float64 // levels a row, as seen so far
}

// read reads up to n levels, and their values to the front of values. It returns 0 levels at the end of the last chunk.
func (l *leaf[T]) read(n int, values []T, defs, reps []int16) (levels, got int, err error) {
	for {
		if l.current == nil {
			l.current, err = l.chunks.next()
			if err == io.EOF {
				return 0, 0, nil
			}
			if err != nil {
				return 0, 0, err
			}
		}
		var total int64
		switch cr := l.current.(type) {
		case *file.Int64ColumnChunkReader:
			total, got, err = cr.ReadBatch(int64(n), any(values).([]int64), defs, reps)
		case *file.Int32ColumnChunkReader:
			total, got, err = cr.ReadBatch(int64(n), any(values).([]int32), defs, reps)
		case *file.Float32ColumnChunkReader:
			total, got, err = cr.ReadBatch(int64(n), any(values).([]float32), defs, reps)
		case *file.Float64ColumnChunkReader:
			total, got, err = cr.ReadBatch(int64(n), any(values).([]float64), defs, reps)
		case *file.BooleanColumnChunkReader:
			total, got, err = cr.ReadBatch(int64(n), any(values).([]bool), defs, reps)
		default:
			err = fmt.Errorf("no tensor holds a column of %v", cr.Type())
		}
		if err != nil {
			return 0, 0, err
		}
		if total > 0 {
			return int(total), got, nil
		}
		l.current = nil
	}
}

// scalars appends the values of n rows that are not null to dst and returns it; l.defs[i] is then the level of row i.
func (l *leaf[T]) scalars(dst []T, n int) ([]T, error) {
	l.defs = grown(l.defs[:0], n)
	at := 0
	for at < n {
		used := len(dst)
		dst = grown(dst, n-at)
		levels, got, err := l.read(n-at, dst[used:], l.defs[at:n], nil)
		if err != nil {
			return dst, err
		}
		if levels == 0 {
			return dst, io.ErrUnexpectedEOF
		}
		dst = dst[:used+got]
		at += levels
	}
	return dst, nil
}

// lists appends the values of n rows' lists to dst and returns it. It sets lengths[i], and the bit of every row that
// is not null. deepest is the definition level of a value.
func (l *leaf[T]) lists(dst []T, n int, deepest int16, lengths []int32, present vector.Bitmap) ([]T, error) {
	if l.perRow == 0 {
		l.perRow = 8
	}
	dst = append(dst, l.carried...)
	have, at := len(l.defs), 0
	row, values := -1, 0 // values: how many of what was appended belong to the n rows
	var length int32
	appended := len(l.carried)
	base := len(dst) - appended
	for {
		for ; at < have; at++ {
			if l.reps[at] == 0 {
				if row >= 0 {
					lengths[row] = length
				}
				if row == n-1 {
					return l.carry(dst, base, at, have, values, n), nil
				}
				row++
				length = 0
				if l.defs[at] != 0 {
					present.Set(row)
				}
			}
			if l.defs[at] == deepest {
				length++
				values++
			}
		}
		want := max(int(float64(n-1-row)*l.perRow*0.98), 64)
		l.defs, l.reps, dst = grown(l.defs[:have], want), grown(l.reps[:have], want), grown(dst[:base+appended], want)
		levels, got, err := l.read(want, dst[base+appended:], l.defs[have:], l.reps[have:])
		if err != nil {
			return dst, err
		}
		appended += got
		dst = dst[:base+appended]
		have += levels
		if levels == 0 {
			if row != n-1 {
				return dst, io.ErrUnexpectedEOF
			}
			lengths[row] = length
			return l.carry(dst, base, at, have, values, n), nil
		}
	}
}

// carry keeps the levels from at on, and their values, for the next call.
func (l *leaf[T]) carry(dst []T, base, at, have, values, rows int) []T {
	l.carried = append(l.carried[:0], dst[base+values:]...)
	l.perRow = float64(at) / float64(rows)
	l.defs = l.defs[:copy(l.defs, l.defs[at:have])]
	l.reps = l.reps[:copy(l.reps, l.reps[at:have])]
	return dst[:base+values]
}

// grown returns s with n more elements, of any value.
func grown[T any](s []T, n int) []T {
	if cap(s)-len(s) < n {
		s = append(make([]T, 0, (len(s)+n)*5/4), s...)
	}
	return s[:len(s)+n]
}
