package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/hive"
	"github.com/dsistore/dsistore/tools/ingest/source/lakehouse"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// place returns where a row of b is.
func place(b *column.Batch, file string, row int) Place {
	p := Place{File: file, RowGroup: b.RowGroup, Row: b.Row + int64(row)}
	if b.Lines != nil {
		p.Line = b.Lines[row]
	}
	return p
}

// tableSource is the Source over a column.Reader: it binds columns to features, drops bad rows and splits partitions.
type tableSource struct {
	path      string
	partition catalog.Partition
	opts      *Options
	keys      []string // of the table's partitions, where they are known
	reader    column.Reader
	binder    *mapping.Binder
	columns   []boundColumn
	outputs   []mapping.Output // memory of take, by column
	batch     *column.Batch    // at hand; nil: none
	at        int              // its next row
	queue     []queuedChunk    // of what take bound last
	of        *column.Batch    // what take bound last, all or a part of batch
	bound     *mapping.Output  // what became of it
	err       error
}

// A queuedChunk is a chunk that is to be made. There may be as many as rows, and each has columns of its own, which
// take much more memory than a few values in them: so it is made when its turn has come.
type queuedChunk struct {
	rows      []int32 // nil: all
	partition catalog.Partition
}

// A boundColumn is what becomes of an input column. At most one of its parts is set; a column that is dropped has none.
type boundColumn struct {
	binding   mapping.Binding
	directory *catalog.PartitionValue // the directory names the same column: values must agree
	by        int                     // 1 + its place in partitionBy; 0: none
	name      string
}

func (c *boundColumn) finds() bool { return c.binding != nil && c.binding.Finds() }

func newTableSource(f *File, opts *Options, m *mapping.Mapping, lenient bool,
	open func() (column.Reader, error)) (src *tableSource, err error) {
	s := &tableSource{path: f.Path, partition: f.Partition, opts: opts,
		binder: mapping.NewBinder(m, opts.Limits, opts.SessionKey, opts.TimeKey, opts.PartitionBy)}
	s.binder.Lenient = lenient
	inherited := s.inheritPartitions()
	defer func() {
		if p := recover(); p != nil {
			err = column.Recovered(p)
		}
		if err != nil {
			if s.reader != nil {
				s.reader.Close()
			}
			src, err = nil, s.inFile(err)
		}
	}()
	if s.reader, err = open(); err != nil {
		return nil, err
	}
	if r, ok := s.reader.(lakehouse.FileMetaReader); ok {
		if err := r.FileMeta().Check(m.Dropped); err != nil {
			return nil, err
		}
	}
	if err := s.bind(); err != nil {
		return nil, err
	}
	if r, ok := s.reader.(column.EmptyFile); lenient || ok && r.IsEmpty() {
		return s, nil
	}
	for _, by := range s.binder.PartitionBy {
		if !slices.ContainsFunc(s.columns, func(c boundColumn) bool { return c.by > 0 && c.name == by }) {
			if inherited {
				return nil, fmt.Errorf("the table is partitioned by %q, and there is neither a directory %s=... nor "+
					"a column%s", by, by, column.DidYouMean(by, slices.Sorted(maps.Keys(s.binder.Seen))))
			}
			return nil, fmt.Errorf("partition by: no column%s",
				column.DidYouMean(by, slices.Sorted(maps.Keys(s.binder.Seen))))
		}
	}
	return s, s.binder.Check(s.partition)
}

// inheritPartitions partitions rows as the table is, where nobody says how: by the table's keys that the directories do
// not give. It reports whether there are some.
func (s *tableSource) inheritPartitions() bool {
	if s.opts.PartitionKeys == nil {
		return false
	}
	s.keys = s.opts.PartitionKeys()
	s.partition = hive.OrderPartition(s.partition, s.keys)
	if len(s.binder.PartitionBy) > 0 {
		return false
	}
	var rest []string
	for _, k := range s.keys {
		if !slices.ContainsFunc(s.partition, func(v catalog.PartitionValue) bool { return v.Key == k }) {
			rest = append(rest, k)
		}
	}
	if len(rest)+len(s.partition) != len(s.keys) {
		return false // the directories have other keys: the table says so
	}
	s.binder.PartitionBy = rest
	return len(rest) > 0
}

// inFile says in what file err happened, unless it says so itself.
func (s *tableSource) inFile(err error) error {
	if re := (*column.RefusedError)(nil); errors.As(err, &re) {
		if re.File == "" {
			re.File = s.path
		}
		return err
	}
	if re := (*RowError)(nil); errors.As(err, &re) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// bind binds the columns that are new since the last call.
func (s *tableSource) bind() error {
	all := s.reader.Columns()
	if len(all) > s.opts.Limits.Columns {
		return fmt.Errorf("%d columns: the limit is %d", len(all), s.opts.Limits.Columns)
	}
	for _, n := range all[len(s.columns):] {
		if _, ok := s.binder.Seen[n.Name]; ok {
			return column.Refuse(n.Name, "two columns have this name: rename one of them in the source, since a "+
				"mapping file cannot tell them apart")
		}
		c := boundColumn{name: n.Name}
		if i := slices.IndexFunc(s.partition, func(v catalog.PartitionValue) bool { return v.Key == n.Name }); i >= 0 {
			s.binder.Seen[n.Name] = false
			if s.binder.Mapping.Dropped(n.Name) { // the directory has it
				n.Drop()
				s.columns = append(s.columns, c)
				continue
			}
			c.directory = &s.partition[i]
		} else if i := slices.Index(s.binder.PartitionBy, n.Name); i >= 0 {
			s.binder.Seen[n.Name] = false
			c.by = i + 1
		}
		if c.directory != nil || c.by > 0 {
			if n.Shape != column.Number && n.Shape != column.String && n.Shape != column.Null {
				return column.Refuse(n.Name, "a partition key is a number or a string, not %v", n)
			}
		} else {
			var err error
			if c.binding, err = s.binder.Bind(n, n.Name, "", "", 1); err != nil {
				return err
			}
		}
		s.columns = append(s.columns, c)
	}
	if !s.binder.Lenient {
		if err := s.binder.Refused(); err != nil {
			return err
		}
		if err := s.binder.CheckGroups(); err != nil {
			return err
		}
	}
	if r, ok := s.reader.(column.Projector); ok {
		wanted := make([]bool, len(s.columns))
		for i, c := range s.columns {
			wanted[i] = c.binding != nil || c.directory != nil || c.by > 0
		}
		return r.Project(wanted)
	}
	return nil
}

func (s *tableSource) Fields() []*mapping.Field { return slices.Clone(s.binder.Fields) }

func (s *tableSource) Close() error {
	s.queue = nil
	s.release()
	return s.reader.Close()
}

// release ends with the batch at hand.
func (s *tableSource) release() {
	if s.batch != nil && s.batch.Hold != nil {
		s.batch.Hold.Release()
	}
	s.batch = nil
}

func (s *tableSource) Next(ctx context.Context) (chunk *Chunk, err error) {
	if s.err != nil {
		return nil, s.err
	}
	defer func() {
		if p := recover(); p != nil {
			chunk, err = nil, s.inFile(column.Recovered(p))
		}
		s.err = err
	}()
	for len(s.queue) == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.batch == nil {
			b, err := s.reader.Next(ctx)
			if err == io.EOF {
				return nil, io.EOF
			}
			if err != nil {
				return nil, s.inFile(err)
			}
			s.batch, s.at = b, 0
			if len(s.reader.Columns()) > len(s.columns) {
				if err := s.bind(); err != nil {
					return nil, s.inFile(err)
				}
			}
		}
		if err := s.take(ctx, s.cut()); err != nil {
			return nil, s.inFile(err)
		}
		s.taken()
	}
	q := s.queue[0]
	s.queue[0] = queuedChunk{}
	s.queue = s.queue[1:]
	chunk = s.chunk(s.of, s.bound, q.rows, q.partition)
	s.taken()
	return chunk, nil
}

// taken ends with what was bound last when all chunks are made of it, and with the batch at hand after its last row.
func (s *tableSource) taken() {
	if len(s.queue) > 0 {
		return
	}
	s.queue, s.of, s.bound = nil, nil, nil
	if s.at == s.batch.Rows {
		s.release()
	}
}

// cut returns the next rows of the batch at hand: all of it, but where maps would make too much of them.
func (s *tableSource) cut() *column.Batch {
	from, end := s.at, s.batch.Rows
	for i, a := range s.batch.Arrays {
		if a != nil && a.Len == s.batch.Rows && s.columns[i].finds() {
			end = min(end, s.columns[i].binding.Fits(a, from, s.opts.ChunkBytes))
		}
	}
	s.at = end
	if from == 0 && end == s.batch.Rows {
		return s.batch
	}
	return s.batch.Part(from, end)
}

// take binds b and puts the chunks to be made of it in the queue. Its columns are bound in parallel, those that find
// new features after the others and in their order, so that features are found in the same order whatever the number of
// threads.
func (s *tableSource) take(ctx context.Context, b *column.Batch) error {
	s.outputs = column.Resize(s.outputs, len(b.Arrays))
	by := make([]*column.Array, len(s.binder.PartitionBy))
	for i, a := range b.Arrays {
		switch {
		case a == nil:
		case a.Len != b.Rows:
			return fmt.Errorf("column %q has %d rows where others have %d", s.columns[i].name, a.Len, b.Rows)
		case s.columns[i].by > 0:
			by[s.columns[i].by-1] = a
		}
	}
	err := column.Each(ctx, len(b.Arrays), s.opts.Threads, func(_, i int) error {
		if s.outputs[i].Reset(); b.Arrays[i] != nil && !s.columns[i].finds() {
			s.emit(b, i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	o := &mapping.Output{Fields: make([]*mapping.Field, 0, len(b.Arrays)),
		Columns: make([]*vector.Column, 0, len(b.Arrays))}
	for _, r := range b.Bad {
		o.Note(r.Row, r.Column, r.Err)
	}
	for i := range b.Arrays {
		if b.Arrays[i] != nil && s.columns[i].finds() {
			if s.emit(b, i); s.outputs[i].Fail != nil {
				return s.outputs[i].Fail
			}
		}
		o.Take(&s.outputs[i])
		s.outputs[i].Reset()
	}
	keep, err := s.judge(b, o.Bad)
	if err != nil {
		return err
	}
	return s.split(b, o, keep, by)
}

// emit makes of column i of b what becomes of it.
func (s *tableSource) emit(b *column.Batch, i int) {
	a, c, o := b.Arrays[i], s.columns[i], &s.outputs[i]
	switch {
	case c.binding != nil:
		c.binding.Emit(a, nil, o)
		if b.Resident {
			for _, made := range o.Columns {
				o.Lent += a.Lent(made)
			}
		}
	case c.directory != nil:
		s.checkDirectory(a, c, o.Note)
	case c.by > 0:
		mapping.ReportFaults(a, func(row int, err error) { o.Note(row, c.name, err) })
		if a.Type.Shape == column.String {
			mapping.NotUTF8(a, func(row int) { o.Note(row, c.name, errPartitionNotUTF8) })
		}
	}
}

// errPartitionNotUTF8: a partition key is a string, and a partition that no expression can name is of no use.
var errPartitionNotUTF8 = errors.New("a partition key that is not UTF-8; {\"text\": {\"encoding\": \"latin1\"}} in a " +
	"mapping file says what text files are in")

// judge tells of the bad rows, and returns the rows to keep, nil for all.
func (s *tableSource) judge(b *column.Batch, bad map[int]column.BadRow) ([]int32, error) {
	if len(bad) == 0 {
		return nil, nil
	}
	for _, r := range slices.Sorted(maps.Keys(bad)) {
		e := bad[r]
		at := place(b, s.path, r)
		if s.opts.OnBadRow == nil {
			return nil, &RowError{Place: at, Column: e.Column, Err: e.Err}
		}
		s.opts.OnBadRow(at, e.Column, e.Err)
	}
	keep := make([]int32, 0, b.Rows-len(bad))
	for r := range b.Rows {
		if _, ok := bad[r]; !ok {
			keep = append(keep, int32(r))
		}
	}
	return keep, nil
}

// split queues the rows to keep, a chunk for each partition that they hold.
func (s *tableSource) split(b *column.Batch, o *mapping.Output, keep []int32, by []*column.Array) error {
	if keep != nil && len(keep) == 0 || b.Rows == 0 {
		return nil
	}
	s.of, s.bound = b, o
	if len(by) == 0 {
		s.queue = append(s.queue, queuedChunk{keep, s.partition})
		return nil
	}
	if keep == nil {
		keep = make([]int32, b.Rows)
		for i := range keep {
			keep[i] = int32(i)
		}
	}
	groups := map[string][]int32{}
	parts := map[string]catalog.Partition{}
	var order []string
	var key strings.Builder
	for _, row := range keep {
		key.Reset()
		values := make([]catalog.PartitionValue, len(by))
		for i, a := range by {
			v := catalog.PartitionValue{Key: s.binder.PartitionBy[i], Null: true}
			if a != nil && !a.IsNull(int(row)) {
				text, err := formatCell(a, int(row))
				if err != nil {
					return column.Refuse(v.Key, "partition by: %v", err)
				}
				v.Value, v.Null = text, false
			}
			fmt.Fprintf(&key, "%v%q", v.Null, v.Value)
			values[i] = v
		}
		k := key.String()
		if _, ok := groups[k]; !ok {
			order = append(order, k)
			parts[k] = hive.OrderPartition(append(slices.Clone(s.partition), values...), s.keys)
		}
		groups[k] = append(groups[k], row)
	}
	for _, k := range order {
		rows := groups[k]
		if len(rows) == b.Rows {
			rows = nil
		}
		s.queue = append(s.queue, queuedChunk{rows, parts[k]})
	}
	return nil
}

// chunk returns the given rows (nil: all) of o as a chunk.
func (s *tableSource) chunk(b *column.Batch, o *mapping.Output, rows []int32, p catalog.Partition) *Chunk {
	c := &Chunk{Rows: b.Rows, Partition: p, Fields: o.Fields, Columns: o.Columns, Place: place(b, s.path, 0)}
	if rows == nil {
		if b.Hold != nil {
			b.Hold.Retain()
			c.free, c.Lent = b.Hold.Release, o.Lent
		}
		return c
	}
	c.Rows = len(rows)
	c.Place = place(b, s.path, int(rows[0]))
	c.Columns = make([]*vector.Column, len(o.Columns))
	for i, from := range o.Columns {
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
func (s *tableSource) checkDirectory(a *column.Array, c boundColumn, bad func(int, string, error)) {
	want := c.directory
	for i := range a.Len {
		if a.IsNull(i) {
			if !want.Null {
				bad(i, c.name, fmt.Errorf("the file has null where its directory says %q", want.Value))
			}
			continue
		}
		if want.Null || !cellEquals(a, i, want.Value) {
			got, err := formatCell(a, i)
			if column.TimestampUnit(a.Type.Logical) != "" {
				got, err = timestampOf(a, i).String(), nil
			}
			if err != nil {
				bad(i, c.name, fmt.Errorf("the directory says %q, and the file has the column too: %w; drop it with "+
					"{\"columns\": {%q: {\"drop\": true}}} in a mapping file", want.Value, err, c.name))
				continue
			}
			dir := strconv.Quote(want.Value)
			if want.Null {
				dir = "null"
			}
			bad(i, c.name, fmt.Errorf("the file has %q where its directory says %s", got, dir))
		}
	}
}

// cellEquals reports whether entry i of a is the value that a directory's name spells; "03" is the number 3.
func cellEquals(a *column.Array, i int, text string) bool {
	if a.Type.Shape == column.Number && a.Type.Logical == "" {
		switch a.Type.Elem {
		case vector.Float32, vector.Float64:
			v, err := strconv.ParseFloat(text, 64)
			if a.Type.Elem == vector.Float32 {
				return err == nil && float32(v) == a.Floats[i]
			}
			return err == nil && v == a.Doubles[i]
		case vector.Bool:
			v, err := strconv.ParseBool(text)
			return err == nil && v == (a.Ints[i] != 0)
		case vector.Uint64:
			v, err := strconv.ParseUint(text, 10, 64)
			return err == nil && v == uint64(a.Ints[i])
		}
		v, err := strconv.ParseInt(text, 10, 64)
		return err == nil && v == a.Ints[i]
	}
	if column.TimestampUnit(a.Type.Logical) != "" {
		want, err := column.ParseTimestamp(text)
		return err == nil && want == timestampOf(a, i)
	}
	got, err := formatCell(a, i)
	return err == nil && got == text
}

// timestampOf returns entry i of a, a timestamp.
func timestampOf(a *column.Array, i int) column.Timestamp {
	per := column.TimeUnits[column.TimestampUnit(a.Type.Logical)]
	seconds, rest := a.Ints[i]/per, a.Ints[i]%per
	if rest < 0 {
		seconds, rest = seconds-1, rest+per
	}
	return column.Timestamp{Seconds: seconds, Nanos: rest * (1e9 / per)}
}

// formatCell returns the text that stands for entry i of a in a partition's name.
func formatCell(a *column.Array, i int) (string, error) {
	switch a.Type.Shape {
	case column.String:
		return string(a.Data[a.Offsets[i]:a.Offsets[i+1]]), nil
	case column.Number:
		switch {
		case a.Type.Logical == "date32":
			return time.Unix(a.Ints[i]*86400, 0).UTC().Format(time.DateOnly), nil
		case a.Type.Logical != "":
		case a.Type.Elem == vector.Bool:
			return strconv.FormatBool(a.Ints[i] != 0), nil
		case a.Type.Elem == vector.Uint64:
			return strconv.FormatUint(uint64(a.Ints[i]), 10), nil
		case a.Type.Elem.IsInteger():
			return strconv.FormatInt(a.Ints[i], 10), nil
		case a.Type.Elem == vector.Float32:
			return strconv.FormatFloat(float64(a.Floats[i]), 'g', -1, 32), nil
		default:
			return strconv.FormatFloat(a.Doubles[i], 'g', -1, 64), nil
		}
	}
	return "", fmt.Errorf("values of type %v make no partitions", a.Type)
}
