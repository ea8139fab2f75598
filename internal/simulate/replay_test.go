package simulate

import "testing"

// A replayer lets the decisions of a trace happen, and passes over those that have no meaning where it has come to: of
// a shortened trace there are some. What the trace does not say ends undisturbed.
type replayer struct {
	trace []decision
}

func (p *replayer) choose(r *run) (decision, bool) {
	if len(p.trace) == 0 {
		return decision{}, true
	}
	d := p.trace[0]
	p.trace = p.trace[1:]
	return d, false
}

func (*replayer) ended(*run) {}

// replay runs a world as a trace says.
func replay(t *testing.T, w *world, o runOptions, trace []decision) result {
	return play(t, w, o, &replayer{trace})
}
