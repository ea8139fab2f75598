package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/arrowbatch"
)

// A Records is an array.RecordReader over a plan whose buffers all lie in the Engine's memory: those of a batch as they
// are, what the conversion made beside them copied. It is read from one goroutine.
type Records struct {
	next      func(context.Context) (*reader.Batch, error) // io.EOF after the last
	close     func()
	converter *arrowbatch.Converter
	memory    *tracked
	ctx       context.Context
	cancel    context.CancelFunc

	refs    atomic.Int64
	current arrow.RecordBatch
	err     error
	failed  func(error) // told of err
}

// recordsAnswer is the handle of records, which TakeRecords takes.
type recordsAnswer int64

// appendJSON writes a as encoding/json would.
func (a recordsAnswer) appendJSON(b []byte) []byte { return strconv.AppendInt(b, int64(a), 10) }

func (a recordsAnswer) undo(e *Engine) {
	if r := e.TakeRecords(int64(a)); r != nil {
		r.Release()
	}
}

type recordsParams struct {
	URI  string `json:"uri"`
	Plan string `json:"plan"`
	Hash string `json:"hash"` // without Plan: that of a plan whose layout may be kept; if it is not, there is no result
	Fold bool   `json:"fold"`
	readParams
}

// recordsOpen opens a plan of columns, as "plan" gives it, as Arrow records.
func (e *Engine) recordsOpen(ctx context.Context, p *recordsParams) (any, error) {
	var layout *reader.Layout
	var err error
	if p.Plan == "" {
		layout, err = e.layoutOf(ctx, layoutKey{placeOf(ctx, p.URI), p.Hash})
	} else {
		layout, err = e.openPlan(ctx, p.URI, p.Plan)
	}
	if err != nil || layout == nil {
		return nil, err
	}
	converter, err := arrowbatch.NewConverter(layout.Plan(), arrowbatch.Options{Fold: p.Fold})
	if err != nil {
		return nil, err
	}
	m := &tracked{under: e.allocator}
	s, err := layout.Open(p.options(m))
	if err != nil {
		return nil, usageError{err}
	}
	closed := e.addReader(placeOf(ctx, p.URI), s)
	release := func() {
		_ = s.Close()
		closed()
	}
	return e.opened(&Records{next: s.Next, close: release, converter: converter, memory: m}), nil
}

// opened gives records a handle.
func (e *Engine) opened(r *Records) recordsAnswer {
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.refs.Store(1)
	var number int64
	r.failed = func(err error) { cache(e, e.failed, number, err) }
	number = e.records.add(r)
	return recordsAnswer(number)
}

// recordsError answers with the error that ended records too early. Arrow's C stream interface has no more of it than
// its text. Of streams without one, and of those that failed long ago, there is none.
func (e *Engine) recordsError(_ context.Context, p *handle) (any, error) {
	err, _ := cached(e, e.failed, p.Handle)
	return nil, err
}

// TakeRecords returns the records of a handle, which are the caller's from then on; nil: there are none.
func (e *Engine) TakeRecords(number int64) *Records {
	r, _ := e.records.take(number)
	return r
}

// Schema returns the schema of every record.
func (r *Records) Schema() *arrow.Schema { return r.converter.Schema() }

// Next makes the next record the current one; false: there is none, or Err says why.
func (r *Records) Next() (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			ok, r.err = false, fmt.Errorf("the engine has a defect, please report it: panic: %v", p)
		}
		if r.err != nil {
			r.failed(r.err)
		}
	}()
	r.drop()
	if r.err != nil {
		return false
	}
	b, err := r.next(r.ctx)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			r.err = err
		}
		return false
	}
	record, err := r.converter.Record(b)
	if err != nil {
		b.Release()
		r.err = err
		return false
	}
	r.current = r.adopt(record, b)
	record.Release()
	return true
}

func (r *Records) drop() {
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
}

// RecordBatch returns the current record, which is the reader's until the next Next.
func (r *Records) RecordBatch() arrow.RecordBatch { return r.current }

// Record is RecordBatch.
func (r *Records) Record() arrow.RecordBatch { return r.current }

// Err returns what ended the records too early.
func (r *Records) Err() error { return r.err }

// Retain adds a reference.
func (r *Records) Retain() { r.refs.Add(1) }

// Release drops one; the last closes the scanner. Records that are held outlive it.
func (r *Records) Release() {
	if r.refs.Add(-1) > 0 {
		return
	}
	r.drop()
	r.cancel()
	r.close()
}

// adopt returns record with buffers that hold b: the last one released releases it.
func (r *Records) adopt(record arrow.RecordBatch, b *reader.Batch) arrow.RecordBatch {
	owner := &batchOwner{batch: b, memory: r.memory}
	owner.refs.Store(1)
	defer owner.Free(nil)
	columns := make([]arrow.Array, record.NumCols())
	for i := range columns {
		d := owner.data(record.Column(i).Data())
		columns[i] = array.MakeFromData(d)
		d.Release()
	}
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	return array.NewRecordBatch(record.Schema(), columns, record.NumRows())
}

// A batchOwner is the memory.Allocator of the buffers of one record: it counts them, and gives the batch back with the
// last. It allocates nothing.
type batchOwner struct {
	batch  *reader.Batch
	memory *tracked
	refs   atomic.Int64
}

func (o *batchOwner) Allocate(int) []byte           { panic("engine: a batch's buffers do not grow") }
func (o *batchOwner) Reallocate(int, []byte) []byte { panic("engine: a batch's buffers do not grow") }

// Free is called with each buffer once.
func (o *batchOwner) Free([]byte) {
	if o.refs.Add(-1) == 0 {
		o.batch.Release()
	}
}

// data returns d over buffers that o counts.
func (o *batchOwner) data(d arrow.ArrayData) arrow.ArrayData {
	buffers := make([]*memory.Buffer, len(d.Buffers()))
	for i, b := range d.Buffers() {
		if b == nil {
			continue
		}
		switch {
		case b.Len() == 0:
			buffers[i] = memory.NewBufferBytes(nil)
		case o.memory.holds(b.Bytes()):
			o.refs.Add(1)
			buffers[i] = memory.NewBufferWithAllocator(b.Bytes(), o)
		default:
			copied := o.memory.under.Allocate(b.Len())
			if copied == nil { // Go ends the process where it has none either
				buffers[i] = memory.NewBufferBytes(bytes.Clone(b.Bytes()))
				continue
			}
			copy(copied, b.Bytes())
			buffers[i] = memory.NewBufferWithAllocator(copied, freeing{o.memory.under})
		}
	}
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		children[i] = o.data(c)
	}
	var out *array.Data
	if d.DataType().ID() == arrow.DICTIONARY {
		dictionary := o.data(d.Dictionary())
		out = array.NewDataWithDictionary(d.DataType(), d.Len(), buffers, d.NullN(), d.Offset(),
			dictionary.(*array.Data))
		dictionary.Release()
	} else {
		out = array.NewData(d.DataType(), d.Len(), buffers, children, d.NullN(), d.Offset())
	}
	for _, c := range children {
		c.Release()
	}
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	return out
}

// freeing frees buffers that hold their whole allocation.
type freeing struct{ under reader.Allocator }

func (freeing) Allocate(int) []byte           { panic("engine: a copied buffer does not grow") }
func (freeing) Reallocate(int, []byte) []byte { panic("engine: a copied buffer does not grow") }
func (f freeing) Free(b []byte)               { f.under.Free(b) }

// A tracked Allocator knows what it gave.
type tracked struct {
	under reader.Allocator

	mu    sync.Mutex
	spans []span // by start; guarded by mu
}

type span struct{ start, end uintptr }

func (t *tracked) Allocate(n int) []byte {
	b := t.under.Allocate(n)
	if b == nil {
		return nil
	}
	s := spanOf(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = slices.Insert(t.spans, t.search(s.start), s)
	return b
}

func (t *tracked) Free(b []byte) {
	t.mu.Lock()
	i := t.search(spanOf(b).start)
	t.spans = slices.Delete(t.spans, i, i+1)
	t.mu.Unlock()
	t.under.Free(b)
}

// holds reports whether b, which is not empty, lies in memory that t gave.
func (t *tracked) holds(b []byte) bool {
	s := spanOf(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.search(s.start + 1)
	return i > 0 && s.end <= t.spans[i-1].end
}

// search returns the first span that starts at at or after.
func (t *tracked) search(at uintptr) int {
	i, _ := slices.BinarySearchFunc(t.spans, at, func(s span, at uintptr) int {
		if s.start < at {
			return -1
		}
		return 1
	})
	return i
}

func spanOf(b []byte) span {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return span{start, start + uintptr(len(b))}
}
