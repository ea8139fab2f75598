package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// RollupOptions: the zero value works.
type RollupOptions struct {
	// Now says which records are old. Default: the store's clock, which dates them.
	Now func() time.Time
	// MinAge is the least time since the last write to records that are merged. Default 1 hour, which is longer than a
	// process writes to the same object. Below 0: records of any age. Then what a process writes to them later is lost.
	MinAge time.Duration
	// Keep is how long rollups are kept. Default 400 days.
	Keep   time.Duration
	DryRun bool // report only
}

// Validate names the first field that makes no sense.
func (o *RollupOptions) Validate() error {
	if o.Keep < 0 {
		return fmt.Errorf("rollup: keep %v: want 0 (default) or more", o.Keep)
	}
	return nil
}

const (
	defaultMinAge = time.Hour
	defaultKeep   = 400 * 24 * time.Hour
	// mergedFor is for how many seconds a rollup names the ids that it has merged: a process may have been suspended
	// during a write.
	mergedFor = daySeconds
)

// A RollupReport says what Rollup did, or would do.
type RollupReport struct {
	DryRun  bool
	Days    uint64 // of which a rollup was written
	Merged  uint64 // objects of records
	Young   uint64 // left for later
	Expired uint64 // days that are kept no longer
	Removed uint64 // objects
	// Damages are records that were passed over, damaged or of a newer version. They stay until their day expires. A
	// day with a rollup of a newer version is left as it is.
	Damages
}

// Rollup merges the records of a table that no process writes any more into one rollup per day, and removes days older
// than RollupOptions.Keep. Several may run at once, and any may die at any moment: no record counts twice. A second
// call does nothing.
func Rollup(ctx context.Context, t *storage.Table, opts RollupOptions) (*RollupReport, error) {
	out := &RollupReport{DryRun: opts.DryRun}
	if err := opts.Validate(); err != nil {
		return out, err
	}
	if opts.MinAge == 0 {
		opts.MinAge = defaultMinAge
	}
	if opts.Keep == 0 {
		opts.Keep = defaultKeep
	}
	wrong := func(err error) (*RollupReport, error) {
		return out, fmt.Errorf("rollup of usage records of %s: %w", t.Name(), err)
	}
	days, err := listDays(ctx, t, spanOf(time.Time{}, time.Time{}))
	if err != nil {
		return wrong(err)
	}
	if len(days) == 0 {
		return out, nil
	}
	r := roller{t: t, opts: opts, report: out}
	if opts.Now != nil {
		r.now = opts.Now()
	} else if r.now, err = t.Store().Clock(ctx); err != nil && !opts.DryRun {
		return wrong(err)
	}
	oldest := dayOf(r.now.Add(-opts.Keep))
	var errs []error
	for _, d := range sortedKeys(days) {
		if d < oldest {
			err = r.expire(ctx, days[d])
		} else {
			err = r.day(ctx, d, days[d])
		}
		if ctx.Err() != nil {
			return wrong(ctx.Err())
		}
		if err == nil && len(days[d].records) > 0 && d < dayOf(r.now)-1 {
			err = r.removeDir(ctx, d)
		}
		if err != nil { // which is no reason to leave the others
			errs = append(errs, fmt.Errorf("%v: %w", d, err))
		}
	}
	if len(errs) > 0 {
		return wrong(errors.Join(errs...))
	}
	return out, nil
}

// A roller is a Rollup under way.
type roller struct {
	t      *storage.Table
	opts   RollupOptions
	now    time.Time
	report *RollupReport
}

func (r *roller) expire(ctx context.Context, o *objects) error {
	r.report.Expired++
	for _, all := range o.records {
		if err := r.remove(ctx, all...); err != nil {
			return err
		}
	}
	return r.remove(ctx, o.rollups...)
}

func (r *roller) remove(ctx context.Context, names ...objectName) error {
	for _, p := range names {
		if !r.opts.DryRun {
			if err := r.t.Store().Blobs().Delete(ctx, p.name); err != nil && !errors.Is(err, object.ErrNotFound) {
				return err
			}
		}
		r.report.Removed++
	}
	return nil
}

// removeDir removes the directory that a local store has for the records of a day that is over, if it is empty.
func (r *roller) removeDir(ctx context.Context, d day) error {
	local := object.AsLocal(r.t.Store().Blobs())
	if local == nil || r.opts.DryRun {
		return nil
	}
	return local.RemoveEmptyDir(ctx, r.t.UsagePrefix()+d.String())
}

// day rolls a day up. listed is what was listed of it.
func (r *roller) day(ctx context.Context, d day, listed *objects) error {
	before := *r.report
	for range maxPasses {
		*r.report = before
		again, err := r.attempt(ctx, d, listed)
		if err != nil || !again {
			return err
		}
		if listed, err = listDay(ctx, r.t, d); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d others were quicker", maxPasses)
}

// attempt is day; again: another rollup was quicker.
func (r *roller) attempt(ctx context.Context, d day, listed *objects) (again bool, err error) {
	next := file{kind: rollupKind, day: d, written: max(r.now.Unix(), 0)}
	sums := map[Key]*sum{}
	number, used := uint64(0), uint64(0) // the largest, and the one that is read
	merged := map[id]int64{}
	for _, p := range listed.rollups {
		number = max(number, p.sequence)
		f, err := read(ctx, r.t, p)
		switch {
		case errors.Is(err, object.ErrNotFound):
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		// of a newer program, which goes on with it: the next would leave out what it holds
		case errors.Is(err, format.ErrUnsupported):
			r.report.damage(p.name, err)
			return false, nil
		case isDamage(err):
			r.report.damage(p.name, err)
			continue
		case err != nil:
			return false, err
		}
		for _, m := range f.merged {
			merged[m.id] = m.at
		}
		addTo(sums, f)
		used = p.sequence
		break
	}
	var old, done []objectName // to be merged, and merged before
	for _, i := range listed.ids() {
		all := listed.records[i]
		switch _, ok := merged[i]; {
		case ok:
			done = append(done, all...) // left by a rollup that died, or written to after it, and lost
		case r.opts.MinAge < 0 || r.now.UnixNano()-all[0].modTime >= int64(r.opts.MinAge):
			old = append(old, all[0])
		default:
			r.report.Young++
		}
	}
	some := false
	for few := range inTurns(old, heldBytes) { // what is added up need not be held
		results, err := readAll(ctx, r.t, few)
		if err != nil {
			return false, err
		}
		for _, x := range results {
			switch {
			case errors.Is(x.err, object.ErrNotFound): // replaced, or merged: another time
			case isDamage(x.err), errors.Is(x.err, format.ErrUnsupported):
				r.report.damage(x.from.name, x.err)
			case x.err != nil:
				return false, x.err
			default:
				some = true
				addTo(sums, x.decoded)
				merged[x.from.id] = next.written
				done = append(done, listed.records[x.from.id]...)
				r.report.Merged++
			}
		}
	}
	if !some {
		return false, r.clean(ctx, done, listed.rollups, used)
	}
	for _, i := range sortedIDs(merged) { // SPEC.md says why they are kept
		if len(listed.records[i]) > 0 || next.written-merged[i] < mergedFor {
			next.merged = append(next.merged, mergedID{i, merged[i]})
		}
	}
	for _, s := range sums {
		next.records = append(next.records, &s.Record)
	}
	b := next.fit(maxObject)
	if len(b) > maxObject || number == maxNumber {
		return false, fmt.Errorf("a rollup of %d bytes: want at most %d", len(b), maxObject)
	}
	r.report.Days++
	if !r.opts.DryRun {
		err := r.t.Store().Blobs().PutIfAbsent(ctx, rollupName(r.t.UsagePrefix(), d, number+1), b)
		if errors.Is(err, object.ErrExists) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, r.clean(ctx, done, listed.rollups, number+1)
}

// othersJob is the job of the sum of jobs that have no record of their own in a rollup.
const othersJob = "(others)"

// fit encodes a rollup. While it takes more than limit bytes, as where each run of a job has its own name, fit merges
// half of the jobs, those that read least, into one.
func (f *file) fit(limit int) []byte {
	for {
		b := f.append(nil)
		if len(b) <= limit || len(f.records) < 2 {
			return b
		}
		others := newSum(Key{Job: othersJob})
		before := func(r *Record) int {
			if r.Key == others.Key {
				return 0 // it was there already
			}
			return 1
		}
		slices.SortStableFunc(f.records, func(x, y *Record) int {
			return cmp.Or(cmp.Compare(before(x), before(y)), cmp.Compare(x.BytesRead(), y.BytesRead()))
		})
		n := max(2, len(f.records)/2)
		for _, r := range f.records[:n] {
			others.add(r)
		}
		f.records = append(slices.Clone(f.records[n:]), &others.Record)
	}
}

// clean removes records that were merged, and rollups before the newest.
func (r *roller) clean(ctx context.Context, done, rollups []objectName, newest uint64) error {
	if err := r.remove(ctx, done...); err != nil {
		return err
	}
	return r.remove(ctx, slices.DeleteFunc(slices.Clone(rollups),
		func(p objectName) bool { return p.sequence >= newest })...)
}

func isDamage(err error) bool { return errors.Is(err, format.ErrCorrupt) }

// addTo adds the records of a file to those of a rollup, which are told apart by job, user, program and purpose.
func addTo(sums map[Key]*sum, f *decoded) {
	_ = f.each(func(r *Record) error { // it has been checked, and visit has no error
		k := Key{Job: r.Job, User: r.User, Program: r.Program, Purpose: r.Purpose}
		if sums[k] == nil {
			sums[k] = newSum(k)
		}
		r.PID = 0
		sums[k].add(r)
		return nil
	})
}
