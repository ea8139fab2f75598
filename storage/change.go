package storage

import (
	"errors"
	"fmt"
)

// A Change is what one commit does.
type Change struct {
	Operation string    // what made it, for `dsi snapshots`: 1 to 31 bytes
	Features  []Feature // the features of the added segments: new ones are added, known ones are widened
	Add       []SegmentDescriptor
	// Remove are ids of segments that must still be there. What Add has for their partition replaces them: it stands where the first of them stood.
	Remove    []string
	Overwrite []Partition // every segment of these partitions is replaced
	Sources   []Source
	Base      uint64 // the snapshot the change was made against; 0: none
	// Without are dropped features that the added segments leave out of what the removed ones had: they must be dropped yet.
	Without []FeatureID
	// Properties are set; those of the table that it does not name stay.
	Properties map[string]string

	// Deletes are united with what is deleted already.
	Deletes []DeletionVector
	// FeatureChanges rename features, or set what becomes of them.
	FeatureChanges []FeatureChange

	// What follows needs Base.

	// Overlays are defined, in this order from the lowest up, over those that there are. Number, Added and Merged are not
	// looked at. DropOverlays names some to take away first, with their layers, and MergeOverlays some to make part of the
	// table, their features part of its schema.
	Overlays      []Overlay
	DropOverlays  []string
	MergeOverlays []string
	// Layers are set, in place of those that there are.
	Layers []OverlaySegment
	// Lists are defined, after DropLists are taken away: one in both is replaced. ListRows are set; what a list has in other
	// segments stays.
	Lists     []SampleList
	DropLists []string
	ListRows  []ListRows
	// Branches are set: new ones where Added is 0, else in place of the one that was set in that snapshot. A snapshot of 0, of
	// the branch or of a pin, is the one that the commit makes. One that overlays were made on keeps its snapshot, unless the same
	// change drops those. DropBranches takes some away, with the overlays made on them.
	Branches     []Branch
	DropBranches []string

	// Oldest, unless 0, says that the snapshots below it expire. Expire uses it.
	Oldest uint64
}

// Validate returns an error naming the first part that is wrong by itself.
func (c Change) Validate() error {
	if c.Operation == "" || len(c.Operation) > maxOperation {
		return fmt.Errorf("change: operation %q of %d bytes: want 1 to %d", c.Operation, len(c.Operation), maxOperation)
	}
	for i := range operations {
		o := &operations[i]
		if o.asked == nil || !o.asked(&c) {
			continue
		}
		if o.needsBase && c.Base == 0 {
			return fmt.Errorf("change: base of 0: %s are changed against a snapshot", o.of)
		}
		if o.validate == nil {
			continue
		}
		if err := o.validate(&c); err != nil {
			return fmt.Errorf("change: %w", err)
		}
	}
	return nil
}

// adds returns the segments, those of layers too, and the sets of rows that the change adds.
func (c *Change) adds() (segments []SegmentDescriptor, rows []RowBitmap) {
	for i := range operations {
		if o := &operations[i]; o.adds != nil {
			s, r := o.adds(c)
			segments, rows = append(segments, s...), append(rows, r...)
		}
	}
	return segments, rows
}

// A checkOnce keeps the first error, and makes one of what comes twice.
type checkOnce struct {
	seen map[string]bool
	err  error
}

func (o *checkOnce) check(err error, what, name string) {
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	key := what + "\x00" + name
	if err == nil && o.seen[key] {
		err = errors.New("twice")
	}
	o.seen[key] = true
	if o.err == nil && err != nil {
		o.err = fmt.Errorf("%s %.150q: %w", what, name, err)
	}
}
