package storage

import (
	"context"
	"fmt"
)

// An operation is one thing that a Change may do: its part of the change, checked by itself and then against the table, into which it goes if
// nobody stands in the way. To add one: its fields in Change, its file, its line in operations.
type operation struct {
	of string // what it is about, for messages
	// asked reports whether a change has it; nil: it follows from what others did, and has nothing of its own in Change.
	asked func(c *Change) bool
	// needsBase: it may meet what another has set, so that the change must say what it has seen.
	needsBase bool
	// validate checks it by itself; nil: there is nothing to check.
	validate func(c *Change) error
	// adds returns the segments and sets of rows that it adds: they must be there, and of the table.
	adds func(c *Change) ([]SegmentDescriptor, []RowBitmap)
	// apply puts it into the edit, or returns why it cannot be: an error that matches ErrConflict where another commit, after Base, is the reason.
	apply func(e *edit, ctx context.Context, c *Change) error
}

// operations are applied in this order: what is defined before what names it, what goes before what takes its place.
var operations = [...]operation{
	changeOverlays, addFeatures, leaveOut, changeFeatures, noteKeys, setProperties, addSources, overwritePartitions, removeSegments,
	addSegments, noteEmptied, stripRemoved, deleteRows, setOverlaySegments, changeLists, changeBranches, expireSnapshots,
}

// An edit collects what one attempt changes.
type edit struct {
	base            *Snapshot
	table           tableID
	m               manifest // the next one; its trees and info are put together last
	info            SnapshotInfo
	listing, schema []entry
	made            []string // objects that the attempt made

	added    []Feature                    // to the schema
	merging  []Feature                    // of overlays that become part of the table
	removed  map[string]SegmentDescriptor // segments that the change takes away
	vacated  map[string]place             // by partition: the first place of those that it names; what it adds there stands in it
	replaced map[string]bool              // those of them whose deletes, layers and listed rows the change must have seen
	defined  map[string]*Overlay          // overlays that the change defines or alters; nil: that it takes away
	listed   map[string]*SampleList
	renamed  []renamed
}

func (e *edit) store() *Store { return e.base.t.s }

// taken says that a name is in use: a conflict when it was not so at the base.
func taken(what, name string, since, base uint64) error {
	err := fmt.Errorf("%s %s: %w since snapshot %d", what, name, ErrExists, since)
	if since > base {
		err = fmt.Errorf("%w: %w", err, ErrConflict)
	}
	return err
}

// later says that another set something after the change's base.
func later(what, name string, since, base uint64) error {
	return fmt.Errorf("%s %s was set in snapshot %d, after snapshot %d that the change was made against: %w", what, name, since, base, ErrConflict)
}
