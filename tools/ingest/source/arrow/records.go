package arrow

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/zeebo/xxh3"
)

// A RecordReader is where Arrow records come from; an array.RecordReader is one. Its schema may be known only after the
// first Next.
type RecordReader interface {
	Schema() *arrow.Schema
	Next() bool
	RecordBatch() arrow.RecordBatch
	Err() error
	Release()
}

// Records are Arrow records in memory, as an input: what Options.Records gives the path "-" to read. They are read
// once, and nothing is copied that a Column can show as it is.
//
//	RecordReader ── a goroutine ──> record ── converter ──> arrays that borrow its buffers ──> Chunk, until Release
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

// NewRecords takes r over. resident says that its records are in memory whether or not they are read, as those of a
// table are: then what is borrowed of them does not count as memory that the ingest holds.
func NewRecords(r RecordReader, resident bool) *Records {
	return &Records{reader: r, resident: resident, out: make(chan arrow.RecordBatch), stop: make(chan struct{})}
}

// ErrRecordsClosed is returned when Records were closed before their end.
var ErrRecordsClosed = errors.New("the Arrow records were closed")

// Close gives the reader back. It does not wait for a call of the reader that is under way, so that a slow reader does
// not delay a cancellation: the reader is released when that call returns.
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
	// What is foreign may be wrong in ways at which the library panics.
	defer func() {
		if p := recover(); p != nil {
			r.err = column.Recovered(p)
		}
	}()
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

// Sum returns the fingerprint of all rows, once they were read to the end: of names, types and values, in the batches
// in which they came.
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

// appendSum appends what a recordHash takes of the values of a: a hash and a length for each of its slices, so that
// columns are hashed in parallel and no Hasher copies them.
func appendSum(dst []byte, a *column.Array) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(a.Len))
	for _, p := range [...][]byte{
		arrow.Uint64Traits.CastToBytes(a.Valid), arrow.Int32Traits.CastToBytes(a.Offsets),
		arrow.Int64Traits.CastToBytes(a.Ints),
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
	batcher
	records *Records
	first   arrow.RecordBatch // read for the schema, or nil
	sums    [][]byte          // of each column: what the fingerprint takes of the batch at hand
}

// OpenRecords returns the reader of records.
func OpenRecords(ctx context.Context, records *Records, opts *column.ReadOptions) (column.Reader, error) {
	r := &recordReader{batcher: newBatcher(opts), records: records}
	r.conv.borrow = true
	switch rec, err := records.Next(ctx); {
	case err == nil:
		r.first = rec
		r.setSchema(rec.Schema())
	case err != io.EOF:
		return nil, err
	case records.reader.Schema() == nil:
		return nil, errors.New("the Arrow stream has no schema")
	default:
		r.setSchema(records.reader.Schema())
	}
	r.sums = make([][]byte, len(r.nodes))
	records.hash.nodes(r.nodes)
	return r, nil
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
	for !r.more() {
		if err := r.advance(ctx); err != nil {
			return nil, err
		}
	}
	b, err := r.next(ctx, func(i int, a *column.Array) { r.sums[i] = appendSum(r.sums[i][:0], a) })
	if err != nil {
		return nil, err
	}
	b.Resident = r.records.resident
	for i := range r.nodes {
		if b.Arrays[i] != nil {
			r.records.hash.Write(r.sums[i])
		}
	}
	return b, nil
}

// advance makes the next record the one at hand.
func (r *recordReader) advance(ctx context.Context) (err error) {
	if r.rec != nil {
		r.rec.Release()
		r.rec = nil
	}
	rec := r.first
	if r.first = nil; rec == nil {
		if rec, err = r.records.Next(ctx); err != nil {
			return err
		}
	}
	if got := len(rec.Columns()); got != len(r.nodes) {
		rec.Release()
		return fmt.Errorf("record batch %d has %d columns: want %d", r.batch, got, len(r.nodes))
	}
	size := int64(0) // one that is resident is given in the largest batches
	if !r.records.resident {
		for _, c := range rec.Columns() {
			size += int64(c.Data().SizeInBytes())
		}
		size = max(1, size)
	}
	r.begin(rec, size)
	return nil
}
