package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// parquetReader reads a Parquet file, a batch of rows of all columns at a time. Each column has a reader of its own;
// they advance together.
//
//	row group      column 0   column 1   column 2 ...
//	                page       page       page        each open column holds its current page and dictionary
//	   batch ------- rows ----- rows ----- rows        Threads goroutines decode columns
//
// Memory: the open pages, at most Options.PageBytes between batches, and the batch. A column whose page does not fit
// drops it and reads it again for the next batch, from where it was in it.
type parquetReader struct {
	f       *os.File
	size    int64
	file    *file.Reader
	cols    []*levelNode
	nodes   []*column.Type
	quirks  quirks
	wanted  []bool // by column; nil: all
	limits  *column.Limits
	threads int
	target  int64 // bytes of a batch

	group    int   // the row group being read
	groupRow int64 // of its next row
	row      int64 // of the file, likewise
	leaves   []*leafReader
	rows     int // of the next batch
	scratch  []*leafScratch

	holdBytes int64        // the most that open pages take between batches
	held      atomic.Int64 // what they do
}

const firstRows = 1024

var parquetFormat = &format{
	name:      "parquet",
	magic:     []string{"PAR1", "PARE"},
	suffixes:  []string{".parquet", ".parq", ".pq"},
	filesOnly: true,
	begin: func(d *inputSet) opener {
		return func(_ context.Context, in input) (column.Reader, error) {
			r, err := openParquet(in.path, &d.ReadOptions)
			if err != nil {
				return nil, err
			}
			return r, nil
		}
	},
}

func openParquet(path string, opts *column.ReadOptions) (r *parquetReader, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r = &parquetReader{f: f, limits: &opts.Limits, threads: opts.Threads, target: opts.ChunkBytes, holdBytes: opts.PageBytes, rows: firstRows}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r.size = st.Size()
	foot, err := readFooter(f, r.size, *r.limits)
	if err != nil {
		return nil, err
	}
	if foot.sealed {
		return nil, column.Refuse("", "the file is encrypted, which this reader does not support: decrypt it first")
	}
	if err := r.openLibrary(foot); err != nil {
		return nil, err
	}
	refineByArrow(r.nodes, r.file.MetaData(), opts)
	return r, r.checkGroups()
}

// openLibrary gives the footer to the library.
func (r *parquetReader) openLibrary(foot *footer) error {
	meta, err := foot.metadata()
	if err != nil {
		return err
	}
	meta.SetSourceFileSize(r.size)
	r.file, err = file.NewParquetReader(r.f, file.WithMetadata(meta), file.WithReadProps(parquet.NewReaderProperties(memory.DefaultAllocator)))
	if err != nil {
		return damagedFooter("%w", err)
	}
	r.quirks = quirksOf(r.file.WriterVersion())
	w := &schemaWalker{}
	r.cols = w.columns(meta.Schema.Root(), foot.root)
	if w.leaf != meta.Schema.NumColumns() || foot.columns != w.leaf {
		return damagedFooter("%d columns in the schema, %d found", meta.Schema.NumColumns(), w.leaf)
	}
	for _, c := range r.cols {
		r.nodes = append(r.nodes, c.node)
	}
	return nil
}

// checkGroups verifies what the footer says of the row groups before anything relies on it.
func (r *parquetReader) checkGroups() error {
	meta := r.file.MetaData()
	total := int64(0)
	for g := range r.file.NumRowGroups() {
		rg := meta.RowGroup(g)
		if rg.NumRows() < 0 {
			return fmt.Errorf("row group %d: %d rows", g, rg.NumRows())
		}
		if rg.NumColumns() != meta.Schema.NumColumns() {
			return fmt.Errorf("row group %d: %d columns, the schema has %d", g, rg.NumColumns(), meta.Schema.NumColumns())
		}
		if total += rg.NumRows(); total < 0 {
			return fmt.Errorf("row group %d: more rows than can be counted", g)
		}
	}
	// Some writers leave the footer's own count at 0. One that is greater means that row groups are missing.
	if meta.NumRows > total {
		return fmt.Errorf("the footer says %d rows, its row groups have %d", meta.NumRows, total)
	}
	return nil
}

func (r *parquetReader) Columns() []*column.Type { return r.nodes }

func (r *parquetReader) signs() fileSigns {
	meta := r.file.MetaData()
	root := meta.Schema.Root()
	s := fileSigns{ids: map[string]int32{}, meta: func(key string) (string, bool) {
		if v := meta.KeyValueMetadata().FindValue(key); v != nil {
			return *v, true
		}
		return "", false
	}}
	for i := range root.NumFields() {
		f := root.Field(i)
		s.columns, s.ids[f.Name()] = append(s.columns, f.Name()), f.FieldID()
	}
	return s
}

// Want says which columns are read; the others are not touched, and neither are members that the mapping drops.
func (r *parquetReader) Want(wanted []bool) error {
	r.wanted = wanted
	for i, c := range r.cols {
		if wanted[i] {
			if _, err := c.choose(c.node.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *parquetReader) Close() error {
	r.closeGroup()
	return r.f.Close()
}

func (r *parquetReader) closeGroup() {
	r.leaves = nil
	r.held.Store(0)
}

func (r *parquetReader) Next(ctx context.Context) (*column.Batch, error) {
	for ; r.group < r.file.NumRowGroups(); r.group++ {
		rg := r.file.MetaData().RowGroup(r.group)
		if r.groupRow == 0 {
			if err := r.openGroup(rg); err != nil {
				return nil, fmt.Errorf("row group %d: %w", r.group, err)
			}
		}
		if left := rg.NumRows() - r.groupRow; left > 0 {
			return r.read(ctx, int(min(left, int64(r.rows))))
		}
		if err := r.finishGroup(); err != nil {
			return nil, fmt.Errorf("row group %d: %w", r.group, err)
		}
		r.groupRow = 0
	}
	return nil, io.EOF
}

// openGroup checks the column chunks of a row group. Their readers are opened by the first batch.
func (r *parquetReader) openGroup(rg *metadata.RowGroupMetaData) error {
	r.leaves = make([]*leafReader, r.file.MetaData().Schema.NumColumns())
	if size := rg.TotalByteSize(); rg.NumRows() > 0 && size > 0 {
		// Encoded sizes are a guess that later batches mend; begin with few rows.
		perRow := max(1, size/rg.NumRows())
		r.rows = int(min(int64(r.rows), r.rowsFor(perRow)))
	}
	return nil
}

// openLeaf opens the column chunk of a leaf.
func (r *parquetReader) openLeaf(i int, n *levelNode) (*leafReader, error) {
	meta := r.file.MetaData()
	rg := meta.RowGroup(r.group)
	chunk, err := rg.ColumnChunk(i)
	if err != nil {
		return nil, err
	}
	col := meta.Schema.Column(i)
	if chunk.CryptoMetadata() != nil {
		return nil, column.Refuse("", "the column is encrypted, which this reader does not support: decrypt it first")
	}
	if p := chunk.FilePath(); p != "" {
		return nil, column.Refuse("", "its values are in another file, %q: ingest that one", p)
	}
	switch chunk.Compression() {
	case compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli,
		compress.Codecs.Zstd, compress.Codecs.Lz4Raw, compress.Codecs.Lz4:
	default:
		return nil, column.Refuse("", "its compression codec (number %d of Parquet's) is not supported", int(chunk.Compression()))
	}
	if chunk.Type() != col.PhysicalType() && n.use != useLevels {
		return nil, fmt.Errorf("the column chunk is %v, the schema says %v", chunk.Type(), col.PhysicalType())
	}
	values := chunk.NumValues()
	if values < 0 || col.MaxRepetitionLevel() == 0 && values != rg.NumRows() || values < rg.NumRows() {
		return nil, fmt.Errorf("%d values in a row group of %d rows", values, rg.NumRows())
	}
	start, length := chunk.DataPageOffset(), chunk.TotalCompressedSize()
	if chunk.HasDictionaryPage() {
		if d := chunk.DictionaryPageOffset(); d > 0 && d < start {
			start = d
		}
	}
	if start < 0 || length < 0 || start > r.size || length > r.size-start {
		return nil, fmt.Errorf("the column chunk is bytes [%d, %d) of a file of %d", start, start+length, r.size)
	}
	end := start + length
	if r.quirks.shortChunks {
		end = min(r.size, end+100)
	}
	l := &leafReader{
		col: col, node: n.node, maxDef: col.MaxDefinitionLevel(), maxRep: col.MaxRepetitionLevel(), convert: n.convert, limits: r.limits,
		levelsOnly: n.use == useLevels,
	}
	l.pages = &pageReader{
		r: r.f, pos: start, end: end, remaining: values, codec: chunk.Compression(), limits: r.limits,
		value: newValueType(col.PhysicalType(), col.TypeLength()), quirks: r.quirks, levelsOnly: n.use == useLevels,
	}
	return l, nil
}

// read returns the next rows rows of the row group.
func (r *parquetReader) read(ctx context.Context, rows int) (*column.Batch, error) {
	b := &column.Batch{Rows: rows, RowGroup: r.group, Row: r.row, Arrays: make([]*column.Array, len(r.cols))}
	for range column.Workers(len(r.cols), r.threads) - len(r.scratch) {
		r.scratch = append(r.scratch, &leafScratch{})
	}
	err := column.Each(ctx, len(r.cols), r.threads, func(worker, i int) (err error) {
		if r.wanted != nil && !r.wanted[i] {
			return nil
		}
		if b.Arrays[i], err = r.readColumn(r.cols[i], rows, r.scratch[worker]); err == nil {
			return nil
		}
		if re := (*column.RefusedError)(nil); errors.As(err, &re) {
			re.Column = r.cols[i].node.Name
			return err
		}
		return fmt.Errorf("row group %d, rows %d to %d, column %q: %w", r.group, r.row, r.row+int64(rows)-1, r.cols[i].node.Name, err)
	})
	if err != nil {
		return nil, err
	}
	r.groupRow += int64(rows)
	r.row += int64(rows)
	r.adapt(b)
	return b, nil
}

// adapt chooses the rows of the next batch by what this one took, growing by steps so that a few small rows do not
// stand for all.
func (r *parquetReader) adapt(b *column.Batch) {
	size := int64(1)
	for _, a := range b.Arrays {
		if a != nil {
			size += a.SizeBytes()
		}
	}
	r.rows = int(min(r.rowsFor(max(1, size/int64(b.Rows))), 4*int64(b.Rows)))
}

// rowsFor returns how many rows of a size make a batch: about the target's bytes, but up to 8 times those where that
// makes column.MinRows, since each column costs something for each batch.
func (r *parquetReader) rowsFor(perRow int64) int64 {
	return max(1, min(max(r.target/perRow, min(column.MinRows, 8*r.target/perRow)), column.MaxRows))
}

// readColumn reads rows rows of a top-level column. The library panics on some damage: the error names the column.
func (r *parquetReader) readColumn(n *levelNode, rows int, s *leafScratch) (a *column.Array, err error) {
	defer func() {
		if p := recover(); p != nil {
			a, err = nil, column.Recovered(p)
		}
	}()
	spans := make([]leafSpan, n.last-n.first)
	if err := r.fill(n, spans, n.first, rows, s); err != nil {
		return nil, err
	}
	if a, err = n.assemble(spans, n.first); err != nil {
		return nil, err
	}
	for i := range spans {
		l := spans[i].leaf
		if l == nil {
			continue
		}
		l.forget(spans[i].levels, spans[i].values, s)
		l.rest(&r.held, r.holdBytes)
	}
	return a, nil
}

// fill reads the leaves under n.
func (r *parquetReader) fill(n *levelNode, spans []leafSpan, first, rows int, s *leafScratch) error {
	for _, c := range n.children {
		if err := r.fill(c, spans, first, rows, s); err != nil {
			return err
		}
	}
	if n.children != nil || n.use == useNothing {
		return nil
	}
	l := r.leaves[n.first]
	if l == nil {
		var err error
		if l, err = r.openLeaf(n.first, n); err != nil {
			return err
		}
		r.leaves[n.first] = l
	}
	levels, values, err := l.fill(rows, s)
	spans[n.first-first] = leafSpan{l, levels, values}
	return err
}

// finishGroup checks that every column ended with the row group's last row.
func (r *parquetReader) finishGroup() error {
	defer r.closeGroup()
	for _, l := range r.leaves {
		if l != nil && (l.levels > 0 || l.pages.left > 0 || l.pages.remaining > 0) {
			return fmt.Errorf("column %q has more rows than the row group", l.col.Path())
		}
	}
	return nil
}
