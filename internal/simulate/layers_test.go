package simulate

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/segment"
)

// This file has what machines do to what lies over the rows of a table: overlays and sample lists.

// someRows draws rows of a segment, at least one, and returns their numbers.
func (m *machine) someRows(ctx context.Context, d catalog.SegmentDescriptor) (rows []value, at *roaring.Bitmap,
	err error) {
	if rows, err = readFeature(ctx, m.store, d, rowFeature); err != nil {
		return nil, nil, err
	}
	at = roaring.BitmapOf(uint32(m.rnd.IntN(len(rows))))
	for k := range rows {
		if m.rnd.IntN(2) == 0 {
			at.Add(uint32(k))
		}
	}
	return rows, at, nil
}

// setLayer writes labels of some rows of a segment, in an overlay that it defines where there is none of the name.
func setLayer(table, name string) func(m *machine) {
	return func(m *machine) {
		m.do("layer of "+name+" over "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			s, d, err := m.pickSegment(ctx, t)
			if err != nil {
				return err
			}
			c := commit.Change{Base: s.Info().Number}
			switch o, err := s.Overlay(ctx, name); {
			case errors.Is(err, storage.ErrNotFound):
				c.Set(commit.DefineOverlays{{Name: name, Features: []catalog.Feature{feature(labelFeature)}}})
			case err != nil:
				return err
			case o.Merged != 0:
				return fmt.Errorf("overlay %s was merged", name)
			}
			rows, at, err := m.someRows(ctx, d)
			if err != nil {
				return err
			}
			recording := withRecorder(ctx)
			w, err := t.NewOverlaySegment(recording, d, segment.Options{})
			if err != nil {
				return err
			}
			labels := m.newRows(len(rows))
			m.r.model.labelled(rows, labels)
			l := catalog.OverlaySegment{Overlay: name, Segment: d.ID}
			if l.Data, err = m.writeSegment(ctx, recording, w, d.Partition, feature(labelFeature), labels); err != nil {
				return err
			}
			if l.All = int(at.GetCardinality()) == len(rows); !l.All {
				if l.Covered, err = m.store.Bitmaps().Put(ctx, d.ID, d.Rows, at); err != nil {
					return err
				}
			}
			c.Set(commit.SetOverlaySegments{l})
			_, err = m.commit(ctx, t, "layer", c, func(s *state, _ uint64) {
				over := map[int64]int64{}
				for row, label := range s.overlays[name] {
					over[row] = label
				}
				for k, row := range rows {
					if delete(over, row.n); at.Contains(uint32(k)) {
						over[row.n] = labels[k]
					}
				}
				s.overlays[name] = over
			})
			return err
		})
	}
}

// mergeOverlay makes an overlay part of the table.
func mergeOverlay(table, name string) func(m *machine) {
	return changeOverlay("merge", table, name, func(c *commit.Change) { c.Set(commit.MergeOverlays{name}) },
		func(s *state) {
			for row, label := range s.overlays[name] {
				if r, ok := s.rows[row]; ok {
					r.label = value{label, true}
					s.rows[row] = r
				}
			}
			delete(s.overlays, name)
		})
}

// dropOverlay takes an overlay away.
func dropOverlay(table, name string) func(m *machine) {
	return changeOverlay("drop", table, name, func(c *commit.Change) { c.Set(commit.DropOverlays{name}) },
		func(s *state) { delete(s.overlays, name) })
}

// changeOverlay does something to an overlay that is there and is not part of the table.
func changeOverlay(what, table, name string, set func(*commit.Change), apply func(*state)) func(m *machine) {
	return func(m *machine) {
		m.do(what+" overlay "+name+" of "+table, func(ctx context.Context) error {
			t, s, err := m.latest(ctx, table)
			if err != nil {
				return err
			}
			o, err := s.Overlay(ctx, name)
			if err != nil {
				return err
			}
			if o.Merged != 0 {
				return fmt.Errorf("overlay %s was merged", name)
			}
			c := commit.Change{Base: s.Info().Number}
			set(&c)
			_, err = m.commit(ctx, t, what, c, func(s *state, _ uint64) { apply(s) })
			return err
		})
	}
}

// listRows sets what a sample list has of a segment, and defines the list where there is none of the name.
func listRows(table, name string) func(m *machine) {
	return func(m *machine) {
		m.do("list "+name+" of "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			s, d, err := m.pickSegment(ctx, t)
			if err != nil {
				return err
			}
			c := commit.Change{Base: s.Info().Number}
			if _, err := s.SampleList(ctx, name); errors.Is(err, storage.ErrNotFound) {
				c.Set(commit.DefineLists{{Name: name, Definition: "drawn"}})
			} else if err != nil {
				return err
			}
			rows, at, err := m.someRows(ctx, d)
			if err != nil {
				return err
			}
			set, err := m.store.Bitmaps().Put(ctx, d.ID, d.Rows, at)
			if err != nil {
				return err
			}
			c.Set(commit.SetListRows{{List: name, Segment: d.ID, Rows: set}})
			_, err = m.commit(ctx, t, "list", c, func(s *state, _ uint64) {
				listed := map[int64]bool{}
				for row := range s.lists[name] {
					listed[row] = true
				}
				for k, row := range rows {
					if delete(listed, row.n); at.Contains(uint32(k)) {
						listed[row.n] = true
					}
				}
				s.lists[name] = listed
			})
			return err
		})
	}
}

// bare takes away what lies over rows: the segments in which they were are gone.
func (s *state) bare(rows []int64) {
	for _, row := range rows {
		for name, over := range s.overlays {
			if _, ok := over[row]; ok {
				s.overlays[name] = without(over, row)
			}
		}
		for name, listed := range s.lists {
			if listed[row] {
				s.lists[name] = without(listed, row)
			}
		}
		if r, ok := s.rows[row]; ok {
			r.label = value{}
			s.rows[row] = r
		}
	}
}

// without returns a copy of a map that lacks a key: states share theirs.
func without[V any](of map[int64]V, key int64) map[int64]V {
	out := map[int64]V{}
	for k, v := range of {
		if k != key {
			out[k] = v
		}
	}
	return out
}
