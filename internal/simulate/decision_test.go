package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An action is what the scheduler lets happen next.
type action uint8

const (
	carryOut action = iota // an operation that waits
	letPass                // time
	stopOne                // a machine, for ever
	// a machine: what it is at ends where it is, and it goes on with the next action of its script, knowing nothing
	restart
	turnClock // of a machine
	landLate  // an effect that was put off
)

// A decision is one step of the scheduler. A trace is a list of them; together with the world and the seed it says
// everything that happens. As text:
//
//	A         the first operation of machine A that waits is carried out
//	A#1       the second, in their order
//	A!lost    ... and meets a fault
//	A*5       A five times
//	+25h      time passes
//	A.stops   machine A stops for ever
//	A.restarts  machine A crashes and begins anew, with the next of its actions
//	A@-48h    the clock of A is turned, so that it is two days behind
//	late      the first effect that was put off happens now; late#1: the second
type decision struct {
	action  action
	machine int
	pick    int
	fault   fault
	by      time.Duration
}

func machineName(i int) string { return string(rune('A' + i)) }

func (d decision) String() string {
	pick := ""
	if d.pick > 0 {
		pick = "#" + strconv.Itoa(d.pick)
	}
	switch d.action {
	case letPass:
		return "+" + d.by.String()
	case stopOne:
		return machineName(d.machine) + ".stops"
	case restart:
		return machineName(d.machine) + ".restarts"
	case turnClock:
		return machineName(d.machine) + "@" + d.by.String()
	case landLate:
		return "late" + pick
	}
	s := machineName(d.machine) + pick
	if d.fault != noFault {
		s += "!" + d.fault.String()
	}
	return s
}

// formatTrace writes decisions in one line.
func formatTrace(trace []decision) string {
	var b strings.Builder
	for i := 0; i < len(trace); {
		n := i + 1
		for n < len(trace) && trace[n] == trace[i] {
			n++
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(trace[i].String())
		if n-i > 1 {
			fmt.Fprintf(&b, "*%d", n-i)
		}
		i = n
	}
	return b.String()
}

// parseTrace reads what formatTrace wrote.
func parseTrace(text string) ([]decision, error) {
	var out []decision
	for _, word := range strings.Fields(text) {
		d, n, err := parseDecision(word)
		if err != nil {
			return nil, fmt.Errorf("trace: %q: %w", word, err)
		}
		out = append(out, slices.Repeat([]decision{d}, n)...)
	}
	return out, nil
}

const maxRepeats = 1 << 20

func parseDecision(word string) (d decision, times int, err error) {
	word, count, many := strings.Cut(word, "*")
	times = 1
	if many {
		if times, err = strconv.Atoi(count); err != nil || times < 1 || times > maxRepeats {
			return d, 0, fmt.Errorf("repeated %q times: want 1 to %d", count, maxRepeats)
		}
	}
	if by, ok := strings.CutPrefix(word, "+"); ok {
		d.action = letPass
		d.by, err = time.ParseDuration(by)
		return d, times, err
	}
	if rest, ok := strings.CutPrefix(word, "late"); ok {
		d.action = landLate
		d.pick, err = parsePick(rest)
		return d, times, err
	}
	if word == "" || word[0] < 'A' || word[0] > 'Z' {
		return d, 0, fmt.Errorf("want a machine, A to Z, +TIME or late")
	}
	d.machine = int(word[0] - 'A')
	word = word[1:]
	switch {
	case word == ".stops":
		d.action = stopOne
		return d, times, nil
	case word == ".restarts":
		d.action = restart
		return d, times, nil
	case strings.HasPrefix(word, "@"):
		d.action = turnClock
		d.by, err = time.ParseDuration(word[1:])
		return d, times, err
	}
	pick, name, faulty := strings.Cut(word, "!")
	if d.pick, err = parsePick(pick); err != nil {
		return d, 0, err
	}
	if faulty {
		at := slices.Index(faultNames[:], name)
		if name == "" || at < 0 {
			return d, 0, fmt.Errorf("unknown fault %q", name)
		}
		d.fault = fault(at)
	}
	return d, times, nil
}

func parsePick(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(s, "#"))
	if err != nil || s[0] != '#' || n < 0 {
		return 0, fmt.Errorf("%q: want #NUMBER", s)
	}
	return n, nil
}
