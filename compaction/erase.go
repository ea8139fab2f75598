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
)

// An Erasure says which rows are erased: those that a filter selects, or those with a key.
type Erasure struct {
	// Where is a predicate in the words of reader/expr; empty: Keys say it. Of rows that were deleted before it is not
	// known, so that all of them are erased too: what was deleted by a predicate is erased by the same one.
	Where string
	// Keys are values of a feature of the table.
	Keys *Keys
	// Key is the feature whose values are searched for when Where says which rows are erased; empty: the user key, else
	// the request key, else the session key of the table; without any, nothing is searched for.
	Key string
	// DropBranches drops the branches that hold such rows. Default: they are refused, by name.
	DropBranches bool
	DryRun       bool // say what would be touched, and change nothing
	// Compact says how segments are rewritten; what it says of what is worth it is not looked at.
	Compact Options
}

// An EraseReport says what Erase did, or would do. Its JSON keys are stable.
type EraseReport struct {
	Table    string `json:"table"`
	DryRun   bool   `json:"dry_run"`
	Snapshot uint64 `json:"snapshot"`            // the newest after it
	Rows     uint64 `json:"rows"`                // that were there, and are erased
	Deleted  uint64 `json:"rows_deleted_before"` // that were deleted, and not yet erased: those of the keys, or all
	// Segments are those that were rewritten, of TableSegments; Bytes what they took, of TableBytes, and BytesMade what
	// those in their place take.
	Segments      uint64   `json:"segments_rewritten"`
	TableSegments uint64   `json:"table_segments"`
	Bytes         uint64   `json:"bytes_rewritten"`
	TableBytes    uint64   `json:"table_bytes"`
	BytesMade     uint64   `json:"bytes_made"`
	Branches      []string `json:"branches_dropped"`
	Expired       []uint64 `json:"snapshots_expired"`
	Removed       uint64   `json:"objects_removed"`
	BytesRemoved  uint64   `json:"bytes_removed"`
	// Unnamed are objects of the store that no snapshot of any table names, and temporary files, that are left, since
	// they may be of a commit to come: of an ingest or a compaction under way, or of one that was killed. What rows
	// they have is not known; gc takes them when they are older than its grace period. UnnamedError says why they could
	// not be counted.
	Unnamed      uint64  `json:"objects_unnamed"`
	UnnamedBytes uint64  `json:"bytes_unnamed"`
	UnnamedError string  `json:"unnamed_error,omitempty"`
	Compaction   *Report `json:"compaction,omitempty"`
	Search       *Search `json:"search,omitempty"` // nil: nothing was searched for
	Seconds      float64 `json:"seconds"`
}

// eraseOperation is the operation of snapshots that Erase makes.
const eraseOperation = "erase"

// endLeases says the way out.
const endLeases = "; if its owner is no more, end it: dsi leases end"

// ErrHeld is matched when a branch or a lease keeps a snapshot that has rows which are to be erased.
var ErrHeld = errors.New("held")

// Erase takes rows out of a table physically:
//
//	deletes ──> rewrite of the segments that have them, and of their overlays and lists
//	        ──> expiry of all snapshots before ──> purge of their data ──> search
//
// After the first step no reader of the newest snapshot sees the rows; an error in a later one leaves that so, and to
// run Erase again goes on: where one was not finished, all segments with deleted rows are rewritten. The history of the
// table ends: no snapshot before can be read, but by branches that have none of the rows. What only expired snapshots
// name goes at once: a reader of one without a lease fails. A lease on such a snapshot refuses the whole, as a branch
// does. One that comes after the first step is refused at the end, when the rows are deleted; a branch is dropped there
// where it is to be.
//
// Where the newest snapshot has none of the rows, others may: those that have not expired, and those whose data is
// still there. With keys the segments of these are looked at. What a filter would select in them is not known: they
// count as having the rows when they have a segment that the newest snapshot lacks.
func Erase(ctx context.Context, table *storage.Table, what Erasure) (_ *EraseReport, err error) {
	start := time.Now()
	if err := what.Compact.Validate(); err != nil {
		return nil, err
	}
	// Leases that closed readers of this process left for the next are in nobody's way but this one's.
	reader.ReleaseReused()
	e := &eraser{table: table, store: table.Store(), what: what, out: &EraseReport{
		Table: table.Name(), DryRun: what.DryRun, Branches: []string{}, Expired: []uint64{}}}
	defer func() { e.out.Seconds = time.Since(start).Seconds() }()
	if err := e.run(ctx); err != nil {
		return e.out, fmt.Errorf("erase from table %s: %w", table.Name(), err)
	}
	return e.out, nil
}

// An eraser is an Erase under way.
type eraser struct {
	table *storage.Table
	store *storage.Store
	what  Erasure
	out   *EraseReport

	snap *storage.Snapshot
	all  []catalog.SegmentDescriptor
	keys *Keys                      // that no row has afterwards; nil: not known
	live map[string]*roaring.Bitmap // by segment: rows to be erased
	had  map[string]bool            // segments to be rewritten: also for rows that were deleted before
	// unfinished: the snapshots before an earlier erasure have not expired; history: nor have others that have the
	// rows; uncollected: the data of snapshots that have expired may be there yet.
	unfinished, history, uncollected bool

	contents    map[string]segmentContents // by segment, as far as that was looked at
	snapshotHas map[uint64]bool            // by snapshot: whether it has the rows, or may have
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
		if e.had[d.ID] {
			e.out.Segments++
			e.out.Bytes += d.Bytes
		}
	}
	e.noteContents(e.all)
	if err := e.lookBack(ctx); err != nil {
		return err
	}
	held, err := e.holds(ctx)
	if err != nil || e.what.DryRun {
		return err
	}
	if err := e.delete(ctx, held); err != nil {
		return err
	}
	if err := e.rewrite(ctx); err != nil {
		return err
	}
	if err := e.expire(ctx); err != nil {
		return err
	}
	return e.search(ctx)
}

// find finds the rows, and the segments that have them.
func (e *eraser) find(ctx context.Context) (err error) {
	if e.snap, err = e.table.Latest(ctx); err != nil {
		return err
	}
	if e.all, err = e.snap.Segments(ctx, nil); err != nil {
		return err
	}
	e.live, e.had = map[string]*roaring.Bitmap{}, map[string]bool{}
	if e.what.Keys != nil {
		if err := e.plainKey(ctx, e.what.Keys.feature); err != nil {
			return err
		}
		e.keys = e.what.Keys
		return e.findKeys(ctx)
	}
	match, err := reader.Matching(ctx, e.snap, reader.PlanOptions{Filter: e.what.Where},
		// a rewrite is no job's reading
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
		e.live[s.Segment.ID], e.had[s.Segment.ID] = rows, true
		e.out.Rows += rows.GetCardinality()
	}
	deleted, err := e.snap.DeletionVectors(ctx, e.all...)
	if err != nil {
		return err
	}
	for i, d := range e.all {
		if !deleted[i].IsEmpty() {
			e.had[d.ID] = true
			e.out.Deleted += deleted[i].Count
		}
	}
	key, err := KeyFeature(ctx, e.snap, e.what.Key)
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

// resume finds out whether an earlier erasure was not finished. Which rows it was about nobody knows any more: they are
// deleted.
func (e *eraser) resume(ctx context.Context) error {
	infos, err := e.table.Snapshots(ctx)
	if err != nil {
		return err
	}
	oldest := e.snap.Info().Oldest
	for _, i := range infos {
		if i.Operation == eraseOperation && i.Number >= oldest {
			e.uncollected = true
			e.unfinished = e.unfinished || i.Number > max(oldest, 1)
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
			e.had[d.ID] = true
		}
	}
	return nil
}

// KeyFeature returns the feature of a name, which keys are of; without a name the user key of the table, else its
// request key, else its session key, and nil when it has none.
func KeyFeature(ctx context.Context, snap *storage.Snapshot, name string) (*catalog.Feature, error) {
	if name != "" {
		found, err := snap.Lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		return &found[0], nil
	}
	keys, err := snap.KeyFeatures(ctx)
	if err != nil {
		return nil, err
	}
	for _, role := range []catalog.Role{catalog.RoleUserKey, catalog.RoleRequestKey, catalog.RoleSessionKey} {
		if i := slices.IndexFunc(keys, func(f catalog.Feature) bool { return f.Role == role }); i >= 0 {
			return &keys[i], nil
		}
	}
	return nil, nil
}

// plainKey returns an error where an overlay that is part of the table replaces the key: its values are in two places
// then.
func (e *eraser) plainKey(ctx context.Context, key catalog.Feature) error {
	overlays, err := e.snap.Overlays(ctx)
	if err != nil {
		return err
	}
	for _, o := range overlays {
		if hasFeature(o, key.ID) {
			return fmt.Errorf("overlay %s replaces the key %s: drop it, or merge it and compact the table, first",
				o.Name, key.Name)
		}
	}
	return nil
}

// columnsAtOnce is how many segments' keys are read at once, of which each may hold columnBytes of what was read; of
// one that is not read whole someBytes, in small blocks.
const (
	columnsAtOnce = 8
	columnBytes   = maxBlock
	someBytes     = 4 * blocksEach * minBlock
)

// eachColumn calls visit with the key of each segment, some at a time. A column is borrowed for the call.
func (e *eraser) eachColumn(ctx context.Context, segments []catalog.SegmentDescriptor,
	visit func(ctx context.Context, i int, c *column) error) error {
	return e.eachColumnOf(ctx, segments, make([]*roaring.Bitmap, len(segments)), visit)
}

// eachColumnOf is eachColumn with stripes alone that have one of the rows within; nil: all. Segments without such rows
// are left out.
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

// eachCandidate is eachColumn for the segments, and the stripes of them, that may have one of the keys, as the
// segments' tables of keys say.
func (e *eraser) eachCandidate(ctx context.Context, segments []catalog.SegmentDescriptor,
	visit func(ctx context.Context, i int, c *column) error) error {
	within, err := e.snap.KeyRows(ctx, e.keys.feature, e.keys.hashes(), segments)
	if err != nil {
		return err
	}
	return e.eachColumnOf(ctx, segments, within, visit)
}

// findKeys finds the rows that have one of the keys, deleted ones too.
func (e *eraser) findKeys(ctx context.Context) error {
	deleted, err := e.snap.DeletionVectors(ctx, e.all...)
	if err != nil {
		return err
	}
	found, live := make([]uint64, len(e.all)), make([]*roaring.Bitmap, len(e.all))
	err = e.eachCandidate(ctx, e.all, func(ctx context.Context, i int, c *column) error {
		rows, err := e.keys.rows(c)
		if err != nil || rows.IsEmpty() {
			return err
		}
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
		e.had[d.ID] = true
		n := live[i].GetCardinality()
		if n > 0 {
			e.live[d.ID] = live[i]
		}
		e.out.Rows += n
		e.out.Deleted += found[i] - n
	}
	return nil
}

// collect finds the keys of the rows to be erased, and of those that were deleted, without those that other rows have
// too.
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
	s, err := e.table.Commit(ctx, commit.Change{
		Operation: eraseOperation, Base: e.snap.Info().Number,
		Ops: []commit.Operation{commit.DropBranches(branches), deletes},
	})
	if errors.Is(err, storage.ErrConflict) {
		for _, d := range deletes {
			_ = e.store.Bitmaps().Discard(context.WithoutCancel(ctx), d.Rows)
		}
	}
	if err != nil {
		return err
	}
	e.out.Snapshot = s.Info().Number
	e.out.Branches = append(e.out.Branches, branches...)
	return nil
}

// maxRewrites is how often other compactions may be quicker.
const maxRewrites = 4

// rewrite rewrites the segments that have the rows.
func (e *eraser) rewrite(ctx context.Context) error {
	opts := e.what.Compact
	opts.Operation, opts.Partition, opts.Repack = eraseOperation, "", false
	for _, d := range e.all {
		if e.had[d.ID] {
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

// rewriteSome rewrites segments; left: other compactions had some.
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
	for _, j := range r.Jobs {
		e.out.BytesMade += j.BytesOut + j.LayersOut
		left = left || j.LeftOut != ""
	}
	return left, err
}

// moved returns the segments that another compaction may have moved the rows to, as deleted ones.
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
	for i, d := range segments {
		known := slices.ContainsFunc(e.all, func(o catalog.SegmentDescriptor) bool { return o.ID == d.ID })
		if !deleted[i].IsEmpty() && (!known || e.had[d.ID]) {
			ids = append(ids, d.ID)
		}
	}
	return ids, nil
}

// expire lets all snapshots before the newest expire, and takes what only they name.
func (e *eraser) expire(ctx context.Context) error {
	ended := len(e.had) > 0 || e.unfinished || e.history
	if !ended && !e.uncollected {
		return nil
	}
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

// endHistory lets all snapshots before the newest expire, and returns the one that says so.
func (e *eraser) endHistory(ctx context.Context, newest *storage.Snapshot) (*storage.Snapshot, error) {
	// Whatever others committed since is theirs to keep: a compaction of theirs wrote none of the deleted rows either.
	s, err := e.table.Commit(ctx, commit.Change{Operation: "expire", Base: newest.Info().Number,
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

// countUnnamed counts the objects of segments and runs that gc would take now or later. That another table is damaged,
// say, does not end the erasure.
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

// collectGarbage takes what only expired snapshots name.
func (e *eraser) collectGarbage(ctx context.Context) error {
	r, err := e.table.Purge(ctx)
	if err != nil {
		return err
	}
	e.out.Removed, e.out.BytesRemoved = uint64(len(r.Removed)), r.Bytes
	newest, err := e.table.Latest(ctx) // a purge that removes something makes a snapshot
	if err != nil {
		return err
	}
	e.out.Snapshot = newest.Info().Number
	e.countUnnamed(ctx)
	if err := e.endNewLeases(ctx, r.Held); err != nil {
		return err
	}
	return nil
}
