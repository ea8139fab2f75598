package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// An engine is one ingest under way.
type engine struct {
	opts   Options
	files  []source.File
	target target
	state  targetState
	// profile weighs the feature files.
	profile format.Profile
	dir     func() (string, error) // for spill files
	bad     *quarantine
	schema  *schema
	report  Report
	prints  []string // fingerprint of each file; empty where it is known only after reading
	fileOf  []fileState
	fanIn   int // sequences of one level that are merged into one of the next

	// mu guards what the readers share, below.
	mu       sync.Mutex
	buf      *buffer
	spilled  [][]*sequence // by level: how many merges their rows have been through
	parts    []partitionState
	partOf   map[string]uint32
	progress progress
}

type fileState struct {
	rows    int64
	dropped bool // left out whole
}

type partitionState struct {
	partition storage.Partition
	file      string // the first with rows of it
	rows      int64
	bytes     int64 // decoded
}

// maxPartitions bounds what one ingest may make: more is a partition column that should not be one.
const maxPartitions = 100_000

// add takes over a chunk of a file, spilling what is buffered if it would not fit. features and cols are those that have values.
func (e *engine) add(ctx context.Context, file int, recs []record, chunk *source.Chunk, features []*feature, cols []*vector.Column) error {
	size := -chunk.Lent
	for _, c := range cols {
		size += columnBytes(c)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.parts) == 0 && len(chunk.Partition) == len(e.files[file].Partition) {
		if err := e.numberDirectories(); err != nil {
			return err
		}
	}
	part, err := e.partition(chunk.Partition, e.files[file].Path)
	if err != nil {
		return err
	}
	if len(e.buf.records) > 0 && e.buf.bytes+size > bufferShare(e.opts.Memory) {
		if err := e.spill(ctx); err != nil {
			return err
		}
	}
	total := int64(0)
	for i := range recs {
		recs[i].part = part
		total += int64(recs[i].bytes)
	}
	e.parts[part].rows += int64(len(recs))
	e.parts[part].bytes += total
	e.report.BytesRaw += total
	e.buf.add(recs, features, cols, size, chunk)
	for i, f := range features {
		f.rawBytes += uint64(cols[i].SizeBytes())
	}
	e.fileOf[file].rows += int64(len(recs))
	e.progress.add(int64(len(recs)), 0)
	return nil
}

// numberDirectories numbers the partitions that directories name in the order of the files: partitions are written in the order of their
// numbers, and what was learnt of features goes from one to the next, so that the same dump makes the same segments whichever file is
// read first. Where columns partition the rows, too, the order is that in which values are first read. It is called with mu held.
func (e *engine) numberDirectories() error {
	for i := range e.files {
		if _, err := e.partition(e.files[i].Partition, e.files[i].Path); err != nil {
			return err
		}
	}
	return nil
}

// partition returns the number of a partition. It is called with mu held.
func (e *engine) partition(p storage.Partition, file string) (uint32, error) {
	name := p.String()
	if n, ok := e.partOf[name]; ok {
		return n, nil
	}
	if len(e.parts) == maxPartitions {
		return 0, fmt.Errorf("%s: more than %d partitions: partition by a column with fewer values", file, maxPartitions)
	}
	if err := e.checkKeys(p, file); err != nil {
		return 0, err
	}
	n := uint32(len(e.parts))
	e.parts = append(e.parts, partitionState{partition: p, file: file})
	e.partOf[name] = n
	return n, nil
}

// checkKeys returns an error unless p has the partition keys of the partitions before it, here and in the table.
func (e *engine) checkKeys(p storage.Partition, file string) error {
	var other storage.Partition
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
		return fmt.Errorf("%s is partitioned by %s, but %s by %s", file, keyNames(have), where, keyNames(want))
	}
	return nil
}

func keysOf(p storage.Partition) []string {
	keys := make([]string, len(p))
	for i, v := range p {
		keys[i] = v.Key
	}
	return keys
}

func keyNames(keys []string) string {
	if len(keys) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%q", keys)
}

// spill sorts what is buffered, writes it to a sequence and starts an empty buffer. It is called with mu held.
func (e *engine) spill(ctx context.Context) error {
	start := time.Now()
	dir, err := e.dir()
	if err != nil {
		return err
	}
	types := e.schema.types()
	e.buf.sort()
	q, err := newSequence(dir)
	if err != nil {
		return err
	}
	if err := q.append(ctx, spillInput(e.buf, types), e.opts.Workers); err != nil {
		_ = q.close()
		return err
	}
	e.buf.release()
	e.buf = &buffer{}
	e.report.Spills++
	for level := 0; ; level++ {
		e.report.SpillBytes += q.end.Load()
		if level == len(e.spilled) {
			e.spilled = append(e.spilled, nil)
		}
		e.spilled[level] = append(e.spilled[level], q)
		if len(e.spilled[level]) < e.fanIn {
			break
		}
		// Many sequences would each want a file and memory while they are merged: one takes their place.
		if q, err = mergeSequences(ctx, e.spilled[level], types, dir, e.mergeLimits()); err != nil {
			return err
		}
		closeAll(e.spilled[level])
		e.spilled[level] = nil
	}
	since(&e.report.Seconds.Spill, start)
	return nil
}

// maxFanIn bounds the files that are open at once.
const maxFanIn = 128

// fanIn returns how many sequences are merged at once: each takes what its records are read ahead by, and for each worker a
// block as it is read and as it is decoded.
func fanIn(o *Options) int {
	each := int64(recordReadBytes + o.Workers*2*blockBytes)
	return int(min(max(writeShare(o.Memory)/each, 8), maxFanIn))
}

func (e *engine) mergeLimits() mergeLimits {
	share := writeShare(e.opts.Memory)
	return mergeLimits{
		rows:         int(min(max(share/1024, 64), 1<<20)), // a record and a few pieces each: an eighth
		featureBytes: max(share/int64(4*e.opts.Workers), 64<<10),
		workers:      e.opts.Workers,
	}
}

func closeAll(sequences []*sequence) {
	for _, q := range sequences {
		_ = q.close()
	}
}

// close frees the spill files, and what is buffered.
func (e *engine) close() {
	e.buf.release()
	for _, level := range e.spilled {
		closeAll(level)
	}
	e.spilled = nil
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
	if err := r.bindAll(src.Fields()); err != nil {
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
	if e.opts.OnBadRow != BadRowQuarantine {
		return err
	}
	e.bad.badFile(e.files[number].Path, err)
	e.fileOf[number].dropped = true
	return nil
}

// A fileReader turns chunks of one file into records and features.
type fileReader struct {
	*engine
	number   int
	path     string
	bound    map[*source.Field]*feature
	rows     int64
	records  []record
	features []*feature
	columns  []*vector.Column
}

func (r *fileReader) bindAll(fields []*source.Field) error {
	for _, f := range fields {
		if _, err := r.bind(f); err != nil {
			return err
		}
	}
	return nil
}

func (r *fileReader) bind(f *source.Field) (*feature, error) {
	if x := r.bound[f]; x != nil {
		return x, nil
	}
	x, err := r.schema.bind(r.path, f)
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
	if r.rows+int64(c.Rows) > maxFileRows {
		return fmt.Errorf("%s: more than %d rows in one file", r.path, int64(maxFileRows))
	}
	r.records = resize(r.records, c.Rows)
	clear(r.records)
	r.features, r.columns = r.features[:0], r.columns[:0]
	var session, times *vector.Column
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
			session = col
		case r.schema.timeKey():
			times = col
		}
		r.features = append(r.features, x)
		r.columns = append(r.columns, col)
	}
	setSizes(r.records, r.columns)
	setKeys(r.records, session, times)
	ord := uint64(r.number)<<ordFileShift | uint64(r.rows)
	for i := range r.records {
		r.records[i].ord = ord + uint64(i)
	}
	r.rows += int64(c.Rows)
	return r.add(ctx, r.number, r.records, c, r.features, r.columns)
}
