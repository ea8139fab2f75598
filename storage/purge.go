package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage/object"
)

// maxPurges bounds how often Purge looks anew at snapshots that a gc takes meanwhile.
const maxPurges = 10

// Purge removes the data that only expired snapshots of the table name, whatever its age: segments, layers and sets of rows. Whoever reads an
// expired snapshot without a lease finds it gone. The snapshots themselves, with the runs of their trees, are left to GC, and so is what no snapshot names; other tables are not looked
// at. What a branch of the newest snapshot, or a lease, holds stays. The report has what was removed, and who holds what.
func (t *Table) Purge(ctx context.Context) (*GCReport, error) {
	for tried := 1; ; tried++ {
		// A table of its own, so that nothing known from before is trusted.
		p := &tablePlan{t: &Table{s: t.s, name: t.name}, purge: true}
		r := &GCReport{Tables: 1}
		named := namedIDs{staying: map[id]bool{}, expired: map[id]bool{}}
		err := p.look(ctx, t.s.now(), r)
		if err == nil {
			err = p.mark(ctx, named, r)
		}
		if err == nil {
			err = t.s.purge(ctx, named, r)
			if err == nil {
				return r, nil
			}
			return r, fmt.Errorf("purge of table %s: %w", t.name, err)
		}
		// A gc may be taking the expired snapshots, lowest first, while they are read.
		if there, xerr := t.exists(ctx, p.oldest); tried == maxPurges || p.oldest == 0 || xerr != nil || there {
			return nil, fmt.Errorf("purge of table %s: %w", t.name, errors.Join(err, xerr))
		}
	}
}

// purge removes the objects of what only expired snapshots name.
func (s *Store) purge(ctx context.Context, named namedIDs, r *GCReport) error {
	local := object.AsLocal(s.blobs)
	for _, i := range slices.SortedFunc(maps.Keys(named.expired), func(a, b id) int { return bytes.Compare(a[:], b[:]) }) {
		if named.staying[i] {
			continue
		}
		var objects []object.Info
		for info, err := range s.blobs.List(ctx, i.dir(), "") {
			if err != nil {
				return err
			}
			if of, ok := parseDataName(info.Name); !ok || of != i {
				continue
			}
			objects = append(objects, info)
			if info.Name == i.indexName() {
				// First, as in GC.
				last := len(objects) - 1
				objects[0], objects[last] = objects[last], objects[0]
			}
		}
		for _, o := range objects {
			if err := s.blobs.Delete(ctx, o.Name); err != nil && !errors.Is(err, object.ErrNotFound) {
				return err
			}
			r.removed(o)
		}
		if local != nil {
			if err := local.RemoveEmptyDir(ctx, strings.TrimSuffix(i.dir(), "/")); err != nil {
				return err
			}
		}
	}
	return nil
}
