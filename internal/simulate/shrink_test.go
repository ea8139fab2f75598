package simulate

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A stretch is one decision, so many times in a row.
type stretch struct {
	decision
	times int
}

func stretches(trace []decision) []stretch {
	var out []stretch
	for _, d := range trace {
		if n := len(out); n > 0 && out[n-1].decision == d {
			out[n-1].times++
		} else {
			out = append(out, stretch{d, 1})
		}
	}
	return out
}

func flat(of []stretch) []decision {
	var out []decision
	for _, s := range of {
		out = append(out, slices.Repeat([]decision{s.decision}, s.times)...)
	}
	return out
}

// A shrinker shortens the trace of a run that fails, as long as the run fails for the same reason.
type shrinker struct {
	t       *testing.T
	world   *world
	opts    runOptions
	reason  string
	until   time.Time
	replays int
}

// shrinkTime bounds the shortening of one trace.
const shrinkTime = 20 * time.Second

// A shortened is a small world and a short trace that fail as another did.
type shortened struct {
	world   *world
	trace   []decision
	replays int // that it took
}

// shrink looks for a small world and a short trace that fail as a run did: with few actions, few faults, and few
// changes from one machine to another, found by leaving out, joining and cutting short.
func shrink(t *testing.T, w *world, o runOptions, failed result) shortened {
	o.log = false
	s := &shrinker{t: t, world: w, opts: o, reason: reason(failed.failure), until: time.Now().Add(shrinkTime)}
	best := failed.trace
	for {
		before := s.size(best)
		best = s.without(best, func(d decision) bool { return d.action != carryOut })
		best = s.fewer(best)
		best = s.smaller(best)
		best = s.plainer(best)
		best = s.joined(best)
		best = s.cut(best)
		if s.size(best) >= before || time.Now().After(s.until) {
			return shortened{s.world, best, s.replays}
		}
	}
}

// size is how much there is to read.
func (s *shrinker) size(trace []decision) int { return len(stretches(trace)) + len(s.world.text) }

// reason is what a failure says, without what differs from run to run.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	text = strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text)
	return text[:min(len(text), 24)]
}

// fails reports whether a trace fails as the first did.
func (s *shrinker) fails(trace []decision) bool {
	if time.Now().After(s.until) {
		return false
	}
	s.replays++
	out := replay(s.t, s.world, s.opts, trace)
	return out.failure != nil && reason(out.failure) == s.reason
}

// without leaves out, one by one, the decisions that match.
func (s *shrinker) without(trace []decision, match func(decision) bool) []decision {
	for i := len(trace) - 1; i >= 0; i-- {
		if !match(trace[i]) {
			continue
		}
		if shorter := slices.Delete(slices.Clone(trace), i, i+1); s.fails(shorter) {
			trace = shorter
		}
	}
	return trace
}

// plainer takes away faults and choices between the requests of one machine.
func (s *shrinker) plainer(trace []decision) []decision {
	for i, d := range trace {
		if d.action != carryOut || d.fault == noFault && d.pick == 0 {
			continue
		}
		for _, p := range []decision{{machine: d.machine}, {machine: d.machine, pick: d.pick}, {machine: d.machine,
			fault: d.fault}} {
			if p == d {
				continue
			}
			plain := slices.Clone(trace)
			if plain[i] = p; s.fails(plain) {
				trace = plain
				break
			}
		}
	}
	return trace
}

// fewer leaves out stretches: halves of all, quarters, and so on to single ones.
func (s *shrinker) fewer(trace []decision) []decision {
	of := stretches(trace)
	for size := (len(of) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(of); {
			if shorter := slices.Delete(slices.Clone(of), at, at+size); s.fails(flat(shorter)) {
				of = shorter
			} else {
				at += size
			}
		}
	}
	return flat(of)
}

// joined lets a machine do at once what it did in two stretches.
func (s *shrinker) joined(trace []decision) []decision {
	of := stretches(trace)
	for at := 0; at+2 < len(of); at++ {
		for later := at + 2; later < len(of); later++ {
			if of[later].decision != of[at].decision {
				continue
			}
			for _, early := range []bool{true, false} {
				x := slices.Clone(of)
				if early {
					x[at].times += x[later].times
					x = slices.Delete(x, later, later+1)
				} else {
					x[later].times += x[at].times
					x = slices.Delete(x, at, at+1)
				}
				if s.fails(flat(x)) {
					of = stretches(flat(x))
					break
				}
			}
			break
		}
	}
	return flat(of)
}

// cut makes stretches shorter, and leaves the end to what happens anyhow.
func (s *shrinker) cut(trace []decision) []decision {
	of := stretches(trace)
	for i := len(of) - 1; i >= 0; i-- {
		for by := of[i].times / 2; by > 0; by /= 2 {
			for of[i].times > by {
				x := slices.Clone(of)
				if x[i].times -= by; !s.fails(flat(x)) {
					break
				}
				of = x
			}
		}
	}
	for len(of) > 0 && s.fails(flat(of[:len(of)-1])) {
		of = of[:len(of)-1]
	}
	return flat(of)
}
