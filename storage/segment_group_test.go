package storage

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// groupRows writes the stripes of a group in which pairs of rows share a slot; member i holds other values.
func groupRows(stripes []uint32) func(*format.Writer, []*format.Writer) error {
	return func(inverse *format.Writer, members []*format.Writer) error {
		for _, rows := range stripes {
			c := &vector.Column{Type: vector.Type{Kind: vector.Inverse}, Rows: int(rows), Slots: int(rows+1) / 2,
				Monotone: true}
			for row := range c.Rows {
				c.Inverse = append(c.Inverse, int32(row/2))
			}
			if err := inverse.WriteStripe(c); err != nil {
				return err
			}
			for i, w := range members {
				m := *c
				m.Type, m.Ints = int64Type, nil
				for slot := range c.Slots {
					m.Ints = append(m.Ints, int64(slot*(i+3)))
				}
				if err := w.WriteStripe(&m); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// TestSegmentGroups: with next to nothing to hold them, groups from several goroutines are laid down whole, each behind
// its inverse, and verify finds nothing.
func TestSegmentGroups(t *testing.T) {
	stripes := []uint32{50, 31}
	for _, standAlone := range []int64{0, 1} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		w, err := tab.NewSegment(t.Context(), nil, stripes, segment.Options{HoldBytes: 1, StandAloneBytes: standAlone})
		if err != nil {
			t.Fatal(err)
		}
		const n = 12
		work := make(chan int)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for i := range work {
					fs := []catalog.Feature{feature(fmt.Sprint("a", i), int64Type),
						feature(fmt.Sprint("b", i), int64Type)}
					var err error
					if i%3 == 0 {
						err = w.AddFeature(t.Context(), 4*i, fs[0], denseRows(stripes, 5))
						w.Skip(4*i + 1)
						w.Skip(4*i + 2)
					} else {
						err = w.AddGroup(t.Context(), 4*i, fs, groupRows(stripes))
					}
					w.Skip(4*i + 3)
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range n {
			work <- i
		}
		close(work)
		wg.Wait()
		d, err := w.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		snap, err := tab.Commit(t.Context(), commit.Change{Operation: "x",
			Ops: []commit.Operation{commit.AddSegments{d}}})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := tab.Store().Verify(t.Context(), "", true, nil); err != nil || r.DamageCount > 0 {
			t.Fatalf("verify: %+v, %v", r, err)
		}
		g, err := snap.OpenSegment(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if i%3 == 0 {
				continue
			}
			members, err := g.Lookup(t.Context(), feature(fmt.Sprint("a", i), int64Type).ID, feature(fmt.Sprint("b", i),
				int64Type).ID)
			if err != nil {
				t.Fatal(err)
			}
			group, err := g.Lookup(t.Context(), catalog.FeatureID(members[0].Meta.Group))
			if err != nil || group[0] == nil || members[1].Meta.Group != members[0].Meta.Group {
				t.Fatalf("group %x of %x: %v", members[0].Meta.Group, members[1].Meta.Group, err)
			}
			if standAlone == 0 && (members[0].Offset != group[0].Offset+group[0].Length ||
				members[1].Offset != members[0].Offset+members[0].Length) {
				t.Fatalf("inverse at %d+%d, features at %d and %d", group[0].Offset, group[0].Length, members[0].Offset,
					members[1].Offset)
			}
		}
	}
}

func TestSegmentGroupErrors(t *testing.T) {
	stripes := []uint32{50}
	broken := errors.New("broken")
	a, b := feature("a", int64Type), feature("b", int64Type)
	for name, c := range map[string]struct {
		features []catalog.Feature
		write    func(*format.Writer, []*format.Writer) error
		want     string
	}{
		"no features":     {nil, groupRows(stripes), "without features"},
		"a feature twice": {[]catalog.Feature{a, a}, groupRows(stripes), "a: added twice"},
		"its own error": {[]catalog.Feature{a, b}, func(*format.Writer, []*format.Writer) error { return broken },
			"broken"},
		"other slots": {[]catalog.Feature{a, b}, func(inverse *format.Writer, members []*format.Writer) error {
			return errors.Join(groupRows(stripes)(inverse, members[:1]), denseRows(stripes, 1)(members[1]))
		}, "feature b: stripe 0 has 50 slots: its dedup group has 25"},
		"a stripe too few": {[]catalog.Feature{a, b}, func(inverse *format.Writer, members []*format.Writer) error {
			return groupRows(stripes)(inverse, members[:1])
		}, "feature b: 0 stripes"},
	} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		w, err := tab.NewSegment(t.Context(), nil, stripes, segment.Options{StandAloneBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddGroup(t.Context(), 0, c.features, c.write); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: want %q", name, err, c.want)
		}
		if _, err := w.Finish(t.Context()); err == nil && c.features != nil {
			t.Errorf("%s: finished", name)
		}
		w.Abort()
		if c.features == nil {
			continue // it was not begun: the segment is as it was
		}
		for info, err := range mem.List(t.Context(), w.ID()[:2]+"/"+w.ID()+"/", "") {
			t.Errorf("%s: %s is left (%v)", name, info.Name, err)
		}
	}
}
