package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/usage"
)

// A Loader gives the batches of a plan to Python, in the order of the plan. Next and Seek wait for each other; batches are
// given back from any thread, also after Close.
type Loader struct {
	e *Engine

	mu      sync.Mutex
	scanner *reader.RankScanner // nil: closed; guarded by mu
	closed  func()              // tells the metrics
}

// held is a batch that Python has, and the words that describe it.
type held struct {
	batch *reader.Batch
	words wordBuffer
}

// Status says what Next did.
type Status int

const (
	StatusBatch   Status = 0 // there is a batch
	StatusEnd     Status = 1 // the last batch has been given
	StatusTimeout Status = 2 // nothing yet: call again
	StatusError   Status = 3 // the text says what is wrong, as an answer of Call
)

type loaderParams struct {
	URI      string `json:"uri"`
	Plan     string `json:"plan"`
	Workers  int    `json:"workers,omitempty"`
	Memory   int64  `json:"memory,omitempty"`
	Prefetch int    `json:"prefetch,omitempty"` // batches made ahead
	Presence bool   `json:"presence,omitempty"`
	NoLease  bool   `json:"no_lease,omitempty"`
	accessParams
}

// accessParams say what usage records say of a reader.
type accessParams struct {
	Job     string `json:"job,omitempty"`
	NoUsage bool   `json:"no_usage,omitempty"`
}

func (p *accessParams) options() reader.UsageOptions {
	return reader.UsageOptions{Off: p.NoUsage, Job: p.Job, Program: "python"}
}

// usageFlush writes the usage records of this process that are not written yet, within their time: Python calls it when it ends.
func (*Engine) usageFlush(ctx context.Context, _ json.RawMessage) (any, error) {
	usage.FlushAll(ctx)
	return true, nil
}

// usageFlushPass is usageFlush for a worker that is at the end of a pass, and waits for a fifth of a second at the most.
func (*Engine) usageFlushPass(ctx context.Context, _ json.RawMessage) (any, error) {
	usage.FlushPass(ctx)
	return true, nil
}

// ranksParams say which batches a loader gives. The zero value: all.
type ranksParams struct {
	Rank        int  `json:"rank,omitempty"`
	World       int  `json:"world,omitempty"`
	Worker      int  `json:"worker,omitempty"`
	RankWorkers int  `json:"rank_workers,omitempty"` // processes that share the rank's batches
	Shards      int  `json:"shards,omitempty"`
	DropLast    bool `json:"drop_last,omitempty"`
}

func (e *Engine) loaderOpen(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		loaderParams
		ranksParams
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	layout, err := e.openPlan(ctx, p.URI, p.Plan)
	if err != nil {
		return nil, err
	}
	s, err := layout.OpenRank(reader.Options{
		Workers: p.Workers, MemoryBudget: p.Memory, MaxBatches: p.Prefetch, KeepBatches: true, Presence: p.Presence,
		Reuse: true, Allocator: e.allocator, Usage: p.options(),
		Lease: reader.LeaseOptions{Off: p.NoLease},
	}, reader.Ranks{
		Rank: p.Rank, World: max(p.World, 1), Worker: p.Worker, Workers: p.RankWorkers, Shards: max(p.Shards, 1),
		DropLast: p.DropLast,
	})
	if err != nil {
		return nil, usageError{err}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.handle()
	e.loaders[h] = &Loader{e: e, scanner: s, closed: e.measured().AddReader(s)}
	return loaderAnswer{Handle: h}, nil
}

// loaderAnswer is a loader as Python gets it.
type loaderAnswer struct {
	Handle int64 `json:"handle"`
}

func (a loaderAnswer) undo(e *Engine) { _ = e.CloseLoader(a.Handle) }

func (e *Engine) loader(h int64) (*Loader, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.loaders[h]; l != nil {
		return l, nil
	}
	return nil, errNoHandle
}

func (e *Engine) loaderSeek(_ context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		Handle int64  `json:"handle"`
		Epoch  uint64 `json:"epoch"`
		Batch  uint64 `json:"batch"`
		Begin  uint64 `json:"begin"` // where the ranks took up the epoch
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	l, err := e.loader(p.Handle)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scanner == nil {
		return nil, errNoHandle
	}
	if err := l.scanner.Seek(reader.Position{Epoch: p.Epoch, Batch: p.Batch}, p.Begin); err != nil {
		return nil, err
	}
	return map[string]any{"end": l.scanner.End()}, nil // of the global order: the epoch ends before it, for all ranks
}

func (e *Engine) loaderStats(_ context.Context, raw json.RawMessage) (any, error) {
	l, err := e.ofHandle(raw)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scanner == nil {
		return nil, errNoHandle
	}
	s := l.scanner.Stats()
	return map[string]any{
		"rows": s.Rows, "batches": s.Batches, "bytes_needed": s.BytesNeeded, "bytes_unneeded": s.BytesUnneeded,
		"requests": s.Requests, "decode_seconds": s.DecodeSeconds, "assemble_seconds": s.AssembleSeconds,
		"stall_seconds": s.StallSeconds, "dedupe_factor": s.DedupeFactor,
		"emitted_factor": s.EmittedFactor,
	}, nil
}

// CloseLoader ends a loader, and waits until it has stopped. Batches that Python has stay valid.
func (e *Engine) CloseLoader(handle int64) error {
	e.mu.Lock()
	l := e.loaders[handle]
	delete(e.loaders, handle)
	e.mu.Unlock()
	if l == nil {
		return errNoHandle
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.scanner.Close()
	l.scanner = nil
	l.closed()
	return err
}

// loaderClose is CloseLoader.
func (e *Engine) loaderClose(_ context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		Handle int64 `json:"handle"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	return true, e.CloseLoader(p.Handle)
}

func (e *Engine) ofHandle(raw json.RawMessage) (*Loader, error) {
	var p struct {
		Handle int64 `json:"handle"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	return e.loader(p.Handle)
}

// heldBatches returns how many batches Python has: tests of leaks count them.
func (e *Engine) heldBatches(context.Context, json.RawMessage) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.batches), nil
}

// Next waits at most wait for the next batch of a loader and describes it in words, which lie in the Allocator's memory
// until Release of the batch's id, words[1]. With StatusError the text is an answer of Call.
func (e *Engine) Next(handle int64, wait time.Duration) (words []int64, status Status, text []byte) {
	fail := func(err error) ([]int64, Status, []byte) {
		return nil, StatusError, Failure(err)
	}
	defer func() {
		if r := recover(); r != nil {
			status, text = StatusError, panicked(r)
		}
	}()
	l, err := e.loader(handle)
	if err != nil {
		return fail(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scanner == nil {
		return fail(errNoHandle)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	epoch := l.scanner.Position().Epoch
	b, at, err := l.scanner.Next(ctx)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		return nil, StatusEnd, nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, StatusTimeout, nil
	default:
		return fail(err)
	}
	h := &held{batch: b}
	e.mu.Lock()
	id := e.handle()
	e.batches[id] = h
	e.mu.Unlock()
	h.words.describe(e.allocator, b, id, at, epoch)
	return h.words.words, StatusBatch, nil
}

// Release takes back a batch that Next gave. A second call, or one with an id that was never given, is an error.
func (e *Engine) Release(id int64) error {
	e.mu.Lock()
	h := e.batches[id]
	delete(e.batches, id)
	e.mu.Unlock()
	if h == nil {
		return fmt.Errorf("engine: batch %d is not held", id)
	}
	h.words.free(e.allocator)
	h.batch.Release()
	return nil
}
