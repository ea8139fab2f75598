package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/objecttest"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/sst"
)

var stringType = vector.Type{Kind: vector.String}

// A keyed is a segment with a key feature of each kind, and their values: text and number of each row, nil where it is
// null.
type keyed struct {
	t       testing.TB
	tab     *Table
	d       catalog.SegmentDescriptor
	numbers []*int64
	texts   []*string
	stripes []uint32
}

var (
	keyNumber = withRole(feature("user", int64Type), catalog.RoleUserKey)
	keyText   = withRole(feature("request", stringType), catalog.RoleRequestKey)
	keyGroup  = withRole(feature("session", int64Type), catalog.RoleSessionKey)
)

// makeKeyed writes a segment whose keys are drawn from so many, in a group too: the session is the row's number halved,
// in its stripe.
func makeKeyed(t testing.TB, tab *Table, rng *rand.Rand, stripes []uint32, distinct int) *keyed {
	k := &keyed{t: t, tab: tab, stripes: stripes}
	w, err := tab.NewSegment(t.Context(), nil, stripes, segment.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range stripes {
		for range rows {
			v := rng.Int64N(int64(distinct))
			text := fmt.Sprint("key-", rng.IntN(distinct))
			k.numbers, k.texts = append(k.numbers, &v), append(k.texts, &text)
			if rng.IntN(10) == 0 {
				k.numbers[len(k.numbers)-1] = nil
			}
			if rng.IntN(10) == 0 {
				k.texts[len(k.texts)-1] = nil
			}
		}
	}
	each := func(typ vector.Type, add func(c *vector.Column, row int)) func(*format.Writer) error {
		return func(w *format.Writer) error {
			row := 0
			for _, rows := range stripes {
				c := vector.NewColumn(typ)
				for range rows {
					add(c, row)
					row++
				}
				if err := w.WriteStripe(c); err != nil {
					return err
				}
			}
			return nil
		}
	}
	err = errors.Join(
		w.AddFeature(t.Context(), 0, keyNumber, each(int64Type, func(c *vector.Column, row int) {
			if v := k.numbers[row]; v == nil {
				c.AppendNulls(1)
			} else {
				c.Ints = append(c.Ints, *v)
				c.AddSlot()
			}
		})),
		w.AddFeature(t.Context(), 1, keyText, each(stringType, func(c *vector.Column, row int) {
			if v := k.texts[row]; v == nil {
				c.AppendNulls(1)
			} else {
				c.Data = append(c.Data, *v...)
				c.AddSlot()
			}
		})),
		w.AddGroup(t.Context(), 2, []catalog.Feature{keyGroup, feature("other", int64Type)}, groupRows(stripes)),
		w.AddFeature(t.Context(), 5, feature("plain", int64Type), denseRows(stripes, 3)))
	if err != nil {
		t.Fatal(err)
	}
	if k.d, err = w.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// fewKeys is that of package segment: a key table is asked for at most one key per so many rows.
const fewKeys = 8

// rows returns the rows that Snapshot.KeyRows says, nil where it says all.
func (k *keyed) rows(f catalog.Feature, hashes ...uint64) (map[uint32]bool, error) {
	k.t.Helper()
	s := k.tab.log.Empty()
	found, err := s.KeyRows(k.t.Context(), f, hashes, []catalog.SegmentDescriptor{k.d})
	if err != nil || found[0] == nil {
		return nil, err
	}
	out := map[uint32]bool{}
	for _, row := range found[0].ToArray() {
		out[row] = true
	}
	return out, nil
}

// TestKeyRows: every row with one of the keys is in what KeyRows returns, and hardly a stripe without one.
func TestKeyRows(t *testing.T) {
	checked, extra := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		tab := newTable(t, object.NewMemory())
		tab.s.core.Segments.MinKeyRows = 1
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		var stripes []uint32
		for range rapid.SampledFrom([]int{1, 2, 9, 300}).Draw(rt, "stripes") {
			stripes = append(stripes, uint32(rng.IntN(60)+1))
		}
		k := makeKeyed(t, tab, rng, stripes, rapid.SampledFrom([]int{3, 100, 1 << 40}).Draw(rt, "distinct"))
		if k.d.KeysSize == 0 {
			t.Fatal("no table of keys")
		}
		for range 10 {
			numbers, texts := map[int64]bool{}, map[string]bool{}
			var intHashes, textHashes []uint64
			for range rng.IntN(len(k.numbers)/fewKeys + 1) {
				row := rng.IntN(len(k.numbers))
				if v := k.numbers[row]; v != nil && rng.IntN(4) > 0 {
					numbers[*v] = true
				} else {
					numbers[rng.Int64()] = true
				}
				if v := k.texts[row]; v != nil {
					texts[*v] = true
				}
			}
			for v := range numbers {
				intHashes = append(intHashes, segment.HashInt(v))
			}
			for v := range texts {
				textHashes = append(textHashes, segment.HashText([]byte(v)))
			}
			check := func(f catalog.Feature, hashes []uint64, has func(row int) bool) {
				got, err := k.rows(f, hashes...)
				if err != nil {
					t.Fatal(err)
				}
				row := 0
				for _, rows := range stripes {
					some, returned := false, false
					for range rows {
						some = some || has(row)
						if has(row) && got != nil && !got[uint32(row)] {
							t.Fatalf("row %d of feature %s has a key, and is not returned", row, f.Name)
						}
						returned = returned || got[uint32(row)]
						row++
					}
					if got != nil {
						checked++
						if returned && !some {
							extra++
						}
					}
				}
			}
			check(keyNumber, intHashes, func(row int) bool { return k.numbers[row] != nil && numbers[*k.numbers[row]] })
			check(keyText, textHashes, func(row int) bool { return k.texts[row] != nil && texts[*k.texts[row]] })
		}
		for _, f := range []catalog.Feature{feature("plain", int64Type), feature("other", int64Type), feature("none",
			int64Type)} {
			if got, err := k.rows(f, 1); got != nil || err != nil {
				t.Fatalf("feature %s has no table: %v, %v", f.Name, got, err)
			}
		}
		if err := tab.s.core.Segments.CheckKeys(t.Context(), k.d); err != nil {
			t.Fatal(err)
		}
	})
	if checked == 0 || extra > checked/500 {
		t.Errorf("of %d stripes %d were returned without a key", checked, extra)
	}
}

// TestKeyRowsLarge: a table of many buckets and chunks says where each key is, and that others are not there; asked for
// too many keys it says nothing.
func TestKeyRowsLarge(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	stripes := []uint32{20000, 30000, 10000}
	k := makeKeyed(t, tab, rand.New(rand.NewPCG(1, 2)), stripes, 1<<50)
	extra := 0
	for row := 0; row < 60000; row += 997 {
		if v := k.numbers[row]; v != nil {
			got, err := k.rows(keyNumber, segment.HashInt(*v))
			if err != nil || !got[uint32(row)] {
				t.Fatalf("row %d: %d rows, %v", row, len(got), err)
			}
			if len(got) > 30000 {
				extra++ // another key has its bucket and fingerprint: about 1 in 150
			}
		}
		if got, err := k.rows(keyGroup, segment.HashInt(int64(row%10000/2*3))); err != nil || len(got) == 0 {
			t.Fatalf("session of row %d: %d rows, %v", row, len(got), err)
		}
	}
	if extra > 5 {
		t.Errorf("of 61 keys %d were found in more than a stripe", extra)
	}
	found := 0
	for i := range 3000 {
		got, err := k.rows(keyNumber, segment.HashInt(-1-int64(i)))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			found++
		}
	}
	if found > 3 {
		t.Errorf("%d of 3000 keys that are not there were found", found)
	}
	var many []uint64
	for i := range 60000/fewKeys + 1 {
		many = append(many, segment.HashInt(int64(i)))
	}
	if got, err := k.rows(keyNumber, many...); err != nil || got != nil {
		t.Fatal("so many keys were looked up", err)
	}
	if perRow := float64(k.d.KeysSize) / 60000; perRow > 11 {
		t.Errorf("%.1f bytes per row", perRow)
	}
}

// TestKeyTableSmall: segments of fewer rows than Options.KeyRows, and those without a key, have no table.
func TestKeyTableSmall(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	if k := makeKeyed(t, tab, rand.New(rand.NewPCG(1, 2)), []uint32{2000, 2095}, 100); k.d.KeysSize != 0 {
		t.Errorf("a segment of 4,095 rows has a table of keys of %d bytes", k.d.KeysSize)
	}
	tab.s.core.Segments.MinKeyRows = 1
	if d := writeSegment(t, tab, nil, []uint32{50}, 1, segment.Options{}, "a"); d.KeysSize != 0 {
		t.Errorf("a segment without keys has a table of keys of %d bytes", d.KeysSize)
	}
}

// TestKeyTableDamage flips every byte of a key table: what is looked up is right, or an error that matches
// ErrCorrupt; and a deep verify finds it, a shallow one that the table is missing.
func TestKeyTableDamage(t *testing.T) {
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.core.Segments.MinKeyRows = 1
	k := makeKeyed(t, tab, rand.New(rand.NewPCG(1, 2)), []uint32{30, 20}, 1<<40)
	mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures{keyNumber, keyText,
		keyGroup, feature("other", int64Type), feature("plain", int64Type)}, commit.AddSegments{k.d}}})
	verifyClean(t, tab.s)
	seg, err := names.ParseID(k.d.ID)
	if err != nil {
		t.Fatal(err)
	}
	name := seg.KeysName()
	data := make([]byte, k.d.KeysSize)
	if err := mem.ReadAt(t.Context(), name, data, 0); err != nil {
		t.Fatal(err)
	}
	hash := segment.HashInt(*k.numbers[40])
	want, err := k.rows(keyNumber, hash)
	if err != nil || len(want) == 0 {
		t.Fatal(want, err)
	}
	damaged := 0
	for i := range data {
		d := bytes.Clone(data)
		d[i] ^= byte(1 + i%255)
		if err := errors.Join(mem.Delete(t.Context(), name), mem.PutIfAbsent(t.Context(), name, d)); err != nil {
			t.Fatal(err)
		}
		tab.s.core.Segments.Close()
		got, err := k.rows(keyNumber, hash)
		// Damage that is found means every row.
		if err != nil || got != nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("byte %d: %v, %v", i, got, err)
		}
		if tab.s.core.Segments.CheckKeys(t.Context(), k.d) != nil {
			damaged++
		}
	}
	// Pebble's properties are not read, but for their checksum.
	if damaged < len(data)*9/10 {
		t.Errorf("%d of %d damaged bytes were found", damaged, len(data))
	}
	r, err := tab.s.Verify(t.Context(), "", true, nil)
	if err != nil || len(r.Damage) == 0 {
		t.Fatal(r, err)
	}
	if err := mem.Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	r, err = tab.s.Verify(t.Context(), "", false, nil)
	if err != nil || len(r.Damage) == 0 {
		t.Fatal(r, err)
	}
	tab.s.core.Segments.Close()
	if got, err := k.rows(keyNumber, hash); got != nil || err != nil {
		t.Fatal(err)
	}
}

// TestKeyTableUntrusted changes what a key table says, under checksums that are right: what is looked up is rows,
// or an error that matches ErrCorrupt.
func TestKeyTableUntrusted(t *testing.T) {
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.core.Segments.MinKeyRows = 1
	k := makeKeyed(t, tab, rand.New(rand.NewPCG(1, 2)), []uint32{30, 20}, 1<<40)
	seg, err := names.ParseID(k.d.ID)
	if err != nil {
		t.Fatal(err)
	}
	name := seg.KeysName()
	open, err := lsm.OpenTable(t.Context(), mem, name, k.d.KeysSize, sst.Fetch{})
	if err != nil {
		t.Fatal(err)
	}
	var keys, values [][]byte
	it := open.Iter(nil)
	for ok := it.SeekGE(t.Context(), nil); ok; ok = it.Next(t.Context()) {
		keys, values = append(keys, bytes.Clone(it.Key())), append(values, bytes.Clone(it.Value()))
	}
	if it.Err() != nil || len(keys) != 7 {
		t.Fatal(len(keys), it.Err())
	}
	var hashes []uint64
	for _, v := range k.numbers[:6] {
		if v != nil {
			hashes = append(hashes, segment.HashInt(*v))
		}
	}
	refused := 0
	rapid.Check(t, func(rt *rapid.T) {
		changed := rapid.IntRange(0, len(keys)-1).Draw(rt, "entry")
		var out bytes.Buffer
		w := sst.NewWriter(&out)
		for i := range keys {
			v := bytes.Clone(values[i])
			if i == changed {
				at := rapid.IntRange(0, len(v)-1).Draw(rt, "at")
				switch rapid.IntRange(0, 3).Draw(rt, "how") {
				case 0:
					v[at] ^= rapid.Byte().Draw(rt, "bits")
				case 1:
					v = v[:at]
				case 2:
					v = append(v, v[:at]...)
				default:
					continue // the entry is missing
				}
			}
			if err := w.Add(keys[i], v); err != nil {
				rt.Fatal(err)
			}
		}
		size, err := w.Finish()
		if err != nil {
			rt.Fatal(err)
		}
		_ = mem.Delete(t.Context(), name)
		if err := mem.PutIfAbsent(t.Context(), name, out.Bytes()); err != nil {
			rt.Fatal(err)
		}
		tab.s.core.Segments.Close()
		k.d.KeysSize = uint64(size)
		_, err = k.rows(keyNumber, hashes...)
		deep := tab.s.core.Segments.CheckKeys(t.Context(), k.d)
		for _, err := range []error{err, deep} {
			if err != nil && !errors.Is(err, format.ErrCorrupt) {
				rt.Fatal(err)
			}
		}
		if deep != nil {
			refused++
		}
	})
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestKeyRowsUnderOverlay: where an overlay that is part of the table has the key, the segments' own tables say
// nothing.
func TestKeyRowsUnderOverlay(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	tab.s.core.Segments.MinKeyRows = 1
	k := makeKeyed(t, tab, rand.New(rand.NewPCG(1, 2)), []uint32{30, 20}, 1<<40)
	mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures{keyNumber, keyText,
		keyGroup, feature("other", int64Type), feature("plain", int64Type)}, commit.AddSegments{k.d}}})
	look := func() bool {
		snap, err := tab.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows, err := snap.KeyRows(t.Context(), keyNumber, []uint64{segment.HashInt(-1)},
			[]catalog.SegmentDescriptor{k.d})
		if err != nil {
			t.Fatal(err)
		}
		return rows[0] != nil
	}
	o := catalog.Overlay{Name: "o", Features: []catalog.Feature{keyNumber}}
	mustCommit(t, tab, commit.Change{Operation: "overlay", Base: 1, Ops: []commit.Operation{commit.DefineOverlays{o}}})
	if !look() {
		t.Error("an overlay that nobody names counts")
	}
	mustCommit(t, tab, commit.Change{Operation: "merge", Base: 2, Ops: []commit.Operation{commit.MergeOverlays{"o"}}})
	if look() {
		t.Error("the overlay that is part of the table does not count")
	}
}

// TestKeyRowsRequests counts what PROTOCOL.md says of looking up keys where requests take long.
func TestKeyRowsRequests(t *testing.T) {
	for _, segments := range []int64{3, 70} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		tab.s.core.Segments.MinKeyRows = 1
		var add []catalog.SegmentDescriptor
		for i := range segments {
			add = append(add, makeKeyed(t, tab, rand.New(rand.NewPCG(1, uint64(i))), []uint32{40, 40}, 1<<50).d)
		}
		mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures{keyNumber, keyText, keyGroup,
			feature("other", int64Type), feature("plain", int64Type)}, commit.AddSegments(add)}})
		synctest.Test(t, func(t *testing.T) {
			counted := objecttest.NewMeter(mem)
			s, err := Open(t.Context(), counted, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, snap, err := s.Newest(t.Context(), "ads")
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []struct{ requests, trips int64 }{{segments, 1 + segments/32}, {0, 0}} {
				what := fmt.Sprintf("%d segments, look-up %d", segments, i)
				counted.Measure(t, what, func() error {
					_, err := snap.KeyRows(t.Context(), keyNumber, []uint64{segment.HashInt(int64(i)),
						segment.HashInt(-1)}, add)
					return err
				}).Check(t, what, want.requests, want.trips)
			}
		})
	}
}

// TestLargeKeyRowsRequests is TestKeyRowsRequests for a table of more than 1 MiB.
func TestLargeKeyRowsRequests(t *testing.T) {
	mem := object.NewMemory()
	tab := newTable(t, mem)
	k := makeKeyed(t, tab, rand.New(rand.NewPCG(1, 2)), []uint32{70000, 70000, 70000}, 1<<50)
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures{keyNumber, keyText, keyGroup,
		feature("other", int64Type), feature("plain", int64Type)}, commit.AddSegments{k.d}}})
	if k.d.KeysSize < 1<<20 {
		t.Fatal(k.d.KeysSize)
	}
	for _, c := range []struct {
		keys            int
		requests, trips int64
	}{{1, 4, 3}, {1000, 4, 3}} {
		synctest.Test(t, func(t *testing.T) {
			counted := objecttest.NewMeter(mem)
			s, err := Open(t.Context(), counted, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, snap, err := s.Newest(t.Context(), "ads")
			if err != nil {
				t.Fatal(err)
			}
			hashes := []uint64{segment.HashInt(*k.numbers[77777])}
			for i := range c.keys - 1 {
				hashes = append(hashes, segment.HashInt(-1-int64(i)))
			}
			what := fmt.Sprint(c.keys, " keys")
			counted.Measure(t, what, func() error {
				rows, err := snap.KeyRows(t.Context(), keyNumber, hashes, []catalog.SegmentDescriptor{k.d})
				if err == nil && !rows[0].Contains(77777) {
					t.Error("the row was not found")
				}
				return err
			}).Check(t, what, c.requests, c.trips)
		})
	}
}
