package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// A Table is a named set of rows with features. Safe for concurrent use.
type Table struct {
	s   *Store
	log *snapshot.Log
}

// Name returns the table's name.
func (t *Table) Name() string { return t.log.Table }

// Store returns the store that the table is in.
func (t *Table) Store() *Store { return t.s }

// A Snapshot is an immutable version of a table. Safe for concurrent use.
type Snapshot struct {
	*snapshot.Snapshot
	t *Table
}

// Table returns the table that the snapshot is a version of.
func (s *Snapshot) Table() *Table { return s.t }

// snapshot returns s as one of the table.
func (t *Table) snapshot(s *snapshot.Snapshot, err error) (*Snapshot, error) {
	if err != nil {
		return nil, err
	}
	return &Snapshot{s, t}, nil
}

// Latest returns the newest snapshot; ErrNotFound before the first commit. It is a listing of one name and, if that is
// not the snapshot that the handle read last, a read.
func (t *Table) Latest(ctx context.Context) (*Snapshot, error) { return t.snapshot(t.log.Latest(ctx)) }

// At returns the snapshot of a number; ErrNotFound says which numbers there are.
func (t *Table) At(ctx context.Context, number uint64) (*Snapshot, error) {
	return t.snapshot(t.log.At(ctx, number))
}

// AtUnexpired is At, but a snapshot that has expired is ErrNotFound also while it is still there: an erasure may have
// removed its data. Snapshots that branches pin are found.
func (t *Table) AtUnexpired(ctx context.Context, number uint64) (*Snapshot, error) {
	return t.snapshot(t.log.AtUnexpired(ctx, number))
}

// AsOf returns the newest snapshot that is not younger than at; ErrNotFound says how old the first is. Its cost is
// logarithmic in the number of snapshots.
func (t *Table) AsOf(ctx context.Context, at time.Time) (*Snapshot, error) {
	return t.snapshot(t.log.AsOf(ctx, at))
}

// Snapshots describes the snapshots that have not expired, oldest first. Its cost is a small read each, many at a time.
func (t *Table) Snapshots(ctx context.Context) ([]snapshot.Info, error) { return t.log.Snapshots(ctx) }

// Readable lists the numbers of the snapshots that can be read, the lowest first: expired ones too, as long as gc has
// not taken them, or has left a copy. Readers ask Snapshots; an erasure asks this.
func (t *Table) Readable(ctx context.Context) ([]uint64, error) { return t.log.Readable(ctx) }

// UsagePrefix is what the names of the table's usage records begin with. Package usage makes the rest.
func (t *Table) UsagePrefix() string { return names.TableDir(t.log.Table) + names.UsageDir }

// Commit makes the next snapshot, durably. If another commit came first, it applies the change to that one's snapshot,
// as long as the two commute: appends, new features, wider types, deleted rows, removals of other segments. An append
// commutes with an overwrite of its partition, which then counts as the earlier one. Nothing is changed if Commit
// returns an error, but that an error of the object store in the last step may leave the commit made. Commit again then
// gives ErrConflict or ErrDuplicateSource.
//
// ErrConflict:
//
//   - A segment to remove, or one that deleted rows, layers or rows of lists are of, is gone.
//   - A partition to overwrite got segments after Base.
//   - A segment to remove got deleted rows, layers or rows of lists after Base: its compaction must rewrite
//     them.
//   - Another commit set, after Base, what the change sets: a layer, rows of a list, a branch, an overlay or
//     list of the name.
//   - An overlay whose segments are set was merged after Base, or a feature of OmitFeatures is no longer dropped.
//   - gc has condemned a segment or row bitmap of the change, or they were written for another table.
//   - The table was removed since the handle first read it, and another made of its name.
//
// Other errors:
//
//   - ErrExists: the name of a new overlay, list or branch is taken.
//   - ErrDuplicateSource: the table holds a source already. A change with OverwritePartitions may repeat sources that
//     Base held.
//   - An error that names feature and types: a type has no common wider one, or roles or logical types differ.
//
// The objects of the segments and row bitmaps that the change adds must exist.
func (t *Table) Commit(ctx context.Context, c commit.Change) (*Snapshot, error) {
	return t.snapshot(commit.Run(ctx, t.log, c))
}

// NewSegment starts a segment of the partition whose stripes have the given rows. It needs no coordination, but the
// first segment of a table gives the table its id. ctx is that of the whole segment: it must not end before Finish or
// Abort has returned.
func (t *Table) NewSegment(ctx context.Context, p catalog.Partition, stripeRows []uint32,
	opts segment.Options) (*segment.Writer, error) {
	if err := errors.Join(ctx.Err(), p.Validate(), opts.Validate()); err != nil {
		return nil, err // before the table gets its id
	}
	table, err := t.log.Identity(ctx)
	if err != nil {
		return nil, err
	}
	return t.s.core.Segments.NewWriter(ctx, table, p, stripeRows, opts)
}

// NewOverlaySegment starts the segment of a layer over base, with base's partition and stripes. The files of its
// features are added, and it is finished, like any segment's, under ctx; Finish gives Layer.Data.
func (t *Table) NewOverlaySegment(ctx context.Context, base catalog.SegmentDescriptor,
	opts segment.Options) (*segment.Writer, error) {
	g, err := t.s.core.Segments.Open(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("layer over segment %s: %w", base.ID, err)
	}
	return t.NewSegment(ctx, base.Partition, g.StripeRows(), opts)
}

// Lease takes a lease on the snapshot for d, at most lease.Max. ErrNotFound: the snapshot has expired.
func (s *Snapshot) Lease(ctx context.Context, owner string, d time.Duration) (*lease.Lease, error) {
	return lease.Take(ctx, s.Snapshot, owner, d)
}

// Leases returns the table's leases that have not run out, by snapshot and then by time.
func (t *Table) Leases(ctx context.Context) ([]lease.Info, error) { return lease.List(ctx, t.log) }

// EndLease ends a lease, by its id, in place of its owner. ErrNotFound: there is no such lease. An owner that still
// runs finds out when it renews the lease, or when what it reads is gone.
func (t *Table) EndLease(ctx context.Context, id string) (lease.Info, error) {
	return lease.End(ctx, t.log, id)
}
