package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/storage/object"
)

// indexContent returns every entry of the index database.
func indexContent(ctx context.Context, s *Store) (string, error) {
	x, err := OpenIndex(ctx, s)
	if err != nil {
		return "", err
	}
	defer x.Close()
	it, err := x.db.NewIterWithContext(ctx, nil)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&b, "%x %x\n", it.Key(), it.Value())
	}
	return b.String(), errors.Join(it.Error(), it.Close())
}

// TestIndexHistories: after any history of commits to several tables, synced now and then by several handles, the index
// database holds what one made anew holds.
func TestIndexHistories(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(rt *rapid.T) {
		blobs := object.NewLocalFS(vfs.NewMem(), "/store")
		s, err := Create(ctx, blobs, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		s.tailBytes = rapid.SampledFrom([]uint64{1, 600, defaultTailBytes}).Draw(rt, "tail")
		live := map[string][]SegmentDescriptor{}
		for range rapid.IntRange(1, 14).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"a", "a%00", "b"}).Draw(rt, "table")
			tab, err := s.NewTable(ctx, name)
			if err != nil {
				rt.Fatal(err)
			}
			base := uint64(0)
			if snap, err := tab.Latest(ctx); err == nil {
				base = snap.Info().Number
			}
			c := Change{Operation: "x", Base: base}
			op := rapid.SampledFrom([]string{"add", "add", "overwrite", "remove", "sync"}).Draw(rt, "op")
			switch {
			case op == "sync":
				if err := SyncIndex(ctx, s); err != nil {
					rt.Fatal(err)
				}
				continue
			case op == "remove" && len(live[name]) > 0:
				c.Remove = []string{live[name][0].ID}
				live[name] = live[name][1:]
			default:
				p := partition("k", fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "partition")))
				features := features("f", fmt.Sprint("g", rapid.IntRange(0, 3).Draw(rt, "feature")))
				c.Features = features
				d := segment(t, tab, p, []uint32{3}, 1, SegmentOptions{}, features[0].Name, features[1].Name)
				c.Add = []SegmentDescriptor{d}
				if op == "overwrite" {
					c.Overwrite = []Partition{p}
					kept := live[name][:0]
					for _, l := range live[name] {
						if !l.Partition.Equal(p) {
							kept = append(kept, l)
						}
					}
					live[name] = kept
				}
				live[name] = append(live[name], d)
			}
			if _, err := tab.Commit(ctx, c); err != nil {
				rt.Fatal(err)
			}
		}
		if err := SyncIndex(ctx, s); err != nil {
			rt.Fatal(err)
		}
		grown, err := indexContent(ctx, s)
		if err != nil {
			rt.Fatal(err)
		}
		if err := RebuildIndex(ctx, s); err != nil {
			rt.Fatal(err)
		}
		anew, err := indexContent(ctx, s)
		if err != nil || grown != anew {
			rt.Fatalf("%v\ngrown:\n%s\nanew:\n%s", err, grown, anew)
		}
	})
}

// TestIndexDamage damages every file of the index database, in several ways: either the answers stay as they were, or an
// error says so and that the index can be made anew; and then it can.
func TestIndexDamage(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	tab := populate(t, l)
	s := tab.Store()
	snap, err := tab.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want, err := snap.FeatureTotals(ctx)
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(l.Root(), indexDir, indexDB)
	if err := RebuildIndex(ctx, s); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(db)
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string]func(b []byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"emptied": func(b []byte) []byte { return nil },
		"garbage": func(b []byte) []byte { return bytes.Repeat([]byte("garbage!"), len(b)/8+1) },
		"flipped": func(b []byte) []byte {
			b = bytes.Clone(b)
			for i := range b {
				if i%97 == 13 {
					b[i] ^= 0x41
				}
			}
			return b
		},
		"removed": nil,
	}
	failed := 0
	for _, e := range entries {
		for what, damage := range damages {
			if err := RebuildIndex(ctx, s); err != nil {
				t.Fatal(err)
			}
			now, err := os.ReadDir(db)
			if err != nil {
				t.Fatal(err)
			}
			var path string
			for _, n := range now { // the file of the same kind
				if n.Name() == e.Name() {
					path = filepath.Join(db, n.Name())
				}
			}
			if path == "" || e.Name() == "LOCK" {
				continue
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if damage == nil {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, damage(b), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := func() ([]FeatureTotals, error) {
				x, err := OpenIndex(ctx, s)
				if err != nil {
					return nil, err
				}
				got, err := x.FeatureTotals(ctx, snap)
				return got, errors.Join(err, x.Close())
			}()
			switch {
			case err != nil && !strings.Contains(err.Error(), "rebuil"):
				t.Errorf("%s %s: %v", e.Name(), what, err)
			case err != nil:
				failed++
			case !reflect.DeepEqual(got, want):
				t.Errorf("%s %s: other totals", e.Name(), what)
			}
			if err := SyncIndex(ctx, s); err != nil && !strings.Contains(err.Error(), "rebuil") {
				t.Errorf("%s %s: sync: %v", e.Name(), what, err)
			}
		}
	}
	t.Logf("%d failed", failed)
	if failed == 0 {
		t.Error("no damage was noticed")
	}
	if err := RebuildIndex(ctx, s); err != nil {
		t.Fatal(err)
	}
}
