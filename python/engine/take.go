package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/arrowbatch"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// A taker takes rows of one snapshot, of the same features, as Arrow. It is kept for the next take, with what it has in
// memory.
type taker struct {
	taker     *reader.Taker
	converter *arrowbatch.Converter
	memory    *tracked
	rows      uint64
	closed    func()      // tells the metrics
	idle      *time.Timer // forgets it, once nothing has used it for takerIdle

	uses atomic.Int64 // takes under way, and one while it is kept; it grows from 0 never, and under Engine.mu
}

// takerIdle is how long a taker is kept after a take, with its memory and its lease: as long as the pools and leases of
// closed readers.
const takerIdle = time.Minute

// takerKey is what a taker is kept for. The snapshot must be the same, and not only its number: a store that was
// removed and made anew counts its snapshots from 1 again.
type takerKey struct {
	place
	params   string // what was asked for, but the rows
	snapshot snapshot.Info
}

type takeParams struct {
	tableRef
	readParams
	Features []string `json:"features"`
	Overlay  []string `json:"overlay"`
	Fold     bool     `json:"fold"`
}

// take answers with records, as "records_open" does. They have the rows at the row positions that follow the request.
func (e *Engine) take(ctx context.Context, p *takeParams) (any, error) {
	rows, err := callOf(ctx).following()
	if err != nil {
		return nil, err
	}
	t, err := e.taker(ctx, p)
	if err != nil {
		return nil, err
	}
	defer t.leave()
	if len(rows) > reader.MaxBatchSize {
		return nil, usageError{fmt.Errorf("rows: %d: want at most %d at a time", len(rows), reader.MaxBatchSize)}
	}
	for i, r := range rows {
		if r >= t.rows {
			return nil, usageError{fmt.Errorf("rows: %d, at index %d: want 0 to %d", int64(r), i, int64(t.rows)-1)}
		}
	}
	b, err := t.taker.Take(ctx, rows)
	if err != nil {
		return nil, err
	}
	next := func(context.Context) (*reader.Batch, error) {
		if b == nil {
			return nil, io.EOF
		}
		taken := b
		b = nil
		return taken, nil
	}
	release := func() {
		if b != nil {
			b.Release()
		}
	}
	return e.opened(&Records{next: next, close: release, converter: t.converter, memory: t.memory}), nil
}

// taker returns the taker of what is asked for, for one take.
func (e *Engine) taker(ctx context.Context, p *takeParams) (*taker, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	snap, err := e.snapshot(ctx, &p.tableRef)
	if err != nil {
		return nil, err
	}
	key := takerKey{placeOf(ctx, p.URI), string(text), snap.Info()}
	e.mu.Lock()
	t, ok := e.takers.Get(key)
	if ok {
		t.uses.Add(1)
	}
	e.mu.Unlock()
	if ok {
		return t, nil
	}
	p.Snapshot, p.Time = snap.Info().Number, ""
	layout, _, err := e.makePlan(ctx, &planParams{tableRef: p.tableRef, Features: p.Features, Overlay: p.Overlay})
	if err != nil {
		return nil, err
	}
	t = &taker{memory: &tracked{under: e.allocator}, rows: layout.Rows()}
	if t.converter, err = arrowbatch.NewConverter(layout.Plan(), arrowbatch.Options{Fold: p.Fold}); err != nil {
		return nil, err
	}
	opts := p.options(t.memory)
	opts.KeepBatches = false
	if t.taker, err = layout.Taker(opts); err != nil {
		return nil, usageError{err}
	}
	t.closed = e.addReader(key.place, t.taker)
	t.uses.Store(2)
	t.idle = time.AfterFunc(takerIdle, func() { e.forgetTaker(key, t) })
	// Of two takes that begin at once, the second one's taker is kept.
	e.mu.Lock()
	e.takers.Remove(key)
	e.takers.Put(key, t, 1)
	gone := e.evicted
	e.evicted = nil
	e.mu.Unlock()
	for _, t := range gone {
		t.leave()
	}
	return t, nil
}

// leave ends a use of a taker; the last one closes it.
func (t *taker) leave() {
	if t.uses.Add(-1) == 0 {
		t.idle.Stop()
		_ = t.taker.Close() // it has nothing that could fail
		t.closed()
		return
	}
	t.idle.Reset(takerIdle)
}

// forgetTaker ends the keeping of a taker that no take uses. One that is used is forgotten a while after.
func (e *Engine) forgetTaker(key takerKey, t *taker) {
	e.mu.Lock()
	kept, ok := e.takers.Get(key)
	if ok = ok && kept == t && t.uses.Load() == 1; ok {
		e.takers.Remove(key)
		e.evicted = slices.DeleteFunc(e.evicted, func(x *taker) bool { return x == t }) // left here
	}
	e.mu.Unlock()
	if ok {
		t.leave()
	}
}
