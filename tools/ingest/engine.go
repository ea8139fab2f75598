package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

// An engine is one ingest under way.
type engine struct {
	opts   Options
	files  []source.File
	target target
	state  targetState
	dir    func() (string, error) // for spill files
	bad    *quarantine
	schema *schema
	sorter *writer.Sorter // once the table is known
	report Report
	prints []string // fingerprint of each file; empty where it is known only after reading
	fileOf []fileState
	// rediscover lists the same files once more, those that are left out having no say in the types of the others. nil:
	// they cannot be read twice.
	rediscover func(ctx context.Context, leftOut map[string]bool) ([]source.File, error)
	toldOf     int // files left out when the dump was last read from its beginning

	// mu guards what the readers share, below.
	mu       sync.Mutex
	known    map[string]bool // paths of files that were ingested before, and are left out; complete before any is read
	parts    []partitionState
	partOf   map[string]uint32
	progress progress
}

type fileState struct {
	rows    int64
	dropped bool // left out whole
	apart   bool // for what others have: it had no say in their types
	bound   map[*source.Field]*feature
}

type partitionState struct {
	partition catalog.Partition
	file      string // the first with rows of it
}

// maxPartitions bounds what one ingest may make: more is a partition column that should not be one.
const maxPartitions = 100_000

// add gives rows to the sorter, which takes them over.
func (e *engine) add(ctx context.Context, rows *writer.Rows, features []*feature, p catalog.Partition) (err error) {
	if rows.Partition, err = e.number(rows.Source, p); err != nil {
		return err
	}
	decoded, err := e.sorter.Add(ctx, rows)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.BytesRaw += decoded
	for i, f := range features {
		f.rawBytes += uint64(rows.Columns[i].SizeBytes())
	}
	e.fileOf[rows.Source].rows += int64(rows.Count)
	e.progress.add(int64(rows.Count), 0)
	return nil
}

// number returns the number of the partition of rows of a file.
//
// Partitions that directories name have their numbers in the order of the files, whichever file is read first.
// Partitions are written in the order of their numbers, and what the writer learns about features goes from one to the
// next: so the same dump makes the same segments. Where columns partition the rows, too, the order is that in which
// their values are first read.
func (e *engine) number(file int, p catalog.Partition) (uint32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.parts) == 0 && len(p) == len(e.files[file].Partition) {
		for i := range e.files {
			if _, err := e.partition(e.files[i].Partition, e.files[i].Path); err != nil {
				return 0, err
			}
		}
	}
	return e.partition(p, e.files[file].Path)
}

// partition returns the number of a partition. It is called with mu held.
func (e *engine) partition(p catalog.Partition, file string) (uint32, error) {
	name := p.String()
	if n, ok := e.partOf[name]; ok {
		return n, nil
	}
	if len(e.parts) == maxPartitions {
		return 0, fmt.Errorf("%s: more than %d partitions: partition by a column with fewer values", file,
			maxPartitions)
	}
	if err := e.checkKeys(p, file); err != nil {
		return 0, err
	}
	if err := p.Validate(); err != nil { // here rather than when its segment begins, after all was read and sorted
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	n := uint32(len(e.parts))
	e.parts = append(e.parts, partitionState{partition: p, file: file})
	e.partOf[name] = n
	return n, nil
}

// checkKeys returns an error unless p has the partition keys of the partitions before it, here and in the table.
func (e *engine) checkKeys(p catalog.Partition, file string) error {
	var other catalog.Partition
	var where string
	switch {
	case len(e.parts) > 0:
		other, where = e.parts[0].partition, e.parts[0].file
	case e.state.partition != nil:
		other, where = e.state.partition, "the table"
	default:
		return nil
	}
	if have, want := keysOf(p), keysOf(other); !slices.Equal(have, want) {
		return fmt.Errorf("%s is partitioned by %s, but %s by %s: all files of a table have the same partition keys",
			file, catalog.KeyNames(have), where, catalog.KeyNames(want))
	}
	return nil
}

func keysOf(p catalog.Partition) []string {
	keys := make([]string, len(p))
	for i, v := range p {
		keys[i] = v.Key
	}
	return keys
}

// readFile reads one file to its end.
func (e *engine) readFile(ctx context.Context, number int) (err error) {
	file := &e.files[number]
	src, err := file.Open(ctx)
	if err != nil {
		return e.fileError(ctx, number, err)
	}
	defer func() {
		if cerr := src.Close(); err == nil && cerr != nil {
			err = e.fileError(ctx, number, cerr)
		}
	}()
	r := fileReader{engine: e, number: number, path: file.Path, bound: map[*source.Field]*feature{}}
	if e.opts.OnBadRow == BadRowQuarantine { // else no file is left out
		e.fileOf[number].bound = r.bound
	}
	fields := src.Fields()
	e.schema.noteSpellings(fields)
	if err := r.bindAll(fields); err != nil {
		return err
	}
	if err := e.schema.checkCase(file.Path, fields); err != nil {
		return err
	}
	for {
		c, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return e.fileError(ctx, number, err)
		}
		if err := r.take(ctx, c); err != nil {
			c.Release()
			return err
		}
	}
	e.mu.Lock()
	e.progress.add(0, max(file.Size, 0))
	e.mu.Unlock()
	return r.bindAll(src.Fields())
}

// fileError says what an error of a source means: the end of the ingest, or a file that is left out.
func (e *engine) fileError(ctx context.Context, number int, err error) error {
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	// That an object store does not give a file says nothing about the file.
	if e.opts.OnBadRow != BadRowQuarantine || errors.Is(err, source.ErrUnread) {
		return err
	}
	e.bad.badFile(e.files[number].Path, err)
	f := &e.fileOf[number]
	f.dropped, f.apart = true, source.IsApart(err)
	for field, x := range f.bound {
		e.schema.unbind(x, field)
	}
	f.bound = nil
	return nil
}

// inferred takes note of what types values gave.
func (e *engine) inferred(i source.Inferred) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Inferred = append(e.report.Inferred, i)
	if e.opts.Inferred != nil {
		e.opts.Inferred(i)
	}
}

// because adds to an error of types that do not mix which value of a column made text of it, and what to do. What is
// known to help comes first.
func (e *engine) because(column string, err *mixError) *mixError {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range e.report.Inferred {
		for _, c := range i.Columns {
			if c.Name != column {
				continue
			}
			reason, lists := "", ""
			if r := cmp.Or(c.Because, c.First); r != "" {
				reason = "; it is text because of " + r
			}
			if k := err.known.Type.Kind; i.Format == "text" && k != vector.Dense && k != vector.String &&
				k != vector.Bytes {
				lists = "; if a mapping file said how its lists are written, pass it again (--mapping)"
			}
			with := *err
			switch {
			case c.Hint != "" && c.Fits: // and the table is not wrong
				with.remedy = lists + "; " + c.Hint + reason
			case c.Leaves && e.opts.OnBadRow != BadRowQuarantine:
				with.remedy = reason + "; --on-bad-row quarantine leaves out the rows with text in this column" +
					err.remedy + takesAll(column, c)
			default:
				with.remedy = lists + err.remedy + reason + takesAll(column, c)
				if c.Hint == "" && source.IsTypeName(err.known.Type, err.known.Logical) {
					with.remedy += "; the table's type there, with --on-bad-row quarantine, leaves such rows out"
				}
			}
			return &with
		}
	}
	return err
}

// takesAll says what takes all values of a column, or reads them as something else.
func takesAll(name string, c source.InferredColumn) string {
	wide := "string"
	switch {
	case c.Hint != "":
		return "; " + c.Hint
	case c.Type == "float64":
		wide = "double"
	}
	return fmt.Sprintf(`; {"columns": {%q: {"type": %q}}} in the mapping file of a new table takes all values`, name,
		wide)
}

// A fileReader turns chunks of one file into records and features.
type fileReader struct {
	*engine
	number   int
	path     string
	bound    map[*source.Field]*feature
	rows     int64
	features []*feature
	numbers  []int
}

// bindAll binds fields. The error of a feature whose types do not mix names the others of which that is true, so that
// one mapping file can be written for all of them.
func (r *fileReader) bindAll(fields []*source.Field) error {
	var first *mixError
	var others []string
	for _, f := range fields {
		_, err := r.bind(f)
		mixed := (*mixError)(nil)
		switch {
		case err == nil:
		case errors.As(err, &mixed) && first != nil:
			others = append(others, strconv.Quote(f.Name))
		case errors.As(err, &mixed):
			first = mixed
		case first == nil:
			return err
		}
	}
	if first == nil {
		return nil
	}
	if more := len(others) - maxNamed; more > 0 {
		others = append(others[:maxNamed], fmt.Sprintf("%d more", more))
	}
	if len(others) > 0 {
		first.remedy += "; other features with this problem: " + strings.Join(others, ", ")
	}
	return first
}

// maxNamed bounds how many features an error names.
const maxNamed = 20

func (r *fileReader) bind(f *source.Field) (*feature, error) {
	if x := r.bound[f]; x != nil {
		return x, nil
	}
	x, err := r.schema.bind(r.path, f)
	if mixed := (*mixError)(nil); errors.As(err, &mixed) {
		err = r.because(f.Path, mixed)
	}
	if err != nil {
		return nil, err
	}
	r.bound[f] = x
	return x, nil
}

func (r *fileReader) take(ctx context.Context, c *source.Chunk) error {
	if c.Rows == 0 {
		c.Release()
		return nil
	}
	if r.rows+int64(c.Rows) > writer.MaxSourceRows {
		return fmt.Errorf("%s: more than %d rows in one file", r.path, int64(writer.MaxSourceRows))
	}
	if err := r.bad.failed(); err != nil {
		return err
	}
	r.features, r.numbers = r.features[:0], r.numbers[:0]
	rows := &writer.Rows{Source: r.number, First: r.rows, Count: c.Rows, Lent: c.Lent, Release: c.Release}
	for i, f := range c.Fields {
		col := c.Columns[i]
		x, err := r.bind(f)
		if err != nil {
			return err
		}
		if f.NoValue {
			continue
		}
		if col.Rows != c.Rows || col.Inverse != nil || col.Lengths != nil || col.Type != f.Type {
			return fmt.Errorf("%s: the source gave column %q as %v with %d rows: want a plain column of %v with %d",
				r.path, f.Name, col.Type, col.Rows, f.Type, c.Rows)
		}
		switch x {
		case r.schema.sessionKey():
			rows.Session = col
		case r.schema.timeKey():
			rows.Time = col
		}
		r.features = append(r.features, x)
		r.numbers = append(r.numbers, x.number)
		rows.Columns = append(rows.Columns, col)
	}
	rows.Numbers = r.numbers
	r.rows += int64(c.Rows)
	return r.add(ctx, rows, r.features, c.Partition)
}
