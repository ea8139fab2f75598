package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/repair"
)

// This file has damage that costs nothing, and repairs. The damage is of the directory of a pack, which nobody needs
// who has the segment's index: every snapshot stays readable, and a repair may change no row, nor lose what others do
// meanwhile.

// damageTable damages the pack of a segment, or of a layer, of the newest snapshot.
func damageTable(table string) func(m *machine) {
	return func(m *machine) {
		m.do("damage "+table, func(ctx context.Context) error {
			t, s, err := m.latest(ctx, table)
			if err != nil {
				return err
			}
			m.reads(t)
			all, err := s.Segments(ctx, nil)
			if err != nil {
				return err
			}
			overlays, err := s.Overlays(ctx)
			if err != nil {
				return err
			}
			for _, o := range overlays {
				err := s.EachOverlaySegment(ctx, o, func(l catalog.OverlaySegment) error {
					all = append(all, l.Data)
					return nil
				})
				if err != nil {
					return err
				}
			}
			if len(all) == 0 {
				return errors.New("the table is empty")
			}
			dir := strings.TrimSuffix(all[m.rnd.IntN(len(all))].Index, "index.sst")
			return m.ask(&operation{kind: opDamage, name: dir + "pack-000000"})
		})
	}
}

// damage makes the last byte of an object another, once.
func (b *blobs) damage(name string) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[name]
	if !ok || len(o.data) == 0 {
		return false
	}
	o.data = bytes.Clone(o.data)
	o.data[len(o.data)-1] = 0xff
	b.objects[name] = o
	return true
}

// repairTable repairs a table.
func repairTable(table string) func(m *machine) {
	return func(m *machine) {
		m.do("repair "+table, func(ctx context.Context) error {
			r, err := m.store.Repair(ctx, table, repair.Options{Apply: true})
			if err != nil {
				return err
			}
			for _, i := range r.Items {
				if i.Action != repair.Rebuild && i.Action != repair.Note && i.Action != repair.Leave ||
					i.Kind == "snapshots" {
					m.r.fail(fmt.Errorf("machine %s repairs table %s, and nothing is lost: %s %v: %s, for %q", m.name(),
						table, i.Action, i, i.Lost, i.Damage))
				}
			}
			return nil
		})
	}
}
