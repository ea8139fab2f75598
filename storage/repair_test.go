package storage

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/repair"
)

// check holds a repaired table to the model of the snapshot that the repair was made from, less what its report says.
func (b *broken) check(s *Store, r *repair.Report, what string) {
	t := b.t
	t.Helper()
	ctx := t.Context()
	_, snap, err := s.Newest(ctx, "ads")
	if err != nil {
		t.Fatal(what, err)
	}
	want := b.snapshots[r.Base].clone()
	null, dropped := map[string][]string{}, map[string]bool{}
	lost := uint64(0)
	for _, i := range r.Items {
		switch i.Action {
		case repair.DropRows:
			m := want.find(i.ID)
			if m == nil || i.Rows != uint64(m.rows-len(m.deleted)) || i.Partition != m.partition {
				t.Fatalf("%s: %+v of %+v", what, i, m)
			}
			lost += i.Rows
			want.segments = slices.DeleteFunc(want.segments, func(s *brokenSegment) bool { return s == m })
		case repair.NullFeatures:
			null[i.ID] = i.Features
		case repair.DropLayer:
			dropped[i.ID] = true
			o := want.overlays[i.Overlay]
			o.MissingLayers = catalog.Refuse
			want.overlays[i.Overlay] = o
		case repair.DropList:
			delete(want.lists, i.Name)
		case repair.DropBranch:
			delete(want.branches, i.Name)
		}
	}
	if lost != r.LostRows {
		t.Fatalf("%s: %d rows are lost, the report says %d", what, lost, r.LostRows)
	}
	all, err := snap.Segments(ctx, nil)
	if err != nil || len(all) != len(want.segments) {
		t.Fatalf("%s: %d segments, want %d: %v", what, len(all), len(want.segments), err)
	}
	overlays, err := snap.Overlays(ctx)
	if err != nil || len(overlays) != len(want.overlays) {
		t.Fatal(what, overlays, err)
	}
	lists, err := snap.SampleLists(ctx)
	if err != nil || len(lists) != len(want.lists) {
		t.Fatal(what, lists, err)
	}
	branches, err := snap.Branches(ctx)
	if err != nil || len(branches) != len(want.branches) {
		t.Fatal(what, branches, err)
	}
	for _, br := range branches {
		if _, err := snap.Table().OpenBranch(ctx, br.Name); err != nil || !want.branches[br.Name] {
			t.Fatal(what, err)
		}
	}
	deleted, err := snap.DeletionVectors(ctx, all...)
	if err != nil {
		t.Fatal(what, err)
	}
	layers, err := snap.OverlaySegments(ctx, overlays, all...)
	if err != nil {
		t.Fatal(what, err)
	}
	// under, unless empty, is a feature that nobody reads: a layer replaces it in all rows.
	equal := func(m string, d catalog.SegmentDescriptor, values map[string][]int64, under string) {
		t.Helper()
		got, err := columns(ctx, s, d, slices.Sorted(maps.Keys(values))...)
		if err != nil {
			t.Fatal(what, err)
		}
		for name, v := range values {
			if slices.Contains(null[m], name) || name == under && got[name] == nil {
				v = nil
			}
			if !slices.Equal(got[name], v) {
				t.Fatalf("%s: feature %s of segment %s: %v, want %v", what, name, m, got[name], v)
			}
		}
	}
	sameSet := func(r bitmap.Ref, want map[uint32]bool, of string) {
		t.Helper()
		rows := readRows(t, snap, r)
		for _, row := range rows {
			if !want[row] {
				t.Fatalf("%s: %s: row %d", what, of, row)
			}
		}
		if len(rows) != len(want) {
			t.Fatalf("%s: %s: %d rows, want %d", what, of, len(rows), len(want))
		}
	}
	for i, m := range want.segments {
		d := all[i]
		if d.Partition.String() != m.partition || d.Rows != uint64(m.rows) {
			t.Fatalf("%s: segment %d is %+v, want %+v", what, i, d, m)
		}
		under := ""
		if l := m.layers["m"]; l != nil && l.cover == nil {
			under = "y"
		}
		equal(m.id, d, m.values, under)
		sameSet(deleted[i], m.deleted, "deleted rows")
		for name := range want.lists {
			rows, err := snap.ListedRows(ctx, name, d)
			if err != nil {
				t.Fatal(what, err)
			}
			sameSet(rows[0], m.listed[name], "list "+name)
		}
		for j, o := range overlays {
			l, wanted := layers[i][j], m.layers[o.Name]
			if wanted != nil && dropped[wanted.id] {
				wanted = nil
			}
			if (l == nil) != (wanted == nil) || o.MissingLayers != want.overlays[o.Name].MissingLayers {
				t.Fatalf("%s: layer of %s over segment %d: %+v, want %+v", what, o.Name, i, l, wanted)
			}
			if l == nil {
				continue
			}
			equal(wanted.id, l.Data, wanted.values, "")
			if l.All != (wanted.cover == nil) {
				t.Fatalf("%s: layer of %s over segment %d covers all: %v", what, o.Name, i, l.All)
			}
			if !l.All {
				sameSet(l.Covered, wanted.cover, "covered rows")
			}
		}
	}
}

// owners returns the segments of a snapshot that may have to go when the objects of some ids are damaged.
func (b *broken) owners(n uint64, ids map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, s := range b.snapshots[n].segments {
		out[s.id] = ids[s.id] || ids[s.bitmap]
		if l := s.layers["m"]; l != nil { // part of the table
			out[s.id] = out[s.id] || ids[l.id] || ids[l.covered]
		}
	}
	return out
}

// repaired runs a repair with the options, first to see what it would do.
func (b *broken) repaired(blobs object.Store, opts repair.Options, what string) (*Store, *repair.Report) {
	t := b.t
	t.Helper()
	ctx := t.Context()
	before := objectsOf(t, blobs)
	s := brokenStore(t, blobs)
	dry, err := s.Repair(ctx, "ads", opts)
	if err != nil {
		t.Fatal(what, err)
	}
	if len(dry.NeedsFrom) > 0 {
		opts.Apply = true
		if _, err := s.Repair(ctx, "ads", opts); !errors.Is(err, repair.ErrFrom) {
			t.Fatalf("%s: without --from: %v", what, err)
		}
		opts.From, opts.Apply = dry.NeedsFrom[0], false
		if dry, err = s.Repair(ctx, "ads", opts); err != nil || len(dry.NeedsFrom) > 0 {
			t.Fatal(what, err, dry.NeedsFrom)
		}
		if opts.Apply = true; dry.NeedsUndelete {
			if _, err := s.Repair(ctx, "ads", opts); !errors.Is(err, repair.ErrUndelete) {
				t.Fatalf("%s: without --undelete: %v", what, err)
			}
		}
		opts.Undelete = true
	}
	if !maps.EqualFunc(before, objectsOf(t, blobs), bytes.Equal) {
		t.Fatal(what, "a dry run changed the store")
	}
	opts.Apply = true
	r, err := s.Repair(ctx, "ads", opts)
	if err != nil {
		t.Fatal(what, err)
	}
	if got, said := fmt.Sprintf("%+v", deref(r.Items)), fmt.Sprintf("%+v", deref(dry.Items)); got != said ||
		r.LostRows != dry.LostRows {
		t.Fatalf("%s: did\n%s\nand said\n%s", what, got, said)
	}
	// What there was is there as it was.
	after := objectsOf(t, blobs)
	for name, data := range before {
		if !bytes.Equal(after[name], data) {
			t.Fatalf("%s: the repair changed %s", what, name)
		}
	}
	return s, r
}

func deref(items []*repair.Item) (out []repair.Item) {
	for _, i := range items {
		out = append(out, *i)
	}
	return out
}

// checkSound checks that a store that was repaired is as good as any.
func (b *broken) checkSound(s *Store, r *repair.Report, what string) {
	t := b.t
	t.Helper()
	ctx := t.Context()
	v, err := s.Verify(ctx, "", true, nil)
	if err != nil || v.DamageCount > 0 && r.Left() == 0 {
		t.Fatalf("%s: after the repair: %v %v", what, err, v.Damage)
	}
	again, err := s.Repair(ctx, "ads", repair.Options{})
	if err != nil || again.Repairs() > 0 && r.Left() == 0 {
		t.Fatalf("%s: another repair: %v %+v", what, err, deref(again.Items))
	}
	tab, err := s.NewTable(ctx, "ads")
	if err != nil {
		t.Fatal(what, err)
	}
	if _, err := tab.Commit(ctx, commit.Change{Operation: "after"}); err != nil {
		t.Fatalf("%s: commit: %v", what, err)
	}
	if _, err := tab.Snapshots(ctx); err != nil {
		t.Fatalf("%s: snapshots: %v", what, err)
	}
	if r.Left() > 0 {
		return
	}
	if g, err := s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(g.Skipped) > 0 {
		t.Fatalf("%s: gc: %v %v", what, err, g.Skipped)
	}
	b.check(s, r, what+", after gc")
	verifyClean(t, s)
}

// checkSnapshots holds the snapshot that a repair was made from, and those that expire, to the objects that were
// damaged: no more goes than cannot be read.
func (b *broken) checkSnapshots(last uint64, r *repair.Report, damaged map[string]bool, what string) {
	t := b.t
	t.Helper()
	newest, worst := uint64(0), uint64(0)
	for n := uint64(1); n <= last; n++ {
		s, err := b.tab.log.At(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		bad := damaged[s.ObjectName()]
		for _, run := range s.Manifest.Listing.Runs {
			bad = bad || damaged[run.ID.ListingName()]
		}
		for _, run := range s.Manifest.Schema.Runs {
			bad = bad || damaged[run.ID.SchemaName()]
		}
		if bad {
			worst = n
		} else {
			newest = n
		}
	}
	if r.Base != newest {
		t.Fatalf("%s: made from snapshot %d, and snapshot %d can be read", what, r.Base, newest)
	}
	for _, i := range r.Items {
		if i.Action == repair.Expire && (i.Last != worst || newest != last) ||
			i.Action == repair.GoBack && (i.First != newest+1 || i.Last != last) {
			t.Fatalf("%s: %+v: the newest that can be read is %d, the newest that cannot %d", what, i, newest, worst)
		}
	}
}

// TestRepair damages some objects of a store at random, and repairs it: what the report names is gone, and everything
// else is as it was.
func TestRepair(t *testing.T) {
	b := newBroken(t)
	clean := objectsOf(t, b.mem)
	var list []string
	for name, data := range clean {
		if len(data) > 0 && name != names.Marker {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	trials := 350
	if race.Short() {
		trials = 60
	}
	actions := map[repair.Action]int{}
	for trial := range trials {
		r := rand.New(rand.NewPCG(uint64(trial), 8))
		mem := copyOf(t, b.mem)
		what := fmt.Sprintf("trial %d:", trial)
		ids, damaged := map[string]bool{}, map[string]bool{}
		n := 1 + r.IntN(3)
		if trial < len(list) {
			n = 1
		}
		for k := range n {
			name := list[(trial+k*r.IntN(len(list)))%len(list)]
			data, how := damage(r, clean[name])
			if other := list[r.IntN(len(list))]; other != name && r.IntN(8) == 0 {
				data, how = bytes.Clone(clean[other]), "is "+other
			}
			ruin(t, mem, name, data)
			damaged[name] = true
			what += fmt.Sprintf(" %s %s;", name, how)
			if id, ok := names.ParseDataName(name); ok {
				ids[id.String()] = true
			}
		}
		opts := repair.Options{NullFeatures: trial%2 == 1}
		var blobs object.Store = mem
		if trial%5 == 4 {
			blobs = object.NewDelayed(mem, 1) // requests of a store that is far away are others
		}
		before, err := brokenStore(t, blobs).Verify(t.Context(), "", true, nil)
		if err != nil {
			t.Fatal(what, err)
		}
		for name := range damaged { // some bytes of runs say nothing
			said := func(d error) bool { return strings.Contains(d.Error(), name) }
			if !strings.Contains(name, names.SnapshotsDir) && !slices.ContainsFunc(before.Damage, said) {
				delete(damaged, name)
			}
		}
		last, err := brokenStore(t, mem).core.Log("ads").Newest(t.Context()) // one after it may be missing unnoticed
		if err != nil {
			t.Fatal(what, err)
		}
		s, report := b.repaired(blobs, opts, what)
		if before.DamageCount > 0 && len(report.Items) == 0 {
			t.Fatalf("%s: %v, and a repair finds nothing", what, before.Damage)
		}
		if report.Base == 0 {
			b.checkSnapshots(last.Number, report, damaged, what)
			actions[repair.Leave]++
			continue
		}
		b.checkSnapshots(last.Number, report, damaged, what)
		owners := b.owners(report.Base, ids)
		for _, i := range report.Items {
			actions[i.Action]++
			if i.Action == repair.DropRows && !owners[i.ID] || i.Lost == "" || len(i.Damage) == 0 {
				t.Fatalf("%s: %+v", what, i)
			}
		}
		b.check(s, report, what)
		b.checkSound(s, report, what)
	}
	t.Log(actions)
	for _, a := range []repair.Action{repair.Rebuild, repair.DropRows, repair.NullFeatures, repair.DropLayer,
		repair.DropList, repair.DropBranch, repair.Expire, repair.GoBack, repair.Note} {
		if actions[a] == 0 && !race.Short() {
			t.Errorf("no trial came to %q", a)
		}
	}
}

// TestRepairForeignPacks: a pack of another segment is damage, even where all its checksums hold and its size is right.
// Where the index is damaged too, only the pack itself tells.
func TestRepairForeignPacks(t *testing.T) {
	b := newBroken(t)
	clean := objectsOf(t, b.mem)
	pairs, sameSize := 0, 0
	for name, data := range clean {
		if id, ok := names.ParseDataName(name); !ok || !id.IsPack(name) {
			continue
		}
		for other, theirs := range clean {
			if other == name || path.Base(other) != path.Base(name) {
				continue
			}
			if len(theirs) == len(data) {
				sameSize++
			}
			if pairs++; race.Short() && pairs%5 > 0 {
				continue
			}
			for _, without := range []bool{false, true} {
				what := fmt.Sprintf("%s is %s, index damaged: %v", name, other, without)
				mem := copyOf(t, b.mem)
				ruin(t, mem, name, theirs)
				if without {
					index := path.Dir(name) + "/index.sst"
					ruin(t, mem, index, clean[index][1:])
				}
				v, err := brokenStore(t, mem).Verify(t.Context(), "", true, nil)
				if err != nil || v.DamageCount == 0 {
					t.Fatalf("%s: verify: %v %+v", what, err, v)
				}
				s, report := b.repaired(mem, repair.Options{}, what)
				if report.Base == 0 {
					t.Fatalf("%s: nothing can be read", what)
				}
				b.check(s, report, what)
			}
		}
	}
	if sameSize == 0 {
		t.Error("no two packs have the same size")
	}
}
