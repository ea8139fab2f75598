package writer

import "github.com/dsistore/dsistore/dedup"

// Duplicates counts the repeated values of all features and segments of a job.
type Duplicates struct {
	// Factor is the number of elements (ids, numbers, bytes) of all rows, divided by the number of stored elements.
	Factor float64 `json:"dedupe_factor"`
	// RowSlots is the number of slots that the features would have without deduplication: one per row and feature,
	// features that are null in every row of their segment not counted. Slots is how many are stored.
	RowSlots int64 `json:"row_slots"`
	Slots    int64 `json:"slots"`
	Partial  int64 `json:"partial"` // slots that are partial duplicates
	Groups   int   `json:"groups"`  // dedup groups, summed over segments
	// GroupFeatures is the number of features in dedup groups, summed over segments.
	GroupFeatures int `json:"group_features"`
	// BytesSaved estimates how many more bytes the segments would take with one slot per row. It is extrapolated from
	// the stripes that were examined.
	BytesSaved int64 `json:"saved_bytes_estimate"`

	before, after int64
	saved         int64 // whole bytes: their sum is the same in any order
}

func (d *Duplicates) add(s dedup.Stats) {
	d.addAll(Duplicates{RowSlots: s.Rows, Slots: s.Slots, Partial: s.Partial, before: s.ElementsBefore,
		after: s.ElementsAfter, saved: int64(s.SavedBytes)})
}

func (d *Duplicates) addAll(o Duplicates) {
	d.RowSlots += o.RowSlots
	d.Slots += o.Slots
	d.Partial += o.Partial
	d.Groups += o.Groups
	d.GroupFeatures += o.GroupFeatures
	d.before += o.before
	d.after += o.after
	d.saved += o.saved
	d.Factor = 1
	if d.after > 0 {
		d.Factor = float64(d.before) / float64(d.after)
	}
	d.BytesSaved = max(d.saved, 0)
}
