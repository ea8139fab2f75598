package metamorphic

import (
	"fmt"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/usage"
)

// record makes another Writer of usage records, as a process has one. It writes when it is told to, so that it does not
// depend on timing.
func (w *world) record() error {
	blobs, err := w.open()
	if err != nil {
		return err
	}
	store, err := storage.Create(w.ctx, blobs, storage.Options{})
	if err != nil {
		return err
	}
	table, err := store.NewTable(w.ctx, tableName)
	if err != nil {
		return err
	}
	w.recorder, err = usage.NewWriter(table, usage.Options{Interval: -1})
	return err
}

// usageRecords writes what was read so far, and holds it to what the model gave: all rows, whatever was rolled up,
// once.
func usageRecords(w *world) error {
	if w.rowsRead == 0 {
		return errSkip
	}
	if err := w.recorder.Flush(w.ctx); err != nil {
		return err
	}
	if w.chance(0.5) {
		// It takes what the Writer might add to yet: that goes on as another process.
		if err := w.recorder.Close(w.ctx); err != nil {
			return err
		}
		report, err := usage.Rollup(w.ctx, w.table(), usage.RollupOptions{MinAge: -1})
		if err != nil {
			return err
		}
		w.note("%d records merged", report.Merged)
		if err := w.record(); err != nil {
			return err
		}
	}
	s, err := usage.Load(w.ctx, w.table(), time.Time{}, time.Time{})
	if err != nil {
		return err
	}
	var needed, unneeded uint64
	for i := range s.Features {
		needed += s.Features[i].BytesNeeded
		unneeded += s.Features[i].BytesUnneeded
	}
	if s.Total.Rows != w.rowsRead || needed != s.Total.BytesNeeded || unneeded != s.Total.BytesUnneeded ||
		s.DamagedCount > 0 {
		return fmt.Errorf("recorded: %+v, %d bytes needed and %d unneeded by features, %d damaged: want %d rows",
			s.Total, needed, unneeded, s.DamagedCount, w.rowsRead)
	}
	return nil
}
