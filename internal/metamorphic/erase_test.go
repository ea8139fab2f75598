package metamorphic

import (
	"fmt"
	"maps"

	"github.com/dsistore/dsistore/compaction"
)

// eraseRows erases rows physically: the history ends, but for branches that have none of them.
func eraseRows(w *world) error {
	p := w.drawPredicate(w.latest(), 1)
	next := w.latest().clone()
	gone := map[int64]bool{}
	for n, r := range next.rows {
		if p.of(r) == yes {
			gone[n] = true
		}
	}
	if len(gone) == 0 || len(gone) > len(next.rows)/2 {
		return errSkip
	}
	w.note("%s", p.text)
	opts := w.compactionOptions()
	report, err := compaction.Erase(w.ctx, w.table(), compaction.Erasure{Where: p.text, Key: "key", DropBranches: true,
		Compact: opts})
	if err != nil {
		return err
	}
	if report.Rows != uint64(len(gone)) {
		return fmt.Errorf("%d rows erased, want %d", report.Rows, len(gone))
	}
	maps.DeleteFunc(next.rows, func(n int64, _ *row) bool { return gone[n] })
	for _, b := range report.Branches {
		delete(next.branches, b)
	}
	// Which of the snapshots that it made does what is its own business. Those that have not expired have none of the
	// rows.
	snap, err := w.table().Latest(w.ctx)
	if err != nil {
		return err
	}
	w.newest, w.oldest = snap.Info().Number, snap.Info().Oldest
	// One lets those before expire, and one is made by what takes away what only these name.
	if w.newest != report.Snapshot || w.oldest+2 < w.newest {
		return fmt.Errorf("snapshots %d to %d, after an erasure that ended with %d", w.oldest, w.newest,
			report.Snapshot)
	}
	for n := w.oldest; n <= w.newest; n++ {
		w.states[n] = next
	}
	w.note("snapshot %d: %d rows", report.Snapshot, len(next.rows))
	return nil
}
