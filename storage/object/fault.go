package object

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// ErrInjected is what a Fault returns when it fails an operation.
var ErrInjected = errors.New("injected fault")

// A FaultMode says what becomes of the operation that a Fault fails.
type FaultMode uint8

const (
	// FailBefore: it is not done.
	FailBefore FaultMode = 0
	// FailAfter: it is done, and its caller is told that it failed, as when a connection is lost before the answer.
	FailAfter FaultMode = 1
)

// Fault is a Store that fails operations on purpose. Operations are counted from 1: reads, stats, lists, puts, creates,
// every Write and Commit of a Writer, deletes and truncations. It stands for a store that answers with errors; a
// machine that loses power is a Local over a file system that crashes (NewLocalFS).
type Fault struct {
	Store

	mu   sync.Mutex
	n    int64 // operations so far; guarded by mu, as all below
	at   int64
	mode FaultMode
	dead bool // every operation from at on fails
}

// NewFault returns a Fault over s that fails nothing yet.
func NewFault(s Store) *Fault { return &Fault{Store: s} }

// Unwrap returns the store under it.
func (f *Fault) Unwrap() Store { return f.Store }

// FailAt makes the n-th operation from now fail, the next being 1; 0: none.
func (f *Fault) FailAt(n int64, mode FaultMode) { f.set(n, mode, false) }

// DieAt makes every operation from the n-th from now on fail: the process is gone for the store.
func (f *Fault) DieAt(n int64, mode FaultMode) { f.set(n, mode, true) }

func (f *Fault) set(n int64, mode FaultMode, dead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode, f.dead, f.at = mode, dead, 0
	if n > 0 {
		f.at = f.n + n
	}
}

// Operations returns how many operations were counted.
func (f *Fault) Operations() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// step counts an operation and says whether it fails before or after it is done.
func (f *Fault) step() (before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	switch {
	case f.at == 0 || f.n < f.at || f.n > f.at && !f.dead:
		return nil, nil
	case f.n == f.at && f.mode == FailAfter:
		return nil, ErrInjected
	}
	return ErrInjected, nil
}

// do runs one operation.
func (f *Fault) do(op func() error) error {
	before, after := f.step()
	if before != nil {
		return before
	}
	return errors.Join(op(), after)
}

func (f *Fault) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	return f.do(func() error { return f.Store.ReadAt(ctx, name, p, off) })
}

func (f *Fault) Stat(ctx context.Context, name string) (info Info, err error) {
	err = f.do(func() error { info, err = f.Store.Stat(ctx, name); return err })
	return info, err
}

func (f *Fault) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return f.do(func() error { return f.Store.PutIfAbsent(ctx, name, data) })
}

func (f *Fault) Create(ctx context.Context, name string) (Writer, error) {
	before, after := f.step()
	if before != nil || after != nil {
		return nil, ErrInjected
	}
	w, err := f.Store.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &faultWriter{Writer: w, f: f}, nil
}

type faultWriter struct {
	Writer
	f *Fault
}

// Write writes half of p when it fails: a torn write.
func (w *faultWriter) Write(p []byte) (int, error) {
	before, after := w.f.step()
	if before != nil || after != nil {
		n, _ := w.Writer.Write(p[:len(p)/2])
		return n, ErrInjected
	}
	return w.Writer.Write(p)
}

func (w *faultWriter) Commit(ctx context.Context) error {
	return w.f.do(func() error { return w.Writer.Commit(ctx) })
}

func (f *Fault) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if before, after := f.step(); before != nil || after != nil {
			yield(Info{}, ErrInjected)
			return
		}
		f.Store.List(ctx, prefix, startAfter)(yield)
	}
}

func (f *Fault) Delete(ctx context.Context, name string) error {
	return f.do(func() error { return f.Store.Delete(ctx, name) })
}

func (f *Fault) Truncate(ctx context.Context, of Info) error {
	return f.do(func() error { return f.Store.Truncate(ctx, of) })
}
