package arrow

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/zeebo/xxh3"
)

// A RecordReader is where Arrow records come from; an array.RecordReader is one. Its schema may be known only after the first
// Next.
type RecordReader interface {
	Schema() *arrow.Schema
	Next() bool
	RecordBatch() arrow.RecordBatch
	Err() error
	Release()
}

// Records are Arrow records in memory, as an input: what Options.Records gives the path "-" to read. They are read once, and
// nothing is copied that a Column can show as it is.
//
//	RecordReader ── a goroutine ──> record ── converter ──> arrays that borrow its buffers ──> Chunk, until its Free
//
// Close may be called at any time, by any goroutine; everything else by one.
type Records struct {
	reader   RecordReader
	resident bool

	begin, end sync.Once
	out        chan arrow.RecordBatch
	stop       chan struct{}
	err        error // of the reader; set before out is closed
	hash       recordHash
	done       bool // read to the end
}

// NewRecords takes r over. resident says that its records are in memory whether or not they are read, as those of a table are:
// then what is borrowed of them does not count as memory that the ingest holds.
func NewRecords(r RecordReader, resident bool) *Records {
	return &Records{reader: r, resident: resident, out: make(chan arrow.RecordBatch), stop: make(chan struct{})}
}

var ErrRecordsClosed = errors.New("the Arrow records were closed")

// Close gives the reader back. A call of it that is under way is not waited for: whoever cancels is not held up by a reader
// that is slow, or stuck; it is released when it returns.
func (r *Records) Close() {
	r.begin.Do(func() {
		r.err = ErrRecordsClosed
		close(r.out)
		r.reader.Release()
	})
	r.end.Do(func() { close(r.stop) })
}

// Next returns the next record, which the caller releases, and io.EOF after the last.
func (r *Records) Next(ctx context.Context) (arrow.RecordBatch, error) {
	r.begin.Do(func() { go r.feed() })
	select {
	case rec, ok := <-r.out:
		switch {
		case ok:
			return rec, nil
		case r.err != nil:
			return nil, r.err
		}
		r.done = true
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// feed reads records until the last, or until Close.
func (r *Records) feed() {
	defer r.reader.Release()
	defer close(r.out)
	for r.reader.Next() {
		rec := r.reader.RecordBatch()
		rec.Retain()
		select {
		case r.out <- rec:
		case <-r.stop:
			rec.Release()
			r.err = ErrRecordsClosed
			return
		}
	}
	if err := r.reader.Err(); !errors.Is(err, io.EOF) {
		r.err = err
	}
}

// Sum returns the fingerprint of all rows, once they were read to the end: of names, types and values, in the batches in which
// they came.
func (r *Records) Sum() (string, error) {
	if !r.done {
		return "", errors.New("the records' fingerprint is known once they were read to the end")
	}
	sum := r.hash.Sum128().Bytes()
	return hex.EncodeToString(sum[:]), nil
}

// A recordHash makes the fingerprint of records: 128 bits of XXH3, which reads memory once, as fast as it comes.
type recordHash struct{ xxh3.Hasher }

// nodes adds names and types.
func (h *recordHash) nodes(nodes []*column.Type) {
	for _, n := range nodes {
		h.Write(fmt.Appendf(nil, "%q %v %s;", n.Name, n, n.Logical))
	}
}

// appendSum appends what a recordHash takes of the values of a: a hash and a length for each of its slices, so that columns are hashed in
// parallel and no Hasher copies them.
func appendSum(dst []byte, a *column.Array) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(a.Len))
	for _, p := range [...][]byte{
		arrow.Uint64Traits.CastToBytes(a.Valid), arrow.Int32Traits.CastToBytes(a.Offsets), arrow.Int64Traits.CastToBytes(a.Ints),
		arrow.Float32Traits.CastToBytes(a.Floats), arrow.Float64Traits.CastToBytes(a.Doubles), a.Data,
	} {
		sum := xxh3.Hash128(p).Bytes()
		dst = binary.LittleEndian.AppendUint64(append(dst, sum[:]...), uint64(len(p)))
	}
	for _, c := range a.Children {
		dst = appendSum(dst, c)
	}
	return dst
}

// A recordReader is the column.Reader over Records.
type recordReader struct {
	records *Records
	nodes   []*column.Type
	wanted  []bool
	target  int64

	first arrow.RecordBatch // read for the schema, or nil
	rec   arrow.RecordBatch // the current one, or nil
	conv  recordConverter
	sums  [][]byte // of each column: what the fingerprint takes of the batch at hand
	at    int64    // the next row of rec
	rows  int64    // of a batch
	row   int64    // of the input
	batch int
}

// OpenRecords returns the reader of records.
func OpenRecords(ctx context.Context, records *Records, opts *column.ReadOptions) (column.Reader, error) {
	r := &recordReader{
		records: records, target: opts.ChunkBytes, conv: recordConverter{limits: &opts.Limits, borrow: true, threads: opts.Threads},
	}
	var schema *arrow.Schema
	switch rec, err := records.Next(ctx); {
	case err == nil:
		r.first, schema = rec, rec.Schema()
	case err != io.EOF:
		return nil, err
	default:
		if schema = records.reader.Schema(); schema == nil {
			return nil, errors.New("the Arrow stream has no schema")
		}
	}
	for _, f := range schema.Fields() {
		r.nodes = append(r.nodes, fieldType(f, 1))
	}
	r.sums = make([][]byte, len(r.nodes))
	records.hash.nodes(r.nodes)
	return r, nil
}

func (r *recordReader) Columns() []*column.Type { return r.nodes }
func (r *recordReader) Want(wanted []bool) error {
	r.wanted = wanted
	return nil
}

func (r *recordReader) Close() error {
	for _, rec := range []arrow.RecordBatch{r.first, r.rec} {
		if rec != nil {
			rec.Release()
		}
	}
	r.first, r.rec = nil, nil
	return nil
}

func (r *recordReader) Next(ctx context.Context) (*column.Batch, error) {
	for r.rec == nil || r.at >= r.rec.NumRows() {
		if err := r.advance(ctx); err != nil {
			return nil, err
		}
	}
	n := min(r.rows, r.rec.NumRows()-r.at)
	part := r.rec.NewSlice(r.at, r.at+n)
	b := &column.Batch{Rows: int(n), RowGroup: -1, Row: r.row, Arrays: make([]*column.Array, len(r.nodes)), Hold: part, Resident: r.records.resident}
	err := r.conv.convert(ctx, b.Arrays, part, r.nodes, r.wanted, func(i int, a *column.Array) { r.sums[i] = appendSum(r.sums[i][:0], a) })
	if err != nil {
		part.Release()
		return nil, fmt.Errorf("record batch %d, %w", r.batch-1, err)
	}
	for i := range r.nodes {
		if b.Arrays[i] != nil {
			r.records.hash.Write(r.sums[i])
		}
	}
	r.at += n
	r.row += n
	return b, nil
}

// advance makes the next record the current one.
func (r *recordReader) advance(ctx context.Context) error {
	if r.rec != nil {
		r.rec.Release()
		r.rec = nil
	}
	rec, err := r.first, error(nil)
	r.first = nil
	if rec == nil {
		if rec, err = r.records.Next(ctx); err != nil {
			return err
		}
	}
	if got := len(rec.Columns()); got != len(r.nodes) {
		rec.Release()
		return fmt.Errorf("record batch %d has %d columns: want %d", r.batch, got, len(r.nodes))
	}
	r.rec, r.at = rec, 0
	r.conv.begin(len(r.nodes))
	r.rows = column.MaxRows
	if n := rec.NumRows(); n > 0 && !r.records.resident {
		size := int64(0)
		for _, c := range rec.Columns() {
			size += int64(c.Data().SizeInBytes())
		}
		r.rows = max(column.MinRows, min(column.MaxRows, r.target/max(1, size/n)))
	}
	r.batch++
	return nil
}

// arrowBits returns bits [offset, offset+n) of an Arrow bitmap. Copied.
func arrowBits(bits []byte, offset, n int) vector.Bitmap {
	out := make(vector.Bitmap, vector.BitmapWords(n))
	bits = bits[offset>>3:]
	shift := uint(offset) & 7
	for i := range out {
		var w uint64
		for k, b := range bits[8*i : min(8*i+8, len(bits))] {
			w |= uint64(b) << (8 * k)
		}
		if w >>= shift; shift > 0 && 8*i+8 < len(bits) {
			w |= uint64(bits[8*i+8]) << (64 - shift)
		}
		out[i] = w
	}
	if r := n & 63; r != 0 {
		out[len(out)-1] &= math.MaxUint64 >> (64 - uint(r))
	}
	return out
}
