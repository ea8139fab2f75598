package usage

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A sum is a record that others are added to.
type sum struct {
	Record
	positions map[catalog.FeatureID]int // in Features
}

func newSum(k Key) *sum { return &sum{Record: Record{Key: k}, positions: map[catalog.FeatureID]int{}} }

// add adds what a record of the same key counts. Where they do not agree on a process there is none.
func (s *sum) add(r *Record) {
	if s.End.IsZero() {
		s.Host, s.PID, s.Start, s.End = r.Host, r.PID, r.Start, r.End
	}
	if s.Host != r.Host {
		s.Host, s.PID = "", 0
	}
	if s.PID != r.PID {
		s.PID = 0
	}
	s.Snapshot = max(s.Snapshot, r.Snapshot)
	if r.Start.Before(s.Start) {
		s.Start = r.Start
	}
	if r.End.After(s.End) {
		s.End = r.End
	}
	s.Counters.add(&r.Counters)
	for i := range r.Features {
		u := &r.Features[i]
		at, ok := s.positions[u.ID]
		if !ok {
			s.positions[u.ID] = len(s.Features)
			s.Features = append(s.Features, *u)
			continue
		}
		s.Features[at].add(u)
	}
}

func (c *Counters) add(o *Counters) {
	to, from := c.numbers(), o.numbers()
	for i, n := range to {
		*n = plus(*n, *from[i])
	}
	durations, more := c.durations(), o.durations()
	for i, d := range durations {
		*d += min(*more[i], math.MaxInt64-*d)
	}
}

// Since returns what was counted after before, which are the same counters at an earlier time.
func (c Counters) Since(before *Counters) Counters {
	numbers, less := c.numbers(), before.numbers()
	for i, n := range numbers {
		*n -= *less[i]
	}
	durations, shorter := c.durations(), before.durations()
	for i, d := range durations {
		*d -= *shorter[i]
	}
	return c
}

// add adds what another record says of the same feature.
func (u *FeatureUse) add(o *FeatureUse) {
	if o.Last.After(u.Last) {
		u.Last, u.Name = o.Last, o.Name
	}
	to, from := u.numbers(), o.numbers()
	for i, n := range to {
		*n = plus(*n, *from[i])
	}
}

// clean makes a record one that an object may hold: whole seconds in order, strings that are short and UTF-8, no
// negative durations.
func (r *Record) clean() {
	for _, s := range r.strings() {
		*s = cleanString(*s)
	}
	r.Purpose = cmp.Or(r.Purpose, PurposeRead)
	r.Start, r.End = whole(r.Start), whole(r.End)
	if r.Start.After(r.End) {
		r.Start = r.End
	}
	for _, d := range r.durations() {
		*d = max(*d, 0)
	}
	for i := range r.Features {
		u := &r.Features[i]
		u.Name, u.Last = cleanString(u.Name), whole(u.Last)
		if u.Last.Before(r.Start) || u.Last.After(r.End) {
			u.Last = r.End
		}
	}
}

// whole returns a time in whole seconds that an object may hold.
func whole(t time.Time) time.Time { return seconds(wholeSeconds(t)) }

func wholeSeconds(t time.Time) int64 { return min(max(t.Unix(), 0), lastSecond) }

func cleanString(s string) string {
	if len(s) > maxString {
		s = s[:maxString]
	}
	// What is cut in the middle of a character is no UTF-8.
	return strings.ToValidUTF8(s, "")
}
