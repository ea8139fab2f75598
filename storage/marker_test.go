package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// TestCreateMeanwhile: another makes the store after Create has looked for the marker, and before it has looked whether
// the root is empty.
func TestCreateMeanwhile(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	h := &hookedStore{Store: mem}
	h.lists = func(string) {
		h.lists = nil
		other, err := Create(ctx, mem, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		tab, err := other.NewTable(ctx, "ads")
		if err == nil {
			_, err = tab.Commit(ctx, commit.Change{Operation: "ingest",
				Ops: []commit.Operation{commit.AddFeatures(features("a"))}})
		}
		if err != nil {
			t.Error(err)
		}
	}
	s, err := Create(ctx, h, Options{})
	if err != nil {
		t.Fatalf("the store that another has just made: %v", err)
	}
	if tables, err := s.Tables(ctx); err != nil || len(tables) != 1 {
		t.Errorf("tables %v, %v", tables, err)
	}
}

// TestCreateBesideDirectory: where a directory has the marker's name, as a checkout of this project has in a home
// directory, no store can be made, and none is made without a marker, which nobody could open.
func TestCreateBesideDirectory(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	if err := os.Mkdir(filepath.Join(l.Root(), names.Marker), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Create(ctx, l, Options{Init: true})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := s.NewTable(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
		Ops: []commit.Operation{commit.AddFeatures(features("a"))}}); err == nil {
		t.Fatal("committed to a store that does not open")
	} else if !strings.Contains(err.Error(), "marker") {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(l.Root(), "tables")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

// TestCreateAfterProbe: what the probe of a process that was killed has left does not keep the next from making the
// store, and anything else does.
func TestCreateAfterProbe(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	for range 3 {
		if err := mem.PutIfAbsent(ctx, names.RandomID().Dir()+names.ProbeFile, []byte("probe 1")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Create(ctx, mem, Options{}); err != nil {
		t.Error(err)
	}
	if err := mem.PutIfAbsent(ctx, "other/probe", nil); err != nil {
		t.Fatal(err)
	}
	_, err := Create(ctx, mem, Options{})
	if !errors.Is(err, ErrNoStore) || !strings.Contains(err.Error(), "other/probe") {
		t.Error(err)
	}
}

// TestNewerStore: a store of a later version is refused as such, and one whose marker is damaged as damaged.
func TestNewerStore(t *testing.T) {
	ctx := t.Context()
	const head = "dsistore 3 0123456789abcdef0123456789abcdef "
	whole := fmt.Appendf(nil, "%s%016x\n", head, xxhash.Sum64String(head))
	for text, want := range map[string]error{
		string(whole): format.ErrUnsupported,
		strings.Replace(string(whole), "dsistore 3", "dsistore 4", 1): format.ErrCorrupt,
		strings.Repeat("x", markerBytes):                              format.ErrCorrupt,
	} {
		mem := object.NewMemory()
		if err := mem.PutIfAbsent(ctx, names.Marker, []byte(text)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(ctx, mem, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tables(ctx); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

// TestRepairMarker: a marker is written anew where a table shows that there is a store, and only there.
func TestRepairMarker(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	s, err := Create(ctx, mem, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := s.NewTable(ctx, "ads")
	if err == nil {
		_, err = tab.Commit(ctx, commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddFeatures(features("a"))}})
	}
	if err != nil {
		t.Fatal(err)
	}
	const newer = "dsistore 3 0123456789abcdef0123456789abcdef "
	for _, c := range []struct {
		marker string // empty: none
		apply  bool
		want   error // an error; nil: it is damage
	}{
		{strings.Repeat("x", markerBytes), false, nil},
		{strings.Repeat("x", markerBytes), true, nil},
		{"dsistore 2", true, nil},
		{"", false, nil},
		{"", true, nil},
		{fmt.Sprintf("%s%016x\n", newer, xxhash.Sum64String(newer)), true, format.ErrUnsupported},
	} {
		if err := mem.Delete(ctx, names.Marker); err != nil {
			t.Fatal(err)
		}
		if c.marker != "" {
			if err := mem.PutIfAbsent(ctx, names.Marker, []byte(c.marker)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(ctx, mem, Options{})
		if err != nil {
			t.Fatal(err)
		}
		damage, err := s.RepairMarker(ctx, c.apply)
		if !errors.Is(err, c.want) || (c.want == nil) != errors.Is(damage, format.ErrCorrupt) {
			t.Fatalf("%q: %v, %v", c.marker, damage, err)
		}
		_, err = s.Table(ctx, "ads")
		if again, rerr := s.RepairMarker(ctx, false); err == nil && (again != nil || rerr != nil) {
			t.Errorf("%q: repaired, %v, %v", c.marker, again, rerr)
		}
		if repaired := err == nil; repaired != (c.apply && c.want == nil) {
			t.Errorf("%q: after it %v", c.marker, err)
		}
	}
}
