package storage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/object"
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
	Deletes []Deletes
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
	Layers []Layer
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
	if uint64(len(c.Add)) > math.MaxUint32 {
		return fmt.Errorf("change: %d segments", len(c.Add))
	}
	if err := c.validateLayers(); err != nil {
		return fmt.Errorf("change: %w", err)
	}
	names := make(map[string]bool, len(c.Features))
	ids := make(map[FeatureID]string, len(c.Features))
	for _, f := range c.Features {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("change: %w", err)
		}
		if names[f.Name] {
			return fmt.Errorf("change: feature %s twice", f.Name)
		}
		if other, ok := ids[f.ID]; ok {
			return idCollision(f.ID, other, f.Name)
		}
		names[f.Name], ids[f.ID] = true, f.Name
	}
	segments := make(map[string]bool, len(c.Add))
	for _, d := range c.Add {
		if err := d.Validate(); err != nil {
			return fmt.Errorf("change: %w", err)
		}
		if segments[d.ID] {
			return fmt.Errorf("change: segment %s twice", d.ID)
		}
		segments[d.ID] = true
	}
	for _, r := range c.Remove {
		if _, err := parseID(r); err != nil {
			return fmt.Errorf("change: remove segment %w", err)
		}
		if segments[r] {
			return fmt.Errorf("change: segment %s added and removed", r)
		}
	}
	for _, p := range c.Overwrite {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("change: overwrite: %w", err)
		}
	}
	if len(c.Properties) > maxProperties {
		return fmt.Errorf("change: %d properties: want at most %d", len(c.Properties), maxProperties)
	}
	for name, value := range c.Properties {
		if err := checkProperty(name, value); err != nil {
			return fmt.Errorf("change: %w", err)
		}
		if name == partitionKeysProperty {
			return fmt.Errorf("change: property %s is set by commits that empty a table", name)
		}
	}
	prints := make(map[string]bool, len(c.Sources))
	for _, s := range c.Sources {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("change: %w", err)
		}
		if prints[s.Fingerprint] {
			return fmt.Errorf("change: source %s twice: %w", s.Name, ErrDuplicateSource)
		}
		prints[s.Fingerprint] = true
	}
	return nil
}

func idCollision(f FeatureID, a, b string) error {
	return fmt.Errorf("features %q and %q have the same id %016x: rename one", a, b, uint64(f))
}

// Commit makes the next snapshot, durably. It rebases over concurrent commits that commute: appends, new features, wider
// types, removals of other segments; an append commutes with an overwrite of its partition, which comes first then. Else
// it returns
//
//   - ErrConflict, when a segment to remove is gone, or a partition to overwrite got segments after Base;
//
//   - ErrConflict, when a segment that deletes, layers or rows of lists are of is gone, a segment to remove got some after Base
//     (a compaction must carry them), or what the change sets was set after Base by another: a layer, rows of a list, a
//     branch, an overlay or list of the name. Deletes commute with deletes, and all with appends;
//
//   - ErrConflict, when an overlay that layers are of was merged after Base, or a feature of Without was taken back;
//
//   - ErrExists, when the name of a new overlay, list or branch is taken;
//
//   - ErrDuplicateSource, when the table holds a source already; an Overwrite may repeat sources that Base held;
//
//   - an error naming feature and types, when a type has no common wider one, or roles or logical types differ.
//
//   - ErrConflict, when gc has condemned a segment, layer or set of rows of the change, or they were written for another table; or when the
//     table was removed since the handle first read it, and another made of its name.
//
// The objects of the added segments, and of layers and sets of rows, must exist. After an error nothing is changed, except that an error of the object
// store in the last step may leave the commit made; running it again then gives ErrConflict or ErrDuplicateSource.
func (t *Table) Commit(ctx context.Context, c Change) (*Snapshot, error) {
	s, err := t.commit(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("commit to table %s: %w", t.name, err)
	}
	return s, nil
}

func (t *Table) commit(ctx context.Context, c Change) (*Snapshot, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	for {
		// PROTOCOL.md says why in this order: what the commit builds on first, then whether gc has condemned what it adds, then the put.
		cached := t.newestRead()
		base, err := t.latestOr(ctx, cached)
		if err != nil {
			return nil, replaced(err)
		}
		var table tableID
		if base == nil {
			base = &Snapshot{t: t, m: manifest{listing: tree{kind: listingTree}, schema: tree{kind: schemaTree}}}
			if table, err = t.root(ctx); err != nil {
				return nil, replaced(err)
			}
		} else {
			table = base.m.table
		}
		// What the handle has read must still be there, itself and not another of its number.
		if n := base.m.info; cached != nil && (n.Number < cached.m.info.Number || n.Number == cached.m.info.Number && base.m.commit != cached.m.commit) {
			t.forget()
			return nil, fmt.Errorf("snapshot %d, which was read, is gone: %w: %w", cached.m.info.Number, errReplaced, ErrConflict)
		}
		if err := c.checkTable(table); err != nil {
			return nil, err
		}
		err = object.Parallel(ctx, 2, 2, func(ctx context.Context, i int) error {
			if i == 0 {
				return t.checkAdded(ctx, c)
			}
			if base != cached {
				return nil
			}
			return t.checkBase(ctx, base)
		})
		var s *Snapshot
		if err == nil {
			s, err = t.attempt(ctx, base, table, c)
		}
		if errors.Is(err, errLostRace) {
			t.s.conflicts.retried.Add(1)
			continue
		}
		if errors.Is(err, ErrConflict) {
			t.s.conflicts.refused.Add(1)
		}
		return s, err
	}
}

// replaced makes a conflict of the error that the table is another one than the handle's.
func replaced(err error) error {
	if errors.Is(err, errReplaced) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// errLostRace: another commit took the number.
var errLostRace = errors.New("lost the race for a snapshot number")

// attempt tries to make the snapshot after base.
func (t *Table) attempt(ctx context.Context, base *Snapshot, table tableID, c Change) (_ *Snapshot, err error) {
	e := edit{base: base, table: table, m: base.m, info: base.m.info}
	if e.info.Number++; e.info.Number > maxSnapshot {
		return nil, fmt.Errorf("the table has %d snapshots: no more are possible", uint64(maxSnapshot))
	}
	e.info.Operation = c.Operation
	e.info.AddedRows, e.info.RemovedRows = 0, 0
	e.info.Time = t.s.now()
	if e.info.Time.Before(base.m.info.Time) {
		e.info.Time = base.m.info.Time
	}
	// As it is stored: without what a clock adds to tell times apart.
	e.info.Time = time.Unix(0, e.info.Time.UnixNano()).UTC()
	committed := false
	defer func() {
		if committed {
			return
		}
		// Nobody names these yet. What a failed delete leaves, gc finds.
		for _, name := range e.made {
			_ = t.s.blobs.Delete(context.WithoutCancel(ctx), name)
		}
	}()
	if err := t.s.openRuns(ctx, base.m.listing, base.m.schema); err != nil {
		return nil, err
	}
	for _, step := range [...]func(context.Context, Change) error{
		e.overlays, e.features, e.without, e.featureChanges, e.keys, e.properties, e.sources, e.overwrite, e.remove, e.add, e.emptied, e.strip,
		e.deletes, e.layers, e.lists, e.branches, e.oldest,
	} {
		if err := step(ctx, c); err != nil {
			return nil, err
		}
	}
	m := e.m
	m.info, m.commit, m.parent, m.table, m.version = e.info, randomID(), base.m.commit, table, max(e.m.version, 1)
	if c.needsVersion2() {
		m.version = max(m.version, 2)
	}
	put := func(t0 tree, changes []treeEntry) (tree, error) {
		out, ids, err := t.s.put(ctx, table, t0, sortEntries(changes))
		for _, i := range ids {
			e.made = append(e.made, i.runName(t0.kind))
		}
		return out, err
	}
	if m.listing, err = put(base.m.listing, e.listing); err != nil {
		return nil, err
	}
	if m.schema, err = put(base.m.schema, e.schema); err != nil {
		return nil, err
	}
	b := appendManifest(nil, m)
	if len(b) > maxSnapshotBody {
		return nil, fmt.Errorf("snapshot of %d bytes: want at most %d", len(b), maxSnapshotBody)
	}
	name := snapshotName(t.name, m.info.Number)
	if err := t.syncBase(ctx, m.info.Number); err != nil {
		return nil, err
	}
	if err := t.putSnapshot(ctx, name, b, m); err != nil {
		// What lost a race is nobody's. After any other error the put may be carried out yet: the runs are gc's.
		committed = !errors.Is(err, errLostRace)
		return nil, err
	}
	committed = true
	if m.info.Number == 1 {
		// Where it is missing, a table that loses all its snapshots looks like one that is about to be made.
		_ = t.s.blobs.PutIfAbsent(context.WithoutCancel(ctx), tableBegun(t.name), nil)
	}
	s := &Snapshot{t: t, m: m}
	t.saw(s, object.Info{})
	return s, nil
}

// putSnapshot puts a snapshot in its place, durably; errLostRace when another has it.
func (t *Table) putSnapshot(ctx context.Context, name string, b []byte, m manifest) error {
	err := t.s.blobs.PutIfAbsent(ctx, name, b)
	if err == nil {
		return nil
	}
	// The put may have been made all the same, also where it is answered that the name is taken: by a try that got no answer. Whose the
	// snapshot is, its commit id says.
	ctx = context.WithoutCancel(ctx)
	ours, known, rerr := t.isMade(ctx, m)
	switch {
	case rerr != nil:
		return errors.Join(err, rerr)
	case !known && errors.Is(err, object.ErrExists):
		return fmt.Errorf("snapshot %d was made and has expired meanwhile: whether by this commit is not known", m.info.Number)
	case !known:
		return err
	case !ours:
		return errLostRace
	}
	// It is ours. That it can be seen does not say that it is durable; the answer that it exists does.
	if !errors.Is(err, object.ErrExists) {
		if err := t.s.blobs.PutIfAbsent(ctx, name, b); err != nil && !errors.Is(err, object.ErrExists) {
			return fmt.Errorf("snapshot %d is made, but a crash may take it back: %w", m.info.Number, err)
		}
	}
	return nil
}

// isMade reports whether the snapshot with the number of m is m, and whether there is one or was, as far as can be known.
func (t *Table) isMade(ctx context.Context, m manifest) (ours, known bool, err error) {
	there, err := t.header(ctx, m.info.Number)
	if err == nil {
		return there.commit == m.commit, true, nil
	}
	if !errors.Is(err, object.ErrNotFound) {
		return false, false, err
	}
	// It may have expired. The one after it says which one it was.
	next, err := t.header(ctx, m.info.Number+1)
	if errors.Is(err, object.ErrNotFound) {
		return false, false, nil
	}
	return next.parent == m.commit, err == nil, err
}

// An edit collects what one attempt changes.
type edit struct {
	base            *Snapshot
	table           tableID
	m               manifest // the next one; its trees and info are put together last
	info            SnapshotInfo
	listing, schema []treeEntry
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

// features merges the change's features into the schema.
func (e *edit) features(ctx context.Context, c Change) error {
	features, err := c.allFeatures(e.merging)
	if err != nil {
		return err
	}
	names := make([]string, len(features))
	keys := make([][]byte, len(features))
	for i, f := range features {
		names[i], keys[i] = f.Name, featureIDKey(f.ID)
	}
	known, err := e.base.find(ctx, names...)
	if err != nil {
		return err
	}
	owners, err := e.store().get(ctx, e.base.m.schema, keys...)
	if err != nil {
		return err
	}
	for i, f := range features {
		if owners[i] != nil && string(owners[i]) != f.Name {
			return ownedBy(f, string(owners[i]))
		}
		merged := f
		merged.Status = FeatureActive
		// One of the same name is another feature, with an id of its own; the name of a dropped one may have been another's since.
		if known[i] != nil && known[i].Status == FeatureDropped && known[i].ID != f.ID {
			known[i] = nil
		}
		if owners[i] != nil && (known[i] == nil || known[i].ID != f.ID || known[i].Status == FeatureDropped) {
			return ownedBy(f, f.Name)
		}
		if known[i] == nil {
			e.info.Features++
			e.added = append(e.added, f)
			e.schema = append(e.schema, treeEntry{keys[i], []byte(f.Name)})
		} else {
			if merged, err = mergeFeature(*known[i], f); err != nil {
				return err
			}
			if merged == *known[i] {
				continue
			}
		}
		e.schema = append(e.schema, treeEntry{nameKey(f.Name), appendFeature(nil, merged)})
	}
	return nil
}

// ownedBy says why a feature of f's id, under another name or dropped, stands in the way of f.
func ownedBy(f Feature, other string) error {
	if other == f.Name {
		return fmt.Errorf("feature %s was dropped: %w", f.Name, ErrConflict)
	}
	for g := range f.Generation + 1 {
		if NewFeatureID(other, g) == f.ID {
			return idCollision(f.ID, other, f.Name)
		}
	}
	return fmt.Errorf("feature %s is called %s now: %w", f.Name, other, ErrConflict)
}

// mergeFeature returns the schema's feature once a segment with f is added.
func mergeFeature(known, f Feature) (Feature, error) {
	out := known
	if known.ID != f.ID || known.Generation != f.Generation {
		return out, fmt.Errorf("feature %s: id %016x of generation %d; the table has %016x of generation %d",
			f.Name, uint64(f.ID), f.Generation, uint64(known.ID), known.Generation)
	}
	var err error
	if out.Type, err = vector.Widen(known.Type, f.Type); err != nil {
		return out, fmt.Errorf("feature %s is %v in the table and %v in the change: %w", f.Name, known.Type, f.Type, err)
	}
	if f.Role != RoleFeature && f.Role != known.Role {
		return out, fmt.Errorf("feature %s is a %v in the table and a %v in the change", f.Name, known.Role, f.Role)
	}
	if known.Logical != f.Logical {
		return out, fmt.Errorf("feature %s is of logical type %q in the table and %q in the change", f.Name, known.Logical, f.Logical)
	}
	if known.OriginColumn != f.OriginColumn || known.OriginKey != f.OriginKey {
		return out, fmt.Errorf("feature %s comes from key %q of column %q in the table and from key %q of column %q in the change",
			f.Name, known.OriginKey, known.OriginColumn, f.OriginKey, f.OriginColumn)
	}
	return out, nil
}

// sources refuses what was ingested before and adds the rest to the ledger.
func (e *edit) sources(ctx context.Context, c Change) error {
	keys := make([][]byte, len(c.Sources))
	for i, s := range c.Sources {
		keys[i] = sourceKey(s.Fingerprint)
	}
	values, err := e.store().get(ctx, e.base.m.listing, keys...)
	if err != nil {
		return err
	}
	for i, s := range c.Sources {
		if values[i] != nil {
			number, name, ok := parseSource(values[i])
			if !ok {
				return corrupt(e.base.treeName(e.base.m.listing), "source is malformed")
			}
			if len(c.Overwrite) == 0 || number > c.Base {
				return fmt.Errorf("source %s (as %s, in snapshot %d): %w", s.Name, name, number, ErrDuplicateSource)
			}
		}
		e.listing = append(e.listing, treeEntry{keys[i], sourceValue(e.info.Number, s.Name)})
	}
	return nil
}

// overwrite removes all segments of the partitions to overwrite.
func (e *edit) overwrite(ctx context.Context, c Change) error {
	seen := map[string]bool{}
	removed := make(map[string]bool, len(c.Remove)) // those that remove takes care of
	for _, r := range c.Remove {
		removed[r] = true
	}
	for _, p := range c.Overwrite {
		canonical := p.String()
		if seen[canonical] {
			continue
		}
		seen[canonical] = true
		it := e.store().iter(ctx, e.base.m.listing, partitionEnd(canonical))
		for ok := it.seek(ctx, partitionPrefix(canonical)); ok; ok = it.next(ctx) {
			p, d, reason := parseSegment(it.key, it.value)
			if reason != "" {
				return corrupt(e.base.treeName(e.base.m.listing), reason)
			}
			if p.added > c.Base {
				return fmt.Errorf("partition %q got segment %s in snapshot %d, after snapshot %d that the change was made against: %w",
					canonical, d.ID, p.added, c.Base, ErrConflict)
			}
			if removed[d.ID] {
				continue
			}
			if err := e.drop(slices.Clone(it.key), d, false); err != nil {
				return err
			}
		}
		if it.err != nil {
			return it.err
		}
	}
	return nil
}

// remove removes the segments named.
func (e *edit) remove(ctx context.Context, c Change) error {
	removed := slices.Compact(slices.Sorted(slices.Values(c.Remove)))
	keys := make([][]byte, len(removed))
	for i, s := range removed {
		segment, _ := parseID(s)
		keys[i] = idKey(segment)
	}
	where, err := e.store().get(ctx, e.base.m.listing, keys...)
	if err != nil {
		return err
	}
	for i, w := range where {
		if w == nil {
			return fmt.Errorf("segment %s to remove is gone: %w", removed[i], ErrConflict)
		}
		where[i] = append([]byte{partitionSpace}, w...)
	}
	values, err := e.store().get(ctx, e.base.m.listing, where...)
	if err != nil {
		return err
	}
	for i, v := range values {
		p, d, reason := parseSegment(where[i], v)
		if reason != "" {
			return corrupt(e.base.treeName(e.base.m.listing), reason)
		}
		e.vacate(d.Partition.String(), p)
		if err := e.drop(where[i], d, true); err != nil {
			return err
		}
	}
	return nil
}

// drop takes a segment out of the listing and the totals. key is taken over. replaced: the change must have seen what lies over it.
func (e *edit) drop(key []byte, d SegmentDescriptor, replaced bool) error {
	segment, err := parseID(d.ID)
	if err != nil {
		return err
	}
	if e.removed == nil {
		e.removed, e.replaced = map[string]SegmentDescriptor{}, map[string]bool{}
	}
	e.removed[d.ID] = d
	e.replaced[d.ID] = replaced
	if d.Rows > e.info.Rows || d.Bytes > e.info.Bytes || e.info.Segments == 0 {
		return corrupt(e.base.name(), "totals are less than their parts")
	}
	e.listing = append(e.listing, treeEntry{key, nil}, treeEntry{idKey(segment), nil})
	e.info.Rows -= d.Rows
	e.info.RemovedRows += d.Rows
	e.info.Bytes -= d.Bytes
	e.info.Segments--
	return nil
}

// add puts the new segments into the listing.
func (e *edit) add(ctx context.Context, c Change) error {
	keys := make([][]byte, len(c.Add))
	for i, d := range c.Add {
		segment, err := parseID(d.ID)
		if err != nil {
			return err
		}
		keys[i] = idKey(segment)
	}
	there, err := e.store().get(ctx, e.base.m.listing, keys...)
	if err != nil {
		return err
	}
	places, err := e.places(ctx, c.Add)
	if err != nil {
		return err
	}
	for i, d := range c.Add {
		if there[i] != nil {
			return fmt.Errorf("segment %s is in the table already: %w", d.ID, ErrConflict)
		}
		key := segmentKey(d.Partition.String(), places[i])
		e.listing = append(e.listing, treeEntry{key, appendDescriptor(nil, d)}, treeEntry{keys[i], key[1:]})
		e.info.Rows += d.Rows
		e.info.AddedRows += d.Rows
		e.info.Bytes += d.Bytes
		e.info.Segments++
	}
	return nil
}
