package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// This file tells damage from what an erasure, or gc, has removed while verify looked.

// A span says which snapshots of a table must be whole: those from first on, and before it those that are held.
type span struct {
	first uint64
	held  []uint64
}

// shrank reports whether some snapshot of s need not be whole any more in now: it has expired, or who held it is gone.
func (s span) shrank(now span) bool {
	return now.first > s.first ||
		slices.ContainsFunc(s.held, func(n uint64) bool { return !slices.Contains(now.held, n) })
}

// maxLooks bounds how often Run looks again.
const maxLooks = 10

// lookAgain looks again at what is damaged, as long as snapshots have expired since the look before. The damage of the
// last look takes the place of that in r.
func (v *verifier) lookAgain(ctx context.Context, tables []string, opts Options, r *Report) error {
	opts.Progress = nil
	for range maxLooks {
		if r.DamageCount == 0 {
			return nil
		}
		shrank, err := v.shrank(ctx)
		if err != nil || !shrank {
			return err
		}
		o := opts
		o.Only = v.damaged(opts.Only)
		if v, err = look(ctx, v.s, tables, o); err != nil {
			return err
		}
		r.Damage, r.DamageCount = v.report.Damage, v.report.DamageCount
	}
	return nil // of a table whose snapshots expire all the time, what has expired may be among the damage
}

// shrank reports whether snapshots have expired since v began to look at their table.
func (v *verifier) shrank(ctx context.Context) (bool, error) {
	for table, before := range v.spans {
		t := v.s.Log(table) // a handle that has read nothing
		there, err := t.List(ctx)
		if err != nil {
			return false, err
		}
		if len(there) > 0 && before.shrank(newVerifier(v.s).span(ctx, t, there)) {
			return true, nil
		}
	}
	return false, nil
}

// damaged returns the segments and row bitmaps whose objects are damaged, for Options.Only: a second look need not read
// the others. Where they are not all known it returns only.
func (v *verifier) damaged(only map[names.ID]bool) map[names.ID]bool {
	if v.report.DamageCount > uint64(len(v.report.Damage)) {
		return only
	}
	out := map[names.ID]bool{}
	for _, d := range v.report.Damage {
		var c *format.CorruptError
		if !errors.As(d, &c) {
			return only
		}
		if id, ok := names.ParseDataName(c.Object); ok { // else it is of a snapshot, which is read in any case
			out[id] = true
		}
	}
	return out
}

// look looks at tables once.
func look(ctx context.Context, s *snapshot.Store, tables []string, opts Options) (*verifier, error) {
	v := newVerifier(s)
	v.report.Deep, v.progress, v.most, v.only = opts.Deep, opts.Progress, opts.MaxDamage, opts.Only
	for _, name := range tables {
		if err := v.table(ctx, s.Log(name)); err != nil {
			return v, fmt.Errorf("verify table %s: %w", name, err)
		}
	}
	if err := v.segments(ctx); err != nil {
		return v, fmt.Errorf("verify: %w", err)
	}
	return v, nil
}
