package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

// place returns where a row of b is.
func place(b *batch, file string, row int) Place {
	p := Place{File: file, RowGroup: b.rowGroup, Row: b.row + int64(row)}
	if b.lines != nil {
		p.Line = b.lines[row]
	}
	return p
}

// tableSource is the Source over a batchReader: it binds columns to features, drops bad rows and splits partitions.
type tableSource struct {
	path      string
	partition storage.Partition
	opts      *Options
	keys      []string // of the table's partitions, where they are known
	reader    batchReader
	binder    *binder
	columns   []boundColumn
	outputs   []output // memory of take, by column
	queue     []*Chunk
	err       error
}

// A boundColumn is what becomes of an input column. At most one of its parts is set; a column that is dropped has none.
type boundColumn struct {
	binding   binding
	directory *storage.PartitionValue // the directory names the same column: values must agree
	by        int                     // 1 + its place in partitionBy; 0: none
	name      string
}

func (c *boundColumn) finds() bool { return c.binding != nil && c.binding.finds() }

func newTableSource(f *File, opts *Options, m *Mapping, lenient bool, open func() (batchReader, error)) (src *tableSource, err error) {
	s := &tableSource{path: f.Path, partition: f.Partition, opts: opts, binder: newBinder(m, opts.Limits, opts.SessionKey, opts.TimeKey, opts.PartitionBy)}
	s.binder.lenient = lenient
	inherited := s.inheritPartitions()
	defer func() {
		if p := recover(); p != nil {
			err = recovered(p)
		}
		if err != nil {
			if s.reader != nil {
				s.reader.close()
			}
			src, err = nil, s.inFile(err)
		}
	}()
	if s.reader, err = open(); err != nil {
		return nil, err
	}
	if r, ok := s.reader.(signedReader); ok {
		if err := r.signs().check(m.dropped); err != nil {
			return nil, err
		}
	}
	if err := s.bind(); err != nil {
		return nil, err
	}
	if r, ok := s.reader.(emptyReader); lenient || ok && r.hasNothing() {
		return s, nil
	}
	for _, by := range s.binder.partitionBy {
		if !slices.ContainsFunc(s.columns, func(c boundColumn) bool { return c.by > 0 && c.name == by }) {
			if inherited {
				return nil, fmt.Errorf("the table is partitioned by %q, and there is neither a directory %s=... nor a column%s", by, by, didYouMean(by, slices.Sorted(maps.Keys(s.binder.seen))))
			}
			return nil, fmt.Errorf("partition by: no column%s", didYouMean(by, slices.Sorted(maps.Keys(s.binder.seen))))
		}
	}
	return s, s.binder.check(s.partition)
}

// inheritPartitions partitions rows as the table is, where nobody says how: by the table's keys that the directories do not give. It reports whether
// there are some.
func (s *tableSource) inheritPartitions() bool {
	if s.opts.PartitionKeys == nil {
		return false
	}
	s.keys = s.opts.PartitionKeys()
	s.partition = OrderPartition(s.partition, s.keys)
	if len(s.binder.partitionBy) > 0 {
		return false
	}
	var rest []string
	for _, k := range s.keys {
		if !slices.ContainsFunc(s.partition, func(v storage.PartitionValue) bool { return v.Key == k }) {
			rest = append(rest, k)
		}
	}
	if len(rest)+len(s.partition) != len(s.keys) {
		return false // the directories have other keys: the table says so
	}
	s.binder.partitionBy = rest
	return len(rest) > 0
}

// inFile says in what file err happened, unless it says so itself.
func (s *tableSource) inFile(err error) error {
	if re := (*RefusedError)(nil); errors.As(err, &re) {
		if re.File == "" {
			re.File = s.path
		}
		return err
	}
	if re := (*RowError)(nil); errors.As(err, &re) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// bind binds the columns that are new since the last call.
func (s *tableSource) bind() error {
	all := s.reader.columns()
	if len(all) > s.opts.Limits.Columns {
		return fmt.Errorf("%d columns: the limit is %d", len(all), s.opts.Limits.Columns)
	}
	for _, n := range all[len(s.columns):] {
		if _, ok := s.binder.seen[n.name]; ok {
			return refuse(n.name, "two columns have this name: rename one of them in the source, since a mapping file cannot tell them apart")
		}
		c := boundColumn{name: n.name}
		if i := slices.IndexFunc(s.partition, func(v storage.PartitionValue) bool { return v.Key == n.name }); i >= 0 {
			s.binder.seen[n.name] = false
			c.directory = &s.partition[i]
		} else if i := slices.Index(s.binder.partitionBy, n.name); i >= 0 {
			s.binder.seen[n.name] = false
			c.by = i + 1
		}
		if c.directory != nil || c.by > 0 {
			if n.shape != shapeNumber && n.shape != shapeString && n.shape != shapeNull {
				return refuse(n.name, "a partition key is a number or a string, not %v", n)
			}
		} else {
			var err error
			if c.binding, err = s.binder.bind(n, n.name, "", "", 1); err != nil {
				return err
			}
		}
		s.columns = append(s.columns, c)
	}
	if !s.binder.lenient {
		if err := s.binder.refused(); err != nil {
			return err
		}
		if err := s.binder.checkGroups(); err != nil {
			return err
		}
	}
	if r, ok := s.reader.(columnChooser); ok {
		wanted := make([]bool, len(s.columns))
		for i, c := range s.columns {
			wanted[i] = c.binding != nil || c.directory != nil || c.by > 0
		}
		return r.want(wanted)
	}
	return nil
}

func (s *tableSource) Fields() []*Field { return slices.Clone(s.binder.fields) }

func (s *tableSource) Close() error {
	for _, c := range s.queue {
		if c != nil {
			c.Release()
		}
	}
	s.queue = nil
	return s.reader.close()
}

func (s *tableSource) Next(ctx context.Context) (chunk *Chunk, err error) {
	if s.err != nil {
		return nil, s.err
	}
	defer func() {
		if p := recover(); p != nil {
			chunk, err = nil, s.inFile(recovered(p))
		}
		s.err = err
	}()
	for len(s.queue) == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := s.reader.next(ctx)
		if err == io.EOF {
			return nil, io.EOF
		}
		if err != nil {
			return nil, s.inFile(err)
		}
		if len(s.reader.columns()) > len(s.columns) {
			if err := s.bind(); err != nil {
				return nil, s.inFile(err)
			}
		}
		err = s.take(ctx, b)
		if b.hold != nil {
			b.hold.Release()
		}
		if err != nil {
			return nil, s.inFile(err)
		}
	}
	chunk, s.queue[0] = s.queue[0], nil
	s.queue = s.queue[1:]
	return chunk, nil
}

// take makes chunks of b and puts them in the queue. Its columns are bound in parallel, those that find new features after the others and in
// their order, so that features are found in the same order whatever the number of threads.
func (s *tableSource) take(ctx context.Context, b *batch) error {
	s.outputs = sized(s.outputs, len(b.arrays))
	by := make([]*array, len(s.binder.partitionBy))
	for i, a := range b.arrays {
		switch {
		case a == nil:
		case a.n != b.rows:
			return fmt.Errorf("column %q has %d rows where others have %d", s.columns[i].name, a.n, b.rows)
		case s.columns[i].by > 0:
			by[s.columns[i].by-1] = a
		}
	}
	err := eachColumn(ctx, len(b.arrays), s.opts.threads(), func(_, i int) error {
		if s.outputs[i].reset(); b.arrays[i] != nil && !s.columns[i].finds() {
			s.emit(b, i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	o := &output{fields: make([]*Field, 0, len(b.arrays)), columns: make([]*vector.Column, 0, len(b.arrays))}
	for _, r := range b.bad {
		o.note(r.row, r.column, r.err)
	}
	for i := range b.arrays {
		if b.arrays[i] != nil && s.columns[i].finds() {
			if s.emit(b, i); s.outputs[i].fail != nil {
				return s.outputs[i].fail
			}
		}
		o.take(&s.outputs[i])
		s.outputs[i].reset()
	}
	keep, err := s.judge(b, o.bad)
	if err != nil {
		return err
	}
	return s.split(b, o, keep, by)
}

// emit makes of column i of b what becomes of it.
func (s *tableSource) emit(b *batch, i int) {
	a, c, o := b.arrays[i], s.columns[i], &s.outputs[i]
	switch {
	case c.binding != nil:
		c.binding.emit(a, nil, o)
		if b.resident {
			for _, made := range o.columns {
				o.lent += a.lent(made)
			}
		}
	case c.directory != nil:
		s.checkDirectory(a, c, o.note)
	case c.by > 0:
		reportFaults(a, func(row int, err error) { o.note(row, c.name, err) })
	}
}

// judge tells of the bad rows, and returns the rows to keep, nil for all.
func (s *tableSource) judge(b *batch, bad map[int]badRow) ([]int32, error) {
	if len(bad) == 0 {
		return nil, nil
	}
	rows := make([]int, 0, len(bad))
	for r := range bad {
		rows = append(rows, r)
	}
	sort.Ints(rows)
	for _, r := range rows {
		e := bad[r]
		at := place(b, s.path, r)
		if s.opts.OnBadRow == nil {
			return nil, &RowError{Place: at, Column: e.column, Err: e.err}
		}
		s.opts.OnBadRow(at, e.column, e.err)
	}
	keep := make([]int32, 0, b.rows-len(bad))
	for r := range b.rows {
		if _, ok := bad[r]; !ok {
			keep = append(keep, int32(r))
		}
	}
	return keep, nil
}

// split queues the rows to keep, a chunk for each partition that they hold.
func (s *tableSource) split(b *batch, o *output, keep []int32, by []*array) error {
	if keep != nil && len(keep) == 0 || b.rows == 0 {
		return nil
	}
	if len(by) == 0 {
		s.queue = append(s.queue, s.chunk(b, o, keep, s.partition))
		return nil
	}
	if keep == nil {
		keep = make([]int32, b.rows)
		for i := range keep {
			keep[i] = int32(i)
		}
	}
	groups := map[string][]int32{}
	parts := map[string]storage.Partition{}
	var order []string
	var key strings.Builder
	for _, row := range keep {
		key.Reset()
		values := make([]storage.PartitionValue, len(by))
		for i, a := range by {
			v := storage.PartitionValue{Key: s.binder.partitionBy[i], Null: true}
			if a != nil && !a.isNull(int(row)) {
				text, err := formatCell(a, int(row))
				if err != nil {
					return refuse(v.Key, "partition by: %v", err)
				}
				v.Value, v.Null = text, false
			}
			fmt.Fprintf(&key, "%v%q", v.Null, v.Value)
			values[i] = v
		}
		k := key.String()
		if _, ok := groups[k]; !ok {
			order = append(order, k)
			parts[k] = OrderPartition(append(slices.Clone(s.partition), values...), s.keys)
		}
		groups[k] = append(groups[k], row)
	}
	for _, k := range order {
		rows := groups[k]
		if len(rows) == b.rows {
			rows = nil
		}
		s.queue = append(s.queue, s.chunk(b, o, rows, parts[k]))
	}
	return nil
}

// chunk returns the given rows (nil: all) of o as a chunk.
func (s *tableSource) chunk(b *batch, o *output, rows []int32, p storage.Partition) *Chunk {
	c := &Chunk{Rows: b.rows, Partition: p, Fields: o.fields, Columns: o.columns, Place: place(b, s.path, 0)}
	if rows == nil {
		if b.hold != nil {
			b.hold.Retain()
			c.free, c.Lent = b.hold.Release, o.lent
		}
		return c
	}
	c.Rows = len(rows)
	c.Place = place(b, s.path, int(rows[0]))
	c.Columns = make([]*vector.Column, len(o.columns))
	for i, from := range o.columns {
		to := vector.NewColumn(from.Type)
		for lo := 0; lo < len(rows); {
			hi := lo + 1
			for hi < len(rows) && rows[hi] == rows[hi-1]+1 {
				hi++
			}
			to.AppendRows(from, int(rows[lo]), int(rows[hi-1])+1)
			lo = hi
		}
		c.Columns[i] = to
	}
	return c
}

// checkDirectory reports the rows whose own value of a partition key is not the directory's.
func (s *tableSource) checkDirectory(a *array, c boundColumn, bad func(int, string, error)) {
	want := c.directory
	for i := range a.n {
		if a.isNull(i) {
			if !want.Null {
				bad(i, c.name, fmt.Errorf("the file has null where its directory says %q", want.Value))
			}
			continue
		}
		if want.Null || !cellEquals(a, i, want.Value) {
			got, _ := formatCell(a, i)
			dir := strconv.Quote(want.Value)
			if want.Null {
				dir = "null"
			}
			bad(i, c.name, fmt.Errorf("the file has %q where its directory says %s", got, dir))
		}
	}
}

// cellEquals reports whether entry i of a is the value that a directory's name spells; "03" is the number 3.
func cellEquals(a *array, i int, text string) bool {
	if a.node.shape == shapeNumber && a.node.logical == "" {
		switch a.node.elem {
		case vector.Float32, vector.Float64:
			v, err := strconv.ParseFloat(text, 64)
			if a.node.elem == vector.Float32 {
				return err == nil && float32(v) == a.floats[i]
			}
			return err == nil && v == a.doubles[i]
		case vector.Bool:
			v, err := strconv.ParseBool(text)
			return err == nil && v == (a.ints[i] != 0)
		case vector.Uint64:
			v, err := strconv.ParseUint(text, 10, 64)
			return err == nil && v == uint64(a.ints[i])
		}
		v, err := strconv.ParseInt(text, 10, 64)
		return err == nil && v == a.ints[i]
	}
	got, err := formatCell(a, i)
	return err == nil && got == text
}

// formatCell returns the text that stands for entry i of a in a partition's name.
func formatCell(a *array, i int) (string, error) {
	switch a.node.shape {
	case shapeString:
		return string(a.data[a.offsets[i]:a.offsets[i+1]]), nil
	case shapeNumber:
		switch {
		case a.node.logical == "date32":
			return time.Unix(a.ints[i]*86400, 0).UTC().Format(time.DateOnly), nil
		case a.node.logical != "":
		case a.node.elem == vector.Bool:
			return strconv.FormatBool(a.ints[i] != 0), nil
		case a.node.elem == vector.Uint64:
			return strconv.FormatUint(uint64(a.ints[i]), 10), nil
		case a.node.elem.IsInteger():
			return strconv.FormatInt(a.ints[i], 10), nil
		case a.node.elem == vector.Float32:
			return strconv.FormatFloat(float64(a.floats[i]), 'g', -1, 32), nil
		default:
			return strconv.FormatFloat(a.doubles[i], 'g', -1, 64), nil
		}
	}
	return "", fmt.Errorf("values of type %v make no partitions", a.node)
}
