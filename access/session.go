package access

import (
	"cmp"
	"time"
)

// A Usage is what a reader has done since it was opened. Its features are the same each time, in the same order, and none is there twice.
type Usage struct {
	Counters // without Readers
	Features []FeatureUse
}

// A Session is a reader that is open.
type Session struct {
	w        *Writer
	key      Key
	host     string
	snapshot uint64
	usage    func(*Usage)
	opened   time.Time

	// Guarded by the Writer's mu:
	now, before Usage
	seen        bool // something was recorded
	day         day  // of the last
}

// Begin says that a reader was opened. usage is called now and then, from any goroutine, until End has returned: it sets all of what it is given,
// whose memory it may use again. Names are UTF-8. It must not call the Writer.
func (w *Writer) Begin(key Key, snapshot uint64, usage func(*Usage)) *Session {
	r := Record{Key: key, Host: w.host()}
	r.User = cmp.Or(r.User, w.opts.User)
	r.clean()
	s := &Session{w: w, key: r.Key, host: r.Host, snapshot: snapshot, usage: usage, opened: whole(w.opts.Now())}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.off {
		w.sessions[s] = struct{}{}
		w.soon(w.opts.Interval)
	}
	return s
}

// End says that the reader is closed. A second call does nothing, and so does one of a nil Session.
func (s *Session) End() {
	if s == nil {
		return
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if _, ok := s.w.sessions[s]; !ok {
		return
	}
	delete(s.w.sessions, s)
	if s.collect(true) {
		s.w.soon(afterClose)
	}
}

// collect records what the reader has done since the last time, and reports whether it did anything. The caller has the lock.
func (s *Session) collect(ends bool) bool {
	s.usage(&s.now)
	now := whole(s.w.opts.Now())
	if s.now.Counters.same(&s.before.Counters) {
		return false
	}
	today := dayOf(now)
	first := !s.seen || today != s.day
	r := Record{Key: s.key, Snapshot: s.snapshot, Start: s.opened, End: now, Host: s.host, PID: processID}
	if start := today.start(); r.Start.Before(start) {
		r.Start = start
	}
	if r.Start.After(now) { // the clock was set back
		r.Start = now
	}
	r.Counters = s.now.Counters
	r.Counters.sub(&s.before.Counters)
	r.Readers = 0
	if first {
		r.Readers = 1
	}
	for _, d := range r.durations() {
		*d = max(*d, 0)
	}
	r.Features = make([]FeatureUse, 0, len(s.now.Features))
	for i := range s.now.Features {
		u := s.now.Features[i]
		if i < len(s.before.Features) {
			u.sub(&s.before.Features[i])
		}
		if u.Readers = r.Readers; first || u.Stripes > 0 || u.BytesRead() > 0 {
			u.Last = now
			r.Features = append(r.Features, u)
		}
	}
	s.seen, s.day = true, today
	if !ends {
		s.now, s.before = s.before, s.now
	}
	s.w.add(&r)
	return true
}

// same reports whether a reader has done nothing in between.
func (c *Counters) same(o *Counters) bool {
	return c.Rows == o.Rows && c.Batches == o.Batches && c.Requests == o.Requests && c.BytesNeeded == o.BytesNeeded && c.BytesOverRead == o.BytesOverRead
}

// sub leaves what was done since o.
func (c *Counters) sub(o *Counters) {
	to, from := c.numbers(), o.numbers()
	for i, n := range to {
		*n -= min(*n, *from[i])
	}
	durations, before := c.durations(), o.durations()
	for i, d := range durations {
		*d -= *before[i]
	}
}

func (u *FeatureUse) sub(o *FeatureUse) {
	to, from := u.numbers(), o.numbers()
	for i, n := range to {
		*n -= min(*n, *from[i])
	}
}
