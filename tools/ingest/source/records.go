package source

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
//	RecordReader ── a goroutine ──> record ── arrowConverter ──> arrays that borrow its buffers ──> Chunk, until its Free
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

var errRecordsClosed = errors.New("the Arrow records were closed")

// Close gives the reader back. A call of it that is under way is not waited for: whoever cancels is not held up by a reader
// that is slow, or stuck; it is released when it returns.
func (r *Records) Close() {
	r.begin.Do(func() {
		r.err = errRecordsClosed
		close(r.out)
		r.reader.Release()
	})
	r.end.Do(func() { close(r.stop) })
}

// next returns the next record, which the caller releases, and io.EOF after the last.
func (r *Records) next(ctx context.Context) (arrow.RecordBatch, error) {
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
			r.err = errRecordsClosed
			return
		}
	}
	if err := r.reader.Err(); !errors.Is(err, io.EOF) {
		r.err = err
	}
}

// sum returns the fingerprint of all rows, once they were read to the end: of names, types and values, in the batches in which
// they came.
func (r *Records) sum() (string, error) {
	if !r.done {
		return "", errors.New("the records' fingerprint is known once they were read to the end")
	}
	sum := r.hash.Sum128().Bytes()
	return hex.EncodeToString(sum[:]), nil
}

// A recordHash makes the fingerprint of records: 128 bits of XXH3, which reads memory once, as fast as it comes.
type recordHash struct{ xxh3.Hasher }

// nodes adds names and types.
func (h *recordHash) nodes(nodes []*node) {
	for _, n := range nodes {
		h.Write(fmt.Appendf(nil, "%q %v %s;", n.name, n, n.logical))
	}
}

// array adds the values of a; nil: a column that is left out.
func (h *recordHash) array(a *array) {
	if a == nil {
		return
	}
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(a.n)))
	h.bytes(arrow.Uint64Traits.CastToBytes(a.valid))
	h.bytes(arrow.Int32Traits.CastToBytes(a.offsets))
	h.bytes(arrow.Int64Traits.CastToBytes(a.ints))
	h.bytes(arrow.Float32Traits.CastToBytes(a.floats))
	h.bytes(arrow.Float64Traits.CastToBytes(a.doubles))
	h.bytes(a.data)
	for _, c := range a.children {
		h.array(c)
	}
}

// bytes adds p by its own hash: a Hasher would copy it first.
func (h *recordHash) bytes(p []byte) {
	sum := xxh3.Hash128(p).Bytes()
	h.Write(binary.LittleEndian.AppendUint64(sum[:], uint64(len(p))))
}

// A recordReader is the batchReader over Records.
type recordReader struct {
	records *Records
	nodes   []*node
	wanted  []bool
	limits  *Limits
	target  int64

	first arrow.RecordBatch // read for the schema, or nil
	rec   arrow.RecordBatch // the current one, or nil
	conv  *arrowConverter
	at    int64 // the next row of rec
	rows  int64 // of a batch
	row   int64 // of the input
	batch int
}

func newRecordReader(ctx context.Context, records *Records, opts *Options) (*recordReader, error) {
	r := &recordReader{records: records, limits: &opts.Limits, target: opts.ChunkBytes}
	var schema *arrow.Schema
	switch rec, err := records.next(ctx); {
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
		r.nodes = append(r.nodes, arrowNode(f, 1))
	}
	records.hash.nodes(r.nodes)
	return r, nil
}

func (r *recordReader) columns() []*node   { return r.nodes }
func (r *recordReader) want(wanted []bool) { r.wanted = wanted }

func (r *recordReader) close() error {
	for _, rec := range []arrow.RecordBatch{r.first, r.rec} {
		if rec != nil {
			rec.Release()
		}
	}
	r.first, r.rec = nil, nil
	return nil
}

func (r *recordReader) next(ctx context.Context) (*batch, error) {
	for r.rec == nil || r.at >= r.rec.NumRows() {
		if err := r.advance(ctx); err != nil {
			return nil, err
		}
	}
	n := min(r.rows, r.rec.NumRows()-r.at)
	part := r.rec.NewSlice(r.at, r.at+n)
	b := &batch{rows: int(n), rowGroup: -1, row: r.row, arrays: make([]*array, len(r.nodes)), hold: part, resident: r.records.resident}
	for i := range r.nodes {
		if r.wanted != nil && !r.wanted[i] {
			continue
		}
		r.conv.size = 0
		a, err := r.conv.convert(part.Column(i), r.nodes[i])
		if err == nil {
			err = a.check()
		}
		if err != nil {
			part.Release()
			return nil, fmt.Errorf("record batch %d, column %q: %w", r.batch-1, r.nodes[i].name, err)
		}
		r.records.hash.array(a)
		b.arrays[i] = a
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
		if rec, err = r.records.next(ctx); err != nil {
			return err
		}
	}
	if got := len(rec.Columns()); got != len(r.nodes) {
		rec.Release()
		return fmt.Errorf("record batch %d has %d columns: want %d", r.batch, got, len(r.nodes))
	}
	r.rec, r.at = rec, 0
	r.conv = &arrowConverter{limits: r.limits, dictionaries: map[arrow.ArrayData]*array{}, borrow: true}
	r.rows = maxRows
	if n := rec.NumRows(); n > 0 && !r.records.resident {
		size := int64(0)
		for _, c := range rec.Columns() {
			size += int64(c.Data().SizeInBytes())
		}
		r.rows = max(minRows, min(maxRows, r.target/max(1, size/n)))
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

// lent returns how many bytes of c's values are a's, borrowed.
func (a *array) lent(c *vector.Column) int64 {
	n := int64(0)
	if a.borrowed {
		if same(a.ints, c.Ints) {
			n += 8 * int64(cap(c.Ints))
		}
		if same(a.floats, c.Floats) {
			n += 4 * int64(cap(c.Floats))
		}
		if same(a.floats, c.ScoreFloats) {
			n += 4 * int64(cap(c.ScoreFloats))
		}
		if same(a.doubles, c.Doubles) {
			n += 8 * int64(cap(c.Doubles))
		}
		if same(a.doubles, c.ScoreDoubles) {
			n += 8 * int64(cap(c.ScoreDoubles))
		}
	}
	for _, child := range a.children {
		n += child.lent(c)
	}
	return n
}

// same reports whether two slices that are not empty start at the same place.
func same[T any](x, y []T) bool { return len(x) > 0 && len(y) > 0 && &x[0] == &y[0] }
