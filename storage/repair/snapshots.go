package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/wire"
)

type lostRange = commit.LostSnapshots

// A stored is a snapshot as the repair finds it.
type stored struct {
	s    *snapshot.Snapshot // nil: not even its object can be read
	errs []error            // why it cannot be read; empty: it can
	runs []names.ID         // of its trees that are damaged
}

// read reads a snapshot. It counts as readable when its object and all runs of its trees do.
func (p *planner) read(ctx context.Context, n uint64) (out stored, err error) {
	err = p.sure(ctx, func() error {
		out.s, err = p.t.Read(ctx, n)
		if errors.Is(err, object.ErrNotFound) {
			err = wire.Missing(names.SnapshotName(p.t.Table, n), err)
		}
		return err
	})
	if err != nil {
		out.s, out.errs = nil, []error{err}
		return out, look(err)
	}
	for _, tree := range [...]lsm.Tree{out.s.Manifest.Listing, out.s.Manifest.Schema} {
		for _, run := range tree.Runs {
			errs := p.byID[run.ID]
			if len(errs) == 0 {
				continue
			}
			damaged, err := p.isRunDamaged(ctx, tree.Kind, run)
			if err != nil {
				return out, err
			}
			if damaged {
				out.errs = append(out.errs, errs...)
				out.runs = append(out.runs, run.ID)
			}
		}
	}
	return out, nil
}

// isRunDamaged looks at a run again. verify blames runs for entries too, which may only miss what other damage hides.
func (p *planner) isRunDamaged(ctx context.Context, kind lsm.Kind, run lsm.Run) (bool, error) {
	p.mu.Lock()
	damaged, known := p.runs[run.ID]
	p.mu.Unlock()
	if known {
		return damaged, nil
	}
	err := p.sure(ctx, func() error {
		r, err := p.s.Trees.OpenRunChecked(ctx, kind, run)
		if err != nil {
			return err
		}
		it := r.Iter(nil)
		for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
			if _, reason := lsm.ParseValue(it.Value()); reason != "" {
				return wire.Corrupt(kind.ObjectName(run.ID), reason)
			}
		}
		return it.Err()
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs[run.ID] = err != nil
	return err != nil, look(err)
}

// snapshots finds out which snapshots can be read, and sets the one that the repair builds on.
func (p *planner) snapshots(ctx context.Context) error {
	there, err := p.t.List(ctx)
	if err != nil {
		return err
	}
	if len(there) == 0 {
		p.add(&Item{Action: Leave, Kind: "snapshots", Damage: texts(p.others...),
			Lost: "there is no snapshot to build on: take the table from a copy of the store"})
		return nil
	}
	last, first := there[len(there)-1].Number, uint64(1)
	p.last = last
	found := map[uint64]stored{}
	var newest uint64 // that can be read
	for high := last; high >= first; {
		low := max(first, high-min(high, object.RequestsAtOnce)+1)
		some := make([]stored, high-low+1)
		err := object.Parallel(ctx, object.RequestsAtOnce, len(some), func(ctx context.Context, i int) (err error) {
			some[i], err = p.read(ctx, low+uint64(i))
			return err
		})
		if err != nil {
			return err
		}
		for i, x := range slices.Backward(some) {
			n := low + uint64(i)
			found[n] = x
			if newest == 0 && len(x.errs) == 0 {
				newest, first = n, max(x.s.Manifest.Info.Oldest, 1)
			}
		}
		high = low - 1
	}
	if newest == 0 {
		var errs []error
		for _, x := range found {
			errs = append(errs, x.errs...)
		}
		p.add(&Item{Action: Leave, Kind: "snapshots", First: 1, Last: last, Damage: texts(errs...),
			Lost: "no snapshot can be read, and there is none to build on: take the table from a copy of the store"})
		return nil
	}
	for n := range found {
		if n < first {
			delete(found, n)
		}
	}
	if newest == last {
		if p.opts.From > 0 {
			return fmt.Errorf("snapshot %d, the newest, can be read: --from %d is for when it cannot", last,
				p.opts.From)
		}
		p.base = found[last].s
		p.expireBehind(found, first, last)
	} else if err := p.goBack(found, first, newest, last); err != nil {
		return err
	}
	for n := range p.bySnapshot {
		// An item has it, or it goes with what an item has.
		if base := p.base.Info().Number; n > base || n < base && (n < p.expire || p.lost.Last > 0) && n >= first {
			delete(p.bySnapshot, n)
		}
	}
	if err := p.findBranches(ctx, found); err != nil {
		return err
	}
	for _, x := range found {
		for _, run := range x.runs {
			delete(p.byID, run)
		}
	}
	return p.otherSnapshots(ctx, first)
}

// expireBehind lets all snapshots expire up to the last of those that cannot be read. found has those from first on.
func (p *planner) expireBehind(found map[uint64]stored, first, last uint64) {
	var errs []error
	worst := uint64(0)
	for n := first; n < last; n++ {
		if len(found[n].errs) > 0 {
			worst = n
			errs = append(errs, found[n].errs...)
		}
	}
	if worst == 0 {
		return
	}
	p.expire = worst + 1
	p.add(&Item{Action: Expire, Kind: "snapshots", First: first, Last: worst, Damage: texts(errs...),
		Lost: fmt.Sprintf("they expire: the history begins with snapshot %d; no row of the newest is lost", worst+1)})
}

// goBack sets the base behind the newest snapshots, which cannot be read. newest is the newest that can.
func (p *planner) goBack(found map[uint64]stored, first, newest, last uint64) error {
	var choice []uint64
	for n := newest; n >= first && len(choice) < 10; n-- {
		if len(found[n].errs) == 0 {
			choice = append(choice, n)
		}
	}
	base := newest
	if p.opts.From == 0 {
		p.r.NeedsFrom = choice
	} else if base = p.opts.From; base < first || base > newest || len(found[base].errs) > 0 {
		return fmt.Errorf("--from %d: want a snapshot that can be read and has not expired, as %s", base,
			numbers(choice))
	}
	p.base, p.lost = found[base].s, lostRange{First: base + 1, Last: last}
	var errs []error
	var did []string
	before := p.base.Manifest.Info
	for n := p.lost.First; n <= last; n++ {
		x := found[n]
		errs = append(errs, x.errs...)
		if x.s == nil {
			did = append(did, fmt.Sprintf("%d is unknown", n))
			p.r.NeedsUndelete = true
			continue
		}
		i := x.s.Manifest.Info
		text := fmt.Sprintf("%d %s", n, i.Operation)
		if i.AddedRows > 0 || i.RemovedRows > 0 {
			text += fmt.Sprintf(" +%d -%d rows", i.AddedRows, i.RemovedRows)
		}
		if i.DeletedRows > before.DeletedRows {
			text += fmt.Sprintf(", %d deleted", i.DeletedRows-before.DeletedRows)
		}
		did = append(did, text)
		// Compactions and repairs take away what is deleted, or was lost, anyway.
		p.r.NeedsUndelete = p.r.NeedsUndelete || i.DeletedRows > before.DeletedRows ||
			i.RemovedRows > 0 && i.Operation != "compact" && i.Operation != Operation
		before = i
	}
	if more := len(did) - maxTexts; more > 0 {
		did = append(did[:maxTexts], fmt.Sprintf("and %d more", more))
	}
	lost := fmt.Sprintf("the table goes back to snapshot %d, and the history begins anew. What was done since is "+
		"lost: %s. Ingest again what they added", base, strings.Join(did, "; "))
	if p.r.NeedsUndelete {
		lost += "; rows that they deleted or replaced come back"
	}
	p.add(&Item{Action: GoBack, Kind: "snapshots", First: p.lost.First, Last: last, Damage: texts(errs...), Lost: lost})
	return nil
}

// numbers lists numbers for people.
func numbers(all []uint64) string {
	out := make([]string, len(all))
	for i, n := range all {
		out[i] = fmt.Sprint(n)
	}
	return strings.Join(out, ", ")
}

// findBranches finds the branches that cannot be opened any more.
func (p *planner) findBranches(ctx context.Context, found map[uint64]stored) error {
	branches, err := p.base.Branches(ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		var errs []error
		for _, n := range b.Pins() {
			x, ok := found[n]
			if !ok {
				if x, err = p.read(ctx, n); err != nil {
					return err
				}
				found[n] = x
			}
			if len(x.errs) > 0 {
				errs = append(errs, x.errs...)
				delete(p.bySnapshot, n)
			}
		}
		if len(errs) == 0 {
			err := p.sure(ctx, func() error {
				_, err := p.t.View(ctx, b)
				if errors.Is(err, catalog.ErrNotFound) { // it names what there is not
					err = wire.Corrupt(p.base.ObjectName(), fmt.Sprintf("branch %s: %v", b.Name, err))
				}
				return err
			})
			if err == nil {
				continue
			}
			if err := look(err); err != nil {
				return err
			}
			errs = append(errs, err)
		}
		p.branches = append(p.branches, b.Name)
		p.add(&Item{Action: DropBranch, Kind: "branch", Name: b.Name, Damage: texts(errs...),
			Lost: fmt.Sprintf("the branch is lost, which reads snapshot %d, with overlays that were made on it",
				b.Snapshot)})
	}
	return nil
}

// otherSnapshots names what is wrong with snapshots that the repair leaves as they are.
func (p *planner) otherSnapshots(ctx context.Context, first uint64) error {
	for _, n := range slices.Sorted(maps.Keys(p.bySnapshot)) {
		why := "nothing is done about it"
		if n < first {
			x, err := p.read(ctx, n)
			if err != nil {
				return err
			}
			if _, err := p.t.Header(ctx, n); len(x.errs) == 0 || errors.Is(err, object.ErrNotFound) {
				continue // it has expired, and is gone
			}
			why = "it has expired, and a lease holds it: it goes with the lease"
		}
		p.add(&Item{Action: Leave, Kind: "snapshots", First: n, Last: n, Lost: why,
			Damage: texts(p.bySnapshot[n]...)})
	}
	return nil
}
