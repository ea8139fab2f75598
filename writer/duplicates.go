package writer

import "github.com/dsistore/dsistore/dedup"

// Duplicates says what was found to repeat, over all features and segments.
type Duplicates struct {
	// Factor is how often a stored value is used: ids, numbers and bytes over rows, by those stored.
	Factor float64 `json:"factor"`
	// Slots are the values stored, a list or a number each, of RowSlots: one for each row and feature that some row
	// has.
	RowSlots int64 `json:"row_slots"`
	Slots    int64 `json:"slots"`
	Partial  int64 `json:"partial"` // slots whose values other slots store too
	Groups   int   `json:"groups"`  // dedup groups, segment by segment
	// GroupFeatures are the features in them.
	GroupFeatures int `json:"group_features"`
	// BytesSaved estimates what the segments would take more with a slot for each row, from the stripes that were
	// examined.
	BytesSaved int64 `json:"bytes_saved_estimate"`

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
