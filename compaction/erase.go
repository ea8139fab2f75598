package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// An Erasure selects the rows to erase, by a filter or by keys, and says how.
type Erasure struct {
	// Where is a predicate in the syntax of reader/expr; empty: Keys selects the rows. It cannot be evaluated on rows
	// that were deleted before, so with Where all of those are erased too.
	Where string
	// Keys are values of a feature of the table. Rows with one of them are erased, deleted ones too.
	Keys *Keys
	// Key is, with Where, the feature whose values are searched for afterwards. Default: the user key of the table,
	// else the request key, else the session key; without any of these, nothing is searched for. It selects no rows.
	Key string
	// DropBranches drops the branches that keep such rows. Default: an error names them.
	DropBranches bool
	DryRun       bool // report, and change nothing; what refuses the erasure is returned as without it
	// Compact says how segments are rewritten. Its fields that select segments are ignored.
	Compact Options
}

// eraseOperation is the operation of snapshots by which Erase deletes and rewrites rows. While one has not expired, and
// none of gc.Erased came after it, the erasure may not be finished. Commits that only drop branches are
// dropOperation's, as those of dsi branch drop: they leave nothing to continue.
const (
	eraseOperation = "erase"
	dropOperation  = "branch"
)

// ForgetOperation is the operation of the snapshot by which Erase rewrites the trees. It has the rows of the one before
// it, but counts as a snapshot to keep (gc.ExpireOptions.KeepLast): the one before it has what was forgotten.
const ForgetOperation = "forget"

// endLeases ends the message of an error about leases.
const endLeases = "; if the owner is no more, end the lease: dsi leases STORE lists them, " +
	"dsi leases end STORE TABLE ID ends one"

// ErrHeld is returned when a branch or a lease keeps a snapshot that may have rows to be erased.
var ErrHeld = errors.New("held")

// Erase removes rows from a table physically:
//
//	deletes ──> rewrite of the segments that have them, and of their overlays and lists
//	        ──> expiry of all snapshots before ──> purge of their data ──> search
//
// After the first step no reader of the newest snapshot sees the rows. After an error in a later step this stays so,
// and the next Erase continues: it rewrites all segments with deleted rows.
//
// All earlier snapshots expire and cannot be read any more, except those of branches that have none of the rows.
// Objects that only expired snapshots name are deleted at once, so a reader of such a snapshot without a lease fails.
//
// ErrHeld is returned before the first step if a branch or a lease keeps a snapshot that may have the rows (for a
// branch see DropBranches). For a branch that was made meanwhile it is returned before the purge, for a lease after it:
// the rows are deleted then, and the snapshots have expired.
//
// If the newest snapshot has none of the rows, older ones may have them: those that have not expired, and expired ones
// whose data is still there. With keys, their segments are read. With a filter, a snapshot counts as having the rows if
// it has a segment that the newest snapshot lacks.
func Erase(ctx context.Context, table *storage.Table, what Erasure) (_ *EraseReport, err error) {
	start := time.Now()
	if err := what.Compact.Validate(); err != nil {
		return nil, err
	}
	// Closed readers of this process keep leases for the next reader. They would hold snapshots.
	reader.ReleaseReused()
	e := &eraser{table: table, store: table.Store(), what: what, out: &EraseReport{
		Table: table.Name(), DryRun: what.DryRun, Branches: []string{}, Expired: []uint64{}}}
	defer func() { e.out.Seconds = time.Since(start).Seconds() }()
	if err := e.run(ctx); err != nil {
		return e.out, fmt.Errorf("erase from table %s: %w", table.Name(), err)
	}
	return e.out, nil
}

// An eraser is the state of Erase.
type eraser struct {
	table *storage.Table
	store *storage.Store
	what  Erasure
	out   *EraseReport

	snap *storage.Snapshot
	all  []catalog.SegmentDescriptor
	keys *Keys // that no row has afterwards; nil: not known
	// bytes are those of keys that are searched for as bytes: see byteKeys.
	bytes *byteKeys
	live  map[string]*roaring.Bitmap // by segment: rows to erase that are not deleted
	// affected are the segments to rewrite: they have rows to erase, deleted ones included.
	affected map[string]bool
	// unfinished: an earlier Erase stopped before its snapshots expired. history: a snapshot before the newest that has
	// not expired may have the rows. uncollected: an expired snapshot may have the rows, and its data is still there.
	unfinished, history, uncollected bool

	own         map[uint64]bool            // the numbers of the snapshots that this erasure has made
	contents    map[string]segmentContents // by segment, of those examined so far
	snapshotHas map[uint64]bool            // by snapshot: whether it may have the rows
}

func (e *eraser) run(ctx context.Context) error {
	if err := e.find(ctx); err != nil {
		return err
	}
	if err := e.resume(ctx); err != nil {
		return err
	}
	info := e.snap.Info()
	e.out.Snapshot, e.out.TableSegments, e.out.TableBytes = info.Number, info.Segments, info.Bytes
	for _, d := range e.all {
		if e.affected[d.ID] {
			e.out.Segments++
			e.out.Bytes += d.Bytes
		}
	}
	e.noteContents(e.all)
	// What branches keep comes first: the newest snapshot may name layers of segments that only a branch has.
	branches, err := e.heldBranches(ctx, e.snap)
	if err != nil {
		return err
	}
	if err := e.lookBack(ctx); err != nil {
		return err
	}
	if e.what.DropBranches && len(branches) > 0 && !e.history {
		// Once the branches are dropped, the newest snapshot is an old one that names their layers.
		if e.history, err = e.mayHaveLayers(ctx, e.snap); err != nil {
			return err
		}
	}
	ended := len(e.affected) > 0 || e.unfinished || e.history
	held, err := e.holds(ctx)
	e.out.Expires = e.what.DryRun && ended
	if err != nil {
		return err
	}
	// Whether deleted data is kept must be known. If that may not be asked, it is better to fail before the work.
	if v, ok := object.As[object.Versioned](e.store.Blobs()); ok {
		keeps, err := v.KeepsVersions(ctx)
		if err != nil {
			return err
		}
		e.out.KeepsVersions = e.what.DryRun && keeps
		// What gc has deleted, of snapshots that are gone, is kept there: nobody can say whether it had the rows.
		e.uncollected = e.uncollected || keeps
	}
	if e.what.DryRun {
		return e.foresee(ctx)
	}
	if err := e.delete(ctx, held); err != nil {
		return err
	}
	if err := e.rewrite(ctx); err != nil {
		return err
	}
	if ended || e.uncollected {
		if err := e.expire(ctx, ended); err != nil {
			return err
		}
	}
	err = e.search(ctx)
	if !errors.Is(err, ErrFound) || !e.out.Search.inNewest {
		return err
	}
	// The trees say what commits have taken back, such as the definition of a list that was dropped. No snapshot that
	// has not expired shows it, and the bytes may be there by chance: so none expires here.
	newest, lerr := e.table.Latest(ctx)
	if lerr != nil {
		return errors.Join(err, lerr)
	}
	_, ferr := e.forget(ctx, newest)
	return errors.Join(err, ferr)
}

// find finds the rows, and the segments that have them.
func (e *eraser) find(ctx context.Context) (err error) {
	if e.snap, err = e.table.Latest(ctx); err != nil {
		return err
	}
	if e.all, err = e.snap.Segments(ctx, nil); err != nil {
		return err
	}
	e.live, e.affected, e.own = map[string]*roaring.Bitmap{}, map[string]bool{}, map[uint64]bool{}
	if e.what.Keys != nil {
		if err := e.plainKey(ctx, e.what.Keys.feature); err != nil {
			return err
		}
		e.keys = e.what.Keys
		return e.findKeys(ctx)
	}
	match, err := reader.Matching(ctx, e.snap, reader.PlanOptions{Filter: e.what.Where},
		// Erase is not a job whose reading counts as usage.
		reader.LayoutOptions{Read: reader.Options{Usage: reader.UsageOptions{Off: true}}})
	if err != nil {
		return err
	}
	for _, s := range match.Segments {
		rows := s.Rows
		if rows == nil {
			rows = roaring.New()
			rows.AddRange(0, s.Segment.Rows)
		}
		e.live[s.Segment.ID], e.affected[s.Segment.ID] = rows, true
		e.out.Rows += rows.GetCardinality()
	}
	deleted, err := e.snap.DeletionVectors(ctx, e.all...)
	if err != nil {
		return err
	}
	for i, d := range e.all {
		if !deleted[i].IsEmpty() {
			e.affected[d.ID] = true
			e.out.Deleted += deleted[i].Count
		}
	}
	key, err := e.searchKey(ctx)
	if err != nil || key == nil {
		return err
	}
	if err := e.plainKey(ctx, *key); err != nil {
		return err
	}
	if e.keys, err = NewKeys(*key); err != nil {
		return err
	}
	return e.collect(ctx, deleted)
}

// resume finds out whether an earlier Erase was not finished. Its rows are deleted, but it is not known which they are,
// so all segments with deleted rows are affected.
func (e *eraser) resume(ctx context.Context) error {
	infos, err := e.table.Snapshots(ctx)
	if err != nil {
		return err
	}
	oldest := e.snap.Info().Oldest
	for _, i := range infos {
		switch {
		case i.Number < oldest:
		case i.Operation == eraseOperation:
			e.uncollected, e.unfinished = true, true
		case i.Operation == gc.Erased:
			e.unfinished = false
		}
	}
	if !e.unfinished {
		return nil
	}
	deleted, err := e.snap.DeletionVectors(ctx, e.all...)
	if err != nil {
		return err
	}
	for i, d := range e.all {
		if !deleted[i].IsEmpty() {
			e.affected[d.ID] = true
		}
	}
	return nil
}

const (
	columnsAtOnce = 8 // segments whose keys are read at once
	// The memory of the fetcher of one segment: when all stripes are read, and when some are, in small blocks.
	columnBytes = maxBlock
	someBytes   = 4 * blocksEach * minBlock
)

// eachColumn calls visit with the key column of each segment, from columnsAtOnce goroutines. A column is borrowed for
// the call.
func (e *eraser) eachColumn(ctx context.Context, segments []catalog.SegmentDescriptor,
	visit func(ctx context.Context, i int, c *column) error) error {
	return e.eachColumnOf(ctx, segments, make([]*roaring.Bitmap, len(segments)), visit)
}

// eachColumnOf is eachColumn with only those stripes that have a row of within[i]; nil: all stripes. Segments with an
// empty within are skipped.
func (e *eraser) eachColumnOf(ctx context.Context, segments []catalog.SegmentDescriptor, within []*roaring.Bitmap,
	visit func(ctx context.Context, i int, c *column) error) error {
	return object.Parallel(ctx, columnsAtOnce, len(segments), func(ctx context.Context, i int) error {
		bytes := int64(columnBytes)
		if within[i] != nil {
			if within[i].IsEmpty() {
				return nil
			}
			bytes = someBytes
		}
		c, err := keyColumn(ctx, newFetcher(e.store.Blobs(), bytes, 4), e.store, segments[i], e.keys.feature)
		if err != nil {
			return err
		}
		defer c.Close()
		c.within = within[i]
		return visit(ctx, i, c)
	})
}

// eachCandidate is eachColumn with only those segments and stripes that, by the segments' key tables, may have one
// of the keys.
func (e *eraser) eachCandidate(ctx context.Context, segments []catalog.SegmentDescriptor,
	visit func(ctx context.Context, i int, c *column) error) error {
	within, err := e.snap.KeyRows(ctx, e.keys.feature, e.keys.hashes(), segments)
	if err != nil {
		return err
	}
	return e.eachColumnOf(ctx, segments, within, visit)
}

// findKeys finds the rows that have one of the keys, and counts those that are deleted.
func (e *eraser) findKeys(ctx context.Context) error {
	deleted, err := e.snap.DeletionVectors(ctx, e.all...)
	if err != nil {
		return err
	}
	found, live := make([]uint64, len(e.all)), make([]*roaring.Bitmap, len(e.all))
	var mu sync.Mutex // of seen
	seen := e.keys.empty()
	err = e.eachCandidate(ctx, e.all, func(ctx context.Context, i int, c *column) error {
		part := e.keys.empty()
		rows, err := e.keys.rows(c, part)
		if err != nil || rows.IsEmpty() {
			return err
		}
		mu.Lock()
		seen.merge(part)
		mu.Unlock()
		gone, err := e.store.Bitmaps().Read(ctx, deleted[i])
		if err != nil {
			return err
		}
		found[i] = rows.GetCardinality()
		rows.AndNot(gone)
		live[i] = rows
		return nil
	})
	if err != nil {
		return err
	}
	for i, d := range e.all {
		if found[i] == 0 {
			continue
		}
		e.affected[d.ID] = true
		n := live[i].GetCardinality()
		if n > 0 {
			e.live[d.ID] = live[i]
		}
		e.out.Rows += n
		e.out.Deleted += found[i] - n
	}
	missing, examples := e.keys.without(seen, shownMissing)
	e.out.Keys = &KeyReport{Feature: e.keys.feature.Name, Keys: uint64(e.keys.Len()), Missing: missing,
		Examples: examples}
	return nil
}

// collect sets e.keys to the keys of all erased rows, except keys that other rows have too.
func (e *eraser) collect(ctx context.Context, deleted []bitmap.Ref) error {
	gone := make([]*roaring.Bitmap, len(e.all))
	for i, d := range e.all {
		var err error
		if gone[i], err = e.store.Bitmaps().Read(ctx, deleted[i]); err != nil {
			return err
		}
		if rows := e.live[d.ID]; rows != nil {
			gone[i].Or(rows)
		}
	}
	var mu sync.Mutex // of e.keys
	each := func(visit func(i int, row uint32, stripe *vector.Column, slot int)) error {
		return e.eachColumn(ctx, e.all, func(_ context.Context, i int, c *column) error {
			return c.eachStripe(func(first int, stripe *vector.Column) error {
				mu.Lock()
				defer mu.Unlock()
				for row := range stripe.Rows {
					if slot := stripe.Slot(row); present(stripe, slot) {
						visit(i, uint32(first+row), stripe, slot)
					}
				}
				return nil
			})
		})
	}
	if err := each(func(i int, row uint32, stripe *vector.Column, slot int) {
		if gone[i].Contains(row) {
			e.keys.add(stripe, slot)
		}
	}); err != nil {
		return err
	}
	return each(func(i int, row uint32, stripe *vector.Column, slot int) {
		if !gone[i].Contains(row) {
			e.keys.remove(stripe, slot)
		}
	})
}

// delete deletes the rows, and drops the branches.
func (e *eraser) delete(ctx context.Context, branches []string) error {
	var deletes commit.DeleteRows
	for _, d := range e.all {
		if e.live[d.ID] == nil {
			continue
		}
		set, err := e.store.Bitmaps().Put(ctx, d.ID, d.Rows, e.live[d.ID])
		if err != nil {
			return err
		}
		deletes = append(deletes, commit.DeletionVector{Segment: d.ID, Rows: set})
	}
	if len(deletes) == 0 && len(branches) == 0 {
		return nil
	}
	operation := eraseOperation
	if len(deletes) == 0 {
		operation = dropOperation
	}
	s, err := e.table.Commit(ctx, commit.Change{
		Operation: operation, Base: e.snap.Info().Number,
		Ops: []commit.Operation{commit.DropBranches(branches), deletes},
	})
	if errors.Is(err, storage.ErrNotFound) { // somebody has dropped a branch meanwhile
		err = fmt.Errorf("%w: %w", err, storage.ErrConflict)
	}
	if errors.Is(err, storage.ErrConflict) {
		cleanup, cancel := object.Cleanup(ctx)
		defer cancel()
		for _, d := range deletes {
			_ = e.store.Bitmaps().Discard(cleanup, d.Rows)
		}
	}
	if err != nil {
		return err
	}
	e.out.Snapshot, e.own[s.Info().Number] = s.Info().Number, true
	e.out.Branches = append(e.out.Branches, branches...)
	return nil
}

// maxRewrites is how often rewrite tries again after another compaction rewrote its segments.
const maxRewrites = 4

// rewrite rewrites the segments that have the rows.
func (e *eraser) rewrite(ctx context.Context) error {
	opts := e.what.Compact
	opts.Operation, opts.Partition, opts.Repack = eraseOperation, "", false
	for _, d := range e.all {
		if e.affected[d.ID] {
			opts.Segments = append(opts.Segments, d.ID)
		}
	}
	e.out.Compaction = &Report{Table: e.table.Name(), Jobs: []JobReport{}}
	for range maxRewrites {
		if len(opts.Segments) == 0 {
			return nil
		}
		left, err := e.rewriteSome(ctx, opts)
		if err != nil {
			return err
		}
		if !left {
			return nil
		}
		if opts.Segments, err = e.moved(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("other compactions took segments that have the rows %d times in a row: %w", maxRewrites,
		storage.ErrConflict)
}

// rewriteSome rewrites segments. left: some were not rewritten because another compaction had replaced them.
func (e *eraser) rewriteSome(ctx context.Context, opts Options) (left bool, err error) {
	plan, err := NewPlan(ctx, e.table, opts)
	if err != nil {
		return false, err
	}
	left = plan.Segments() < len(opts.Segments)
	r, err := Run(ctx, e.table, plan, opts)
	if r == nil {
		return false, err
	}
	all := e.out.Compaction
	all.Snapshot, all.Seconds = max(all.Snapshot, r.Snapshot), all.Seconds+r.Seconds
	all.Jobs = append(all.Jobs, r.Jobs...)
	e.out.Snapshot = max(e.out.Snapshot, r.Snapshot)
	e.own[r.Snapshot] = true // the last of those of jobs, or what dropped merged overlays after them
	for _, j := range r.Jobs {
		e.own[j.Snapshot] = true
		e.out.BytesMade += j.BytesOut + j.LayersOut
		left = left || j.LeftOut != ""
	}
	return left, err
}

// moved returns the segments to rewrite next: those with deleted rows that are affected, or that another compaction
// made, to which it may have moved the rows.
func (e *eraser) moved(ctx context.Context) (ids []string, err error) {
	snap, err := e.table.Latest(ctx)
	if err != nil {
		return nil, err
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		return nil, err
	}
	deleted, err := snap.DeletionVectors(ctx, segments...)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(e.all))
	for _, d := range e.all {
		known[d.ID] = true
	}
	for i, d := range segments {
		if deleted[i].IsEmpty() {
			continue
		}
		if !known[d.ID] || e.affected[d.ID] {
			ids = append(ids, d.ID)
		}
	}
	return ids, nil
}

// expire deletes the objects that only expired snapshots name; with ended all snapshots before the newest expire first.
func (e *eraser) expire(ctx context.Context, ended bool) error {
	newest, err := e.table.Latest(ctx)
	if err == nil && ended {
		newest, err = e.endHistory(ctx, newest)
	}
	if err != nil {
		return err
	}
	if err := e.endNewHolds(ctx, newest); err != nil {
		return err
	}
	return e.collectGarbage(ctx)
}

// endHistory expires all snapshots before newest, and returns the snapshot that this commit made.
func (e *eraser) endHistory(ctx context.Context, newest *storage.Snapshot) (*storage.Snapshot, error) {
	newest, err := e.forget(ctx, newest)
	if err != nil {
		return nil, err
	}
	operation := gc.Erased
	if others, err := e.othersErase(ctx, newest.Info().Number); err != nil {
		return nil, err
	} else if others { // what they have not rewritten yet the next erasure does, if they stop
		operation = gc.Expired
	}
	// Commits of others since then may stay: compactions write no deleted rows.
	s, err := e.table.Commit(ctx, commit.Change{Operation: operation, Base: newest.Info().Number,
		Ops: []commit.Operation{commit.ExpireBelow(newest.Info().Number)}})
	if err != nil {
		return nil, err
	}
	for n := max(newest.Info().Oldest, 1); n < newest.Info().Number; n++ {
		e.out.Expired = append(e.out.Expired, n)
	}
	e.out.Snapshot = s.Info().Number
	return s, nil
}

// forget makes a snapshot whose trees have nothing that commits have taken back, such as definitions of sample lists,
// if those of the newest may have some. Its rows are those of the newest, so that an erasure which stops here has left
// nothing to continue.
func (e *eraser) forget(ctx context.Context, newest *storage.Snapshot) (*storage.Snapshot, error) {
	if m := newest.Manifest; !m.Listing.Remembers() && !m.Schema.Remembers() {
		return newest, nil
	}
	s, err := e.table.Commit(ctx, commit.Change{Operation: ForgetOperation, Base: newest.Info().Number,
		Ops: []commit.Operation{commit.Forget(true)}})
	if err == nil {
		e.own[s.Info().Number] = true
		e.out.Snapshot = s.Info().Number
	}
	return s, err
}

// othersErase reports whether another erasure has committed something since this one began, up to snapshot last.
func (e *eraser) othersErase(ctx context.Context, last uint64) (bool, error) {
	first := e.snap.Info().Number + 1
	all := true
	for n := first; n <= last; n++ {
		all = all && e.own[n]
	}
	if all {
		return false, nil
	}
	infos, err := e.table.Snapshots(ctx)
	return slices.ContainsFunc(infos, func(i snapshot.Info) bool {
		return i.Operation == eraseOperation && i.Number >= first && i.Number <= last && !e.own[i.Number]
	}), err
}

// countUnnamed counts the objects of segments and runs that gc would delete now or later. An error, for instance
// because another table is damaged, is only reported.
func (e *eraser) countUnnamed(ctx context.Context) {
	r, err := e.store.GC(ctx, gc.Options{DryRun: true})
	if err != nil {
		e.out.UnnamedError = err.Error()
		return
	}
	e.out.Unnamed, e.out.UnnamedBytes = r.Unnamed, r.UnnamedBytes
	for _, s := range r.Skipped {
		e.out.UnnamedError = s.Err.Error()
	}
}

// collectGarbage deletes the objects that only expired snapshots name.
func (e *eraser) collectGarbage(ctx context.Context) error {
	err := e.purge(ctx)
	if err != nil && !errors.Is(err, ErrHeld) {
		return err
	}
	if newest, nerr := e.table.Latest(ctx); nerr == nil { // a purge that removes something makes a snapshot
		e.out.Snapshot = newest.Info().Number
	} else if err == nil {
		err = nerr
	}
	e.countUnnamed(ctx)
	return err
}

// purge deletes what only expired snapshots name, and fails if a lease holds some of it. A lease may end, and gc take
// its snapshot, after a purge has left what it held: then it purges again, and by their ids what that has left, because
// no snapshot may name it any more.
func (e *eraser) purge(ctx context.Context) error {
	r := &gc.Report{}
	for range maxRewrites {
		left := r.Left
		var err error
		if r, err = e.table.Purge(ctx, left...); r != nil {
			e.out.Removed += uint64(len(r.Removed))
			e.out.BytesRemoved += r.Bytes
			e.out.Versions += r.Versions
			e.out.VersionBytes += r.VersionBytes
		}
		if err != nil {
			return err
		}
		if over, err := e.endNewLeases(ctx, r.Held); err != nil || !over {
			return err
		}
	}
	return fmt.Errorf("leases on snapshots that may have the rows came and went %d times in a row: stop what takes "+
		"them, and erase again: %w", maxRewrites, ErrHeld)
}
