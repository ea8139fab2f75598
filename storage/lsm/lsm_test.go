package lsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// TestTreeBounds: a stored tree makes a reader allocate little, however its bytes were chosen.
func TestTreeBounds(t *testing.T) {
	// Keys of the longest kind, each with all but a byte or two from the one before: 6 bytes that stand for 4,000.
	var b []byte
	b = append(b, 0) // no runs
	const n = 100_000
	b = binary.AppendUvarint(b, n)
	prev := make([]byte, MaxKey)
	for i := range n {
		key := bytes.Clone(prev)
		binary.BigEndian.PutUint32(key[MaxKey-4:], uint32(i+1))
		shared := MaxKey - 4
		for i > 0 && key[shared] == prev[shared] {
			shared++
		}
		if i == 0 {
			shared = 0
		}
		b = binary.AppendUvarint(b, uint64(shared))
		b = wire.AppendString(b, key[shared:])
		b = wire.AppendString(b, []byte{RemovedMark})
		prev = key
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := wire.Decoder{Rest: b}
	DecodeTree(&d, Listing)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; d.Reason == "" || got > 64<<20 {
		t.Errorf("%d bytes became %d: %q", len(b), got, d.Reason)
	}
}

// FuzzTree: what is accepted is the same when it is written and read again.
func FuzzTree(f *testing.F) {
	f.Add(AppendTree(nil, Tree{Runs: []Run{{names.NewID(names.TableID{1}), 100, 7}},
		Memtable: []Entry{{[]byte("a"), []byte("1")}, {[]byte("ab"), nil}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := wire.Decoder{Rest: b}
		tree := DecodeTree(&d, Schema)
		if d.End(); d.Reason != "" {
			return
		}
		d = wire.Decoder{Rest: AppendTree(nil, tree)}
		if again := DecodeTree(&d, Schema); d.Reason != "" || !reflect.DeepEqual(again, tree) {
			t.Fatalf("%s\n%+v\n%+v", d.Reason, again, tree)
		}
	})
}

// TestTreeIsMap changes trees at random, with memtables of several sizes, and holds them to a map: by Get, by Iter, and
// from several starts and ends.
func TestTreeIsMap(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := NewStore(object.NewMemory(), []int{1, 60, 300, 5000}[seed%4])
		tree, model := Tree{Kind: Listing}, map[string]string{}
		for range 60 {
			var changes []Entry
			for range 1 + rng.IntN(20) {
				key := fmt.Sprint("k", rng.IntN(200))
				if rng.IntN(3) == 0 {
					changes = append(changes, Entry{[]byte(key), nil})
					delete(model, key)
				} else {
					value := fmt.Sprint(rng.Uint64())
					changes = append(changes, Entry{[]byte(key), []byte(value)})
					model[key] = value
				}
			}
			var err error
			forget := rng.IntN(20) == 0
			if tree, _, err = s.Put(t.Context(), names.TableID{1}, tree, SortEntries(changes), forget); err != nil {
				t.Fatal(err)
			}
		}
		var keys [][]byte
		for i := range 200 {
			keys = append(keys, fmt.Append(nil, "k", i))
		}
		values, err := s.Get(t.Context(), tree, keys...)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if want, ok := model[string(keys[i])]; ok != (v != nil) || want != string(v) {
				t.Fatalf("seed %d: %s is %q, want %q", seed, keys[i], v, want)
			}
		}
		sorted := slices.Sorted(maps.Keys(model))
		for _, lower := range []string{"", "k1", "k150", "z"} {
			for _, upper := range []string{"", "k15", "k9"} {
				var want, got []string
				for _, k := range sorted {
					if k >= lower && (upper == "" || k < upper) {
						want = append(want, k+"="+model[k])
					}
				}
				var end []byte
				if upper != "" {
					end = []byte(upper)
				}
				it := s.Iter(t.Context(), tree, end)
				for ok := it.Seek(t.Context(), []byte(lower)); ok; ok = it.Next(t.Context()) {
					got = append(got, string(it.Key)+"="+string(it.Value))
				}
				if it.Err != nil || !slices.Equal(got, want) {
					t.Fatalf("seed %d, from %q to %q: %v, want %v: %v", seed, lower, upper, got, want, it.Err)
				}
			}
		}
		if n := len(tree.Runs); n > maxRuns || seed%4 < 2 && n == 0 {
			t.Fatalf("seed %d: %d runs", seed, n)
		}
	}
}

// TestForget: a tree that forgets names one run, which has no entry that was removed or replaced, whether the changes
// were many or none.
func TestForget(t *testing.T) {
	mem := object.NewMemory()
	s := NewStore(mem, 40)
	tree := Tree{Kind: Listing}
	put := func(forget bool, changes ...Entry) []names.ID {
		t.Helper()
		out, made, err := s.Put(t.Context(), names.TableID{1}, tree, SortEntries(changes), forget)
		if err != nil {
			t.Fatal(err)
		}
		tree = out
		return made
	}
	if made := put(true, Entry{[]byte("a"), []byte("short")}); len(made) > 0 || len(tree.Runs) > 0 {
		t.Fatalf("a tree without runs: %+v", tree)
	}
	put(false, Entry{[]byte("b"), nil})
	before := tree
	if put(true); len(tree.Memtable) != 1 || len(before.Memtable) != 2 || !before.Remembers() || tree.Remembers() {
		t.Fatalf("a tree without runs: %+v, before %+v", tree, before)
	}
	for i := range 8 {
		put(false, Entry{fmt.Append(nil, "person ", i), bytes.Repeat([]byte("x"), 400>>i)})
	}
	put(false, Entry{[]byte("person 3"), nil}, Entry{[]byte("person 5"), []byte("other")})
	for _, forget := range []bool{false, true} {
		if forget {
			put(true)
			if made := put(true); len(made) > 0 || tree.Remembers() {
				t.Fatalf("it forgets again: %v", made)
			}
		}
		if n := len(tree.Runs); n != 1 && forget || n < 2 && !forget {
			t.Fatalf("forget %v: %d runs", forget, n)
		}
	}
	r, err := s.OpenRunChecked(t.Context(), Listing, tree.Runs[0])
	if err != nil {
		t.Fatal(err)
	}
	n, it := 0, r.Iter(nil)
	for ok := it.SeekGE(t.Context(), nil); ok; ok = it.Next(t.Context()) {
		n++
	}
	if it.Err() != nil || n != 8 || len(tree.Memtable) > 0 {
		t.Fatalf("%d entries in the run, %d in memory: %v", n, len(tree.Memtable), it.Err())
	}
	values, err := s.Get(t.Context(), tree, []byte("person 3"), []byte("person 5"), []byte("a"))
	if err != nil || values[0] != nil || string(values[1]) != "other" || string(values[2]) != "short" {
		t.Fatalf("%q %v", values, err)
	}
}

func isForeign(err error) bool {
	return err != nil && strings.Contains(err.Error(), ": the snapshot says ")
}

// TestForeignRun: a run in the place of another one of the same keys and size is damage: at once where a table is read
// whole, else for who reads all of it.
func TestForeignRun(t *testing.T) {
	for _, entries := range []int{100, 20_000, 300_000} {
		mem := object.NewMemory()
		s := NewStore(mem, 1)
		var refs []Run
		var tables [][]byte
		var changes []Entry
		for value := range 2 {
			changes = nil
			for i := range entries {
				changes = append(changes, Entry{fmt.Appendf(nil, "key %06d", i), fmt.Append(nil, value)})
			}
			tree, _, err := s.Put(t.Context(), names.TableID{1}, Tree{Kind: Listing}, changes, false)
			if err != nil || len(tree.Runs) != 1 {
				t.Fatal(tree.Runs, err)
			}
			ref := tree.Runs[0]
			b := make([]byte, ref.Size)
			if err := mem.ReadAt(t.Context(), ref.ID.ListingName(), b, 0); err != nil {
				t.Fatal(err)
			}
			refs, tables = append(refs, ref), append(tables, b)
		}
		if refs[0].Size != refs[1].Size {
			t.Fatalf("%d and %d bytes", refs[0].Size, refs[1].Size)
		}
		for _, foreign := range []bool{false, true} {
			if foreign {
				if err := mem.Delete(t.Context(), refs[0].ID.ListingName()); err != nil {
					t.Fatal(err)
				}
				if err := mem.PutIfAbsent(t.Context(), refs[0].ID.ListingName(), tables[1]); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.OpenRun(t.Context(), Listing, refs[0])
			if whole := refs[0].Size <= 64<<10; isForeign(err) != (foreign && whole) {
				t.Errorf("%d entries, foreign %v: opened: %v", entries, foreign, err)
			}
			if _, _, err := NewStore(mem, 1).Put(t.Context(), names.TableID{1}, Tree{Kind: Listing, Runs: refs[:1]},
				changes, false); isForeign(err) != foreign {
				t.Errorf("%d entries, foreign %v: merged: %v", entries, foreign, err)
			}
			_, err = s.OpenRunChecked(t.Context(), Listing, refs[0])
			if isForeign(err) != foreign {
				t.Errorf("%d entries, foreign %v: opened to read all: %v", entries, foreign, err)
			}
		}
	}
}
