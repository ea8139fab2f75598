package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestOrder appends and replaces segments at random, in two partitions, also with changes that were made against an
// earlier snapshot, and holds the order to a list.
func TestOrder(t *testing.T) {
	ctx := t.Context()
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		tab := newTable(t, object.NewMemory())
		model := map[string][]string{"1": nil, "2": nil}
		made := 0
		add := func(ds string, n int) (out []catalog.SegmentDescriptor) {
			for range n {
				out = append(out, writeSegment(t, tab, partition("ds", ds), []uint32{1}, int64(made),
					segment.Options{}, "a"))
				made++
			}
			return out
		}
		ids := func(ds []catalog.SegmentDescriptor) (out []string) {
			for _, d := range ds {
				out = append(out, d.ID)
			}
			return out
		}
		for step := range 60 {
			ds := []string{"1", "2"}[rnd.IntN(2)]
			have := model[ds]
			c := commit.Change{Operation: "test", Base: uint64(step),
				Ops: []commit.Operation{commit.AddFeatures(features("a"))}}
			if len(have) == 0 || rnd.IntN(3) == 0 {
				c.Set(commit.AddSegments(add(ds, 1+rnd.IntN(3))))
				model[ds] = append(have, ids(commit.Op[commit.AddSegments](&c))...)
			} else {
				// Neighbours, and now and then one that is none: that is put in place of the first, too.
				from := rnd.IntN(len(have))
				to := min(from+1+rnd.IntN(3), len(have))
				c.Set(commit.RemoveSegments(slices.Clone(have[from:to])))
				c.Set(commit.AddSegments(add(ds, rnd.IntN(4))))
				rest := slices.Clone(have[to:])
				if len(rest) > 1 && rnd.IntN(5) == 0 {
					c.Set(append(commit.Op[commit.RemoveSegments](&c), rest[1]))
					rest = slices.Delete(rest, 1, 2)
				}
				model[ds] = slices.Concat(have[:from], ids(commit.Op[commit.AddSegments](&c)), rest)
				if rnd.IntN(2) == 0 {
					// An append overtakes it.
					late := add(ds, 1)
					mustCommit(t, tab, commit.Change{Operation: "test",
						Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.AddSegments(late)}})
					model[ds] = append(model[ds], ids(late)...)
				}
			}
			s, err := tab.Commit(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			holdOrder(t, fmt.Sprintf("seed %d, step %d", seed, step), s, model)
			if len(commit.Op[commit.AddSegments](&c)) > 0 {
				if numbers, err := s.AddedIn(ctx, commit.Op[commit.AddSegments](&c)...); err != nil ||
					slices.Max(numbers) != s.Info().Number || slices.Min(numbers) != s.Info().Number {
					t.Fatal(numbers, err)
				}
			}
		}
		if r, err := tab.s.Verify(ctx, "", false, nil); err != nil || r.DamageCount > 0 {
			t.Fatal(r, err)
		}
	}
}

func holdOrder(t *testing.T, what string, s *Snapshot, model map[string][]string) {
	t.Helper()
	all, err := s.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, d := range all {
		got[d.Partition[0].Value] = append(got[d.Partition[0].Value], d.ID)
	}
	for ds, want := range model {
		if !slices.Equal(got[ds], want) {
			t.Fatalf("%s: partition %s:\n%q\nwant\n%q", what, ds, got[ds], want)
		}
		one, err := s.Partition(t.Context(), partition("ds", ds))
		if err != nil || len(one) != len(want) {
			t.Fatal(len(one), err)
		}
		for i, d := range one {
			if d.ID != want[i] {
				t.Fatalf("%s: partition %s alone: %q, want %q", what, ds, d.ID, want[i])
			}
		}
	}
}

// TestOverwriteOfReplaced: a segment that replaced others is as new as the change that added it, wherever it stands.
func TestOverwriteOfReplaced(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	make := func(first int64) catalog.SegmentDescriptor {
		return writeSegment(t, tab, partition("ds", "1"), []uint32{1}, first, segment.Options{}, "a")
	}
	a, b, c := make(1), make(2), make(3)
	mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures(features("a")),
		commit.AddSegments{a}}})
	mustCommit(t, tab, commit.Change{Operation: "compact", Base: 1,
		Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.RemoveSegments{a.ID}, commit.AddSegments{b}}})
	over := commit.Change{Operation: "ingest", Base: 1, Ops: []commit.Operation{commit.AddFeatures(features("a")),
		commit.OverwritePartitions{partition("ds", "1")}, commit.AddSegments{c}}}
	if _, err := tab.Commit(ctx, over); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), b.ID) {
		t.Fatal(err)
	}
	over.Base = 2
	s := mustCommit(t, tab, over)
	holdOrder(t, "overwritten", s, map[string][]string{"1": {c.ID}})
}

// TestNoRoomInOrder: a change that halves one place again and again is refused in the end, and one that replaces its
// neighbours too is not.
func TestNoRoomInOrder(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	make := func() catalog.SegmentDescriptor {
		return writeSegment(t, tab, partition("ds", "1"), []uint32{1}, 1, segment.Options{}, "a")
	}
	first := make()
	order := []string{first.ID}
	s := mustCommit(t, tab, commit.Change{Operation: "ingest",
		Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.AddSegments{first}}})
	for n := range 100 {
		a, b := make(), make()
		next, err := tab.Commit(ctx, commit.Change{Operation: "compact", Base: s.Info().Number,
			Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.RemoveSegments(order[:1]),
				commit.AddSegments{a, b}}})
		if err == nil {
			s, order = next, slices.Concat([]string{a.ID, b.ID}, order[1:])
			continue
		}
		if n < 60 || !strings.Contains(err.Error(), `partition "ds=1" has no room in its order for 2 segments`) {
			t.Fatal(n, err)
		}
		holdOrder(t, "no room", s, map[string][]string{"1": order})
		s = mustCommit(t, tab, commit.Change{Operation: "compact", Base: s.Info().Number,
			Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.RemoveSegments(order[:8]),
				commit.AddSegments{a, b}}})
		holdOrder(t, "replaced together", s, map[string][]string{"1": slices.Concat([]string{a.ID, b.ID}, order[8:])})
		return
	}
	t.Fatal("there was always room")
}
