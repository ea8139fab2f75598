package simulate

// smaller leaves out actions and machines of a world, as long as its run fails as before.
func (s *shrinker) smaller(trace []decision) []decision {
	parts := splitWorld(s.world.text)
	try := func(next [][]string, short []decision) bool {
		w := *s.world
		w.text = joinWorld(next)
		made, err := w.made()
		if err != nil {
			return false // a clock's offset stood before the action
		}
		before := s.world
		s.world = made
		if s.fails(short) {
			return true
		}
		s.world = before
		return false
	}
	for p := len(parts) - 1; p >= 0; p-- {
		if p > 0 && len(parts) > 2 {
			next := append(append([][]string{}, parts[:p]...), parts[p+1:]...)
			if short := renamed(trace, p-1); try(next, short) {
				parts, trace = next, short
				continue
			}
		}
		for a := len(parts[p]) - 1; a >= 0; a-- {
			next := append([][]string{}, parts...)
			next[p] = append(append([]string{}, parts[p][:a]...), parts[p][a+1:]...)
			if try(next, trace) {
				parts = next
			}
		}
	}
	return trace
}

// renamed is a trace after a machine was taken out.
func renamed(trace []decision, gone int) []decision {
	var out []decision
	for _, d := range trace {
		if d.action == carryOut || d.action == stopOne || d.action == turnClock {
			if d.machine == gone {
				continue
			}
			if d.machine > gone {
				d.machine--
			}
		}
		out = append(out, d)
	}
	return out
}
