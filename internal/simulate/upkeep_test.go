package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
)

// This file has what machines do to snapshots, and who reads them.

// expireAll lets all snapshots but the newest n expire.
func expireAll(table string, n uint64) func(m *machine) {
	return func(m *machine) {
		m.do("expire "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			_, err = t.Expire(ctx, gc.ExpireOptions{KeepLast: n})
			return err
		})
	}
}

// collect runs gc.
func collect(grace time.Duration) func(m *machine) {
	return func(m *machine) {
		m.do("gc", func(ctx context.Context) error {
			m.r.model.collecting(grace)
			_, err := m.store.GC(ctx, gc.Options{Grace: grace})
			return err
		})
	}
}

// purge takes what has expired at once.
func purge(table string) func(m *machine) {
	return func(m *machine) {
		m.do("purge "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			m.r.model.purging(table)
			_, err = t.Purge(ctx)
			return err
		})
	}
}

// turnRenew is the turn of who holds a lease.
const turnRenew = "renew"

// A reading says how a machine reads.
type reading struct {
	table string
	lease time.Duration // 0: without
	renew int           // how often the lease is renewed meanwhile
}

// readTable opens the newest snapshot and reads it whole, slowly.
func readTable(o reading) func(m *machine) {
	return func(m *machine) {
		m.do("read "+o.table, func(ctx context.Context) error {
			t, s, err := m.latest(ctx, o.table)
			if err != nil {
				return err
			}
			m.reads(t)
			number := s.Info().Number
			x, v := m.r.model.version(o.table, number)
			if v == nil {
				return fmt.Errorf("snapshot %d is not known: the table was removed", number)
			}
			end := func() error { return nil }
			if o.lease > 0 {
				if end, err = m.lease(ctx, s, o); err != nil {
					return err
				}
			}
			rows, err := m.readSnapshot(ctx, s)
			err = m.hasRead(x, v, rows, err)
			return errors.Join(err, end())
		})
	}
}

// lease takes a lease, and renews it; end releases it.
func (m *machine) lease(ctx context.Context, s *storage.Snapshot, o reading) (end func() error, err error) {
	until := m.r.storeTime().Add(o.lease)
	l, err := s.Lease(ctx, "reader "+m.name(), o.lease)
	if err != nil {
		return nil, err
	}
	held := m.r.model.leased(o.table, l.Info().ID, s.Info().Number, until)
	end = func() error {
		m.r.model.leaseEnds(held)
		return l.Release(ctx)
	}
	for range o.renew {
		if err := m.turn(turnRenew); err != nil {
			return nil, err
		}
		until := m.r.storeTime().Add(o.lease)
		if err := l.Renew(ctx, o.lease); err != nil {
			return nil, errors.Join(err, end())
		}
		m.r.model.leaseLasts(o.table, held, until)
	}
	return end, nil
}

// readSnapshot reads the rows of a snapshot, sorted.
func (m *machine) readSnapshot(ctx context.Context, s *storage.Snapshot) ([]int64, error) {
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return nil, err
	}
	rows, err := m.liveRows(ctx, s, segments)
	slices.Sort(rows)
	return rows, err
}

// endLease ends a lease in place of its owner.
func endLease(table string) func(m *machine) {
	return func(m *machine) {
		m.do("end a lease of "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			all, err := t.Leases(ctx)
			if err != nil || len(all) == 0 {
				return err
			}
			id := all[m.rnd.IntN(len(all))].ID
			m.r.model.ending(table, id)
			_, err = t.EndLease(ctx, id)
			return err
		})
	}
}

// readBranch reads what a branch reads.
func readBranch(table, name string) func(m *machine) {
	return func(m *machine) {
		m.do("read branch "+name+" of "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			view, err := t.OpenBranch(ctx, name)
			if err != nil {
				return err
			}
			x, v := m.r.model.version(table, view.Snapshot.Info().Number)
			if v == nil {
				return errors.New("its snapshot is not known: the table was removed")
			}
			rows, err := m.readSnapshot(ctx, view.Snapshot)
			return m.hasRead(x, v, rows, err)
		})
	}
}

// hasRead holds what was read of a version against the model.
func (m *machine) hasRead(t *tableModel, v *version, rows []int64, err error) error {
	if why := m.r.model.protected(t, v); err != nil && !excused(err) && why != "" && m.r.model.stands(t, v) {
		m.r.fail(fmt.Errorf("machine %s reads snapshot %d of table %s (%s): %w", m.name(), v.number, t.name, why, err))
	}
	if err == nil && !slices.Equal(rows, v.state.sortedRows()) && m.r.model.stands(t, v) {
		m.r.fail(fmt.Errorf("machine %s read snapshot %d of table %s: rows %v, want %v", m.name(), v.number, t.name,
			rows, v.state.sortedRows()))
	}
	return err
}

// createBranch makes a branch of the newest snapshot that the machine knows.
func createBranch(table, name string) func(m *machine) {
	return func(m *machine) {
		m.do("branch "+name+" of "+table, func(ctx context.Context) error {
			t, s, err := m.latest(ctx, table)
			if err != nil {
				return err
			}
			number := s.Info().Number
			_, err = m.commit(ctx, t, "branch", commit.Change{Base: number,
				Ops: []commit.Operation{commit.SetBranches{{Name: name, Snapshot: number}}}},
				func(s *state, _ uint64) { s.branches[name] = number })
			return err
		})
	}
}

// dropBranch takes a branch away.
func dropBranch(table, name string) func(m *machine) {
	return func(m *machine) {
		m.do("drop branch "+name+" of "+table, func(ctx context.Context) error {
			t, s, err := m.latest(ctx, table)
			if err != nil {
				return err
			}
			_, err = m.commit(ctx, t, "unbranch", commit.Change{Base: s.Info().Number,
				Ops: []commit.Operation{commit.DropBranches{name}}},
				func(s *state, _ uint64) { delete(s.branches, name) })
			return err
		})
	}
}
