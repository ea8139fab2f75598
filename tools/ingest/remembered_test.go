package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTableRemembersItsPartitionKeys: a dump is partitioned as the table is, when nobody says how.
func TestTableRemembersItsPartitionKeys(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"1.jsonl": `{"a": 1, "ds": "x", "hr": 1}`, "2.jsonl": `{"a": 2, "ds": "y", "hr": 2}`,
		"3.jsonl":                `{"a": 3, "dss": "y", "hr": 2}`,
		"dirs/hr=4/ds=z/p.jsonl": `{"a": 4}`, "one/hr=5/p.jsonl": `{"a": 5, "ds": "v"}`,
		"two/day=6/p.jsonl": `{"a": 6, "ds": "v", "hr": 1}`,
		"m.json":            `{"partition_by": ["ds", "hr"]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, filepath.Join(dir, "store"))
	run := func(path string, opts Options) error {
		_, err := Run(t.Context(), s, "ads", []string{filepath.Join(dir, path)}, opts)
		return err
	}
	if err := run("1.jsonl", Options{MappingFile: filepath.Join(dir, "m.json")}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, want string }{
		{"2.jsonl", ""},
		{"3.jsonl", `3.jsonl: the table is partitioned by "ds", and there is neither a directory ds=... nor a ` +
			`column "ds"; did you mean "dss"?`},
		{"dirs", ""}, // in the table's order
		{"one", ""},  // a key by a directory, the other by a column
		{"two", `is partitioned by (day), but the table by (ds, hr)`},
	} {
		if err := run(tc.path, Options{}); (err == nil) != (tc.want == "") || err != nil &&
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.path, err, tc.want)
		}
	}
	if err := run("2.jsonl", Options{}); err == nil || !strings.Contains(err.Error(), "nothing was added") {
		t.Errorf("the same file again: %v", err)
	}
	table, err := s.Table(t.Context(), "ads")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parts, err := snap.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range parts {
		got = append(got, p.String())
	}
	if want := "ds=v/hr=5 ds=x/hr=1 ds=y/hr=2 ds=z/hr=4"; strings.Join(got, " ") != want {
		t.Errorf("partitions %v, want %s", got, want)
	}
	features, err := snap.Features(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(features) != 1 || features[0].Name != "a" {
		t.Errorf("features %v, want a alone", features)
	}
}

// TestFarTimestampsAreStored: what is out of the range of nanoseconds is stored, and a later dump is read in the
// table's unit.
func TestFarTimestampsAreStored(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mapping := write("m.json", `{"text": {"quote": "\"", "header": true}, "columns": {"t": {"type": "timestamp"}}}`)
	s := openStore(t, filepath.Join(dir, "store"))
	for i, text := range []string{"t\n9999-12-31 23:59:59\n0001-01-01 00:00:00\n", "t\n2020-01-01 00:00:00.5\n"} {
		if _, err := Run(t.Context(), s, "ads", []string{write([]string{"1.csv", "2.csv"}[i], text)},
			Options{MappingFile: mapping}); err != nil {
			t.Fatal(err)
		}
	}
	bits, problems, _ := storedBits(t, s)
	if got, want := strings.Join(bits["t"], " "),
		"=[253402300799000000] =[-62135596800000000] =[1577836800500000]"; got != want || len(problems) > 0 {
		t.Errorf("got %s, want %s (%v)", got, want, problems)
	}
	_, err := Run(t.Context(), s, "ads", []string{write("3.csv", "t\n2020-01-01 00:00:00.123456789\n")},
		Options{MappingFile: mapping})
	if err == nil || !strings.Contains(err.Error(), "is no whole number of us") {
		t.Errorf("got %v", err)
	}
	other := write("n.json", `{"text": {"quote": "\"", "header": true}, "columns": {"t": {"type": "timestamp", `+
		`"timestamp": "ns"}}}`)
	_, err = Run(t.Context(), s, "ads", []string{write("4.csv", "t\n2020-01-01 00:00:01\n")},
		Options{MappingFile: other})
	if err == nil || !strings.Contains(err.Error(), `timestamp[us]) in the table and int64 (timestamp[ns])`) ||
		!strings.Contains(err.Error(), `{"timestamp": "us"}`) {
		t.Errorf("got %v", err)
	}
}
