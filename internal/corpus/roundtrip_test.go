package corpus

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A storedFeature is what dsi features says of a feature, without its id.
type storedFeature struct {
	Name                      string `json:"feature"`
	Kind, Type, Logical, Role string
	OriginColumn              string `json:"origin_column"`
	OriginKey                 string `json:"origin_key"`
}

// parquetLacks are the logical types that Parquet has no place for, and what its own stand for; the values are kept.
var parquetLacks = map[string]string{
	"date64": "date32", "time32[s]": "time32[ms]", "timestamp[s]": "timestamp[ms]",
	"timestamp[s, tz=UTC]": "timestamp[ms, tz=UTC]",
}

// sameMoments is Python that compares the columns of two exports whose types differ, unit apart.
const sameMoments = `
import sys, pyarrow as pa
a, b = (pa.ipc.open_file(pa.memory_map(p)).read_all() for p in sys.argv[1:3])
assert a.column_names == b.column_names and len(a.column_names) > 0
for name in a.column_names:
    assert a[name].type != b[name].type, name
    assert a[name].cast(b[name].type).combine_chunks().equals(b[name].combine_chunks()), name
`

// An export of a table of every kind, ingested again, makes the same features with the same bits.
func TestExportIngestedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	t.Parallel()
	py, dir := python(t), t.TempDir()
	run := func(name string, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(name, args...)
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.Bytes())
		}
		return out.Bytes()
	}
	features := func(store string) map[string]storedFeature {
		t.Helper()
		var list struct{ Features []storedFeature }
		if err := json.Unmarshal(run(os.Args[0], "features", store, "t", "--json"), &list); err != nil {
			t.Fatal(err)
		}
		out := map[string]storedFeature{}
		for _, f := range list.Features {
			out[f.Name] = f
		}
		return out
	}
	export := func(store, to string, args ...string) []byte {
		t.Helper()
		run(os.Args[0], append([]string{"export", store, "t", "--to", to, "--force"}, args...)...)
		b, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	dump, first := filepath.Join(dir, "dump.arrow"), filepath.Join(dir, "first")
	run(py, "allkinds.py", dump)
	run(os.Args[0], "ingest", first, "t", dump)
	want := features(first)
	logicals := map[string]bool{}
	for _, f := range want {
		logicals[f.Kind+" "+f.Type+" "+f.Logical] = true
	}
	if len(want) < 150 || len(logicals) < 100 {
		t.Fatalf("%d features of %d kinds: too few to say anything", len(want), len(logicals))
	}
	for _, ext := range []string{".parquet", ".arrow", ".arrows"} {
		t.Run(ext, func(t *testing.T) {
			out, again := filepath.Join(dir, "out"+ext), filepath.Join(dir, "again"+ext)
			export(first, out, "--fold")
			run(os.Args[0], "ingest", again, "t", out)
			got := features(again)
			var same, timestamps []string
			for name, w := range want {
				g, ok := got[name]
				if l := parquetLacks[w.Logical]; ok && ext == ".parquet" && l != "" {
					if w.Logical == "date64" {
						w.Type = strings.Replace(w.Type, "int64", "int32", 1)
					}
					w.Logical = l
					timestamps = append(timestamps, name)
				} else {
					same = append(same, name)
				}
				if g != w {
					t.Errorf("%s is %+v, was %+v", name, g, w)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d features, were %d", len(got), len(want))
			}
			// Arrow's buffers hold the bits of each value, NaNs with theirs.
			slices.Sort(same)
			a, b := filepath.Join(dir, "a.arrow"), filepath.Join(dir, "b.arrow")
			only := "--features=" + strings.Join(same, ",")
			if !bytes.Equal(export(first, a, only), export(again, b, only)) {
				t.Errorf("values differ in %s", strings.Join(differing(t, same, func(name string) bool {
					return bytes.Equal(export(first, a, "--features="+name), export(again, b, "--features="+name))
				}), ", "))
			}
			if len(timestamps) > 0 {
				only = "--features=" + strings.Join(timestamps, ",")
				export(first, a, only)
				export(again, b, only)
				run(py, "-c", sameMoments, a, b)
			}
		})
	}
}

// differing returns the names for which same does not hold.
func differing(t *testing.T, names []string, same func(string) bool) []string {
	t.Helper()
	var out []string
	for _, n := range names {
		if !same(n) {
			out = append(out, n)
		}
	}
	return out
}
