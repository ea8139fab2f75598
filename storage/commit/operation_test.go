package commit

import (
	"strings"
	"testing"
)

// TestOpsAreValues: an operation that Op would not find is refused, for others check themselves against it.
func TestOpsAreValues(t *testing.T) {
	for want, ops := range map[string][]Operation{
		"operation 1 is nil":                      {DropLists{}, nil},
		"operation 1 is a *commit.AddSegments":    {RemoveSegments{}, &AddSegments{}},
		"operation 0 is a *commit.DropOverlays":   {(*DropOverlays)(nil)},
		"commit.ExpireBelow twice":                {ExpireBelow(1), DropLists{}, ExpireBelow(2)},
		"base of 0: branches are changed against": {DropBranches{"b"}},
	} {
		err := Change{Operation: "test", Ops: ops}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
