package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/dsistore/dsistore/internal/jsontext"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/usage"
)

// A loader gives the batches of a plan to Python, in the order of the plan. Batches are released from any thread, also
// after it is closed.
type loader struct {
	mu      sync.Mutex          // next and close wait for each other
	scanner *reader.RankScanner // nil: closed; guarded by mu
	closed  func()              // tells the metrics
}

// A Given is a batch that Python has. Its Block, which reader/BATCH.md describes, lies in the Allocator's memory until
// Release of its ID.
type Given struct {
	Block []byte
	ID    int64
	Index uint64 // in the global order, of all ranks
	Epoch uint64
}

// Status says what Next did.
type Status int

const (
	StatusBatch   Status = 0 // there is a batch
	StatusEnd     Status = 1 // the last batch has been given
	StatusTimeout Status = 2 // nothing yet: call again
	StatusError   Status = 3 // the text says what is wrong, as the answer of a call
)

// readParams are the options of everything that reads a plan.
type readParams struct {
	Workers  int   `json:"workers"`
	Memory   int64 `json:"memory"`
	Prefetch int   `json:"prefetch"` // batches made ahead
	Presence bool  `json:"presence"`
	NoLease  bool  `json:"no_lease"`
	usageParams
}

// usageParams say what usage records say of a reader.
type usageParams struct {
	Job     string `json:"job"`
	NoUsage bool   `json:"no_usage"`
}

func (p *usageParams) usage() reader.UsageOptions {
	return reader.UsageOptions{Off: p.NoUsage, Job: p.Job, Program: "python"}
}

func (p *readParams) options(a reader.Allocator) reader.Options {
	return reader.Options{
		Workers: p.Workers, MemoryBudget: p.Memory, MaxBatches: p.Prefetch, KeepBatches: true, Presence: p.Presence,
		Allocator: a, Usage: p.usage(), Lease: reader.LeaseOptions{Off: p.NoLease},
	}
}

// exit is called when the process ends. It writes the usage records that are not written yet, within their time, and
// releases the leases of readers, also of those that Python has open.
func (*Engine) exit(ctx context.Context, _ *none) (any, error) {
	var wg sync.WaitGroup
	wg.Go(func() { usage.FlushAll(ctx) })
	wg.Go(reader.EndLeases)
	wg.Wait()
	return true, nil
}

// exitOf is called when the process ends, and has killed processes that it had started, as multiprocessing does with
// workers. It ends the leases of their readers, on the tables that this process opened last.
func (e *Engine) exitOf(ctx context.Context, p *exitParams) (any, error) {
	tables := map[snapshotKey]*storage.Table{}
	e.mu.Lock()
	for key, s := range e.snapshots.All() {
		key.number = 0 // a table once
		tables[key] = s.Table()
	}
	e.mu.Unlock()
	var errs []error
	for _, t := range tables {
		errs = append(errs, reader.EndLeasesOf(ctx, t, p.Processes))
	}
	return true, errors.Join(errs...)
}

type exitParams struct {
	Processes []int `json:"processes"`
}

// usageFlushEpoch writes the usage records of a worker at the end of an epoch. It waits for a fifth of a second at
// most.
func (*Engine) usageFlushEpoch(ctx context.Context, _ *none) (any, error) {
	usage.FlushEpoch(ctx)
	return true, nil
}

// loaderParams say what a loader reads, and which batches it gives. Without ranks: all.
type loaderParams struct {
	URI  string `json:"uri"`
	Plan string `json:"plan"`
	readParams
	Rank        int  `json:"rank"`
	World       int  `json:"world"`
	Worker      int  `json:"worker"`
	RankWorkers int  `json:"rank_workers"` // processes that share the rank's batches
	Shards      int  `json:"shards"`
	DropLast    bool `json:"drop_last"`
	// The first batch is that of an epoch which the ranks took up at begin.
	Epoch uint64 `json:"epoch"`
	Batch uint64 `json:"batch"`
	Begin uint64 `json:"begin"`
	// KeepSlots is reader.Options.KeepSlots.
	KeepSlots bool `json:"keep_slots"`
	// PageLocked: batches lie in memory whose pages are locked for a device.
	PageLocked bool `json:"page_locked"`
}

// loaderOpen opens a loader and begins to read.
func (e *Engine) loaderOpen(ctx context.Context, p *loaderParams) (any, error) {
	layout, err := e.openPlan(ctx, p.URI, p.Plan)
	if err != nil {
		return nil, err
	}
	memory := e.allocator
	if p.PageLocked {
		memory = e.locked
	}
	opts := p.options(memory)
	opts.Reuse, opts.KeepSlots = true, p.KeepSlots
	s, err := layout.OpenRank(opts, reader.Ranks{
		Rank: p.Rank, World: max(p.World, 1), Worker: p.Worker, Workers: p.RankWorkers, Shards: max(p.Shards, 1),
		DropLast: p.DropLast,
	})
	if err != nil {
		return nil, usageError{err}
	}
	if err := s.Seek(reader.Position{Epoch: p.Epoch, Batch: p.Batch}, p.Begin); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return loaderAnswer{
		handle{e.loaders.add(&loader{scanner: s, closed: e.addReader(placeOf(ctx, p.URI), s)})},
		schemaText(reader.NewSchema(layout.Plan(), p.KeepSlots)), s.End(),
	}, nil
}

type loaderAnswer struct {
	handle
	// Schema is what schemaText returns: the same for the same schema, so that Python reads it once.
	Schema string `json:"schema"`
	End    uint64 `json:"end"` // before which batch of the global order the epoch ends, for all ranks
}

// appendJSON writes a as encoding/json would.
func (a loaderAnswer) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(jsontext.AppendMember(append(b, '{'), "handle"), a.Handle, 10)
	b = jsontext.AppendText(b, "schema", a.Schema)
	return append(jsontext.AppendUint(b, "end", a.End), '}')
}

// handle names a loader.
type handle struct {
	Handle int64 `json:"handle"`
}

func (h handle) undo(e *Engine) { _ = e.CloseLoader(h.Handle) }

// withScanner calls f with the scanner of a loader, which nothing else uses meanwhile.
func (e *Engine) withScanner(number int64, f func(*reader.RankScanner) error) error {
	l, err := e.loaders.get(number)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scanner == nil {
		return errNoHandle
	}
	return f(l.scanner)
}

func (e *Engine) loaderStats(_ context.Context, p *handle) (any, error) {
	var out map[string]any
	return &out, e.withScanner(p.Handle, func(scanner *reader.RankScanner) error {
		out = statsOf(scanner)
		return nil
	})
}

func statsOf(scanner *reader.RankScanner) map[string]any {
	s := scanner.Stats()
	return map[string]any{
		"rows": s.Rows, "batches": s.Batches, "bytes_needed": s.BytesNeeded, "bytes_unneeded": s.BytesUnneeded,
		"requests": s.Requests, "decode_seconds": s.DecodeSeconds, "assemble_seconds": s.AssembleSeconds,
		"sent_reads": s.Traffic.Reads, "sent_lists": s.Traffic.Lists, "bytes_down": s.Traffic.BytesDown,
		"bytes_cached": s.Traffic.BytesCached, "stall_seconds": s.StallSeconds, "dedupe_factor": s.DedupeFactor,
		"emitted_factor": s.EmittedFactor,
	}
}

// CloseLoader ends a loader, and waits until it has stopped. Batches that Python has stay valid.
func (e *Engine) CloseLoader(number int64) error {
	_, err := e.closeLoader(number)
	return err
}

// closeLoader is CloseLoader, and returns what the loader has done.
func (e *Engine) closeLoader(number int64) (stats map[string]any, err error) {
	l, err := e.loaders.take(number)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	stats = statsOf(l.scanner)
	err = l.scanner.Close()
	l.scanner = nil
	l.closed()
	return stats, err
}

// loaderClose is CloseLoader, and answers as loader_stats does.
func (e *Engine) loaderClose(_ context.Context, p *handle) (any, error) {
	return e.closeLoader(p.Handle)
}

// Next waits at most wait for the next batch of a loader. With StatusError the text is the answer of a call.
func (e *Engine) Next(loader int64, wait time.Duration) (given Given, status Status, text []byte) {
	defer func() {
		if r := recover(); r != nil {
			status, text = StatusError, panicked(r)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	err := e.withScanner(loader, func(s *reader.RankScanner) error {
		epoch := s.Position().Epoch
		b, at, err := s.Next(ctx)
		if err == nil {
			given = Given{Block: b.Block(), ID: e.batches.add(b), Index: at, Epoch: epoch}
		}
		return err
	})
	switch {
	case err == nil:
		return given, StatusBatch, nil
	case errors.Is(err, io.EOF):
		return given, StatusEnd, nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return given, StatusTimeout, nil
	}
	return given, StatusError, Failure(err)
}

// Release takes back a batch that Next gave. A second call, or one with an id that was never given, is an error.
func (e *Engine) Release(id int64) error {
	b, err := e.batches.take(id)
	if err != nil {
		return fmt.Errorf("engine: batch %d is not held", id)
	}
	b.Release()
	return nil
}
