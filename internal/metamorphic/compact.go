package metamorphic

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/samples"
)

// compactionOptions draws what is rewritten.
func (w *world) compactionOptions() compaction.Options {
	o := compaction.Options{
		Fanout: pick(w, 0, 2, 3), Full: w.chance(0.4), Repack: w.chance(0.2), SegmentRows: pick[uint64](w, 0, 20, 60),
		DeletedShare: pick(w, 0, 0.01, 0.5), DroppedShare: pick(w, 0, 0.01), SharedShare: pick(w, 0, 0.01, 2), MaxInputs: pick(w, 0, 2),
		Write: ingest.Options{Memory: 512 << 20, Workers: 1 + w.rnd.IntN(2), StripeRows: pick(w, 0, 4, 16), TempDir: w.dir},
	}
	if w.chance(0.3) {
		o.Partition = w.drawDays().text
	}
	return o
}

// compact plans and runs a compaction, and returns the snapshots that it made.
func (w *world) compact(t *storage.Table, opts compaction.Options) (made []uint64, err error) {
	plan, err := compaction.NewPlan(w.ctx, t, opts)
	if err != nil {
		return nil, err
	}
	report, err := compaction.Run(w.ctx, t, plan, opts)
	if err != nil {
		return nil, err
	}
	for _, j := range report.Jobs {
		if j.Snapshot != 0 {
			made = append(made, j.Snapshot)
		}
	}
	return made, nil
}

// compactRows rewrites segments: no reader can tell.
func compactRows(w *world) error {
	opts := w.compactionOptions()
	w.note("%+v", opts)
	made, err := w.compact(w.table(), opts)
	if err != nil {
		return err
	}
	if len(made) == 0 {
		return errSkip
	}
	for _, n := range made {
		if err := w.commit(n, w.latest().clone()); err != nil {
			return err
		}
	}
	return nil
}

// compactAndDelete does both side by side: the delete holds, whether its bitmap is carried along or made of the new segments.
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
	var made []uint64
	var deleted *samples.DeleteReport
	var errs [2]error
	var wg sync.WaitGroup
	wg.Go(func() { made, errs[0] = w.compact(w.tables[0], opts) })
	wg.Go(func() { deleted, errs[1] = samples.Delete(w.ctx, w.tables[1], &c.query, samples.Options{}) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if deleted.Deleted != uint64(len(gone)) {
		return fmt.Errorf("%d rows deleted, want %d", deleted.Deleted, len(gone))
	}
	last := w.newest + uint64(len(made))
	if len(gone) > 0 {
		last++
	}
	for n := w.newest + 1; n <= last; n++ {
		next := before.clone()
		if len(gone) > 0 && n >= deleted.Snapshot {
			maps.DeleteFunc(next.rows, func(n int64, _ *row) bool { return gone[n] })
		}
		if err := w.commit(n, next); err != nil {
			return err
		}
	}
	return nil
}
