package storage

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// TestVerifyEveryPart damages bytes all over every object of a store, bits and whole ranges: a deep verify names the
// object and says what is wrong there, a shallow one ends without a panic, and none of them takes a healthy object for
// a damaged one.
func TestVerifyEveryPart(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := populate(t, mem)
	tab.s.core.Trees.MemtableBytes = 1 // the last snapshot has runs
	if _, err := tab.Commit(ctx, commit.Change{Operation: "last",
		Ops: []commit.Operation{commit.AddFeatures(features("z"))}}); err != nil {
		t.Fatal(err)
	}
	var infos []object.Info
	for info, err := range mem.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if info.Size > 0 { // hints are empty
			infos = append(infos, info)
		}
	}
	parts := 60
	if race.Short() {
		parts = 8
	}
	tried, unnoticed := 0, map[string]int{}
	for _, info := range infos {
		clean := make([]byte, info.Size)
		if err := mem.ReadAt(ctx, info.Name, clean, 0); err != nil {
			t.Fatal(err)
		}
		put := func(b []byte) {
			if err := errors.Join(mem.Delete(ctx, info.Name), mem.PutIfAbsent(ctx, info.Name, b)); err != nil {
				t.Fatal(err)
			}
		}
		for k := range parts {
			at := k * len(clean) / parts
			b := bytes.Clone(clean)
			switch k % 4 {
			case 0, 1:
				b[at] ^= 1 << (k % 8)
			case 2:
				b[at] ^= 0xff
			case 3:
				for i := at; i < min(at+16, len(b)); i++ {
					b[i] = 0xff
				}
			}
			if bytes.Equal(b, clean) {
				continue
			}
			put(b)
			tried++
			s, err := Open(ctx, mem, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Verify(ctx, "", false, nil); err != nil {
				t.Fatalf("%s, byte %d: %v", info.Name, at, err)
			}
			r, err := s.Verify(ctx, "", true, nil)
			if err != nil {
				t.Fatalf("%s, byte %d: %v", info.Name, at, err)
			}
			named := false
			for _, d := range r.Damage {
				text := d.Error()
				named = named || strings.Contains(text, info.Name)
				if !errors.Is(d, format.ErrCorrupt) && !errors.Is(d, format.ErrUnsupported) || len(text) > 1000 {
					t.Errorf("%s, byte %d: %.1000s", info.Name, at, text)
				}
			}
			switch {
			case r.DamageCount == 0:
				unnoticed[fmt.Sprintf("%s byte %d of %d", info.Name[strings.LastIndexByte(info.Name, '/')+1:], at,
					len(clean))]++
			case !named:
				t.Errorf("%s, byte %d: not named in %v", info.Name, at, r.Damage)
			}
		}
		put(clean)
	}
	t.Logf("%d damages", tried)
	for what, n := range unnoticed {
		t.Errorf("unnoticed: %s (%d times)", what, n)
	}
	if r, err := newTable(t, mem).s.Verify(ctx, "", true, nil); err != nil || r.DamageCount > 0 {
		t.Fatal(err, r.Damage)
	}
}
