package object

import (
	"context"
	"iter"
	"sync/atomic"
)

// Counts says what a store was asked for, a cache on the local disk too where there is one; Traffic has what a service
// was sent. A request is one call; List counts once for each page of 1,000 begun.
type Counts struct {
	Reads, BytesRead     int64
	Stats, Lists         int64
	Writes, BytesWritten int64
	Deletes              int64
}

// Requests returns the number of requests that read.
func (c Counts) Requests() int64 { return c.Reads + c.Stats + c.Lists }

// Sub returns what was counted since earlier.
func (c Counts) Sub(earlier Counts) Counts {
	return Counts{
		Reads: c.Reads - earlier.Reads, BytesRead: c.BytesRead - earlier.BytesRead,
		Stats: c.Stats - earlier.Stats, Lists: c.Lists - earlier.Lists,
		Writes: c.Writes - earlier.Writes, BytesWritten: c.BytesWritten - earlier.BytesWritten,
		Deletes: c.Deletes - earlier.Deletes,
	}
}

// Counted is a Store that counts what passes to the one under it.
type Counted struct {
	Store
	reads, bytesRead, stats, lists, writes, bytesWritten, deletes atomic.Int64
	ended                                                         endings
}

// NewCounted returns a Counted over s.
func NewCounted(s Store) *Counted { return &Counted{Store: s} }

// Unwrap returns the store under it.
func (c *Counted) Unwrap() Store { return c.Store }

// Counts returns what was counted so far.
func (c *Counted) Counts() Counts {
	return Counts{
		Reads: c.reads.Load(), BytesRead: c.bytesRead.Load(), Stats: c.stats.Load(), Lists: c.lists.Load(),
		Writes: c.writes.Load(), BytesWritten: c.bytesWritten.Load(), Deletes: c.deletes.Load(),
	}
}

func (c *Counted) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	c.reads.Add(1)
	c.bytesRead.Add(int64(len(p)))
	return c.ended.end(opRead, c.Store.ReadAt(ctx, name, p, off))
}

// ReadWhole counts as a read where the store makes one of it, else as a Stat and a read.
func (c *Counted) ReadWhole(ctx context.Context, name string, most int64) ([]byte, int64, error) {
	if _, ok := c.Store.(wholeReader); !ok {
		return ReadWhole(ctx, struct{ Store }{c}, name, most) // c without this method
	}
	c.reads.Add(1)
	b, size, err := ReadWhole(ctx, c.Store, name, most)
	c.bytesRead.Add(int64(len(b)))
	return b, size, c.ended.end(opRead, err)
}

func (c *Counted) Stat(ctx context.Context, name string) (Info, error) {
	c.stats.Add(1)
	info, err := c.Store.Stat(ctx, name)
	return info, c.ended.end(opStat, err)
}

func (c *Counted) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	c.writes.Add(1)
	c.bytesWritten.Add(int64(len(data)))
	return c.ended.end(opWrite, c.Store.PutIfAbsent(ctx, name, data))
}

func (c *Counted) Create(ctx context.Context, name string) (Writer, error) {
	c.writes.Add(1)
	w, err := c.Store.Create(ctx, name)
	if err != nil {
		return nil, c.ended.end(opWrite, err)
	}
	return &countedWriter{Writer: w, n: &c.bytesWritten, ended: &c.ended}, nil
}

type countedWriter struct {
	Writer
	n     *atomic.Int64
	ended *endings
}

func (w *countedWriter) Commit(ctx context.Context) error {
	return w.ended.end(opWrite, w.Writer.Commit(ctx))
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.n.Add(int64(n))
	return n, err
}

const listPage = 1000

func (c *Counted) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		n := 0
		c.lists.Add(1)
		for info, err := range c.Store.List(ctx, prefix, startAfter) {
			if n++; n%listPage == 0 {
				c.lists.Add(1)
				c.ended.end(opList, nil)
			}
			if err != nil {
				c.ended.end(opList, err)
				yield(info, err)
				return
			}
			if !yield(info, nil) {
				break
			}
		}
		c.ended.end(opList, nil)
	}
}

// First counts as a List.
func (c *Counted) First(ctx context.Context, prefix, startAfter string) (Info, bool, error) {
	c.lists.Add(1)
	info, ok, err := First(ctx, c.Store, prefix, startAfter)
	return info, ok, c.ended.end(opList, err)
}

func (c *Counted) Delete(ctx context.Context, name string) error {
	c.deletes.Add(1)
	return c.ended.end(opDelete, c.Store.Delete(ctx, name))
}

// DeleteAll counts a request for as many names as the store, or one that it wraps, says that it deletes together, else
// one a name.
func (c *Counted) DeleteAll(ctx context.Context, names []string) error {
	requests := int64(len(names))
	if b, ok := As[interface{ DeletesAtOnce() int }](c.Store); ok {
		batch := int64(b.DeletesAtOnce())
		requests = (requests + batch - 1) / batch
	}
	c.deletes.Add(requests)
	return c.ended.end(opDelete, DeleteAll(ctx, c.Store, names))
}

// Truncate counts as a write.
func (c *Counted) Truncate(ctx context.Context, of Info) error {
	c.writes.Add(1)
	return c.ended.end(opWrite, c.Store.Truncate(ctx, of))
}
