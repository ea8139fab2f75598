package repair

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
)

// TestNote: what a listing says of a loss is always valid, and shows where it leaves something out.
func TestNote(t *testing.T) {
	for _, lost := range []string{"x", strings.Repeat("ä", 400), strings.Repeat("ä", 512), strings.Repeat("ä", 513),
		strings.Repeat("a", 5000)} {
		i := &Item{Kind: "sample list", Name: "l", Lost: lost}
		n := i.note()
		if err := n.Validate(); err != nil {
			t.Error(err)
		}
		whole := "sample list l: " + lost
		if cut := strings.HasSuffix(n.What, " ..."); cut != (len(whole) > catalog.MaxRepairedText) ||
			!cut && n.What != whole || !strings.HasPrefix(whole, strings.TrimSuffix(n.What, " ...")) {
			t.Errorf("%d bytes: %q", len(whole), n.What)
		}
	}
}
