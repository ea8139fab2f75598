package golden

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/version"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/dsi"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

var remake = flag.Bool("remake", false, "make the golden store of this version, unless that is released: make golden")

// A maker makes the golden store of this version.
type maker struct {
	*testing.T
	dir, store string
	src        source
	golden     Golden
	files      int
}

// makeGolden makes the store anew, and the rows of its views. What was released stays.
func makeGolden(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join(testdata, version.Number))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "golden.json")); err == nil {
		var g Golden
		if err := json.Unmarshal(text, &g); err != nil || !g.Candidate {
			t.Fatalf("%s is released, and stays as it is: a new version gets a store of its own (%v)", dir, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	m := &maker{
		T: t, store: filepath.Join(dir, "store"), dir: dir, src: source{rnd: rand.New(rand.NewPCG(1, 2))},
		golden: Golden{Version: version.Number, Candidate: true},
	}
	// The store keeps no name of this machine: sources have relative paths, branches an owner, and nobody is recorded.
	t.Chdir(t.TempDir())
	t.Setenv("DSISTORE_USAGE", "off")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m.ads()
	m.plain()
	m.repaired()
	m.codecs()
	m.open(func(s *storage.Store) error {
		_, err := s.GC(t.Context(), gc.Options{NoWait: true}) // snapshots that have expired go
		return err
	})
	if err := os.RemoveAll(filepath.Join(m.store, "_tmp")); err != nil {
		t.Fatal(err)
	}
	if m.golden.Sum, err = sumOf(dir); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(m.golden, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "golden.json"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// file writes a file with a name of its own, into the directory that is the current one.
func (m *maker) file(suffix, text string) string {
	m.files++
	path := fmt.Sprint(m.files, suffix)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
	return path
}

// dsi runs a command on a table of the store: "overlay add" or "delete", say.
func (m *maker) dsi(command, table string, args ...string) {
	m.Helper()
	dsiOK(m.T, append(append(strings.Fields(command), m.store, table), args...)...)
}

// open opens the store so that segments of few rows have key tables, and few features sorted runs.
func (m *maker) open(do func(s *storage.Store) error) {
	m.Helper()
	blobs, err := object.Open(m.store)
	if err != nil {
		m.Fatal(err)
	}
	s, err := storage.Create(m.Context(), blobs, storage.Options{MinKeyTableRows: 1, MemtableBytes: 1500})
	if err != nil {
		m.Fatal(err)
	}
	defer s.Close()
	if err := do(s); err != nil {
		m.Fatal(err)
	}
}

// ingest ingests rows.
func (m *maker) ingest(table string, rows []row, options ingest.Options) {
	m.Helper()
	options.MappingFile, options.PartitionBy, options.Workers = m.file(".json", mapping), "day", 1
	m.open(func(s *storage.Store) error {
		_, err := ingest.Run(m.Context(), s, table, []string{m.file(".jsonl", jsonLines(rows))}, options)
		return err
	})
}

// view says that a view has rows.
func (m *maker) view(v View, rows table) {
	m.Helper()
	m.golden.Views = append(m.golden.Views, v)
	if err := rows.write(filepath.Join(m.dir, v.Name+".jsonl.gz")); err != nil {
		m.Fatal(err)
	}
}

// ads is a table with a session key and a long history. Branches and views name snapshots: each command is a commit,
// and the number behind it that of its snapshot.
func (m *maker) ads() {
	const name = "ads"
	rows := table{}
	add := func(drawn []row, profile string, dedup writer.Dedup, stripe int) {
		options := writer.Options{Profile: profile, Dedup: dedup, StripeRows: stripe}
		m.ingest(name, drawn, ingest.Options{Options: options})
		rows.add(drawn)
	}
	add(m.src.draw(160, "2026-11-01", "2026-11-02"), "size", writer.DedupAuto, 40) // 1
	first := rows.clone()
	add(m.src.draw(120, "2026-11-01", "2026-11-02"), "speed", writer.DedupAuto, 40) // 2
	add(m.src.draw(40, "2026-11-03"), "balanced", writer.DedupOff, 16)              // 3
	m.dsi("branch create", name, "first", "--at", "1", "--owner", "ann")            // 4

	m.dsi("delete", name, "--where", "row < 20 OR user = 'user-7'") // 5
	rows = rows.without(func(r row) bool { return r["row"].(int) < 20 || r["user"] == "user-7" })
	m.dsi("delete", name, "--keys", m.file(".txt", "33\n44\n100000\n")) // 6
	rows = rows.without(func(r row) bool { return r["row"] == 33 || r["row"] == 44 })
	m.dsi("samples create", name, "clicks", "--where", "click = 1") // 7
	clicked := func(r row) bool { return r["click"] == 1 }

	labels := func(r row) row {
		if n := r["row"].(int); n%2 == 0 {
			return row{"bought": n % 5}
		}
		return nil
	}
	m.dsi("overlay add", name, "bought", "--label", "--from", m.overlay(rows, labels), "--missing-rows", "null") // 8
	m.dsi("overlay add", name, "cheap", "--expr", "cheap = price < 10", "--expr", "twice = skewed * 2")          // 9
	m.dsi("branch create", name, "exp", "--overlay", "bought", "--overlay", "cheap", "--sample-list", "clicks",
		"--owner", "ann") // 10
	at10 := rows.clone()
	overlaid := m.with(m.with(rows, labels), func(r row) row {
		out := row{"twice": 2 * r["skewed"].(int)}
		if p, ok := r["price"].(float64); ok {
			out["cheap"] = map[bool]int{true: 1}[p < 10]
		}
		return out
	})

	fixes := func(r row) row {
		if n := r["row"].(int); n%3 == 0 {
			return row{"i32": -n, "history": []int{n, 1}}
		}
		return nil
	}
	m.dsi("overlay add", name, "fix", "--from", m.overlay(rows, fixes), "--mapping", m.file(".json", `{"columns": {
		"i32": {"type": "int"}}}`)) // 11
	m.dsi("overlay merge", name, "fix") // 12
	rows = m.with(rows, fixes)
	m.dsi("features rename", name, "gauss", "bell")  // 13
	m.dsi("features drop", name, "i8", "same_c")     // 14
	m.dsi("features deprecate", name, "word", "i16") // 15
	change := func(r row) {
		r["bell"] = r["gauss"]
		maps.DeleteFunc(r, func(name string, _ any) bool { return name == "gauss" || name == "i8" || name == "same_c" })
	}
	for _, r := range rows {
		change(r)
	}
	m.dsi("snapshots expire", name, "--keep-last", "8")                   // 16
	m.dsi("compact", name, "--full", "--partition", "day = '2026-11-01'") // 17

	again := m.src.draw(60, "2026-11-03")
	for _, r := range again {
		change(r)
	}
	changed := strings.NewReplacer(`"gauss"`, `"bell"`, `"i8": {"type": "tinyint"}, `, "",
		`"same_c": {"type": "int"},`, "")
	m.dsi("ingest", name, m.file(".jsonl", jsonLines(again)), "--mapping", m.file(".json", changed.Replace(mapping)),
		"--partition-by", "day", "--overwrite", "--profile", "size") // 18
	rows = rows.without(func(r row) bool { return r["day"] == "2026-11-03" })
	rows.add(again)
	m.dsi("samples create", name, "few", "--lists", "clicks", "--where", "len(history) > 2") // 19

	m.view(View{Name: "ads", Table: name}, rows)
	m.view(View{Name: "ads-first", Table: name + "@first"}, first)
	m.view(View{Name: "ads-exp", Table: name + "@exp"}, overlaid.where(clicked))
	m.view(View{Name: "ads-10", Table: name, At: 10}, at10)
	m.view(View{Name: "ads-10-overlaid", Table: name, At: 10, Overlays: []string{"bought", "cheap"}}, overlaid)
	m.view(View{Name: "ads-few", Table: name, List: "few"}, rows.where(func(r row) bool {
		// Rows of this day are not in the list of clicks, which is older.
		return clicked(r) && r["day"] != "2026-11-03" && len(r["history"].([]int)) > 2
	}))
}

// with returns the table with other values of some features.
func (m *maker) with(t table, values func(r row) row) table {
	out := t.clone()
	for n, r := range t {
		maps.Copy(out[n], values(r))
	}
	return out
}

// overlay writes a file of other values of features, of the rows that have any.
func (m *maker) overlay(t table, values func(r row) row) string {
	var out []row
	for _, r := range t.sorted() {
		if v := values(r); v != nil {
			v["row"] = r["row"]
			out = append(out, v)
		}
	}
	return m.file(".jsonl", jsonLines(out))
}

// plain is a table without a session key, of which users are erased.
func (m *maker) plain() {
	const name = "plain"
	columns := []string{"row", "user", "day", "i64", "ids", "word", "price"}
	rows := table{}
	for range 2 {
		drawn := m.src.draw(150, "2026-11-01")
		path := m.file(".jsonl", jsonLines(drawn, columns...))
		m.dsi("ingest", name, path, "--partition-by", "day", "--mapping", m.file(".json", `{"columns": {
			"row": {"role": "request_key"}, "user": {"role": "user_key"}, "price": {"type": "float"}}}`))
		for _, r := range drawn {
			maps.DeleteFunc(r, func(k string, _ any) bool { return !slices.Contains(columns, k) })
		}
		rows.add(drawn)
	}
	m.dsi("erase", name, "--where", "user IN ('user-3', 'user-11')")
	rows = rows.without(func(r row) bool { return r["user"] == "user-3" || r["user"] == "user-11" })
	m.view(View{Name: "plain", Table: name, InOrder: true}, rows)
}

// repaired is a table that lost the rows of a segment to damage, and got a key table anew.
func (m *maker) repaired() {
	const name = "repaired"
	rows := table{}
	var packs []string // of each day
	for _, day := range []string{"2026-11-01", "2026-11-02", "2026-11-03"} {
		had := m.objects("pack-*")
		drawn := m.src.draw(70, day)
		m.ingest(name, drawn, ingest.Options{})
		rows.add(drawn)
		packs = append(packs, slices.DeleteFunc(m.objects("pack-*"), func(p string) bool {
			return slices.Contains(had, p)
		})...)
	}
	pack, err := os.ReadFile(packs[0])
	if err != nil {
		m.Fatal(err)
	}
	pack[len(pack)/2] ^= 0xff
	if err := os.WriteFile(packs[0], pack, 0o644); err != nil {
		m.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(packs[1]), "keys.sst")); err != nil {
		m.Fatal(err)
	}
	m.dsi("repair", name, "--apply")
	m.view(View{Name: "repaired", Table: name}, rows.without(func(r row) bool { return r["day"] == "2026-11-01" }))
}

// codecs is a table whose columns need every codec: they are chosen by what the values are.
func (m *maker) codecs() {
	const name = "codecs"
	types := m.file(".json", `{"columns": {"row": {"role": "request_key"}, "cycle": {"type": "float"}}}`)
	rows := table{}
	for i, profile := range []string{"size", "speed"} {
		drawn := m.src.shapes(900*i+1, 900)
		m.dsi("ingest", name, m.file(".jsonl", jsonLines(drawn)), "--mapping", types, "--dedup", "off", "--profile",
			profile)
		rows.add(drawn)
	}
	m.view(View{Name: "codecs", Table: name, InOrder: true}, rows)
	var inspected strings.Builder
	for _, pack := range m.objects("pack-*") {
		var stderr strings.Builder // of the damaged one
		dsi.Run(m.Context(), []string{"inspect", pack}, nil, &inspected, &stderr)
	}
	for _, codec := range []string{"constant", "plain", "for", "delta", "patched", "dict", "runs", "zstd", "sequences",
		"rans", "split", "decimal", "positions"} {
		if !regexp.MustCompile(": (.*[ (])?" + codec + "[:(,]").MatchString(inspected.String()) {
			m.Errorf("no stream of the store has codec %s: draw values that it suits", codec)
		}
	}
}

// objects are the objects of segments with such a name.
func (m *maker) objects(pattern string) []string {
	found, err := filepath.Glob(filepath.Join(m.store, "*", "*", pattern))
	if err != nil {
		m.Fatal(err)
	}
	return found
}
