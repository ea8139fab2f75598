package workload

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/dsistore/dsistore/format/vector"
)

// mapRowGroupRows is the default of Options.RowGroupRows in the Hive map layout.
const mapRowGroupRows = 16_384

// mapChunkValues bounds the values (rows times features) that are made at a time.
const mapChunkValues = 1 << 19

// maps writes rows [from, to), of one window, in the Hive map layout: all columns of the row group are open together,
// and each gets a chunk of rows from all its features.
func (r *rowGroup) maps(ctx context.Context, from, to int64) error {
	rg, err := r.w.AppendBufferedRowGroupChecked()
	if err != nil {
		return err
	}
	w := r.truth.enter(from)
	if r.vectors == nil {
		for i := range r.truth.features {
			r.vectors = append(r.vectors, vector.NewColumn(r.truth.features[i].Type))
		}
	}
	chunk := min(max(int64(mapChunkValues/len(r.vectors)), 1), chunkRows)
	for at := from; at < to; at += chunk {
		end := min(at+chunk, to)
		next := 0
		for i := range r.columns {
			col := &r.columns[i]
			for _, f := range col.features {
				r.truth.use(f)
				r.vectors[f].Reset()
				r.truth.maker.appendTo(r.vectors[f], r.truth.order(int(at-w.first), int(end-w.first)))
				r.tally.add(f, r.vectors[f])
			}
			if err := r.column(rg, &next, col, int(end-at)); err != nil {
				return fmt.Errorf("column %s: %w", col.field.Name, err)
			}
		}
		r.progress((end - at) * int64(len(r.vectors)))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return rg.Close()
}

// column writes the leaves of one column, from the next one of the row group on, and moves next past them.
func (r *rowGroup) column(rg file.BufferedRowGroupWriter, next *int, col *column, rows int) error {
	writer := func() (file.ColumnChunkWriter, error) {
		*next++
		return rg.Column(*next - 1)
	}
	cw, err := writer()
	if err != nil {
		return err
	}
	if !col.mapped {
		c := r.vectors[col.features[0]]
		r.leaf.flat(c)
		return r.leaf.write(cw, c, false)
	}
	keys, ok := cw.(*file.Int32ColumnChunkWriter)
	if !ok {
		return fmt.Errorf("map keys are %v; want int32", cw.Type())
	}
	r.mapKeys(col, rows)
	if _, err := keys.WriteBatch(r.leaf.ints32, r.leaf.defs, r.leaf.reps); err != nil {
		return err
	}
	kind := r.truth.features[col.features[0]].Type.Kind
	leaves := 1
	if kind == vector.Weighted {
		leaves = 2
	}
	for part := range leaves {
		cw, err := writer()
		if err != nil {
			return err
		}
		r.mapValues(col, rows, cw.Descr().MaxDefinitionLevel(), part == 1)
		switch cw := cw.(type) {
		case *file.Int64ColumnChunkWriter:
			_, err = cw.WriteBatch(r.leaf.ints, r.leaf.defs, r.leaf.reps)
		case *file.Float32ColumnChunkWriter:
			_, err = cw.WriteBatch(r.leaf.floats, r.leaf.defs, r.leaf.reps)
		default:
			err = fmt.Errorf("map values are %v; want int64 or float", cw.Type())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mapKeys sets the leaf of the keys: level 1 is an empty map, 2 a key.
func (r *rowGroup) mapKeys(col *column, rows int) {
	l := &r.leaf
	l.reset()
	for row := range rows {
		n := 0
		for _, f := range col.features {
			if r.vectors[f].Present.Get(row) {
				l.ints32 = append(l.ints32, r.truth.features[f].Key)
				n++
			}
		}
		if n == 0 {
			l.defs, l.reps = append(l.defs, 1), append(l.reps, 0)
			continue
		}
		l.run(n, 2, 0, 1)
	}
}

// mapValues sets a leaf of the values: level 1 is an empty map, 3 a key's empty list or inner map, deepest a value.
func (r *rowGroup) mapValues(col *column, rows int, deepest int16, scores bool) {
	l := &r.leaf
	l.reset()
	for row := range rows {
		first := int16(0)
		for _, f := range col.features {
			c := r.vectors[f]
			if !c.Present.Get(row) {
				continue
			}
			lo, hi := c.SlotRange(row)
			switch {
			case lo == hi:
				l.defs, l.reps = append(l.defs, 3), append(l.reps, first)
			default:
				l.run(hi-lo, deepest, first, 2)
			}
			switch {
			case scores:
				l.floats = append(l.floats, c.ScoreFloats[lo:hi]...)
			case c.Type.Kind == vector.Dense:
				l.floats = append(l.floats, c.Floats[lo])
			default:
				l.ints = append(l.ints, c.Ints[lo:hi]...)
			}
			first = 1
		}
		if first == 0 {
			l.defs, l.reps = append(l.defs, 1), append(l.reps, 0)
		}
	}
}
