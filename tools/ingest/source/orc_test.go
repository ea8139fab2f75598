package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/orc"
)

// fakePython puts a script in the place of the interpreter that reads ORC files.
func fakePython(t *testing.T, script string) {
	t.Helper()
	p := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DSISTORE_PYTHON", p)
}

func TestORCChild(t *testing.T) {
	stream := smallStream(t)
	dir := writeFiles(t, map[string]string{"a.orc": "ORC...", "stream": string(stream)})
	send := "cat '" + filepath.Join(dir, "stream") + "'\n"
	file := filepath.Join(dir, "a.orc")
	for _, tc := range []struct{ name, script, want string }{
		{"all is well", send, ""},
		{"fails before the schema", "echo warming up >&2; echo 'OSError: bad stripe' >&2; exit 1",
			"pyarrow: OSError: bad stripe"},
		{"fails within the stream", "head -c 700 '" + filepath.Join(dir,
			"stream") + "'; echo 'OSError: later stripe' >&2; exit 1", "pyarrow: OSError: later stripe"},
		{"fails after the stream", send + "echo late >&2; exit 2", "pyarrow: late"},
		{"ends quietly within the stream", "head -c 700 '" + filepath.Join(dir, "stream") + "'", "cut short"},
		{"no pyarrow", "echo \"No module named 'pyarrow'\" >&2; exit 77", "python3 -m pip install pyarrow"},
		{"type not supported", "echo 'pyarrow.lib.ArrowNotImplementedError: union' >&2; exit 1",
			"does not support this one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fakePython(t, tc.script)
			chunks, err := readPath(t, file, Options{})
			if tc.want == "" {
				if err != nil || len(chunks) != 2 {
					t.Fatalf("%v, %d chunks", err, len(chunks))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("no interpreter", func(t *testing.T) {
		t.Setenv("DSISTORE_PYTHON", filepath.Join(dir, "nowhere"))
		if _, err := readPath(t, file, Options{}); !errors.Is(err, column.ErrRefused) ||
			!strings.Contains(err.Error(), "pip install pyarrow") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("killed when the context ends", func(t *testing.T) {
		fakePython(t, "exec sleep 600")
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		files, err := Discover(ctx, []string{file}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := files[0].Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// pythonName is the interpreter that reads files for tests.
func pythonName() string { return cmp.Or(os.Getenv("DSISTORE_PYTHON"), "python3") }

// needPyarrow skips the test where no interpreter has pyarrow.
func needPyarrow(t *testing.T) {
	t.Helper()
	if exec.Command(pythonName(), "-c", "import pyarrow.orc").Run() != nil {
		t.Skip("no pyarrow here: DSISTORE_PYTHON may name an interpreter that has it")
	}
}

// TestORCFarTimestamps reads timestamps that pyarrow does not hold, in each compression: it would refuse the file.
func TestORCFarTimestamps(t *testing.T) {
	for _, codec := range []string{"uncompressed", "zlib", "snappy", "lz4", "zstd"} {
		chunks, err := readPath(t, "testdata/orc/far-"+codec+".orc", Options{})
		if err != nil {
			t.Errorf("%s: %v", codec, err)
			continue
		}
		if f := chunks[0].Fields[0]; f.Logical != "timestamp[us]" {
			t.Errorf("%s: logical type %s", codec, f.Logical)
		}
		start := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
		want := "t=253402300799999999\nt=null\nt=-62135596800000000\nt=1582977600500000\nt=-750000\n"
		for i := range 3000 {
			after := time.Duration(i)*time.Second + time.Duration(i*7919%1_000_000)*time.Microsecond
			at := start.AddDate(0, 0, i*i*37%3_652_058).Add(after)
			want += fmt.Sprintf("t=%d\n", at.UnixMicro())
		}
		if got := dump(chunks); got != want {
			t.Errorf("%s: got %.300s, want %.300s", codec, got, want)
		}
	}
}

// TestORCBeside: columns of the child and others come together, in the order of the file, and what is dropped is not
// read.
func TestORCBeside(t *testing.T) {
	needPyarrow(t)
	const times = "253402300799999999 null -62135596800000000 1582977600500000 -750000"
	want := ""
	for i, x := range strings.Fields(times) {
		want += fmt.Sprintf("a=%d t=%s s=\"%c\"\n", i+1, x, 'v'+i)
	}
	chunks, err := readPath(t, "testdata/orc/beside.orc", Options{})
	if got := dump(chunks); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for mapping, want := range map[string]string{
		`{"columns": {"t": {"drop": true}, "a": {"drop": true}}}`: "s=\"v\"\ns=\"w\"\n",
		`{"columns": {"a": {"drop": true}, "s": {"drop": true}}}`: "t=253402300799999999\nt=null\n",
		`{"columns": {"t": {"timestamp": "ms"}}}`: "the timestamp 9999-12-31 23:59:59.999999 is no " +
			"whole number of ms",
		`{"columns": {"t": {"rename": "x", "timestamp": "us"}}}`: "a=1 x=253402300799999999 s=\"v\"\n",
		`{"columns": {"b": {"drop": true}}}`:                     `column that is not there: "b"`,
	} {
		dir := writeFiles(t, map[string]string{"m.json": mapping})
		chunks, err := readPath(t, "testdata/orc/beside.orc", Options{MappingFile: filepath.Join(dir, "m.json")})
		if got := dump(chunks); !strings.HasPrefix(got, want) && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %s, %v; want %s", mapping, got, err, want)
		}
	}
	// The unit is that of all files.
	dir := t.TempDir()
	for _, name := range []string{"near.orc", "far-zlib.orc"} {
		data, err := os.ReadFile("testdata/orc/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	chunks, err = readPath(t, dir, Options{})
	if got := dump(chunks); err != nil || !strings.HasSuffix(got, "\nt=1577836800000000\nt=null\n") {
		t.Errorf("got ...%s, %v", got[max(0, len(got)-100):], err)
	}
}

// TestORCNamesOfDDL: a file of old Hive has columns _col0 to _colN-1, which are the DDL's by their places. A DDL that
// has nothing of a file is refused.
func TestORCNamesOfDDL(t *testing.T) {
	needPyarrow(t)
	path := filepath.Join(t.TempDir(), "a.orc")
	writer := exec.Command(pythonName(), "-c", `
import sys
import pyarrow as pa
from pyarrow import orc
orc.write_table(pa.table({"_col0": [7, 8], "_col1": ["x", "y"], "_col2": [0.5, 1.5]}), sys.argv[1])
`, path)
	if out, err := writer.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct{ file, ddl, mapping, want string }{
		{path, "id bigint, s string, x double", `{}`, "id=7 s=\"x\" x=0.5\nid=8 s=\"y\" x=1.5\n"},
		{path, "id bigint, s string, x double, later int", `{"columns": {"s": {"drop": true}, "x": {"rename": "z"}}}`,
			"id=7 z=0.5\nid=8 z=1.5\n"},
		{path, "id bigint", `{}`, "the DDL has 1 (id): give the DDL of this table"},
		{"testdata/orc/beside.orc", "A bigint, other string", `{"columns": {"t": {"drop": true}}}`, "a=1 s=\"v\"\n"},
		{"testdata/orc/beside.orc", "x bigint", `{}`, "the DDL has none of the file's columns (a, t, s)"},
	} {
		dir := writeFiles(t, map[string]string{"m.json": c.mapping,
			"t.sql": "CREATE TABLE t (" + c.ddl + ") STORED AS ORC"})
		chunks, err := readPath(t, c.file, Options{MappingFile: filepath.Join(dir, "m.json"),
			DDLFile: filepath.Join(dir, "t.sql")})
		got := dump(chunks)
		if !strings.HasPrefix(got, c.want) && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %s, %v; want %s", c.ddl, got, err, c.want)
		}
	}
}

// TestORCWideRows: a stripe of wide rows comes in messages that are not too large, also where a few rows are much wider
// than the others.
func TestORCWideRows(t *testing.T) {
	needPyarrow(t)
	path := filepath.Join(t.TempDir(), "wide.orc")
	writer := exec.Command(pythonName(), "-c", `
import sys
import pyarrow as pa
from pyarrow import orc
rows = 20000
columns = {f"f{i}": pa.array([float(i)] * rows) for i in range(20)}
columns["s"] = pa.array(["x" * 3000 if 9000 <= i < 9300 else "" for i in range(rows)])
orc.write_table(pa.table(columns), sys.argv[1], compression="zstd", stripe_size=1 << 30)
`, path)
	if out, err := writer.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// 3.2 MB of numbers, and 0.9 MB of text in 300 rows.
	chunks, err := readPath(t, path, Options{Limits: column.Limits{BlockBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	rows, text := 0, 0
	for _, c := range chunks {
		for i, f := range c.Fields {
			if f.Name == "s" {
				text += len(c.Columns[i].Data)
			}
		}
		rows += c.Rows
	}
	if rows != 20000 || text != 900000 {
		t.Fatalf("%d rows, %d bytes of text", rows, text)
	}
}

// TestORCRefusals: what neither pyarrow nor this reader can read is refused by name and can be dropped; files of
// transactional tables are known.
func TestORCRefusals(t *testing.T) {
	needPyarrow(t)
	_, err := readPath(t, "testdata/orc/within.orc", Options{})
	if err == nil || !errors.Is(err, column.ErrRefused) ||
		!strings.Contains(err.Error(), `column "l": timestamps outside the years`) {
		t.Errorf("got %v", err)
	}
	dir := writeFiles(t, map[string]string{"m.json": `{"columns": {"l": {"drop": true}}}`})
	chunks, err := readPath(t, "testdata/orc/within.orc", Options{MappingFile: filepath.Join(dir, "m.json")})
	if got := dump(chunks); err != nil || got != "a=1\na=2\n" {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err = readPath(t, "testdata/orc/acid.orc", Options{}); err == nil ||
		!strings.Contains(err.Error(), "a transactional (ACID) table of Hive") {
		t.Errorf("got %v", err)
	}
}

// TestORCTimestampsCorpus: timestamps of files by many writers are those that pyarrow reads, where it reads them.
func TestORCTimestampsCorpus(t *testing.T) {
	needPyarrow(t)
	var files []string
	err := filepath.WalkDir(filepath.Join(corpusRoot(t), "orc"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(p) == ".orc" {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	compared, values := 0, 0
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		tail, err := orc.ReadTail(f, st.Size())
		if err != nil {
			continue
		}
		root := tail.Types[0]
		for i, typ := range root.Subtypes {
			kind := tail.Types[typ].Kind
			if kind != orc.Timestamp && kind != orc.Instant {
				continue
			}
			var drops []string
			for k, name := range root.Names {
				if k != i {
					drops = append(drops, fmt.Sprintf("%q: {\"drop\": true}", name))
				}
			}
			dir := writeFiles(t, map[string]string{"m.json": `{"columns": {` + strings.Join(drops, ", ") + `}}`})
			chunks, err := readPath(t, path, Options{MappingFile: filepath.Join(dir, "m.json")})
			if err != nil {
				t.Logf("%s, %s: %v", path, root.Names[i], err)
				continue
			}
			m := &orc.Timestamps{R: f, Tail: tail, Typ: typ}
			unit := column.TimestampUnit(chunks[0].Fields[0].Logical)
			for _, c := range chunks {
				for r := range c.Rows {
					v, valid, err := m.Next()
					if err != nil {
						t.Fatalf("%s, %s: %v", path, root.Names[i], err)
					}
					got, _ := v.In(unit)
					if null := c.Columns[0].IsNull(r); null == valid || valid && got != c.Columns[0].Ints[r] {
						t.Fatalf("%s, %s, row %d: got %v (%d), pyarrow %s", path, root.Names[i], r, v, got,
							cellText(c.Columns[0], r))
					}
					values++
				}
			}
			compared++
		}
	}
	t.Logf("%d columns of %d files, %d values", compared, len(files), values)
}
