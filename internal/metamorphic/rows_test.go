package metamorphic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/selection"
)

// A choice is a query, and what it means.
type choice struct {
	query selection.Query
	has   func(r *row) bool
	keys  int // not in the table; -1: there are no keys
}

// drawChoice draws which rows are meant, of the newest snapshot.
func (w *world) drawChoice() (choice, error) {
	s := w.latest()
	c := choice{has: func(*row) bool { return true }, keys: -1}
	also := func(f func(r *row) bool) {
		before := c.has
		c.has = func(r *row) bool { return before(r) && f(r) }
	}
	switch w.rnd.IntN(4) {
	case 0:
		if len(s.lists) > 0 {
			text, in := w.drawLists(s, 2)
			c.query.Lists = text
			also(in)
			break
		}
		fallthrough
	case 1:
		keys, in, missing, err := w.drawKeys(s)
		if err != nil {
			return c, err
		}
		c.query.Keys, c.keys = keys, missing
		also(in)
	default:
		p := w.drawPredicate(s, 2)
		c.query.Where = p.text
		also(func(r *row) bool { return p.of(r) == yes })
	}
	if c.keys < 0 && w.chance(0.2) {
		p := w.drawDays()
		c.query.Partition = p.text
		also(func(r *row) bool { return p.of(r) == yes })
	}
	return c, nil
}

// drawLists draws an expression over sample lists.
func (w *world) drawLists(s *state, depth int) (string, func(r *row) bool) {
	if depth == 0 || w.chance(0.3) {
		name := w.draw(slices.Sorted(maps.Keys(s.lists)))
		list := s.lists[name]
		return quote(name), func(r *row) bool { return list[r.number] }
	}
	a, inA := w.drawLists(s, depth-1)
	b, inB := w.drawLists(s, depth-1)
	switch w.rnd.IntN(3) {
	case 0:
		return "NOT (" + a + ")", func(r *row) bool { return !inA(r) }
	case 1:
		return "(" + a + ") AND (" + b + ")", func(r *row) bool { return inA(r) && inB(r) }
	}
	return "(" + a + ") OR (" + b + ")", func(r *row) bool { return inA(r) || inB(r) }
}

// drawKeys draws keys: of rows that are there, that were, and that never were.
func (w *world) drawKeys(s *state) (*selection.KeySource, func(r *row) bool, int, error) {
	wanted := map[int64]bool{}
	for range w.rnd.IntN(15) {
		wanted[w.rnd.Int64N(w.nextRow+3)] = true
	}
	byNumber := w.chance(0.5)
	missing := 0
	var given []string
	for _, n := range slices.Sorted(maps.Keys(wanted)) {
		if s.rows[n] == nil {
			missing++
		}
		if byNumber {
			given = append(given, fmt.Sprint(n))
		} else {
			given = append(given, fmt.Sprint("key-", n))
		}
	}
	k := &selection.KeySource{Feature: map[bool]string{true: "row", false: "key"}[byNumber], Memory: pick[int64](w, 0,
		320), Given: given}
	if w.chance(0.5) && len(given) > 0 {
		text := ""
		for _, g := range given {
			text += g + "\n"
		}
		path, err := w.file(".txt", text)
		if err != nil {
			return nil, nil, 0, err
		}
		k.Given, k.Paths = nil, []string{path}
	} else if given == nil {
		k.Given = []string{}
	}
	return k, func(r *row) bool { return wanted[r.number] }, missing, nil
}

// meant returns the rows of a state that a choice means.
func (c *choice) meant(s *state) map[int64]bool {
	out := map[int64]bool{}
	for n, r := range s.rows {
		if c.has(r) {
			out[n] = true
		}
	}
	return out
}

func (c *choice) checkKeys(k *selection.KeyReport) error {
	if (k == nil) != (c.keys < 0) || k != nil && int(k.Missing) != c.keys {
		return fmt.Errorf("keys: %+v, want %d missing", k, c.keys)
	}
	return nil
}

func deleteRows(w *world) error {
	c, err := w.drawChoice()
	if err != nil {
		return err
	}
	w.note("%s", &c.query)
	next := w.latest().clone()
	gone := c.meant(next)
	if len(gone) > len(next.rows)/2 && w.chance(0.8) {
		return nil // a table that has few rows tests little
	}
	report, err := selection.Delete(w.ctx, w.table(), &c.query, selection.Options{})
	if err != nil {
		return err
	}
	maps.DeleteFunc(next.rows, func(n int64, _ *row) bool { return gone[n] })
	if report.Deleted != uint64(len(gone)) || report.Left != uint64(len(next.rows)) {
		return fmt.Errorf("%d rows deleted, %d left: want %d and %d", report.Deleted, report.Left, len(gone),
			len(next.rows))
	}
	if err := c.checkKeys(report.Keys); err != nil {
		return err
	}
	if len(gone) == 0 {
		return nil
	}
	return w.commit(report.Snapshot, next)
}

func createList(w *world) error {
	c, err := w.drawChoice()
	if err != nil {
		return err
	}
	name := pick(w, "list", "other list", "third")
	next := w.latest().clone()
	_, taken := next.lists[name]
	replace := taken || w.chance(0.2)
	if taken && w.chance(0.2) {
		if _, err := selection.Create(w.ctx, w.table(), name, &c.query, false, selection.Options{}); !errors.Is(err,
			storage.ErrExists) {
			return fmt.Errorf("a name that is taken: %v", err)
		}
	}
	w.note("%s: %s", name, &c.query)
	report, err := selection.Create(w.ctx, w.table(), name, &c.query, replace, selection.Options{})
	if err != nil {
		return err
	}
	next.lists[name] = c.meant(next)
	if report.Rows != uint64(len(next.lists[name])) || report.TableRows != uint64(len(next.rows)) {
		return fmt.Errorf("%d rows of %d: want %d of %d", report.Rows, report.TableRows, len(next.lists[name]),
			len(next.rows))
	}
	if err := c.checkKeys(report.Keys); err != nil {
		return err
	}
	return w.commit(report.Snapshot, next)
}

func dropList(w *world) error {
	next := w.latest().clone()
	if len(next.lists) == 0 {
		return errSkip
	}
	name := w.draw(slices.Sorted(maps.Keys(next.lists)))
	w.note("%s", name)
	made, err := selection.Drop(w.ctx, w.table(), name)
	if err != nil {
		return err
	}
	delete(next.lists, name)
	return w.commit(made.Info().Number, next)
}

// twoAtOnce ingests and deletes side by side: in whatever order they are committed, the rows of the first are not
// deleted.
func twoAtOnce(w *world) error {
	c, err := w.drawChoice()
	if err != nil {
		return err
	}
	before := w.latest()
	gone := c.meant(before)
	if len(gone) > len(before.rows)/2 {
		return errSkip
	}
	d, err := w.drawDump(before, allDays)
	if err != nil {
		return err
	}
	w.note("%s", &c.query)
	opts := w.ingestOptions(d)
	var ingested ingest.Report
	var deleted *selection.DeleteReport
	var errs [2]error
	var wg sync.WaitGroup
	wg.Go(func() { ingested, errs[0] = ingest.Run(w.ctx, w.stores[0], tableName, []string{d.path}, opts) })
	wg.Go(func() { deleted, errs[1] = selection.Delete(w.ctx, w.tables[1], &c.query, selection.Options{}) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	first, second := before.clone(), before.clone()
	ingestFirst := ingested.Snapshot == w.newest+1
	if ingestFirst {
		d.apply(first)
		// A delete that began after it sees its rows, and takes those that it means too.
		if all := c.meant(first); deleted.Deleted == uint64(len(all)) {
			gone = all
		}
	}
	if deleted.Deleted != uint64(len(gone)) {
		return fmt.Errorf("%d rows deleted, want %d", deleted.Deleted, len(gone))
	}
	take := func(s *state) { maps.DeleteFunc(s.rows, func(n int64, _ *row) bool { return gone[n] }) }
	if !ingestFirst {
		take(first)
	}
	d.apply(second)
	take(second) // a delete that came first means none of the rows ingested: gone has none of them
	w.note("the ingest is first: %v", ingestFirst)
	if err := w.commit(w.newest+1, first); err != nil || deleted.Deleted == 0 {
		return err
	}
	return w.commit(w.newest+1, second)
}
