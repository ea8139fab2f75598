package usage

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

const (
	// oneID is how long a process writes under one id. A rollup takes objects that were not written for twice as long.
	oneID = 30 * time.Minute
	// nextID is the age of an id from which on new records get another one, so that there is time to write them.
	nextID = 25 * time.Minute
	// A record waits afterClose for others when its reader was closed, and betweenWrites after the last write.
	afterClose    = 5 * time.Second
	betweenWrites = time.Minute

	// What a Writer holds at most. Beyond it records are lost, and counted.
	maxFiles = 64
	maxSums  = 64   // of a file
	maxUses  = 1e6  // features, over all sums of a file
	maxStale = 1000 // names of objects that are to go
)

// A Writer records what readers of a table do, for one process. Nothing that it is told waits for the store: it writes
// in the background, and when it is flushed. Safe for concurrent use.
type Writer struct {
	table  *storage.Table
	prefix string
	opts   Options

	// writing holds a token during a write. Unlike for a mutex, a caller can stop waiting for it.
	writing chan struct{}

	mu        sync.Mutex
	sessions  map[*Session]bool // those that are open; guarded by mu, as all below
	tallies   []*tally          // what is in no file yet
	positions int               // features of the tallies
	folding   int               // tallies that are on their way from there into files
	files     map[day]*dayRecords
	timer     *time.Timer
	due       time.Time // when it fires; zero: it does not
	closing   bool      // it fires as soon as it has to for a reader that was closed
	wrote     time.Time
	off       bool // the store may not be written to, or the Writer is closed

	// retire, where it is set, is called when nothing has been recorded for long.
	retire func()
}

// A dayRecords is what this process records of a day, under one id.
type dayRecords struct {
	id        id
	sums      map[Key]*sum
	uses      int
	unwritten bool // some of it is in no object
	begun     time.Time
	sequence  uint64   // of the last write
	stale     []string // objects that the next replaces
}

// NewWriter returns a Writer for a table. Close it.
func NewWriter(table *storage.Table, opts Options) (*Writer, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	go thisUser() // who asks for it later need not wait, which may be long where users are looked up elsewhere
	return &Writer{
		table: table, prefix: table.UsagePrefix(), opts: opts.withDefaults(), writing: make(chan struct{}, 1),
		sessions: map[*Session]bool{}, files: map[day]*dayRecords{},
	}, nil
}

// Add adds a record to the next write. Empty fields become the Writer's user, host and process, and the current time.
// The record belongs to the day of its End.
func (w *Writer) Add(r *Record) {
	c := *r
	c.Features = append([]FeatureUse(nil), r.Features...)
	if c.End.IsZero() {
		c.End = w.opts.Now()
	}
	if c.Start.IsZero() {
		c.Start = c.End
	}
	c.User, c.Host, c.PID = cmp.Or(c.User, w.opts.User), cmp.Or(c.Host, w.host()), cmp.Or(c.PID, processID)
	c.clean()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(&c)
	w.soonAfterClose()
}

func (w *Writer) host() string { return cmp.Or(w.opts.Host, thisHost()) }

// add takes over a record that is clean. The caller has the lock.
func (w *Writer) add(r *Record) {
	if w.off {
		return
	}
	d := dayOf(r.End)
	f := w.files[d]
	if f != nil && age(f.begun) > nextID && (!f.unwritten || age(f.begun) > oneID) {
		if f.unwritten { // it could not be written all the while
			totals.lost.Add(uint64(len(f.sums)))
		}
		delete(w.files, d)
		f = nil
	}
	if f == nil {
		if len(w.files) >= maxFiles {
			w.forget()
		}
		if len(w.files) >= maxFiles {
			totals.lost.Add(1)
			return
		}
		f = &dayRecords{sums: map[Key]*sum{}}
		rand.Read(f.id[:])
		w.files[d] = f
	}
	s := f.sums[r.Key]
	if s == nil {
		if len(f.sums) >= maxSums || f.uses+len(r.Features) > maxUses {
			// They are one then, which says less of each.
			r.Branch, r.List, r.Filter = "", "", 0
			if s = f.sums[r.Key]; s == nil && len(f.sums) >= 2*maxSums {
				totals.lost.Add(1)
				return
			}
		}
	}
	if s == nil {
		s = newSum(r.Key)
		f.sums[r.Key] = s
	}
	before := len(s.Features)
	s.add(r)
	f.uses += len(s.Features) - before
	f.unwritten = true
}

// age is how long ago something was, by whatever clock says more: the monotonic one stands still while a machine
// sleeps.
func age(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// forget drops the days that are written. The caller has the lock.
func (w *Writer) forget() {
	for d, f := range w.files {
		if !f.unwritten {
			delete(w.files, d)
		}
	}
}

// soon has new records written within an interval. The caller has the lock. A timer that is set already fires before.
func (w *Writer) soon() {
	if w.due.IsZero() {
		w.fireIn(w.opts.Interval)
	}
}

// soonAfterClose has the records of a closed reader written soon, together with others', and not right after the last
// write. The caller has the lock.
func (w *Writer) soonAfterClose() {
	if w.closing {
		return
	}
	w.closing = true
	wait := afterClose
	if !w.wrote.IsZero() {
		wait = max(wait, betweenWrites-time.Since(w.wrote))
	}
	w.fireIn(min(wait, w.opts.Interval))
}

// fireIn sets the timer, unless it is set to an earlier time. The caller has the lock.
func (w *Writer) fireIn(wait time.Duration) {
	if w.off || w.opts.Interval < 0 {
		return
	}
	due := time.Now().Add(wait)
	if !w.due.IsZero() && !due.Before(w.due) {
		return
	}
	w.due = due
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.tick)
		return
	}
	w.timer.Reset(wait)
}

// tick is called by the timer.
func (w *Writer) tick() {
	w.mu.Lock()
	w.due, w.closing = time.Time{}, false
	w.mu.Unlock()
	select {
	case w.writing <- struct{}{}:
		w.write(context.Background())
		<-w.writing
	default: // somebody is at it, or a write hangs
	}
	idle := w.idle()
	if !idle {
		w.mu.Lock()
		w.soon()
		w.mu.Unlock()
	}
	if idle && w.retire != nil {
		w.retire()
	}
}

// idle reports whether nothing is open, and nothing to be written.
func (w *Writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sessions)+len(w.tallies)+w.folding+len(w.files) == 0
}

// Flush writes what readers have done so far. After an error it is tried again later.
func (w *Writer) Flush(ctx context.Context) error {
	select {
	case w.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() { // a store may hang whatever ctx says
		defer func() { <-w.writing }()
		done <- w.write(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close is Flush within Options.Timeout. What is recorded later is dropped.
func (w *Writer) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.opts.Timeout)
	defer cancel()
	err := w.Flush(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = true
	if w.timer != nil {
		w.timer.Stop()
	}
	clear(w.sessions)
	lost := len(w.takeTallies()) // what could not be written in time
	for _, f := range w.files {
		if f.unwritten {
			lost += len(f.sums)
		}
	}
	totals.lost.Add(uint64(lost))
	clear(w.files)
	return err
}

// write writes all that is new. The caller has the token.
func (w *Writer) write(ctx context.Context) error {
	w.mu.Lock()
	for s := range w.sessions {
		s.collect()
	}
	tallies := w.takeTallies()
	w.folding = len(tallies)
	w.mu.Unlock()
	for _, t := range tallies { // one at a time: readers that are opened and closed meanwhile do not wait for all
		r := t.record(w.opts.User, w.host())
		w.mu.Lock()
		w.add(r)
		w.folding--
		w.mu.Unlock()
	}
	w.mu.Lock()
	for d, f := range w.files {
		if !f.unwritten && age(f.begun) > nextID {
			delete(w.files, d)
		}
	}
	days := sortedKeys(w.files)
	w.wrote = time.Now()
	w.mu.Unlock()
	var errs []error
	for _, d := range days {
		if err := w.writeDay(ctx, d); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// writeDay writes what is new of a day.
func (w *Writer) writeDay(ctx context.Context, d day) error {
	user := cmp.Or(w.opts.User, thisUser())
	w.mu.Lock()
	f := w.files[d]
	if w.off || f == nil || !f.unwritten {
		w.mu.Unlock()
		return nil
	}
	if f.begun.IsZero() {
		f.begun = time.Now()
	}
	if age(f.begun) > oneID || f.sequence == maxSequence {
		totals.lost.Add(uint64(len(f.sums)))
		delete(w.files, d)
		w.mu.Unlock()
		return fmt.Errorf("usage records of %s: they could not be written for %v", d, oneID)
	}
	o := file{kind: recordsKind, day: d, written: max(w.opts.Now().Unix(), 0), records: f.records(user)}
	f.sequence++
	f.unwritten = false
	name := recordsName(w.prefix, d, f.id, f.sequence)
	stale := f.stale
	f.stale = nil
	w.mu.Unlock()

	err := w.put(ctx, name, o.append(nil))
	if err == nil {
		totals.written.Add(1)
		stale = w.remove(ctx, stale)
	} else {
		totals.failed.Add(1)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	f.stale = append(stale, name) // it may be there also after an error
	f.stale = f.stale[max(0, len(f.stale)-maxStale):]
	if err == nil {
		return nil
	}
	f.unwritten = true
	if unwritable(err) {
		w.off = true
		totals.lost.Add(uint64(len(o.records)))
		clear(w.files)
	}
	return fmt.Errorf("usage records: %w", err)
}

// records returns copies of the records, of user where their key names none.
func (f *dayRecords) records(user string) []*Record {
	byKey := make(map[Key]*sum, len(f.sums))
	for k, s := range f.sums {
		k.User = cmp.Or(k.User, user)
		if byKey[k] == nil {
			byKey[k] = newSum(k)
		}
		byKey[k].add(&s.Record)
	}
	out := make([]*Record, 0, len(byKey))
	for _, s := range byKey {
		out = append(out, &s.Record)
	}
	return out
}

func (w *Writer) put(ctx context.Context, name string, b []byte) error {
	if len(b) > maxObject {
		return fmt.Errorf("%d bytes: want at most %d", len(b), maxObject)
	}
	ctx, cancel := context.WithTimeout(ctx, w.opts.Timeout)
	defer cancel()
	return object.PutUnsynced(ctx, w.table.Store().Blobs(), name, b)
}

// remove deletes objects, and returns those that it could not.
func (w *Writer) remove(ctx context.Context, names []string) (left []string) {
	ctx, cancel := context.WithTimeout(ctx, w.opts.Timeout)
	defer cancel()
	for _, name := range names {
		if err := w.table.Store().Blobs().Delete(ctx, name); err != nil && !errors.Is(err, object.ErrNotFound) {
			left = append(left, name)
		}
	}
	return left
}

// unwritable reports whether no other write will succeed either.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
