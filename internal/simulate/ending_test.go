package simulate

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lease"
)

// checkEnd looks at the store after all machines have ended: everything that must be there is, and a machine that comes
// then, undisturbed and with a clock that is right, can collect what nobody needs.
func (m *model) checkEnd() {
	m.r.stopped = false // nobody else is there
	for _, t := range m.sorted() {
		m.busy = true
		m.observe(t, nil)
		for _, n := range slices.Sorted(maps.Keys(t.versions)) {
			v := t.versions[n]
			if why := m.protected(t, v); why != "" && t.versions[n] != nil {
				m.whole(t, v, why)
			}
		}
		m.busy = false
	}
	if m.r.failed() {
		return
	}
	m.r.ctx = context.Background()
	m.r.alone(len(m.r.world.machines)+1, func(last *machine) {
		if err := m.collect(last); err != nil {
			m.r.fail(fmt.Errorf("at the end, when nobody else is there: %w", err))
		}
	})
}

// collect lets all leases run out, all snapshots but the newest expire, and takes what nobody needs. Two passes of gc
// must be enough: the first may leave marks of its own.
func (m *model) collect(last *machine) error {
	_ = last.sleep(lease.Max)
	for _, t := range m.sorted() {
		if t.newest == 0 {
			continue
		}
		tab, err := last.store.Table(last.ctx, t.name)
		if err != nil {
			return err
		}
		if err := m.maintain(last, tab, t); err != nil {
			return err
		}
		if _, err := tab.Expire(last.ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
			return fmt.Errorf("expire: %w", err)
		}
	}
	for range 3 {
		_ = last.sleep(2 * grace)
		if _, err := last.store.GC(last.ctx, gc.Options{}); err != nil && m.someTable() {
			return err
		}
	}
	if !m.someTable() {
		return nil
	}
	needed := map[string]bool{}
	for _, t := range m.sorted() {
		for _, v := range t.versions {
			if m.protected(t, v) != "" {
				maps.Copy(needed, v.needs)
			}
		}
	}
	ids := map[string]bool{}
	for name := range needed {
		ids[path.Dir(name)] = true
	}
	for _, name := range m.r.blobs.names {
		if strings.HasPrefix(path.Base(name), "condemned-") && ids[path.Dir(name)] {
			continue // of a gc that was interrupted: it goes with what it is beside
		}
		if !strings.HasPrefix(name, "tables/") && name != "dsistore" && !needed[name] {
			return fmt.Errorf("object %s is needed by no snapshot, and gc leaves it", m.r.short(name))
		}
	}
	return nil
}

// maintain compacts a table that was compacted, and erases what somebody has begun to erase from one: both must
// succeed.
func (m *model) maintain(last *machine, tab *storage.Table, t *tableModel) error {
	if t.compacted {
		if err := last.compact(last.ctx, tab); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	if len(t.erased) > 0 {
		if err := last.erase(last.ctx, tab, true, slices.Sorted(maps.Keys(t.erased))...); err != nil {
			return fmt.Errorf("erase: %w", err)
		}
	}
	return nil
}

// someTable reports whether there is a table: without one gc does not know what is garbage.
func (m *model) someTable() bool {
	for _, t := range m.tables {
		if t.newest > 0 {
			return true
		}
	}
	return false
}
