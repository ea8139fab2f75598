package metamorphic

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/writer"
)

// compactionOptions draws what is rewritten.
func (w *world) compactionOptions() compaction.Options {
	o := compaction.Options{
		Fanout: pick(w, 0, 2, 3), Full: w.chance(0.4), Repack: w.chance(0.2), SegmentRows: pick[uint64](w, 0, 20, 60),
		DeletedShare: pick(w, 0, 0.01, 0.5), DroppedShare: pick(w, 0, 0.01), SharedShare: pick(w, 0, 0.01, 2),
		MaxInputs: pick(w, 0, 2),
		Write: writer.Options{Memory: 512 << 20, Workers: 1 + w.rnd.IntN(2), StripeRows: pick(w, 0, 4, 16),
			TempDir: w.dir},
	}
	if w.chance(0.3) {
		o.Partition = w.drawDays().text
	}
	return o
}

// compact plans and runs a compaction: each job is a commit, and there may be one more that takes away what nothing
// uses any longer.
func (w *world) compact(t *storage.Table, opts compaction.Options) error {
	plan, err := compaction.NewPlan(w.ctx, t, opts)
	if err != nil {
		return err
	}
	_, err = compaction.Run(w.ctx, t, plan, opts)
	return err
}

// commits says what all snapshots stand for that were made since the newest that is known.
func (w *world) commits(of func(n uint64) *state) error {
	snap, err := w.table().Latest(w.ctx)
	if err != nil {
		return err
	}
	for n := w.newest + 1; n <= snap.Info().Number; n++ {
		if err := w.commit(n, of(n)); err != nil {
			return err
		}
	}
	return nil
}

// compactRows rewrites segments: no reader can tell.
func compactRows(w *world) error {
	opts := w.compactionOptions()
	w.note("%+v", opts)
	if err := w.compact(w.table(), opts); err != nil {
		return err
	}
	return w.commits(func(uint64) *state { return w.latest().clone() })
}

// compactAndDelete does both side by side: the delete holds, whether its bitmap is carried along or made of the new
// segments.
func compactAndDelete(w *world) error {
	c, err := w.drawChoice()
	if err != nil {
		return err
	}
	before := w.latest()
	gone := c.meant(before)
	if len(gone) > len(before.rows)/2 {
		return errSkip
	}
	opts := w.compactionOptions()
	w.note("%s; %+v", &c.query, opts)
	var deleted *selection.DeleteReport
	var errs [2]error
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = w.compact(w.tables[0], opts) })
	wg.Go(func() { deleted, errs[1] = selection.Delete(w.ctx, w.tables[1], &c.query, selection.Options{}) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if deleted.Deleted != uint64(len(gone)) {
		return fmt.Errorf("%d rows deleted, want %d", deleted.Deleted, len(gone))
	}
	return w.commits(func(n uint64) *state {
		next := before.clone()
		if len(gone) > 0 && n >= deleted.Snapshot {
			maps.DeleteFunc(next.rows, func(n int64, _ *row) bool { return gone[n] })
		}
		return next
	})
}
