package source

import (
	"slices"
	"testing"
)

// TestFormatNames: each name that an error offers is one that is taken.
func TestFormatNames(t *testing.T) {
	names := formatNames()
	for _, name := range names {
		if formatNamed(name) == nil {
			t.Errorf("%s is no format", name)
		}
	}
	if !slices.Contains(names, "csv") || formatNamed("csv") != formatNamed("text") {
		t.Errorf("%v", names)
	}
}
