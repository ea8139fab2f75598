package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/files"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/lakehouse"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/footer"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/page"
)

// Reader reads a Parquet file, a batch of rows of all columns at a time. Each column has a reader of its own;
// they advance together.
//
//	row group      column 0   column 1   column 2 ...
//	                page       page       page        each open column holds its current page and dictionary
//	   batch ------- rows ----- rows ----- rows        Threads goroutines decode columns
//
// Memory: the open pages, at most Options.PageBytes between batches, and the batch. A column whose page does not fit
// drops it and reads it again for the next batch, from where it was in it.
type Reader struct {
	f       files.File
	foot    *footer.Footer
	cols    []*levelNode
	nodes   []*column.Type
	quirks  page.Quirks
	wanted  []bool // by column; nil: all
	limits  *column.Limits
	threads int
	target  int64 // bytes of a batch

	group    int   // the row group being read
	groupRow int64 // of its next row
	row      int64 // of the file, likewise
	chunks   []footer.Chunk
	leaves   []*leafReader
	rest     []rest // by column: what was read of rows after the last batch; nil: nothing
	rows     int    // of the next batch
	scratch  []*leafScratch

	holdBytes int64        // the most that open pages take between batches
	Held      atomic.Int64 // what they do
}

const firstRows = 1024

// A rest is rows of a column that a batch had no place for, since another column's rows were larger than those before.
type rest struct {
	a  *column.Array // nil: none
	at int           // the first row that no batch has
}

// Format is that of Parquet files.
var Format = &input.Format{
	Name:      "parquet",
	Magic:     []string{"PAR1", "PARE"},
	Suffixes:  []string{".parquet", ".parq", ".pq"},
	FilesOnly: true,
	Begin: func(d *input.Set) input.Opener {
		return func(ctx context.Context, in input.File) (column.Reader, error) {
			f, err := in.Open(ctx)
			if err != nil {
				return nil, err
			}
			return input.Opened(open(f, &d.ReadOptions))
		}
	},
}

// open takes over f, also where it returns an error.
func open(f files.File, opts *column.ReadOptions) (r *Reader, err error) {
	r = &Reader{f: f, limits: &opts.Limits, threads: opts.Threads, target: opts.ChunkBytes, holdBytes: opts.PageBytes,
		rows: firstRows}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	foot, err := footer.Read(f, f.Size(), *r.limits)
	if err != nil {
		return nil, err
	}
	if foot.Encrypted {
		return nil, column.Refuse("", "the file is encrypted, which this reader does not support: decrypt it first")
	}
	r.foot, r.quirks = foot, page.QuirksOf(foot.Writer)
	var all levelNode
	(&schemaWalker{}).structOf(foot.Root, &all)
	r.cols, r.nodes = all.children, all.node.Children
	refineByArrow(r.nodes, foot.Meta[arrowSchemaKey], opts)
	return r, r.checkGroups()
}

// checkGroups verifies what the footer says of the row groups before anything relies on it.
func (r *Reader) checkGroups() error {
	total := int64(0)
	for i, g := range r.foot.Groups {
		if g.Rows < 0 {
			return fmt.Errorf("row group %d: %d rows", i, g.Rows)
		}
		if g.Columns != r.foot.Columns {
			return fmt.Errorf("row group %d: %d columns, the schema has %d", i, g.Columns, r.foot.Columns)
		}
		if total += g.Rows; total < 0 {
			return fmt.Errorf("row group %d: more rows than can be counted", i)
		}
	}
	// Some writers leave the footer's own count at 0. One that is greater means that row groups are missing.
	if r.foot.Rows > total {
		return fmt.Errorf("the footer says %d rows, its row groups have %d", r.foot.Rows, total)
	}
	return nil
}

func (r *Reader) Columns() []*column.Type { return r.nodes }

func (r *Reader) FileMeta() lakehouse.FileMeta {
	s := lakehouse.FileMeta{IDs: map[string]int32{}, Meta: r.foot.Meta}
	for _, e := range r.foot.Root.Children {
		s.Columns, s.IDs[e.Name] = append(s.Columns, e.Name), e.FieldID
	}
	return s
}

// Project says which columns are read; the others are not touched, and neither are members that the mapping drops.
func (r *Reader) Project(wanted []bool) error {
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

func (r *Reader) Close() error {
	r.closeGroup()
	return r.f.Close()
}

func (r *Reader) closeGroup() {
	r.chunks, r.leaves, r.rest = nil, nil, nil
	r.Held.Store(0)
}

func (r *Reader) Next(ctx context.Context) (*column.Batch, error) {
	for ; r.group < len(r.foot.Groups); r.group++ {
		g := &r.foot.Groups[r.group]
		if r.groupRow == 0 {
			if err := r.openGroup(g); err != nil {
				return nil, fmt.Errorf("row group %d: %w", r.group, err)
			}
		}
		if left := g.Rows - r.groupRow; left > 0 {
			return r.read(ctx, int(min(left, int64(r.rows))))
		}
		if err := r.finishGroup(); err != nil {
			return nil, fmt.Errorf("row group %d: %w", r.group, err)
		}
		r.groupRow = 0
	}
	return nil, io.EOF
}

// openGroup begins with a row group. The readers of its column chunks are opened by the first batch.
func (r *Reader) openGroup(g *footer.RowGroup) (err error) {
	if r.chunks, err = g.Chunks(); err != nil {
		return err
	}
	r.leaves = make([]*leafReader, r.foot.Columns)
	if g.Rows > 0 && g.Bytes > 0 {
		// Encoded sizes are a guess that later batches mend; begin with few rows.
		r.rows = int(min(int64(r.rows), r.rowsFor(max(1, g.Bytes/g.Rows))))
	}
	var read []files.Range
	for i, c := range r.cols {
		if r.wanted == nil || r.wanted[i] {
			read = r.appendRanges(read, c)
		}
	}
	return r.f.Fetch(read, r.holdBytes)
}

// appendRanges appends what the leaves under n have in the row group, as far as they are read.
func (r *Reader) appendRanges(out []files.Range, n *levelNode) []files.Range {
	for _, c := range n.children {
		out = r.appendRanges(out, c)
	}
	if n.children != nil || n.use == useNothing {
		return out
	}
	start, end := r.chunkRange(&r.chunks[n.first])
	return append(out, files.Range{Off: start, Len: end - start})
}

// chunkRange returns where the pages of a column chunk lie, as the footer says: in the file or not.
func (r *Reader) chunkRange(c *footer.Chunk) (start, end int64) {
	start = c.DataPage
	if d := c.DictionaryPage; d > 0 && d < start {
		start = d
	}
	if end = start + c.Compressed; r.quirks.ShortChunks {
		end = min(r.f.Size(), end+100)
	}
	return start, end
}

// openLeaf opens the column chunk of a leaf.
func (r *Reader) openLeaf(i int, n *levelNode) (*leafReader, error) {
	chunk, rows, levelsOnly := &r.chunks[i], r.foot.Groups[r.group].Rows, n.use == useLevels
	switch {
	case chunk.Encrypted:
		return nil, column.Refuse("", "the column is encrypted, which this reader does not support: decrypt it first")
	case chunk.File != "":
		return nil, column.Refuse("", "its values are in another file, %q: ingest that one", chunk.File)
	}
	codec := compress.Compression(chunk.Codec)
	switch codec {
	case compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli,
		compress.Codecs.Zstd, compress.Codecs.Lz4Raw, compress.Codecs.Lz4:
	default:
		return nil, column.Refuse("", "its compression codec (number %d of Parquet's) is not supported", chunk.Codec)
	}
	if physical := parquet.Type(chunk.Physical); !levelsOnly && physical != n.leaf.PhysicalType() {
		return nil, fmt.Errorf("the column chunk is %v, the schema says %v", physical, n.leaf.PhysicalType())
	}
	values := chunk.Values
	if values < 0 || n.rep == 0 && values != rows || values < rows {
		return nil, fmt.Errorf("%d values in a row group of %d rows", values, rows)
	}
	start, end := r.chunkRange(chunk)
	if length, size := chunk.Compressed, r.f.Size(); start < 0 || length < 0 || start > size || length > size-start {
		return nil, fmt.Errorf("the column chunk is bytes [%d, %d) of a file of %d", start, start+length, size)
	}
	l := &leafReader{
		col: n.leaf, node: n.node, maxDef: n.present, maxRep: n.rep, convert: n.convert, limits: r.limits,
		levelsOnly: levelsOnly, most: mostBatches * r.target,
	}
	l.pages = &page.Reader{
		R: r.f, Pos: start, End: end, Remaining: values, Codec: codec, Limits: r.limits, Quirks: r.quirks,
		LevelsOnly: levelsOnly,
	}
	if !levelsOnly {
		l.pages.Value = page.NewValueType(n.leaf.PhysicalType(), n.leaf.TypeLength())
	}
	return l, nil
}

// read returns the next rows of the row group: rows, or fewer where those of a column are larger than they were before.
func (r *Reader) read(ctx context.Context, rows int) (*column.Batch, error) {
	for _, rest := range r.rest {
		if rest.a != nil {
			rows = min(rows, rest.a.Len-rest.at)
		}
	}
	b := &column.Batch{RowGroup: r.group, Row: r.row, Arrays: make([]*column.Array, len(r.cols))}
	for range column.Workers(len(r.cols), r.threads) - len(r.scratch) {
		r.scratch = append(r.scratch, &leafScratch{})
	}
	err := column.Each(ctx, len(r.cols), r.threads, func(worker, i int) (err error) {
		if r.wanted != nil && !r.wanted[i] || r.rest != nil && r.rest[i].a != nil {
			return nil
		}
		if b.Arrays[i], err = r.readColumn(r.cols[i], rows, r.scratch[worker]); err == nil {
			return nil
		}
		if re := (*column.RefusedError)(nil); errors.As(err, &re) {
			re.Column = r.cols[i].node.Name
			return err
		}
		return fmt.Errorf("row group %d, rows %d to %d, column %q: %w", r.group, r.row, r.row+int64(rows)-1,
			r.cols[i].node.Name, err)
	})
	if err != nil {
		return nil, err
	}
	b.Rows = rows
	for _, a := range b.Arrays {
		if a != nil {
			b.Rows = min(b.Rows, a.Len)
		}
	}
	r.cut(b)
	r.groupRow += int64(b.Rows)
	r.row += int64(b.Rows)
	r.adapt(b)
	return b, nil
}

// cut gives all columns of a batch its rows, and keeps what else there is of them.
func (r *Reader) cut(b *column.Batch) {
	for i, a := range b.Arrays {
		if a != nil && a.Len > b.Rows {
			if r.rest == nil {
				r.rest = make([]rest, len(r.cols))
			}
			r.rest[i] = rest{a, 0}
		}
	}
	for i := range r.rest {
		from := &r.rest[i]
		if from.a == nil {
			continue
		}
		b.Arrays[i] = column.NewArray(from.a.Type)
		b.Arrays[i].AppendFrom(from.a, from.at, from.at+b.Rows)
		if from.at += b.Rows; from.at == from.a.Len {
			*from = rest{}
		}
	}
}

// adapt chooses the rows of the next batch by what this one took, growing by steps so that a few small rows do not
// stand for all.
func (r *Reader) adapt(b *column.Batch) {
	size := int64(1)
	for _, a := range b.Arrays {
		if a != nil {
			size += a.SizeBytes()
		}
	}
	r.rows = int(min(r.rowsFor(max(1, size/int64(b.Rows))), 4*int64(b.Rows)))
}

// mostBatches is how many targets of bytes a batch has at most, and one column of it where rows get larger.
const mostBatches = 8

// rowsFor returns how many rows of a size make a batch: about the target's bytes, but up to mostBatches times those
// where that makes column.MinRows, since each column costs something for each batch.
func (r *Reader) rowsFor(perRow int64) int64 {
	return max(1, min(max(r.target/perRow, min(column.MinRows, mostBatches*r.target/perRow)), column.MaxRows))
}

// readColumn reads rows rows of a top-level column, or fewer, see leafReader.fill. The library panics on some damage:
// the error names the column.
func (r *Reader) readColumn(n *levelNode, rows int, s *leafScratch) (a *column.Array, err error) {
	defer func() {
		if p := recover(); p != nil {
			a, err = nil, column.Recovered(p)
		}
	}()
	spans := make([]leafSpan, n.last-n.first)
	for {
		// Parts of a column that were read before one that has fewer rows are looked at again.
		full, err := r.fill(n, spans, n.first, rows, s)
		if err != nil {
			return nil, err
		}
		if full == rows {
			break
		}
		rows = full
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
		l.rest(&r.Held, r.holdBytes)
	}
	return a, nil
}

// fill reads the leaves under n, and returns how many rows the last of them has.
func (r *Reader) fill(n *levelNode, spans []leafSpan, first, rows int, s *leafScratch) (full int, err error) {
	for _, c := range n.children {
		if rows, err = r.fill(c, spans, first, rows, s); err != nil {
			return 0, err
		}
	}
	if n.children != nil || n.use == useNothing {
		return rows, nil
	}
	l := r.leaves[n.first]
	if l == nil {
		if l, err = r.openLeaf(n.first, n); err != nil {
			return 0, err
		}
		r.leaves[n.first] = l
	}
	full, levels, values, err := l.fill(rows, s)
	spans[n.first-first] = leafSpan{l, levels, values}
	return full, err
}

// finishGroup checks that every column ended with the row group's last row.
func (r *Reader) finishGroup() error {
	defer r.closeGroup()
	for i, l := range r.leaves {
		if l != nil && !l.done() {
			return fmt.Errorf("column %q has more rows than the row group", r.foot.Path(i))
		}
	}
	return nil
}
