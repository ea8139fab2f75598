package workload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/dsistore/dsistore/format/vector"
)

// chunkRows are made and handed to Parquet's encoders at a time.
const chunkRows = 4096

// write writes rows [from, to) as one Parquet file.
func (g *generator) write(ctx context.Context, sink io.Writer, from, to int64) error {
	o := g.truth.options
	codec := compress.Codecs.Zstd
	if o.Codec == Snappy {
		codec = compress.Codecs.Snappy
	}
	props := parquet.NewWriterProperties(
		parquet.WithCompression(codec), parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithMaxRowGroupLength(windowRows),
	)
	cols := columns(g.truth.features, o.Layout)
	fields := make([]arrow.Field, len(cols))
	for i := range cols {
		fields[i] = cols[i].field
	}
	schema := arrow.NewSchema(fields, nil)
	root, err := pqarrow.ToParquet(schema, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	var meta metadata.KeyValueMetadata
	if o.Layout == Flat {
		// Arrow's own schema tells an embedding (a list of fixed size) from a list.
		stored, err := serialised(schema)
		if err != nil {
			return err
		}
		if err := meta.Append("ARROW:schema", stored); err != nil {
			return err
		}
	}
	buffered := bufio.NewWriterSize(sink, 1<<20)
	w, err := file.NewParquetWriterWithError(buffered, root.Root(), file.WithWriterProps(props),
		file.WithWriteMetadata(meta))
	if err != nil {
		return err
	}
	group := &rowGroup{generator: g, w: w, columns: cols}
	err = g.rowGroups(from, to, func(from, to int64) error {
		g.tally.sessions += g.sessionsBegun(from, to)
		if o.Layout == HiveMap {
			return group.maps(ctx, from, to)
		}
		return group.flat(ctx, from, to)
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return buffered.Flush()
}

func serialised(schema *arrow.Schema) (string, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// sessionsBegun counts the sessions whose first sample is among rows [from, to) of the current window.
func (g *generator) sessionsBegun(from, to int64) int64 {
	w, n := &g.truth.window, int64(0)
	for _, p := range g.truth.order(int(from-w.first), int(to-w.first)) {
		if w.step(p) == 0 {
			n++
		}
	}
	return n
}

// A rowGroup writes row groups of one file; its buffers are used again.
type rowGroup struct {
	*generator
	w       *file.Writer
	columns []column
	leaf    leaf
	vectors []*vector.Column
}

// flat writes rows [from, to), of one window, one column after another.
func (r *rowGroup) flat(ctx context.Context, from, to int64) error {
	rg, err := r.w.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	w := r.truth.enter(from)
	var c vector.Column
	for i := range r.truth.features {
		f := &r.truth.features[i]
		r.truth.use(i)
		c.Type = f.Type
		leaves := 1
		if f.Type.Kind == vector.Weighted {
			leaves = 2
		}
		for part := range leaves {
			cw, err := rg.NextColumn()
			if err != nil {
				return err
			}
			for at := from; at < to; at += chunkRows {
				end := min(at+chunkRows, to)
				c.Reset()
				r.truth.maker.appendTo(&c, r.truth.order(int(at-w.first), int(end-w.first)))
				if part == 0 {
					r.tally.add(i, &c)
				}
				r.leaf.flat(&c)
				if err := r.leaf.write(cw, &c, part == 1); err != nil {
					return fmt.Errorf("column %s: %w", f.Name, err)
				}
			}
			if err := cw.Close(); err != nil {
				return err
			}
		}
		r.progress(to - from)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return rg.Close()
}

// A leaf is the levels, and the values that are not null, of one Parquet leaf column.
type leaf struct {
	defs, reps []int16 // reps is empty where the leaf does not repeat
	ints32     []int32
	bools      []bool
	ints       []int64
	floats     []float32
	doubles    []float64
}

func (l *leaf) reset() {
	l.defs, l.reps, l.ints32, l.bools = l.defs[:0], l.reps[:0], l.ints32[:0], l.bools[:0]
	l.ints, l.floats, l.doubles = l.ints[:0], l.floats[:0], l.doubles[:0]
}

// flat sets the levels of a column of its own:
//
//	scalar  0 null, 1 present
//	list    0 null, 1 empty, 2 null element, 3 present
//	list of struct<id, score>  0 null, 1 empty, 2 null struct, 3 null field, 4 present
func (l *leaf) flat(c *vector.Column) {
	l.reset()
	if c.Type.Kind == vector.Dense {
		for s := range c.Slots {
			l.defs = append(l.defs, int16(c.Present[s>>6]>>(uint(s)&63)&1))
		}
		return
	}
	deepest := int16(3)
	if c.Type.Kind == vector.Weighted {
		deepest = 4
	}
	for s := range c.Slots {
		lo, hi := c.SlotRange(s)
		switch {
		case !c.Present.Get(s):
			l.defs, l.reps = append(l.defs, 0), append(l.reps, 0)
		case lo == hi:
			l.defs, l.reps = append(l.defs, 1), append(l.reps, 0)
		default:
			l.run(hi-lo, deepest, 0, 1)
		}
	}
}

// run appends n values at a definition level, the first at one repetition level and the others at another.
func (l *leaf) run(n int, def, first, others int16) {
	at := len(l.defs)
	l.defs, l.reps = resizeKeep(l.defs, at+n), resizeKeep(l.reps, at+n)
	fill(l.defs[at:], def)
	l.reps[at] = first
	fill(l.reps[at+1:], others)
}

// write hands c's values (or its scores) and the levels to a column.
func (l *leaf) write(cw file.ColumnChunkWriter, c *vector.Column, scores bool) error {
	reps := l.reps
	if len(reps) == 0 {
		reps = nil
	}
	var err error
	switch cw := cw.(type) {
	case *file.Int64ColumnChunkWriter:
		_, err = cw.WriteBatch(compact(c, c.Ints, &l.ints), l.defs, reps)
	case *file.Int32ColumnChunkWriter:
		l.ints32 = l.ints32[:0]
		for _, v := range compact(c, c.Ints, &l.ints) {
			l.ints32 = append(l.ints32, int32(v))
		}
		_, err = cw.WriteBatch(l.ints32, l.defs, reps)
	case *file.BooleanColumnChunkWriter:
		l.bools = l.bools[:0]
		for _, v := range compact(c, c.Ints, &l.ints) {
			l.bools = append(l.bools, v != 0)
		}
		_, err = cw.WriteBatch(l.bools, l.defs, reps)
	case *file.Float32ColumnChunkWriter:
		values := c.ScoreFloats
		if !scores {
			values = compact(c, c.Floats, &l.floats)
		}
		_, err = cw.WriteBatch(values, l.defs, reps)
	case *file.Float64ColumnChunkWriter:
		_, err = cw.WriteBatch(compact(c, c.Doubles, &l.doubles), l.defs, reps)
	default:
		err = fmt.Errorf("no values for a column of type %v", cw.Type())
	}
	return err
}

// compact returns the values of the slots that are present; buf holds them where they are not all.
func compact[T any](c *vector.Column, values []T, buf *[]T) []T {
	width := c.Type.Width()
	if width == 0 {
		return values // null lists hold none
	}
	*buf = (*buf)[:0]
	for s := range c.Slots {
		if c.Present.Get(s) {
			*buf = append(*buf, values[s*width:(s+1)*width]...)
		}
	}
	return *buf
}
