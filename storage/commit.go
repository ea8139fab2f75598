package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// runCommit is Table.Commit of package storage.
func runCommit(ctx context.Context, t *tableLog, c Change) (*coreSnapshot, error) {
	s, err := commit(ctx, t, c)
	if err != nil {
		return nil, fmt.Errorf("commit to table %s: %w", t.name, err)
	}
	return s, nil
}

func commit(ctx context.Context, t *tableLog, c Change) (*coreSnapshot, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	for {
		// PROTOCOL.md says why in this order: what the commit builds on first, then whether gc has condemned what it adds, then the put.
		cached := t.newestRead()
		base, err := t.latestOr(ctx, cached)
		if err != nil {
			return nil, replaced(err)
		}
		var table names.TableID
		if base == nil {
			base = t.empty()
			if table, err = t.root(ctx); err != nil {
				return nil, replaced(err)
			}
		} else {
			table = base.m.table
		}
		// What the handle has read must still be there, itself and not another of its number.
		if n := base.m.info; cached != nil && (n.Number < cached.m.info.Number || n.Number == cached.m.info.Number && base.m.commit != cached.m.commit) {
			t.forget()
			return nil, fmt.Errorf("snapshot %d, which was read, is gone: %w: %w", cached.m.info.Number, errReplaced, ErrConflict)
		}
		if err := c.checkTable(table); err != nil {
			return nil, err
		}
		err = object.Parallel(ctx, 2, 2, func(ctx context.Context, i int) error {
			if i == 0 {
				return checkAdded(ctx, t, c)
			}
			if base != cached {
				return nil
			}
			return checkBase(ctx, t, base)
		})
		var s *coreSnapshot
		if err == nil {
			s, err = attempt(ctx, t, base, table, c)
		}
		if errors.Is(err, errLostRace) {
			t.s.retried.Add(1)
			continue
		}
		if errors.Is(err, ErrConflict) {
			t.s.refused.Add(1)
		}
		return s, err
	}
}

// replaced makes a conflict of the error that the table is another one than the handle's.
func replaced(err error) error {
	if errors.Is(err, errReplaced) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// errLostRace: another commit took the number.
var errLostRace = errors.New("lost the race for a snapshot number")

// attempt tries to make the snapshot after base.
func attempt(ctx context.Context, t *tableLog, base *coreSnapshot, table names.TableID, c Change) (_ *coreSnapshot, err error) {
	e := edit{change: &c, base: base, table: table, m: base.m, info: base.m.info}
	if e.info.Number++; e.info.Number > names.MaxSnapshot {
		return nil, fmt.Errorf("the table has %d snapshots: no more are possible", uint64(names.MaxSnapshot))
	}
	e.info.Operation = c.Operation
	e.info.AddedRows, e.info.RemovedRows = 0, 0
	e.info.Time = t.s.now()
	if e.info.Time.Before(base.m.info.Time) {
		e.info.Time = base.m.info.Time
	}
	// As it is stored: without what a clock adds to tell times apart.
	e.info.Time = time.Unix(0, e.info.Time.UnixNano()).UTC()
	committed := false
	defer func() {
		if committed {
			return
		}
		// Nobody names these yet. What a failed delete leaves, gc finds.
		for _, name := range e.made {
			_ = t.s.blobs.Delete(context.WithoutCancel(ctx), name)
		}
	}()
	if err := t.s.trees.OpenRuns(ctx, base.m.listing, base.m.schema); err != nil {
		return nil, err
	}
	if err := e.apply(ctx); err != nil {
		return nil, err
	}
	m := e.m
	m.info, m.commit, m.parent, m.table = e.info, names.RandomID(), base.m.commit, table
	put := func(t0 lsm.Tree, changes []lsm.Entry) (lsm.Tree, error) {
		out, ids, err := t.s.trees.Put(ctx, table, t0, lsm.SortEntries(changes))
		for _, i := range ids {
			e.made = append(e.made, t0.Kind.ObjectName(i))
		}
		return out, err
	}
	if m.listing, err = put(base.m.listing, e.listing); err != nil {
		return nil, err
	}
	if m.schema, err = put(base.m.schema, e.schema); err != nil {
		return nil, err
	}
	b := appendManifest(nil, m)
	if len(b) > maxSnapshotBody {
		return nil, fmt.Errorf("snapshot of %d bytes: want at most %d", len(b), maxSnapshotBody)
	}
	name := names.SnapshotName(t.name, m.info.Number)
	if err := t.syncBase(ctx, m.info.Number); err != nil {
		return nil, err
	}
	if err := putSnapshot(ctx, t, name, b, m); err != nil {
		// What lost a race is nobody's. After any other error the put may be carried out yet: the runs are gc's.
		committed = !errors.Is(err, errLostRace)
		return nil, err
	}
	committed = true
	if m.info.Number == 1 {
		// Where it is missing, a table that loses all its snapshots looks like one that is about to be made.
		_ = t.s.blobs.PutIfAbsent(context.WithoutCancel(ctx), names.TableBegun(t.name), nil)
	}
	s := &coreSnapshot{log: t, m: m}
	t.saw(s, object.Info{})
	return s, nil
}

// putSnapshot puts a snapshot in its place, durably; errLostRace when another has it.
func putSnapshot(ctx context.Context, t *tableLog, name string, b []byte, m manifest) error {
	err := t.s.blobs.PutIfAbsent(ctx, name, b)
	if err == nil {
		return nil
	}
	// The put may have been made all the same, also where it is answered that the name is taken: by a try that got no answer. Whose the
	// snapshot is, its commit id says.
	ctx = context.WithoutCancel(ctx)
	ours, known, rerr := isMade(ctx, t, m)
	switch {
	case rerr != nil:
		return errors.Join(err, rerr)
	case !known && errors.Is(err, object.ErrExists):
		return fmt.Errorf("snapshot %d was made and has expired meanwhile: whether by this commit is not known", m.info.Number)
	case !known:
		return err
	case !ours:
		return errLostRace
	}
	// It is ours. That it can be seen does not say that it is durable; the answer that it exists does.
	if !errors.Is(err, object.ErrExists) {
		if err := t.s.blobs.PutIfAbsent(ctx, name, b); err != nil && !errors.Is(err, object.ErrExists) {
			return fmt.Errorf("snapshot %d is made, but a crash may take it back: %w", m.info.Number, err)
		}
	}
	return nil
}

// isMade reports whether the snapshot with the number of m is m, and whether there is one or was, as far as can be known.
func isMade(ctx context.Context, t *tableLog, m manifest) (ours, known bool, err error) {
	there, err := t.header(ctx, m.info.Number)
	if err == nil {
		return there.commit == m.commit, true, nil
	}
	if !errors.Is(err, object.ErrNotFound) {
		return false, false, err
	}
	// It may have expired. The one after it says which one it was.
	next, err := t.header(ctx, m.info.Number+1)
	if errors.Is(err, object.ErrNotFound) {
		return false, false, nil
	}
	return next.parent == m.commit, err == nil, err
}
