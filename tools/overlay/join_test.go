package overlay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

func randomRows(r *rand.Rand, rows int, share float64) *roaring.Bitmap {
	out := roaring.New()
	for i := range rows {
		if r.Float64() < share {
			out.Add(uint32(i))
		}
	}
	return out
}

// A keyKind makes keys of a type, the same number the same key.
type keyKind struct {
	name        string
	table, file arrow.DataType // as the table and the file have it
	make        func(n int) value
}

var keyKinds = []keyKind{
	{"int", arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32,
		func(n int) value { return intValue(int64(n) - 300) }},
	{"uint", arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Uint64,
		func(n int) value { return uintValue(1<<63 + uint64(n)) }},
	{"signs", arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int64,
		func(n int) value { return intValue(int64(n) * 7) }},
	{"string", arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString,
		func(n int) value { return textValue(fmt.Sprint("request ", n*n)) }},
	{"bytes", arrow.BinaryTypes.Binary, arrow.BinaryTypes.Binary,
		func(n int) value { return bytesValue(strings.Repeat("\xff\x00", n%5) + fmt.Sprint(n)) }},
}

// A columnKind makes random values of a column.
type columnKind struct {
	typ  arrow.DataType
	make func(r *rand.Rand) value
}

var weightedType = arrow.ListOf(arrow.StructOf(
	arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	arrow.Field{Name: "score", Type: arrow.PrimitiveTypes.Float32}))

var columnKinds = []columnKind{
	{arrow.PrimitiveTypes.Int8, func(r *rand.Rand) value { return intValue(int64(r.IntN(2))) }},
	{arrow.PrimitiveTypes.Int64, func(r *rand.Rand) value { return intValue(r.Int64N(1<<40) - 1<<39) }},
	{arrow.PrimitiveTypes.Uint64, func(r *rand.Rand) value { return uintValue(r.Uint64()) }},
	{arrow.PrimitiveTypes.Float32, func(r *rand.Rand) value { return floatValue(float32(r.IntN(1000)) / 4) }},
	{arrow.PrimitiveTypes.Float64, func(r *rand.Rand) value { return doubleValue(float64(r.IntN(1000)) / 16) }},
	{arrow.BinaryTypes.String, func(r *rand.Rand) value { return textValue(strings.Repeat("añ", r.IntN(4))) }},
	{arrow.BinaryTypes.Binary, func(r *rand.Rand) value { return bytesValue(strings.Repeat("\xfe", r.IntN(4))) }},
	{arrow.ListOf(arrow.PrimitiveTypes.Int64), func(r *rand.Rand) value {
		v := make([]int64, r.IntN(5))
		for i := range v {
			v[i] = r.Int64N(100)
		}
		return listValue(v)
	}},
	{arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), func(r *rand.Rand) value {
		v := []float32{float32(r.IntN(9)), float32(r.IntN(9)) / 2, -1}
		return value{v, fmt.Sprint(v)}
	}},
	{weightedType, func(r *rand.Rand) value {
		ids, scores, objects := []int64{}, []float32{}, []map[string]any{}
		for range r.IntN(4) {
			ids, scores = append(ids, r.Int64N(50)), append(scores, float32(r.IntN(8))/8)
			objects = append(objects, map[string]any{"id": ids[len(ids)-1], "score": scores[len(scores)-1]})
		}
		return value{objects, fmt.Sprint(ids) + fmt.Sprint(scores)}
	}},
}

// withNulls makes some values null.
func withNulls(r *rand.Rand, share float64, make func(*rand.Rand) value) value {
	if r.Float64() < share {
		return null
	}
	return make(r)
}

// How a join is made: all of them give the same overlay.
var joins = []struct {
	name   string
	change func(*Options)
	spills int // 0: never; 1: always; 2: perhaps
}{
	{"memory", func(*Options) {}, 0},
	{"memory where hashes collide", func(o *Options) { o.hash = weakHash }, 0},
	{"spilled", func(o *Options) { o.Memory = 1 }, 1},
	{"spilled where hashes collide", func(o *Options) { o.Memory, o.hash = 1, weakHash }, 1},
	{"spilled halfway", func(o *Options) { o.Memory = 200 << 10 }, 2},
}

func weakHash(b []byte) uint64 { return uint64(b[len(b)-1]) % 13 }

// TestJoin holds overlays of random files over random tables to a join of Go maps: keys of every type and of several
// features, that several rows have or none, null in the table, and that the table does not have; deleted rows; columns
// of every type, in one of two files.
func TestJoin(t *testing.T) {
	for seed := range uint64(fewer(12)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { testJoin(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func testJoin(t *testing.T, r *rand.Rand) {
	s := newStore(t, object.NewMemory())
	// One key feature, id, or two.
	kinds := []keyKind{keyKinds[r.IntN(len(keyKinds))]}
	names := []string{"id"}
	if r.IntN(3) == 0 {
		kinds, names = append(kinds, keyKinds[r.IntN(len(keyKinds))]), append(names, "other")
	}
	split := func(n int) []value {
		if len(kinds) == 1 {
			return []value{kinds[0].make(n)}
		}
		return []value{kinds[0].make(n / 30), kinds[1].make(n % 30)}
	}
	const keys = 800
	tableFields := []arrow.Field{nullable("ds", arrow.BinaryTypes.String),
		nullable("replaced", arrow.PrimitiveTypes.Int64)}
	fileFields := []arrow.Field{}
	for i, k := range kinds {
		tableFields = append(tableFields, nullable(names[i], k.table))
		fileFields = append(fileFields, nullable(names[i], k.file))
	}
	var rows []row
	for range 500 + r.IntN(800) {
		x := row{"ds": textValue(fmt.Sprint("2026-11-0", r.IntN(3))), "replaced": intValue(r.Int64N(100))}
		for i, v := range split(r.IntN(keys)) {
			if x[names[i]] = v; r.IntN(40) == 0 {
				x[names[i]] = null
			}
		}
		rows = append(rows, x)
	}
	ingestRows(t, s, tableFields, rows, nil)
	if r.IntN(2) == 0 {
		deleteRows(t, s, r)
	}

	// The file: some keys, in any order, and some that the table cannot have. Its columns are in two files, one of
	// which lacks some.
	var columns []string
	kindOf := map[string]columnKind{"replaced": {arrow.PrimitiveTypes.Int16,
		func(r *rand.Rand) value { return intValue(int64(r.IntN(9))) }}}
	fields := [2][]arrow.Field{slices.Clone(fileFields), slices.Clone(fileFields)}
	for i := range 1 + r.IntN(4) {
		kindOf[fmt.Sprint("f", i)] = columnKinds[r.IntN(len(columnKinds))]
	}
	for name := range kindOf {
		columns = append(columns, name)
	}
	slices.Sort(columns)
	in := map[string][2]bool{}
	for i, c := range columns {
		f := nullable(c, kindOf[c].typ)
		in[c] = [2]bool{i == 0 || r.IntN(4) > 0, true}
		for k, has := range in[c] {
			if has {
				fields[k] = append(fields[k], f)
			}
		}
	}
	share := []float64{0.02, 0.5, 1}[r.IntN(3)]
	wanted := map[string]map[string]string{} // by key
	var files [2][]row
	unmatchedAtMost := 0
	for _, n := range r.Perm(keys + 30) {
		if r.Float64() >= share {
			continue
		}
		if n >= keys {
			unmatchedAtMost++
		}
		k := r.IntN(2)
		x, texts := row{}, map[string]string{}
		for i, v := range split(n) {
			x[names[i]] = v
		}
		for _, c := range columns {
			x[c] = withNulls(r, 0.1, kindOf[c].make)
			if texts[c] = x[c].text; !in[c][k] {
				texts[c] = "null"
			}
		}
		wanted[keyTextOf(x, names)] = texts
		files[k] = append(files[k], x)
	}
	if len(files[0])+len(files[1]) == 0 {
		return
	}
	var paths []string
	for k, rows := range files {
		paths = append(paths, writeArrow(t, fields[k], rows))
	}
	snap := latest(t, s)
	want := func(got map[string]string) (map[string]string, bool) {
		texts, ok := wanted[keyOfTexts(got, names)]
		return texts, ok
	}
	found := map[string]bool{}
	for _, x := range readRows(t, snap, names...) {
		if _, ok := want(x); ok {
			found[keyOfTexts(x, names)] = true
		}
	}
	for i, j := range joins {
		opts := Options{From: paths, Key: names, Workers: 2, TempDir: t.TempDir()}
		if len(names) == 1 && i%2 == 0 {
			opts.Key = nil // the request key
		}
		switch i % 3 {
		case 0:
			opts.MissingLayers = catalog.Null // other than MissingRows: every segment gets a layer
		case 1:
			opts.MissingLayers, opts.MissingRows = catalog.Null, catalog.Null
		}
		j.change(&opts)
		name := fmt.Sprint("o", i)
		report, err := Add(t.Context(), s, "ads", name, opts)
		if err != nil {
			t.Fatalf("%s: %v", j.name, err)
		}
		snap := latest(t, s)
		covered := checkNew(t, snap, report, names, want)
		if report.Unmatched != uint64(len(wanted)-len(found)) ||
			report.FileRows != uint64(len(wanted)) {
			t.Fatalf("%s: report %+v: want %d covered and %d of %d unmatched", j.name, report, covered,
				len(wanted)-len(found), len(wanted))
		}
		if report.Snapshot != snap.Info().Number ||
			len(report.Unknown) != int(min(report.Unmatched, shownUnmatched)) {
			t.Fatalf("%s: report %+v: want snapshot %d", j.name, report, snap.Info().Number)
		}
		if partial := sumPartial(report); partial != report.Rows-report.Covered {
			t.Fatalf("%s: %d rows of partial segments are not covered: want %d", j.name, partial,
				report.Rows-report.Covered)
		}
		if spilled := report.Spills > 0; spilled && j.spills == 0 || !spilled && j.spills == 1 {
			t.Fatalf("%s: %d spills", j.name, report.Spills)
		}
		checkReader(t, snap, name, names, columns, opts, want)
		if opts.MissingLayers != opts.MissingRows && report.Layers != report.Segments {
			t.Fatalf("%s: %d layers over %d segments", j.name, report.Layers, report.Segments)
		}
	}
	verifyClean(t, s)
}

// checkReader holds what a reader sees under an overlay to the values that rows have, and to the table's where they
// have none.
func checkReader(t *testing.T, snap *storage.Snapshot, name string, keys, columns []string, opts Options,
	want func(map[string]string) (map[string]string, bool)) {
	t.Helper()
	below := readRows(t, snap, append([]string{"replaced"}, keys...)...)
	for i, got := range readUnder(t, snap, []string{name}, append(columns, keys...)...) {
		texts, has := want(below[i])
		for _, c := range columns {
			text := "null"
			switch {
			case has:
				text = texts[c]
			case c == "replaced" && opts.MissingRows == catalog.FallThrough:
				text = below[i][c]
			}
			if got[c] != text {
				t.Fatalf("row %d (%v): a reader sees %s %s, want %s", i, below[i], c, got[c], text)
			}
		}
	}
}

func sumPartial(r Report) uint64 {
	n := uint64(0)
	for _, s := range r.Partial {
		n += s.Rows - s.Covered
	}
	return n
}

func keyTextOf(x row, names []string) string {
	texts := map[string]string{}
	for _, n := range names {
		texts[n] = x[n].text
	}
	return keyOfTexts(texts, names)
}

// keyOfTexts is empty where a part is null: nothing equals that.
func keyOfTexts(x map[string]string, names []string) string {
	out := ""
	for _, n := range names {
		if x[n] == "null" {
			return "null"
		}
		out += x[n] + "|"
	}
	return out
}

// keyed returns a table of n rows with keys 0, 1, ... and a feature.
func keyed(t *testing.T, n int) *storage.Store {
	s := newStore(t, object.NewMemory())
	var rows []row
	for i := range n {
		rows = append(rows, row{"id": intValue(int64(i)), "click": intValue(int64(i % 2)),
			"name": textValue(fmt.Sprint(i)), "ts": intValue(int64(i))})
	}
	ingestRows(t, s, keyedFields, rows, nil)
	return s
}

var keyedFields = []arrow.Field{
	nullable("id", arrow.PrimitiveTypes.Int64), nullable("click", arrow.PrimitiveTypes.Int8),
	nullable("name", arrow.BinaryTypes.String),
	nullable("ts", arrow.FixedWidthTypes.Timestamp_us),
}

// refused makes an overlay that is refused, and returns why.
func refused(t *testing.T, s *storage.Store, opts Options) string {
	t.Helper()
	before := objectsAfterGC(t, s)
	_, err := Add(t.Context(), s, "ads", "o", opts)
	if err == nil {
		t.Fatal("no error")
	}
	if after := objectsAfterGC(t, s); !slices.Equal(before, after) {
		t.Fatalf("objects are left: %v, before %v", after, before)
	}
	return err.Error()
}

// TestFilesWithoutRows: a day without rows covers none, and is no error.
func TestFilesWithoutRows(t *testing.T) {
	s := keyed(t, 1000)
	fields := []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64), nullable("label", arrow.PrimitiveTypes.Int64)}
	none, one := writeArrow(t, fields, nil), writeArrow(t, fields, []row{{"id": intValue(7), "label": intValue(1)}})
	for _, j := range joins {
		opts := func(path string) Options {
			o := Options{From: []string{path}, TempDir: t.TempDir()}
			j.change(&o)
			return o
		}
		report, err := Add(t.Context(), s, "ads", j.name, opts(none))
		if err != nil || report.Covered != 0 || report.FileRows != 0 {
			t.Fatalf("%s: %+v, %v", j.name, report, err)
		}
		for i, path := range []string{none, one, none} {
			report, err := Extend(t.Context(), s, "ads", j.name, opts(path))
			if want := uint64(min(i, 1)); err != nil || report.Covered != want {
				t.Fatalf("%s: %+v, %v; want %d covered", j.name, report, err, want)
			}
		}
	}
}

func TestDuplicateKeys(t *testing.T) {
	s := keyed(t, 1000)
	rows := []row{}
	for i := range 900 {
		rows = append(rows, row{"id": intValue(int64(i)), "label": intValue(1)})
	}
	rows[777]["id"] = intValue(123)
	path := writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("label", arrow.PrimitiveTypes.Int64)}, rows)
	for _, j := range joins {
		opts := Options{From: []string{path}, TempDir: t.TempDir()}
		j.change(&opts)
		got := refused(t, s, opts)
		want := fmt.Sprintf("key id 123 is in %s, row 123 and in %s, row 777: each key comes once", path, path)
		if got != want {
			t.Errorf("%s: %s\nwant %s", j.name, got, want)
		}
	}
	// Twice in two files.
	rows[777]["id"] = intValue(777)
	a := writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("label", arrow.PrimitiveTypes.Int64)}, rows[:500])
	b := writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("label", arrow.PrimitiveTypes.Int64)}, rows[499:])
	got := refused(t, s, Options{From: []string{a, b}})
	if want := fmt.Sprintf("key id 499 is in %s, row 499 and in %s, row 0: each key comes once", a, b); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestNullKeys(t *testing.T) {
	s := keyed(t, 1000)
	rows := []row{}
	for i := range 900 {
		rows = append(rows, row{"id": intValue(int64(i)), "label": intValue(1)})
	}
	rows[321]["id"] = null
	path := writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("label", arrow.PrimitiveTypes.Int64)}, rows)
	for _, j := range joins {
		opts := Options{From: []string{path}, TempDir: t.TempDir()}
		j.change(&opts)
		if got, want := refused(t, s, opts),
			path+", row 321: key id is null: no row of the table is meant by it"; got != want {
			t.Errorf("%s: %s\nwant %s", j.name, got, want)
		}
	}
}

// What does not fit the table is refused, and says why.
func TestRefused(t *testing.T) {
	s := keyed(t, 10)
	id := nullable("id", arrow.PrimitiveTypes.Int64)
	one := func(f ...arrow.Field) string {
		r := row{"id": intValue(1)}
		for _, f := range f {
			switch f.Type.ID() {
			case arrow.STRING:
				r[f.Name] = textValue("x")
			case arrow.LIST:
				r[f.Name] = listValue([]int64{1})
			case arrow.FLOAT64:
				r[f.Name] = doubleValue(1)
			case arrow.TIMESTAMP:
				r[f.Name] = value{"2026-11-01 00:00:00", ""}
			default:
				r[f.Name] = intValue(1)
			}
		}
		return writeArrow(t, f, []row{r})
	}
	label := nullable("label", arrow.PrimitiveTypes.Int64)
	for _, c := range []struct {
		what string
		opts Options
		want string
	}{
		{"no source", Options{}, "from files or from expressions: neither is given"},
		{"two sources", Options{From: []string{"x"}, Exprs: []string{"a = b = 1"}}, "both are given"},
		{"a key for an expression", Options{Key: []string{"id"}, Exprs: []string{"a = b = 1"}},
			"an expression has none"},
		{"another kind", Options{From: []string{one(id, nullable("click", arrow.ListOf(arrow.PrimitiveTypes.Int64)))}},
			"feature click is int8 in the table and list<int64> in "},
		{"text for a number", Options{From: []string{one(id, nullable("click", arrow.BinaryTypes.String))}},
			"no type holds both exactly; give it another name"},
		{"another logical type", Options{From: []string{one(id, nullable("ts", arrow.PrimitiveTypes.Int64))}},
			"they do not mix; give it another name"},
		{"a key's type", Options{From: []string{one(nullable("id", arrow.BinaryTypes.String), label)}},
			"key id is int64 in the table and string in "},
		{"a key's logical type", Options{Key: []string{"ts"},
			From: []string{one(nullable("ts", arrow.PrimitiveTypes.Int64), label)}}, "they are not compared"},
		{"a key that is no key", Options{Key: []string{"name"},
			From: []string{one(label, nullable("name", arrow.PrimitiveTypes.Float64))}},
			"key name is string in the table and float64 in "},
		{"no key column", Options{From: []string{one(label)}}, `has no column "id", which is the key`},
		{"an unknown key", Options{Key: []string{"idd"}, From: []string{one(id, label)}}, `did you mean "id"?`},
		{"a feature that no file has", Options{Features: []string{"labell"}, From: []string{one(id, label)}},
			`no file has a feature "labell"; did you mean "label"?`},
		{"nothing but keys", Options{From: []string{one(id)}}, "no file has a feature besides the key"},
		{"the request key as a feature", Options{Key: []string{"name"},
			From: []string{one(id, nullable("name", arrow.BinaryTypes.String))}}, "id is the request key of the table"},
		{"two types in two files", Options{From: []string{one(id, label),
			one(id, nullable("label", arrow.BinaryTypes.String))}}, "no type holds both exactly; rename or drop"},
		{"no expression", Options{Exprs: []string{"click"}}, "want name = condition"},
		{"an expression's unknown feature", Options{Exprs: []string{"y = clik = 1"}}, `did you mean "click"?`},
		{"an expression for text", Options{Exprs: []string{"name = click = 1"}},
			"feature name is string in the table, and the expression gives 0 or 1"},
		{"an expression for a moment", Options{Exprs: []string{"ts = click = 1"}}, "and the expression gives 0 or 1"},
		{"a label that is a feature", Options{Exprs: []string{"click = click = 1"}, Role: catalog.RoleLabel},
			"feature click is there already, as a feature, and keeps its role: give the label another name"},
		{"a file's label that is a feature", Options{Role: catalog.RoleLabel,
			From: []string{one(id, nullable("click", arrow.PrimitiveTypes.Int8))}}, "and keeps its role"},
		{"an expression for the key", Options{Exprs: []string{"id = click = 1"}}, "id is the request key of the table"},
	} {
		if got := refused(t, s, c.opts); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\nwant %s", c.what, got, c.want)
		}
	}
}

// Names are taken once; an overlay is replaced only when asked to be.
func TestReplace(t *testing.T) {
	s := keyed(t, 500)
	add := func(expr string, replace bool) error {
		_, err := Add(t.Context(), s, "ads", "o", Options{Exprs: []string{expr}, Replace: replace})
		return err
	}
	check := func(want string) {
		t.Helper()
		checkOverlay(t, latest(t, s), "o", []string{"click"}, func(x map[string]string) (map[string]string, bool) {
			if x["click"] == want {
				return map[string]string{"y": "[1]"}, true
			}
			return map[string]string{"y": "[0]"}, true
		})
	}
	if err := add("y = click = 1", true); err != nil {
		t.Fatal(err)
	}
	check("[1]")
	if err := add("y = click = 0", false); err == nil ||
		!strings.Contains(err.Error(), "name is taken since snapshot 2") {
		t.Fatal(err)
	}
	check("[1]")
	if err := add("y = click = 0", true); err != nil {
		t.Fatal(err)
	}
	check("[0]")
	verifyClean(t, s)
}
