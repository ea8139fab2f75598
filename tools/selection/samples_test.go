package selection

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

// A row of the model. number is unique, and name is its text; user is shared.
type row struct {
	number, user, value int
	day                 string
}

func (r row) name() string { return fmt.Sprintf("request-%d", r.number) }

// world is a table and the rows that readers must see of it.
type world struct {
	t     *testing.T
	blobs object.Store
	table *storage.Table
	rows  map[int]row
	next  int
}

func newWorld(t *testing.T, blobs object.Store) *world {
	w := &world{t: t, blobs: blobs, rows: map[int]row{}}
	store, err := storage.Create(t.Context(), blobs, storage.Options{MinKeyTableRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if w.table, err = store.NewTable(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	return w
}

// ingest adds rows of a day, in segments and stripes of few.
func (w *world) ingest(day string, n int, overwrite bool) {
	w.t.Helper()
	var b strings.Builder
	if overwrite {
		maps.DeleteFunc(w.rows, func(_ int, r row) bool { return r.day == day })
	}
	for range n {
		r := row{number: w.next, user: w.next % 7, value: w.next * 37 % 100, day: day}
		w.next++
		w.rows[r.number] = r
		fmt.Fprintf(&b, "{\"number\": %d, \"name\": %q, \"user\": %d, \"value\": %d, \"day\": %q}\n", r.number,
			r.name(), r.user, r.value, r.day)
	}
	path := w.file("rows.jsonl", b.String())
	roles := w.file("mapping.json", `{"columns": {"number": {"role": "user_key"}}}`)
	_, err := ingest.Run(w.t.Context(), w.table.Store(), "t", []string{path}, ingest.Options{
		MappingFile: roles, PartitionBy: "day", Overwrite: overwrite,
		Options: writer.Options{SegmentRows: 40, StripeRows: 16, Workers: 2, Memory: 64 << 20},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) latest() *storage.Snapshot {
	w.t.Helper()
	snap, err := w.table.Latest(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return snap
}

// read returns the numbers of the rows that a plan reads, in order of size.
func (w *world) read(snap *storage.Snapshot, opts reader.PlanOptions) []int {
	w.t.Helper()
	ctx := w.t.Context()
	opts.Features = []string{"number"}
	plan, err := reader.NewPlan(ctx, snap, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := reader.Open(ctx, snap, plan, reader.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	out := []int{}
	for {
		b, err := s.Next(ctx)
		if err == io.EOF {
			slices.Sort(out)
			return out
		}
		if err != nil {
			w.t.Fatal(err)
		}
		for _, v := range b.Columns[0].Ints {
			out = append(out, int(v))
		}
		b.Release()
	}
}

// want returns the numbers of the model's rows for which keep is true.
func (w *world) want(keep func(r row) bool) []int {
	out := []int{}
	for n, r := range w.rows {
		if keep(r) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) check(what string, got, want []int) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Fatalf("%s: %d rows: %v, want %d: %v", what, len(got), got, len(want), want)
	}
}

func TestDelete(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, object.NewMemory())
	w.ingest("1", 130, false)
	w.ingest("2", 90, false)
	first := w.latest()
	everything := w.want(func(row) bool { return true })
	for _, x := range []struct {
		q    Query
		gone func(r row) bool
	}{
		{Query{Where: "value < 20"}, func(r row) bool { return r.value < 20 }},
		{Query{Where: "user = 3", Partition: "day = '2'"}, func(r row) bool { return r.user == 3 && r.day == "2" }},
		{Query{Where: "value < 20"}, func(r row) bool { return false }},
		{Query{Partition: "day = '1'", Keys: &KeySource{Feature: "name",
			Paths: []string{w.file("k.txt", "name\nrequest-1\nrequest-2\nrequest-219\nrequest-999\n")}}},
			func(r row) bool { return r.number == 1 || r.number == 2 }},
	} {
		base := w.latest().Info()
		goes := w.want(x.gone)
		dry, err := Delete(ctx, w.table, &x.q, Options{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.latest().Info(); got != base {
			t.Fatalf("%s: a dry run made %+v of %+v", &x.q, got, base)
		}
		report, err := Delete(ctx, w.table, &x.q, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range goes {
			delete(w.rows, n)
		}
		info := w.latest().Info()
		if report.Deleted != uint64(len(goes)) || report.Left != uint64(len(w.rows)) ||
			info.LiveRows() != report.Left || report.Snapshot != info.Number ||
			dry.Deleted != report.Deleted || dry.Left != report.Left || !dry.DryRun || report.DryRun ||
			report.Attempts != 1 {
			t.Errorf("%s: %+v, dry %+v, of %+v: want %d gone and %d left", &x.q, report, dry, info, len(goes),
				len(w.rows))
		}
		if made := info.Number - base.Number; made != uint64(min(len(goes), 1)) {
			t.Errorf("%s: %d snapshots of %d deleted rows", &x.q, made, len(goes))
		}
		sum := uint64(0)
		for _, s := range report.Segments {
			sum += s.Deleted
			if s.Deleted == 0 || s.Deleted+s.Before > s.Rows || s.Partition != "day=1" && s.Partition != "day=2" {
				t.Errorf("%s: segment %+v", &x.q, s)
			}
		}
		if sum != report.Deleted {
			t.Errorf("%s: segments with %d rows, of %d", &x.q, sum, report.Deleted)
		}
		if k := report.Keys; k != nil && (k.Keys != 4 || k.Missing != 2 ||
			!slices.Equal(k.Examples, []string{"request-219", "request-999"})) {
			t.Errorf("keys: %+v", k)
		}
		w.check(x.q.String(), w.read(w.latest(), reader.PlanOptions{}), w.want(func(row) bool { return true }))
		w.check("the first snapshot", w.read(first, reader.PlanOptions{}), everything)
	}
	for _, q := range []Query{{}, {Lists: "len(a) > 3"}, {Lists: "a AND TRUE"}, {Keys: &KeySource{}},
		{Keys: &KeySource{Paths: []string{"x"}}}, {Keys: &KeySource{Paths: []string{"x"}, Memory: -1}}} {
		if _, err := Delete(ctx, w.table, &q, Options{}); !errors.Is(err, ErrQuery) {
			t.Errorf("%+v: %v, want ErrQuery", q, err)
		}
	}
	var place *expr.Error
	if _, err := Delete(ctx, w.table, &Query{Where: "valu = 3"}, Options{}); !errors.As(err, &place) ||
		!errors.Is(err, storage.ErrNotFound) {
		t.Errorf("an unknown feature: %v", err)
	}
	if _, err := Delete(ctx, w.table, &Query{Lists: "nobody"}, Options{}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("an unknown list: %v", err)
	}
}

// TestListAlgebra makes lists of lists, by random expressions, and compares what they have with sets of numbers.
func TestListAlgebra(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, object.NewMemory())
	w.ingest("1", 100, false)
	lists := map[string]map[int]bool{}
	create := func(name string, q Query, in func(r row) bool, replace bool) *ListReport {
		t.Helper()
		report, err := Create(ctx, w.table, name, &q, replace, Options{})
		if err != nil {
			t.Fatal(err)
		}
		lists[name] = map[int]bool{}
		for n, r := range w.rows {
			if in(r) {
				lists[name][n] = true
			}
		}
		return report
	}
	inList := func(name string) func(r row) bool { return func(r row) bool { return lists[name][r.number] } }
	create("low", Query{Where: "value < 30"}, func(r row) bool { return r.value < 30 }, false)
	create("odd one", Query{Where: "user = 1"}, func(r row) bool { return r.user == 1 }, false)
	w.ingest("2", 70, false) // in no list so far
	create("late", Query{Partition: "day = '2'"}, func(r row) bool { return r.day == "2" }, false)
	create("none", Query{Where: "value > 1000"}, func(row) bool { return false }, false)
	if _, err := Delete(ctx, w.table, &Query{Where: "value BETWEEN 10 AND 20"}, Options{}); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(w.rows, func(_ int, r row) bool { return r.value >= 10 && r.value <= 20 })

	rnd := rand.New(rand.NewPCG(7, 1))
	var draw func(depth int) (string, func(r row) bool)
	draw = func(depth int) (string, func(r row) bool) {
		if depth == 0 || rnd.IntN(4) == 0 {
			name := []string{"low", "odd one", "late", "none"}[rnd.IntN(4)]
			return `"` + name + `"`, inList(name)
		}
		a, inA := draw(depth - 1)
		b, inB := draw(depth - 1)
		switch rnd.IntN(3) {
		case 0:
			return "NOT (" + a + ")", func(r row) bool { return !inA(r) }
		case 1:
			return "(" + a + ") AND " + "(" + b + ")", func(r row) bool { return inA(r) && inB(r) }
		}
		return "(" + a + ") or " + "(" + b + ")", func(r row) bool { return inA(r) || inB(r) }
	}
	for range 60 {
		text, in := draw(3)
		_, there := lists["made"]
		report := create("made", Query{Lists: text}, in, true)
		want := w.want(in)
		snap := w.latest()
		w.check(text, w.read(snap, reader.PlanOptions{SampleList: "made"}), want)
		if report.Rows != uint64(len(want)) || report.TableRows != uint64(len(w.rows)) || report.Replaced != there ||
			report.Share != float64(len(want))/float64(len(w.rows)) || report.Added != snap.Info().Number ||
			report.Definition != "lists "+text {
			t.Fatalf("%s: %+v of %d rows", text, report, len(want))
		}
		list, err := snap.SampleList(ctx, "made")
		if err != nil {
			t.Fatal(err)
		}
		info, partitions, err := Describe(ctx, snap, list)
		if err != nil {
			t.Fatal(err)
		}
		if info.Rows != report.Rows || info.Share != report.Share || info.Deleted != 0 ||
			info.Segments != report.Segments || len(partitions) != 2 ||
			partitions[0].Rows+partitions[1].Rows != info.Rows ||
			partitions[0].TableRows+partitions[1].TableRows != info.TableRows {
			t.Fatalf("%s: %+v, %+v: created as %+v", text, info, partitions, report)
		}
	}

	// Deleted since, and combined with a filter.
	create("made", Query{Where: "user < 3", Lists: "low OR late"},
		func(r row) bool { return r.user < 3 && (inList("low")(r) || inList("late")(r)) }, true)
	before := len(w.want(inList("made")))
	if _, err := Delete(ctx, w.table, &Query{Lists: "made", Where: "user = 2"}, Options{}); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(w.rows, func(_ int, r row) bool { return r.user == 2 && lists["made"][r.number] })
	snap := w.latest()
	w.check("after a delete", w.read(snap, reader.PlanOptions{SampleList: "made"}), w.want(inList("made")))
	list, err := snap.SampleList(ctx, "made")
	if err != nil {
		t.Fatal(err)
	}
	info, _, err := Describe(ctx, snap, list)
	if after := len(w.want(inList("made"))); err != nil || info.Rows != uint64(after) ||
		info.Deleted != uint64(before-after) || before == after {
		t.Errorf("%+v, %v: want %d rows and %d deleted", info, err, after, before-after)
	}

	if _, err := Create(ctx, w.table, "made", &Query{Lists: "low"}, false,
		Options{}); !errors.Is(err, storage.ErrExists) {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := Create(ctx, w.table, "a@b", &Query{Lists: "low"}, false, Options{}); !errors.Is(err, ErrQuery) {
		t.Errorf("a bad name: %v", err)
	}
	if _, err := Drop(ctx, w.table, "made"); err != nil {
		t.Fatal(err)
	}
	if _, err := Drop(ctx, w.table, "made"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("dropped twice: %v", err)
	}
	w.check("a snapshot before the drop", w.read(snap, reader.PlanOptions{SampleList: "made"}), w.want(inList("made")))
}

// Keys come from files of every kind; with little memory they are looked for in parts, and found all the same.
func TestKeys(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, object.NewMemory())
	w.ingest("1", 300, false)
	w.ingest("2", 200, false)
	if _, err := Delete(ctx, w.table, &Query{Where: "value = 5"}, Options{}); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(w.rows, func(_ int, r row) bool { return r.value == 5 })
	var numbers, names, objects, columns strings.Builder
	columns.WriteString("name,number\n")
	numbers.WriteString("number\n")
	var given []string
	chosen := map[int]bool{}
	distinct, missing := map[int]bool{}, map[int]bool{}
	keys := 0
	for i := range 400 {
		n := i * 7 % 650
		keys++
		chosen[n], distinct[n] = true, true
		if _, ok := w.rows[n]; !ok {
			missing[n] = true
		}
		fmt.Fprintf(&numbers, "%d\r\n", n)
		fmt.Fprintf(&names, "\"request-%d\"\n", n)
		fmt.Fprintf(&columns, "\"request-7, %d\",%d\n", i, n)
		fmt.Fprintf(&objects, "{\"other\": \"x\", \"number\": %d}\n", n)
		given = append(given, fmt.Sprint(n))
	}
	sources := map[string]KeySource{
		"numbers": {Feature: "number", Paths: []string{w.file("n.csv", numbers.String())}},
		"names":   {Feature: "name", Paths: []string{w.file("n.keys", names.String())}, Format: "lines"},
		"objects": {Feature: "number", Paths: []string{w.file("n.jsonl", objects.String())}},
		"columns": {Feature: "number", Paths: []string{w.file("c.csv", columns.String())}},
		"given":   {Feature: "number", Given: given},
		"stdin":   {Feature: "number", Paths: []string{"-"}, Format: "lines"},
	}
	for name, source := range sources {
		for _, memory := range []int64{0, 6000, 4500} {
			k := source
			k.Memory, k.Stdin = memory, strings.NewReader(numbers.String())
			s, err := (&Query{Keys: &k}).Find(ctx, w.latest(), reader.Options{})
			if memory > 0 && name == "stdin" {
				if err == nil || !strings.Contains(err.Error(), "give a file") {
					t.Errorf("keys of standard input, in parts: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s, %d bytes: %v", name, memory, err)
			}
			list := fmt.Sprintf("%s-%d", name, memory)
			if name != "stdin" { // which is read by now
				if _, err := Create(ctx, w.table, list, &Query{Keys: &k}, false, Options{}); err != nil {
					t.Fatal(err)
				}
				w.check(list, w.read(w.latest(), reader.PlanOptions{SampleList: list}),
					w.want(func(r row) bool { return chosen[r.number] }))
			}
			r := s.Keys
			if r.Keys != uint64(keys) || r.Distinct != uint64(len(distinct)) || r.Missing != uint64(len(missing)) ||
				len(r.Examples) != shownMissing ||
				(r.Passes > 1) != (memory > 0) || r.Feature != k.Feature {
				t.Errorf("%s, %d bytes: %+v, want %d keys, %d distinct, %d missing", name, memory, r, keys,
					len(distinct), len(missing))
			}
			for _, x := range r.Examples {
				var n int
				if _, err := fmt.Sscanf(strings.TrimPrefix(x, "request-"), "%d", &n); err != nil || !missing[n] {
					t.Errorf("%s: %q is not missing", name, x)
				}
			}
		}
	}

	null := w.file("null.jsonl", "{\"number\": 1}\n{\"number\": null}\n")
	for _, x := range []struct {
		k    KeySource
		want string
	}{
		{KeySource{Feature: "number", Paths: []string{null}}, "null.jsonl, line 2: the key is null"},
		{KeySource{Feature: "number", Paths: []string{w.file("e.txt", "1\n\n2\n")}}, "line 2: it is empty"},
		{KeySource{Feature: "number", Paths: []string{w.file("x.txt", "1\nx\n")}}, `line 2: "x" is no integer`},
		{KeySource{Feature: "number", Paths: []string{w.file("two.csv", "1,ann\n2,ben\n")}},
			`line 1: 2 columns, and none of them is named "number"`},
		{KeySource{Feature: "name", Paths: []string{w.file("two.tsv", "a\tb\n")}},
			`line 1: 2 columns, and none of them is named "name"`},
		{KeySource{Feature: "name", Paths: []string{w.file("i.jsonl", "{\"name\": 17}\n")}}, "do not compare exactly"},
		{KeySource{Feature: "name", Paths: []string{w.file("c.jsonl", "{\"a\": 17, \"b\": 2}\n")}},
			`no column "name" among a, b`},
		{KeySource{Feature: "name", Paths: []string{w.file("k.text", "anna\nben\n")}}, `its first line says "anna"`},
		{KeySource{Feature: "name", Paths: []string{w.file("one.psv", "anna\n")}}, `its first line says "anna"`},
		{KeySource{Feature: "name", Paths: []string{w.file("k.csv.gz", gzipped(t, "anna\nben\n"))}},
			`its first line says "anna"`},
		{KeySource{Feature: "nam", Paths: []string{null}}, `did you mean "name"`},
		{KeySource{Paths: []string{null}}, "no request key"},
		{KeySource{Feature: "number", Paths: []string{"/nowhere.txt"}}, "no such file"},
		{KeySource{Feature: "number", Given: []string{"1", ""}}, `key 1: "" is no integer`},
	} {
		if _, err := (&Query{Keys: &x.k}).Find(ctx, w.latest(), reader.Options{}); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.k, err, x.want)
		}
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write([]byte(text))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestKeysOfAFeatureCalledAsAGlob: the key is the feature of that name, and not what the name would select, of which a!
// is the first.
func TestKeysOfAFeatureCalledAsAGlob(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, object.NewMemory())
	path := w.file("rows.jsonl", `{"number": 1, "a*": 1, "a!": 2}`+"\n"+`{"number": 2, "a*": 2, "a!": 1}`+"\n")
	if _, err := ingest.Run(ctx, w.table.Store(), "t", []string{path}, ingest.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Delete(ctx, w.table, &Query{Keys: &KeySource{Feature: "a*", Given: []string{"1"}}},
		Options{}); err != nil {
		t.Fatal(err)
	}
	if got := w.read(w.latest(), reader.PlanOptions{}); !slices.Equal(got, []int{2}) {
		t.Errorf("got rows %v, want that of which a* is 2", got)
	}
}

// An interloper commits, once, right before a snapshot of a certain number is put.
type interloper struct {
	object.Store
	name   string // of the snapshot
	commit func()
}

func (i *interloper) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if strings.HasSuffix(name, i.name) && i.commit != nil {
		do := i.commit
		i.commit = nil
		do()
	}
	return i.Store.PutIfAbsent(ctx, name, data)
}

// What loses against a commit that takes segments away is done again for what is there then; an append is none of its
// business.
func TestConflict(t *testing.T) {
	ctx := t.Context()
	for _, overwrite := range []bool{false, true} {
		for _, list := range []bool{false, true} {
			memory := object.NewMemory()
			w := newWorld(t, memory)
			w.ingest("1", 100, false)
			w.ingest("2", 50, false)
			x := &interloper{Store: memory, name: "/snapshots/99999999/9999999996.3",
				commit: func() { w.ingest("1", 60, overwrite) }}
			store, err := storage.Create(ctx, x, storage.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			table, err := store.Table(ctx, "t")
			if err != nil {
				t.Fatal(err)
			}
			before := maps.Clone(w.rows)
			q := &Query{Where: "value < 50"}
			attempts := 0
			if list {
				report, err := Create(ctx, table, "low", q, false, Options{})
				if err != nil {
					t.Fatal(err)
				}
				attempts = report.Attempts
			} else {
				report, err := Delete(ctx, table, q, Options{})
				if err != nil {
					t.Fatal(err)
				}
				attempts = report.Attempts
			}
			if x.commit != nil || attempts != 1 && !overwrite || attempts != 2 && overwrite {
				t.Errorf("overwrite %v, list %v: %d attempts", overwrite, list, attempts)
			}
			meant := func(r row) bool {
				_, old := before[r.number]
				return r.value < 50 && (old || overwrite)
			}
			if list {
				w.check("list", w.read(w.latest(), reader.PlanOptions{SampleList: "low"}), w.want(meant))
			} else {
				w.check("delete", w.read(w.latest(), reader.PlanOptions{}),
					w.want(func(r row) bool { return !meant(r) }))
			}
		}
	}
}

// The set of keys agrees with a map, whatever its memory.
func TestKeySet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for _, typ := range []vector.Type{{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.String}} {
		for _, memory := range []int64{1 << 30, 20_000, 2000} {
			model := map[string]bool{}
			set := newKeySet(typ, memory)
			found := map[string]int{}
			keys := make([]int64, 3000)
			for i := range keys {
				keys[i] = int64(rnd.IntN(2000)) - 1000
				model[fmt.Sprint(keys[i])] = true
			}
			distinct := 0
			for class := uint64(0); class < set.classes; class++ {
				set.start(class)
				for _, k := range keys {
					if !set.add(key{k, []byte(fmt.Sprint(k))}) {
						t.Fatal("no room")
					}
				}
				if class == 0 && set.sizeBytes() > memory && set.len() > 1 {
					t.Errorf("%v: %d bytes of %d", typ, set.sizeBytes(), memory)
				}
				distinct += set.len()
				for k := int64(-1500); k < 1500; k++ {
					if set.hit(key{k, []byte(fmt.Sprint(k))}) {
						found[fmt.Sprint(k)]++
					}
				}
				set.missing(func(place int) { t.Errorf("%v: %s was not found", typ, set.show(place, typ)) })
			}
			if distinct != len(model) || len(found) != len(model) {
				t.Fatalf("%v, %d bytes: %d distinct, %d found, want %d", typ, memory, distinct, len(found), len(model))
			}
			for k, n := range found {
				if n != 1 || !model[k] {
					t.Errorf("%v: %s found %d times", typ, k, n)
				}
			}
		}
	}
}
