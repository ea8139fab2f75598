package objecttest

import (
	"flag"
	"fmt"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

var rounds = flag.Int("races", 5, "rounds of creations that race for a name")

// Races races 32 creations for a name again and again, by one request each and by uploads in parts: one succeeds, and
// its bytes are there. Then it runs the whole probe. Nothing is left.
func Races(t *testing.T, s object.Store) {
	n := 0
	name := func() string { n++; return fmt.Sprintf("races/%d", n) }
	for round := range *rounds {
		if err := object.Race(t.Context(), s, name); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if n != 2**rounds {
		t.Fatal("the store stands for no service: nothing raced")
	}
	if err := object.Probe(t.Context(), s, name); err != nil {
		t.Fatal(err)
	}
	for info, err := range s.List(t.Context(), "", "") {
		t.Errorf("%+v is left, %v", info, err)
	}
}
