package simulate

import (
	"fmt"
	"testing"
)

// explain says of a run that failed all that is needed to understand it and to run it again: the seed, and the shortest
// world and trace that were found to fail alike, with everything that happens in them.
func explain(t *testing.T, w *world, o runOptions, failed result) string {
	short := shrink(t, w, o, failed)
	o.log = true
	again := replay(t, short.world, o, short.trace)
	return fmt.Sprintf(`world %s, seed %d: %v

world: %s
trace: %s

shortened, in %d replays: %v

%s
again: go test ./internal/simulate -tags invariants,pebblegozstd -run 'TestReplay$' -v \
	-simulate.seed=%d -simulate.page=%d -simulate.world=%q -simulate.trace=%q
`, w.name, o.seed, failed.failure, w.text, formatTrace(failed.trace), short.replays, again.failure, again.log,
		o.seed, short.world.page, short.world.text, formatTrace(short.trace))
}
