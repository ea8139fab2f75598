package orc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/files"
	"github.com/dsistore/dsistore/tools/ingest/source/lakehouse"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// reader reads an ORC file: pyarrow, in a child process, most of it, and Timestamps the timestamps that pyarrow does
// not hold.
type reader struct {
	file  files.File
	tail  *Tail               // nil: it cannot be read, and pyarrow reads everything
	arrow *arrowsource.Reader // nil: no column is pyarrow's
	child *child

	cols   []fileColumn
	wanted []bool
	row    int64
}

// A fileColumn is a column of the file and what reads it: arrow, with its place among the child's columns; else
// timestamps; else nothing.
type fileColumn struct {
	name       string // empty: the child says it
	node       *column.Type
	arrow      int // -1: it is not the child's
	timestamps *Timestamps
}

// plan decides who reads which column, and returns the names of those that the child leaves out. names are those that
// the columns have in the file.
func (r *reader) plan(m *mapping.Mapping, names []string) (out []string) {
	if r.tail == nil || r.tail.Types[0].Kind != kindStruct {
		return nil
	}
	root := r.tail.Types[0]
	for i, typ := range root.Subtypes {
		name, kind := root.Names[i], r.tail.Types[typ].Kind
		c := fileColumn{name: name, arrow: -1}
		switch {
		case slices.Index(root.Names, name) != i || slices.Index(root.Names[i+1:], name) >= 0:
			// Two columns of one name cannot be told apart: the binding says so.
			c.arrow = 0
		case m.Dropped(name):
			c.node = &column.Type{Name: name, Shape: column.Null}
		case r.tail.hasOldDecimal(typ):
			c.node = &column.Type{Name: name, Shape: column.Refused, Reason: "decimals without a precision, as Hive " +
				"0.11 and 0.12 wrote them: pyarrow, which reads ORC files, keeps six digits after the point of each"}
		case !r.tail.exceedsNanoseconds(typ, false):
			c.arrow = 0
		case kind == Timestamp || kind == Instant:
			c.node = &column.Type{Name: name, Shape: column.Number, Elem: vector.Int64, Logical: "timestamp[ns]",
				AnyUnit: true}
			if kind == Instant {
				c.node.Logical = "timestamp[ns, tz=UTC]"
			}
			c.timestamps = &Timestamps{R: r.file, Tail: r.tail, Typ: typ}
		case !r.tail.exceedsNanoseconds(typ, true):
			c.arrow = 0
		default:
			c.node = &column.Type{Name: name, Shape: column.Refused, Reason: "timestamps outside the years 1677 to " +
				"2262 within a struct, a list or a map: pyarrow, which reads ORC files, does not hold them"}
		}
		if c.arrow < 0 {
			out = append(out, names[i])
		}
		r.cols = append(r.cols, c)
	}
	return out
}

// merge puts the child's columns in their places.
func (r *reader) merge() error {
	nodes := r.arrow.Columns()
	if r.cols == nil {
		for i, n := range nodes {
			r.cols = append(r.cols, fileColumn{node: n, arrow: i})
		}
		return nil
	}
	next := 0
	for i := range r.cols {
		if r.cols[i].arrow < 0 {
			continue
		}
		if next == len(nodes) {
			return errors.New("pyarrow gives fewer columns than the file has")
		}
		r.cols[i].node, r.cols[i].arrow = nodes[next], next
		r.cols[i].node.Name = r.cols[i].name
		next++
	}
	if next != len(nodes) {
		return errors.New("pyarrow gives more columns than the file has")
	}
	return nil
}

// freeUnits says of timestamps in n, which pyarrow gives in nanoseconds, that they may be of any unit.
func freeUnits(n *column.Type) {
	n.AnyUnit = column.TimestampUnit(n.Logical) == "ns"
	for _, c := range n.Children {
		freeUnits(c)
	}
}

func (r *reader) Columns() []*column.Type {
	out := make([]*column.Type, len(r.cols))
	for i, c := range r.cols {
		out[i] = c.node
	}
	return out
}

func (r *reader) Project(wanted []bool) error {
	r.wanted = wanted
	if r.arrow == nil {
		return nil
	}
	inner := make([]bool, len(r.arrow.Columns()))
	for i, c := range r.cols {
		if c.arrow >= 0 {
			inner[c.arrow] = wanted[i]
		}
	}
	return r.arrow.Project(inner)
}

func (r *reader) FileMeta() lakehouse.FileMeta {
	s := lakehouse.FileMeta{IDs: map[string]int32{}}
	for _, n := range r.Columns() {
		s.Columns = append(s.Columns, n.Name)
	}
	if r.tail == nil {
		return s
	}
	s.Meta = r.tail.meta
	root := r.tail.Types[0]
	for i, typ := range root.Subtypes {
		var id int32
		if _, err := fmt.Sscan(r.tail.Types[typ].attributes["iceberg.id"], &id); err == nil {
			s.IDs[root.Names[i]] = id
		}
	}
	return s
}

func (r *reader) Close() error {
	if r.arrow != nil {
		r.arrow.Close()
	}
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

func (r *reader) Next(ctx context.Context) (*column.Batch, error) {
	b := &column.Batch{RowGroup: -1, Row: r.row}
	if r.arrow == nil {
		if b.Rows = int(min(column.MaxRows, r.tail.rows-r.row)); b.Rows <= 0 {
			return nil, r.finish()
		}
	} else {
		stop := context.AfterFunc(ctx, r.child.kill)
		in, err := r.arrow.Next(ctx)
		stop()
		if err == io.EOF {
			return nil, r.finish()
		}
		if err != nil {
			return nil, r.child.explain(ctx, err)
		}
		b = in
	}
	child := b.Arrays
	b.Arrays = make([]*column.Array, len(r.cols))
	for i, c := range r.cols {
		switch {
		case r.wanted != nil && !r.wanted[i]:
		case c.arrow >= 0:
			if b.Arrays[i] = child[c.arrow]; b.Arrays[i] != nil {
				fromNanoseconds(b.Arrays[i])
			}
		case c.timestamps != nil:
			var err error
			if b.Arrays[i], err = c.timestamps.read(c.node, b.Rows); err != nil {
				return nil, fmt.Errorf("column %q: %w", c.node.Name, err)
			}
		}
	}
	r.row += int64(b.Rows)
	return b, nil
}

// finish returns io.EOF, or an error where a column has more rows than others.
func (r *reader) finish() error {
	for i, c := range r.cols {
		if c.timestamps == nil || r.wanted != nil && !r.wanted[i] {
			continue
		}
		if _, _, err := c.timestamps.Next(); err != io.EOF {
			return fmt.Errorf("column %q: it has more rows than other columns", c.node.Name)
		}
	}
	return io.EOF
}

// fromNanoseconds makes timestamps, which are in nanoseconds, those of the units that their nodes say. One that is no
// whole number of it is a fault.
func fromNanoseconds(a *column.Array) {
	if a.Type.AnyUnit && column.TimestampUnit(a.Type.Logical) != "ns" {
		r := column.Rescaling{From: "ns", To: column.TimestampUnit(a.Type.Logical)}
		a.Ints = r.Apply(a,
			func(entry int, err error) { a.Faults = append(a.Faults, column.Fault{Entry: entry, Err: err}) })
	}
	for _, c := range a.Children {
		fromNanoseconds(c)
	}
}
