package usage

// A Session is a reader that is open.
type Session struct {
	w        *Writer
	key      Key
	snapshot uint64
	source   Source
	opened   int64 // in seconds

	// Guarded by the Writer's mu:
	seen bool // something was recorded
	day  day  // of the last
}

// Begin says that a reader was opened. source is asked now and then, from any goroutine, until End has returned.
func (w *Writer) Begin(key Key, snapshot uint64, source Source) *Session {
	s := &Session{w: w, key: key, snapshot: snapshot, source: source, opened: wholeSeconds(w.opts.Now())}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.off {
		w.sessions[s] = true
		w.soon()
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
	if !s.w.sessions[s] {
		return
	}
	delete(s.w.sessions, s)
	if s.collect() {
		s.w.soonAfterClose()
	}
}

// collect records what the reader has done since the last call, and reports whether it did anything. The caller has the
// lock.
func (s *Session) collect() bool {
	if s.w.off {
		return false
	}
	c, ok := s.source.Counters()
	if !ok {
		return false
	}
	now := wholeSeconds(s.w.opts.Now())
	today := day(now / daySeconds)
	c.Readers = 0
	if !s.seen || today != s.day {
		c.Readers = 1
	}
	s.seen, s.day = true, today
	t := s.w.tallyOf(&s.key, today, s.source.Features())
	// A reader began on each day anew; and not after now, where the clock was set back.
	t.add(&c, s.snapshot, min(max(s.opened, int64(today)*daySeconds), now), now)
	t.uses.now = now
	s.source.Uses(&t.uses)
	return true
}
