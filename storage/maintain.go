package storage

import (
	"context"
	"errors"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/repair"
	"github.com/dsistore/dsistore/storage/verify"
)

// GC removes what expired longer ago than the grace period, and what no snapshot of any table names: see package gc.
func (s *Store) GC(ctx context.Context, opts gc.Options) (*gc.Report, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return gc.Run(ctx, s.core, opts)
}

// Verify checks a table, or all if table is "": see package verify. The error is for what kept it from looking.
// progress, which may be nil, is called with the bytes of segments done and to do; never by two goroutines at once.
func (s *Store) Verify(ctx context.Context, table string, deep bool, progress func(done,
	total uint64)) (*verify.Report, error) {
	var damage []error
	if err := s.ready(ctx); errors.Is(err, format.ErrCorrupt) {
		damage = append(damage, err)
		s.marked.Store(true) // what else there is, is looked at all the same
		defer s.marked.Store(false)
	}
	tables := []string{table}
	if table == "" {
		var err error
		if tables, err = s.Tables(ctx); err != nil {
			return nil, err
		}
	} else if _, err := s.Table(ctx, table); err != nil {
		return nil, err
	}
	return verify.Run(ctx, s.core, tables, verify.Options{Deep: deep, Progress: progress}, damage...)
}

// Repair takes what is damaged out of a table: see package repair.
func (s *Store) Repair(ctx context.Context, table string, opts repair.Options) (*repair.Report, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if _, err := s.Table(ctx, table); err != nil && !errors.Is(err, format.ErrCorrupt) {
		return nil, err
	}
	return repair.Run(ctx, s.core.Log(table), opts) // by a handle of its own, which has read nothing
}

// Clock returns the time of the clock that dates the store's objects, by which all ages in it are told. It makes an
// object to find out, and removes it. An error comes with this machine's time.
func (s *Store) Clock(ctx context.Context) (time.Time, error) { return s.core.Time(ctx) }

// Purge removes the data that only expired snapshots of the table name, whatever its age: see package gc.
func (t *Table) Purge(ctx context.Context, also ...names.ID) (*gc.Report, error) {
	return gc.Purge(ctx, t.log, also...)
}

// Expire makes snapshots expire: see package gc.
func (t *Table) Expire(ctx context.Context, opts gc.ExpireOptions) (*gc.ExpireReport, error) {
	return gc.Expire(ctx, t.log, opts)
}
