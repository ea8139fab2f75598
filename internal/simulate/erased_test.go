package simulate

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// An erasureModel is rows that somebody erases.
type erasureModel struct {
	table    *tableModel
	removals int // of the table when it began
	rows     []int64
}

// erasing notes that an erasure of rows begins: what has expired may go at once.
func (m *model) erasing(name string, rows []int64) *erasureModel {
	m.lock()
	defer m.unlock()
	t := m.table(name)
	t.purged = true
	if t.erased == nil {
		t.erased = map[int64]bool{}
	}
	for _, row := range rows {
		if !t.erased[row] {
			t.erased[row] = false
		}
	}
	return &erasureModel{t, t.removals, rows}
}

// erased fails unless rows are gone, as somebody was just told: from every snapshot that can be read, and from every
// object that a snapshot ever named. What no commit has named may have them: a segment that is written meanwhile, or
// was by somebody who stopped.
func (m *model) erased(e *erasureModel) {
	if e.table.removals != e.removals {
		return
	}
	for _, row := range e.rows {
		e.table.erased[row] = true
		if err := m.gone(e.table, row); err != nil {
			m.r.fail(fmt.Errorf("row %d of table %s was erased, and %w", row, e.table.name, err))
			return
		}
	}
}

// gone returns an error that says where a row is.
func (m *model) gone(t *tableModel, row int64) error {
	for _, n := range slices.Sorted(maps.Keys(t.versions)) {
		v := t.versions[n]
		if why := m.protected(t, v); v.state.has(row) && why != "" {
			return fmt.Errorf("snapshot %d has it: %s", n, why)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.segments)) {
		if !m.segments[id].has(row, m.labels[row]) {
			continue
		}
		if name := m.left(t, id); name != "" {
			return fmt.Errorf("object %s, of a segment that has it, is there", m.r.short(name))
		}
	}
	return nil
}

func (s *state) has(row int64) bool {
	_, ok := s.rows[row]
	return ok
}

// has reports whether the segment has the row, deleted or not, or, as the data of a layer, a label of it.
func (s *segmentModel) has(row int64, labels map[int64]bool) bool {
	return slices.Contains(s.rows, value{row, true}) ||
		slices.ContainsFunc(s.labels, func(v value) bool { return v.there && labels[v.n] })
}

// left returns an object of a segment that is there and that a snapshot names which is not truncated, or of which there
// is a copy, whether somebody holds that or not; empty: there is none. What gc has begun to take away with its
// snapshots it has to take to the end. Of an object that came again, because a request was repeated late, nobody is to
// blame.
func (m *model) left(t *tableModel, id string) string {
	whole := map[uint64]bool{}
	page, _ := m.r.blobs.page("tables/"+t.name+"/snapshots/", "", math.MaxInt)
	for _, info := range page {
		n, err := strconv.ParseUint(strings.TrimPrefix(path.Ext(info.Name), "."), 10, 64)
		whole[n] = err == nil && info.Size > 0
	}
	copies, _ := m.r.blobs.page("tables/"+t.name+"/pinned/", "", math.MaxInt)
	for _, info := range copies {
		if n, err := strconv.ParseUint(path.Base(info.Name), 10, 64); err == nil {
			whole[n] = true
		}
	}
	for _, name := range m.segments[id].needs {
		if _, err := m.r.blobs.get(name); err != nil || m.strayed[name] {
			continue
		}
		for n, v := range t.versions {
			if v.needs[name] && whole[n] {
				return name
			}
		}
	}
	return ""
}

// labelled notes labels that an overlay has for rows, whether they are read or not: each is in the data of a layer.
func (m *model) labelled(rows []value, labels []int64) {
	m.lock()
	defer m.unlock()
	for k, row := range rows {
		if m.labels[row.n] == nil {
			m.labels[row.n] = map[int64]bool{}
		}
		m.labels[row.n][labels[k]] = true
	}
}

// compacting notes that somebody compacts a table.
func (m *model) compacting(name string) {
	m.lock()
	defer m.unlock()
	m.table(name).compacted = true
}
