package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// awkward are names of every kind that has ever gone wrong somewhere. No two are equal.
var awkward = []string{
	".", "..", "...", "a", "A", "a.", ".a", "a ", " a", " ", "a/b", "/", "//", "a\\b", "../../x", "%", "%2F", "%2f",
	"a%2Fb", "%00", "%252F", "\x00", "a\x00",
	"\n", "a\nb", "\r\n", "\t", "\x1b[31m", "\x7f", "\xff", "\xff\xfe", "\xc3\x28", "é", "e\u0301", "\u00e9\u0301", "ﬁ",
	"fi", "\u202e", "\ufeff",
	"CON", "con", "NUL.txt", "aux", "COM1", "a:b", "a*b", "a?b", "<>|", "\"", "'", "`", "$HOME", "$(x)", "-", "--help",
	"-n", "@all", "~", "~root",
	"=", "a=b", "a=", "ds=1", "__HIVE_DEFAULT_PARTITION__", "%5F_HIVE_DEFAULT_PARTITION__", "_tmp", "_index",
	"snapshots", "newest", "tables",
	"日本語", "🙂", "null", "NaN", "0", "00", "0x0", "index.sst", strings.Repeat("x", 80), strings.Repeat("\xff",
		80), strings.Repeat("é", 40), strings.Repeat("/", 80),
}

// everyByte are names of one byte each, plain and in the middle.
func everyByte() (out []string) {
	for c := range 256 {
		out = append(out, string([]byte{byte(c)}), "q"+string([]byte{byte(c)})+"q")
	}
	return out
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// TestUsageRecordsMakeNoTable: records are passed over, those of a table that is there and those of one that is gone.
func TestUsageRecordsMakeNoTable(t *testing.T) {
	for what, blobs := range map[string]object.Store{"memory": object.NewMemory(), "local": localStore(t)} {
		s, err := Create(t.Context(), blobs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			tab, err := s.NewTable(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if name != "a" {
				if _, err := tab.Commit(t.Context(), commit.Change{Operation: "test",
					Ops: []commit.Operation{commit.AddFeatures{{ID: 1, Name: "f",
						Type: vector.Type{Kind: vector.String}}}}}); err != nil {
					t.Fatal(err)
				}
			}
			if name == "c" {
				continue
			}
			for _, record := range []string{"2026-11-22/x", "rollup/x"} {
				if err := blobs.PutIfAbsent(t.Context(), tab.UsagePrefix()+record, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if tables, err := s.Tables(t.Context()); err != nil || !slices.Equal(tables, []string{"b", "c"}) {
			t.Errorf("%s: %q, %v", what, tables, err)
		}
		if r, err := s.GC(t.Context(), gc.Options{NoWait: true}); err != nil || len(r.Removed) > 0 || r.Unknown > 0 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		if r, err := s.Verify(t.Context(), "", true, nil); err != nil || r.DamageCount > 0 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		if _, err := s.Table(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// BeforeClose: what was asked for and not taken back is called, once.
func TestBeforeClose(t *testing.T) {
	s, err := Create(t.Context(), object.NewMemory(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var called []string
	s.BeforeClose(func() { called = append(called, "a") })
	forget := s.BeforeClose(func() { called = append(called, "b") })
	forget()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	if !slices.Equal(called, []string{"a"}) {
		t.Errorf("called %q", called)
	}
}

// TestAwkwardTables makes tables of awkward names side by side: each is found under its own name alone.
func TestAwkwardTables(t *testing.T) {
	ctx := t.Context()
	for what, blobs := range map[string]object.Store{"memory": object.NewMemory(), "local": localStore(t)} {
		list := slices.Clone(awkward)
		if what == "memory" { // a disk takes its time
			list = append(list, everyByte()...)
		}
		// TestNamesRefused has those
		list = slices.DeleteFunc(distinct(list), func(n string) bool { return names.ValidateTable(n) != nil })
		if len(list) < 50 {
			t.Fatalf("%d list", len(list))
		}
		s, err := Create(ctx, blobs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range list {
			tab, err := s.NewTable(ctx, name)
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			if _, err := tab.Commit(ctx, commit.Change{Operation: fmt.Sprint(i)}); err != nil {
				t.Fatalf("%s: %q: %v", what, name, err)
			}
		}
		tables, err := s.Tables(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Sort(tables); !slices.Equal(tables, list) {
			t.Fatalf("%s: %d tables of %d:\n%q\n%q", what, len(tables), len(list), tables, list)
		}
		for i, name := range list {
			tab, err := s.Table(ctx, name)
			if err != nil {
				t.Fatalf("%s: %q: %v", what, name, err)
			}
			if snap, err := tab.Latest(ctx); err != nil || snap.Info().Number != 1 ||
				snap.Info().Operation != fmt.Sprint(i) {
				t.Fatalf("%s: %q: %v %v", what, name, snap, err)
			}
		}
		if r, err := s.Verify(ctx, "", true, nil); err != nil || r.DamageCount > 0 || r.Tables != uint64(len(list)) {
			t.Fatal(err, r.Damage)
		}
		if r, err := s.GC(ctx, gc.Options{NoWait: true}); err != nil || r.Unknown > 0 || r.Tables != uint64(len(list)) {
			t.Fatal(err, r)
		}
	}
	for _, bad := range []string{"", strings.Repeat("x", 81), strings.Repeat("x", 64<<10)} {
		if err := names.ValidateTable(bad); err == nil || len(err.Error()) > 500 {
			t.Errorf("name of %d bytes: %.600v", len(bad), err)
		}
	}
}

// TestAwkwardPartitions puts a segment into each of many partitions of awkward values and keys, and finds each alone.
func TestAwkwardPartitions(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.core.Trees.MemtableBytes = 2000 // runs too
	var partitions []catalog.Partition
	for _, v := range distinct(append(append(slices.Clone(awkward), everyByte()...), "", strings.Repeat("v", 4000))) {
		partitions = append(partitions, partition("k", v))
		if v != "" && len(v) < 4000 {
			partitions = append(partitions, partition(v, "v"))
		}
	}
	partitions = append(partitions, nil, catalog.Partition{{Key: "k", Null: true}}, partition("a", "b/c", "d", ""),
		partition("a", "b", "c", "", "d", ""), partition("a", "b", "c/d", ""))
	byID := map[string]catalog.Partition{}
	for i, p := range partitions {
		d, err := fakeSegment(ctx, tab, p, uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddSegments{d}}}); err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		byID[d.ID] = p
	}
	s, err := newTable(t, mem).Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Partitions(ctx)
	if err != nil || len(got) != len(distinctForms(partitions)) {
		t.Fatalf("%d partitions, want %d: %v", len(got), len(distinctForms(partitions)), err)
	}
	for i, p := range partitions {
		segs, err := s.Partition(ctx, p)
		found := false
		for _, d := range segs {
			found = found || d.Rows == uint64(i+1)
			if !byID[d.ID].Equal(p) {
				t.Errorf("partition %q holds a segment of %q", p, byID[d.ID])
			}
		}
		if err != nil || !found {
			t.Errorf("partition %q: %v %v", p, segs, err)
		}
		again, err := catalog.ParsePartition(p.String())
		if err != nil || !again.Equal(p) {
			t.Errorf("%q: parsed %#v, want %#v: %v", p.String(), again, p, err)
		}
	}
	for _, bad := range []catalog.Partition{partition("", "v"), partition("k", strings.Repeat("v", 64<<10)),
		partition(strings.Repeat("k", 64<<10), "v"), partition("k", strings.Repeat("\n", 2000))} {
		if err := bad.Validate(); err == nil || len(err.Error()) > 500 {
			t.Errorf("partition of %d bytes: %.600v", len(bad.String()), err)
		}
	}
}

func distinctForms(partitions []catalog.Partition) []string {
	var out []string
	for _, p := range partitions {
		out = append(out, p.String())
	}
	return distinct(out)
}

// TestAwkwardFeatures stores features of awkward names and finds each by its own. Names that are not UTF-8 are refused,
// as Arrow and JSON could not say them.
func TestAwkwardFeatures(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	var c commit.Change
	c.Operation = "ingest"
	var names []string
	for _, name := range distinct(append(append(slices.Clone(awkward), everyByte()...), strings.Repeat("n",
		catalog.MaxName))) {
		f := feature(name, int64Type)
		if err := f.Validate(); err != nil {
			if name == strings.ToValidUTF8(name, "") {
				t.Errorf("%q: %v", name, err)
			}
			continue
		}
		names = append(names, name)
		c.Set(append(commit.Op[commit.AddFeatures](&c), f))
	}
	c.Set(commit.AddSegments{writeSegment(t, tab, nil, []uint32{3}, 1, segment.Options{}, names...)})
	if _, err := tab.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	s, err := newTable(t, mem).Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Features(ctx)
	if err != nil || len(all) != len(names) {
		t.Fatalf("%d features of %d: %v", len(all), len(names), err)
	}
	found, err := s.Lookup(ctx, names...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.OpenSegment(ctx, commit.Op[commit.AddSegments](&c)[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		e, err := g.Lookup(ctx, f.ID)
		if err != nil || f.Name != names[i] || e[0].Meta.Name != names[i] {
			t.Fatalf("%q: %+v %v", names[i], f, err)
		}
	}
	if r, err := tab.s.Verify(ctx, "", true, nil); err != nil || r.DamageCount > 0 {
		t.Fatal(err, r.Damage)
	}
	for _, bad := range []string{"", strings.Repeat("n", catalog.MaxName+1), strings.Repeat("n", 1<<20)} {
		f := feature(bad, int64Type)
		if err := f.Validate(); err == nil || len(err.Error()) > 500 {
			t.Errorf("name of %d bytes: %.600v", len(bad), err)
		}
	}
	if _, err := s.Lookup(ctx, strings.Repeat("n", 1<<20)); err == nil || len(err.Error()) > 500 {
		t.Errorf("look-up of a name of 1 MiB: %d bytes of message", len(fmt.Sprint(err)))
	}
}

// refused are names that would be read as something else where they are typed, or cannot be seen, and a part of what
// the refusal says.
var refused = map[string]string{
	"c2@y": `"@" stands between`, "@": `"@" stands between`, "c2@": `"@" stands between`, "@y": `"@" stands between`,
	"a,b": `"," stands between`, ",": `"," stands between`, "-": "begins with -", "--help": "begins with -",
	"-n": "begins with -",
	" ":  "begins or ends with a space", " a": "begins or ends with a space", "a ": "begins or ends with a space",
	"a\u00a0": "begins or ends with a space",
	"a\nb":    "U+000A", "\x00": "U+0000", "a\x00": "U+0000", "a\tb": "U+0009", "\x1b[31m": "U+001B",
	"a\x7fb":   "U+007F",
	"a\u0085b": "U+0085",
	"a\u202eb": "U+202E", "\ufeffa": "U+FEFF", "a\u200bb": "U+200B", "a\u2028b": "U+2028",
	"\xff": "is not UTF-8", "a\xc3": "is not UTF-8", "\xed\xa0\x80": "is not UTF-8", "": "of 0 bytes",
}

// TestNamesRefused: tables, overlays, sample lists and branches are not made under such names.
func TestNamesRefused(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, object.NewMemory(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range refused {
		_, err := s.NewTable(ctx, name)
		for what, err := range map[string]error{
			"table": err,
			"overlay": commit.Change{Operation: "x", Base: 1,
				Ops: []commit.Operation{commit.DefineOverlays{overlay(name, "x")}}}.Validate(),
			"sample list": commit.Change{Operation: "x", Base: 1,
				Ops: []commit.Operation{commit.DefineLists{{Name: name}}}}.Validate(),
			"branch": commit.Change{Operation: "x", Base: 1,
				Ops: []commit.Operation{commit.SetBranches{{Name: name, Snapshot: 1}}}}.Validate(),
		} {
			if !errors.Is(err, names.ErrName) || !strings.Contains(err.Error(), why) ||
				!strings.Contains(err.Error(), what) {
				t.Errorf("%s %q: %v: want %q", what, name, err, why)
			}
		}
	}
	for _, name := range []string{"c2", "ads/é", "a b", "日本語", "🙂", "a-b", "a:b", "x.y", "..", "%40", "a'b", "*",
		"null", "0"} {
		if err := names.ValidateTable(name); err != nil {
			t.Error(err)
		}
		if err := (commit.Change{Operation: "x", Base: 1, Ops: []commit.Operation{commit.SetBranches{{Name: name,
			Snapshot: 1}}}}).Validate(); err != nil {
			t.Error(err)
		}
	}
}
