package compaction

import (
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// TestSpread: sessions and their pieces are those that counting rows gives, of all segments and of some.
func TestSpread(t *testing.T) {
	for seed := range uint64(5) {
		x := newTester(t, object.NewMemory(), seed)
		for range 3 {
			x.ingest(x.newRows(40, 2))
		}
		snap := x.latest()
		all := x.segments(snap)
		sessionOf, sessions, pieces := map[int64]string{}, map[string]bool{}, 0
		for id, r := range x.rows {
			sessionOf[id] = r.Session
		}
		for n, d := range all {
			here := map[string]bool{}
			for _, r := range x.decode(d) {
				here[sessionOf[r.id]], sessions[sessionOf[r.id]] = true, true
			}
			pieces += len(here)
			got, err := SpreadOf(t.Context(), snap, all[:n+1]...)
			if want := (Spread{uint64(len(sessions)), uint64(pieces), 1}); err != nil || got != want {
				t.Fatalf("seed %d, %d segments: %+v, %v, want %+v", seed, n+1, got, err, want)
			}
		}
		if pieces <= len(sessions) {
			t.Errorf("seed %d: no session lies in two segments", seed)
		}
	}
}
