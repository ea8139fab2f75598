package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/arrowbatch"
	"github.com/dsistore/dsistore/storage"
)

// maxTakers is how many takers are kept for the next take of the same features.
const maxTakers = 2

// A taker takes rows of one snapshot, of the same features, as Arrow. It is kept for the next take, with what it has in memory.
type taker struct {
	key       string // what was asked for, but the rows
	snapshot  storage.SnapshotInfo
	taker     *reader.Taker
	converter *arrowbatch.Converter
	memory    *tracked
	rows      uint64
	closed    func() // tells the metrics

	uses int // by takes under way, and one while it is kept; guarded by Engine.mu
}

type takeParams struct {
	place
	Features []string `json:"features"`
	Overlay  []string `json:"overlay,omitempty"`
	Fold     bool     `json:"fold,omitempty"`
	Workers  int      `json:"workers,omitempty"`
	Memory   int64    `json:"memory,omitempty"`
	NoLease  bool     `json:"no_lease,omitempty"`
	accessParams
}

// take answers with records, as "records_open" does, that have the rows asked for: places in the order of the table, which follow the
// request.
func (e *Engine) take(ctx context.Context, raw json.RawMessage) (any, error) {
	var p takeParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	rows, err := following(ctx)
	if err != nil {
		return nil, err
	}
	t, err := e.taker(ctx, p)
	if err != nil {
		return nil, err
	}
	defer e.leaveTaker(t)
	for i, r := range rows {
		if r >= t.rows {
			return nil, usageError{fmt.Errorf("rows: %d, at place %d: want 0 to %d", int64(r), i, int64(t.rows)-1)}
		}
	}
	b, err := t.taker.Take(ctx, rows)
	if err != nil {
		return nil, err
	}
	r := &Records{converter: t.converter, memory: t.memory}
	r.next = func(context.Context) (*reader.Batch, error) {
		if b == nil {
			return nil, io.EOF
		}
		taken := b
		b = nil
		return taken, nil
	}
	r.close = func() {
		if b != nil {
			b.Release()
		}
	}
	return e.opened(r), nil
}

// taker returns the taker of what is asked for, for one take.
func (e *Engine) taker(ctx context.Context, p takeParams) (*taker, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	key := string(text)
	snap, err := e.snapshot(ctx, p.place)
	if err != nil {
		return nil, err
	}
	if t := e.keptTaker(key, snap.Info()); t != nil {
		return t, nil
	}
	p.Snapshot, p.Time = snap.Info().Number, ""
	plan, view, err := e.makePlan(ctx, planParams{place: p.place, Features: p.Features, Overlay: p.Overlay})
	if err != nil {
		return nil, err
	}
	layout, err := reader.NewLayoutWith(ctx, view.Snapshot, plan, reader.LayoutOptions{View: view})
	if err != nil {
		return nil, err
	}
	t := &taker{key: key, snapshot: snap.Info(), memory: &tracked{under: e.allocator}, rows: layout.Rows(), uses: 1}
	if t.converter, err = arrowbatch.NewConverter(plan, arrowbatch.Options{Fold: p.Fold}); err != nil {
		return nil, err
	}
	t.taker, err = layout.Taker(reader.Options{Workers: p.Workers, MemoryBudget: p.Memory, Allocator: t.memory, Usage: p.options(),
		Lease: reader.LeaseOptions{Off: p.NoLease}})
	if err != nil {
		return nil, usageError{err}
	}
	t.closed = e.measured().AddReader(t.taker)
	e.keepTaker(t)
	return t, nil
}

// keptTaker returns the taker that is kept for a key, or nil. Its snapshot must be the one meant, not only have its number: a
// store that was removed and made anew counts its snapshots from 1 again.
func (e *Engine) keptTaker(key string, snapshot storage.SnapshotInfo) *taker {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := slices.IndexFunc(e.takers, func(t *taker) bool { return t.key == key && t.snapshot == snapshot })
	if at < 0 {
		return nil
	}
	t := e.takers[at]
	e.takers = append(slices.Delete(e.takers, at, at+1), t)
	t.uses++
	return t
}

// keepTaker keeps a taker in place of the one used longest ago. Two takes that begin at once may both keep one.
func (e *Engine) keepTaker(t *taker) {
	e.mu.Lock()
	t.uses++
	e.takers = append(e.takers, t)
	var gone *taker
	if len(e.takers) > maxTakers {
		gone = e.takers[0]
		e.takers = slices.Delete(e.takers, 0, 1)
	}
	e.mu.Unlock()
	if gone != nil {
		e.leaveTaker(gone)
	}
}

// leaveTaker ends a use of a taker; the last one closes it.
func (e *Engine) leaveTaker(t *taker) {
	e.mu.Lock()
	t.uses--
	last := t.uses == 0
	e.mu.Unlock()
	if last {
		_ = t.taker.Close() // it has nothing that could fail
		t.closed()
	}
}
