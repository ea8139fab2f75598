package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// Names, globs and sets say what a plan expands; it is a part of the encoding, of the hash and of what is printed.
func TestPlanExpand(t *testing.T) {
	list := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	plan := func() *Plan {
		return &Plan{Table: "ads", Snapshot: 1, BatchSize: 1, Output: OutputTensors, Dedup: DedupIKJT,
			Features: []catalog.Feature{
				{ID: 1, Name: "item_a", Type: list}, {ID: 2, Name: "user", Type: list}, {ID: 3, Name: "item_b",
					Type: list},
				{ID: 4, Name: "key", Role: catalog.RoleUserKey, Type: list},
			}}
	}
	hashes := map[uint64]bool{plan().Hash(): true}
	for _, c := range []struct {
		entries []string
		want    []bool
	}{
		{[]string{"item_*"}, []bool{true, false, true, false}}, {[]string{"user", "@keys"},
			[]bool{false, true, false, true}},
		{[]string{"@all"}, []bool{true, true, true, true}}, {[]string{"item_b", "item_b"},
			[]bool{false, false, true, false}},
	} {
		p := plan()
		if err := p.expand(c.entries); err != nil || !slices.Equal(p.Expanded, c.want) {
			t.Errorf("%v: %v, %v", c.entries, p.Expanded, err)
		}
		data, err := p.MarshalJSON()
		if err != nil || strings.Count(string(data), `"expanded":true`) != strings.Count(p.String(), " (expanded)\n") {
			t.Errorf("%s, %v:\n%s", data, err, p)
		}
		if hashes[p.Hash()] {
			t.Errorf("%v: the hash of another plan", c.entries)
		}
		hashes[p.Hash()] = true
	}
	for entry, want := range map[string]string{"usr": `did you mean "user"`, "x*": `"x*"`, "": "empty",
		"@nil": `set "@nil"`} {
		p := plan()
		err := p.expand([]string{"user", entry})
		if err == nil || !strings.Contains(err.Error(), want) ||
			errors.Is(err, storage.ErrNotFound) != (entry == "usr" || entry == "x*") {
			t.Errorf("%q: %v, want %q", entry, err, want)
		}
	}
	for _, expanded := range [][]bool{{}, {true}, {false, false, false, false}} {
		p := plan()
		p.Expanded = expanded
		if p.Validate() == nil {
			t.Errorf("%v is valid", expanded)
		}
	}
}
