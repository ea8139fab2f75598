package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

const kvMapping = `{"text": {"delimiter": ",", "columns": [{"name": "k", "type": "int"}, {"name": "v", "type": ` +
	`"string"}]}}`

func TestHiveLayout(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"m.json":                                 kvMapping,
		"t/ds=2026-11-01/hr=03/part-1":           "1,a\n",
		"t/ds=2026-11-01/hr=03/part-0":           "2,b\n",
		"t/hr=04/ds=x%3Ay/p":                     "3,c\n",
		"t/hr=__HIVE_DEFAULT_PARTITION__/ds=z/p": "4,d\n",
		"t/_temporary/p":                         "x",
		"t/ds=2026-11-01/_SUCCESS":               "",
		"t/ds=2026-11-01/hr=05/empty":            "",
	})
	opts := Options{MappingFile: filepath.Join(dir, "m.json"), Format: "text"}
	chunks, err := readPath(t, filepath.Join(dir, "t"), opts)
	if err != nil {
		t.Fatal(err)
	}
	const want = `ds=2026-11-01/hr=03: k=2 v="b"
ds=2026-11-01/hr=03: k=1 v="a"
ds=x%3Ay/hr=04: k=3 v="c"
ds=z/hr=__HIVE_DEFAULT_PARTITION__: k=4 v="d"
`
	if got := dump(chunks); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestHiveLayoutRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"another set of keys", map[string]string{"t/a=1/p": "1,x\n", "t/b=1/p": "1,x\n"}, "is partitioned by (b)"},
		{"a key more", map[string]string{"t/a=1/p": "1,x\n", "t/a=1/b=2/p": "1,x\n"}, "the same partition keys"},
		{"a key twice", map[string]string{"t/x=1/x=2/p": "1,x\n"}, `column "x": the partition key is given twice`},
		{"own column differs", map[string]string{"t/k=2/p": "1,x\n"},
			`column "k": the file has "1" where its directory says "2"`},
		{"own column is not null", map[string]string{"t/k=__HIVE_DEFAULT_PARTITION__/p": "1,x\n"},
			`directory says null`},
		{"nothing there", map[string]string{"t/_x/p": "1,x\n"}, "no files with data"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.files["m.json"] = kvMapping
			dir := writeFiles(t, tc.files)
			_, err := readPath(t, filepath.Join(dir, "t"), Options{MappingFile: filepath.Join(dir, "m.json"),
				Format: "text"})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDirectoryWinsWhenEqual(t *testing.T) {
	dir := writeFiles(t, map[string]string{"m.json": kvMapping, "t/k=01/p": "1,x\n1,y\n"})
	chunks, err := readPath(t, filepath.Join(dir, "t"), Options{MappingFile: filepath.Join(dir, "m.json"),
		Format: "text"})
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(chunks); got != "k=01: v=\"x\"\nk=01: v=\"y\"\n" {
		t.Errorf("got\n%s", got)
	}
}

// TestTimestampDirectories: a timestamp is compared with the time that a directory's name spells. A column of another
// type, which no name spells, can be dropped.
func TestTimestampDirectories(t *testing.T) {
	for _, c := range []struct{ directory, typ, mapping, line, want string }{
		{"2010-12-01 08%3A26%3A00", "timestamp", "", "2010-12-01 08:26:00,x", `v="x"`},
		{"2010-12-01 08%3A26%3A00.5", "timestamp", "", "2010-12-01 08:26:00.500,x", `v="x"`},
		{"1969-12-31 23%3A59%3A59.25", "timestamp", "", "1969-12-31 23:59:59.25,x", `v="x"`},
		{"2010-12-01", "date", "", "2010-12-01,x", `v="x"`},
		{"2010-12-01 08%3A26%3A00", "timestamp", "", "2010-12-01 08:27:00,x",
			`the file has "2010-12-01 08:27:00" where its directory says "2010-12-01 08:26:00"`},
		{"1.50", "decimal(5,2)", "", "1.50,x",
			`values of type decimal(5, 2) make no partitions; drop it with {"columns"`},
		{"1.50", "decimal(5,2)", `"ts": {"drop": true}`, "1.50,x", `v="x"`},
	} {
		dir := writeFiles(t, map[string]string{
			"m.json": `{"text": {"delimiter": ",", "columns": [{"name": "ts", "type": "` + c.typ +
				`"}, {"name": "v", "type": "string"}]}, "columns": {` + c.mapping + `}}`,
			"t/ts=" + c.directory + "/a.txt": c.line + "\n",
		})
		chunks, err := readPath(t, filepath.Join(dir, "t"), Options{MappingFile: filepath.Join(dir, "m.json")})
		got := dump(chunks)
		if !strings.Contains(got, c.want) && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %s: got %s, %v; want %s", c.directory, c.line, got, err, c.want)
		}
	}
}

// TestPartitionKeysOfDDL: Hive does not tell upper from lower case; the order is that of the DDL, the spelling that of
// the directories.
func TestPartitionKeysOfDDL(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"t.sql":            "CREATE TABLE t (k int) PARTITIONED BY (DT string, `Hour` int) STORED AS TEXTFILE",
		"t/hour=3/dt=x/p":  "1\n",
		"u/hour=3/day=x/p": "1\n",
	})
	opts := Options{DDLFile: filepath.Join(dir, "t.sql"), Format: "text"}
	chunks, err := readPath(t, filepath.Join(dir, "t"), opts)
	if got := dump(chunks); err != nil || got != "dt=x/hour=3: k=1\n" {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := readPath(t, filepath.Join(dir, "u"), opts); err == nil ||
		!strings.Contains(err.Error(), "is partitioned by (hour, day), its DDL says") {
		t.Errorf("got %v", err)
	}
}

func TestPartitionBy(t *testing.T) {
	dir := writeFiles(t, map[string]string{"m.json": kvMapping, "p.csv": "1,x\n2,y\n1,z\n"})
	chunks, err := readPath(t, filepath.Join(dir, "p.csv"), Options{MappingFile: filepath.Join(dir, "m.json"),
		PartitionBy: []string{"k"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(chunks); got != "k=1: v=\"x\"\nk=1: v=\"z\"\nk=2: v=\"y\"\n" {
		t.Errorf("got\n%s", got)
	}
	// A value that is not UTF-8 is a bad row, as one of a string is.
	dir = writeFiles(t, map[string]string{"p.csv": "city,x\nRoma,1\nM\xfcnchen,2\nRoma,3\n"})
	opts := Options{PartitionBy: []string{"city"}}
	_, err = readPath(t, filepath.Join(dir, "p.csv"), opts)
	if err == nil || !strings.Contains(err.Error(), "line 3, column \"city\": a partition key that is not UTF-8") {
		t.Errorf("got %v", err)
	}
	opts.OnBadRow = func(Place, string, error) {}
	chunks, err = readPath(t, filepath.Join(dir, "p.csv"), opts)
	if got := dump(chunks); err != nil || got != "city=Roma: x=1\ncity=Roma: x=3\n" {
		t.Errorf("got\n%s%v", got, err)
	}
}

// TestManyPartitionsAtOnce: where each row of a batch is of another partition, their chunks are made one after the
// other: the columns of all of them together would take many times the memory of the batch.
func TestManyPartitionsAtOnce(t *testing.T) {
	const rows, columns = 4000, 20
	var text strings.Builder
	text.WriteString("k")
	for i := range columns {
		fmt.Fprint(&text, ",c", i)
	}
	for row := range rows {
		fmt.Fprint(&text, "\np", row, strings.Repeat(",7", columns))
	}
	text.WriteString("\n")
	dir := writeFiles(t, map[string]string{"p.csv": text.String()})
	files, err := Discover(t.Context(), []string{dir}, Options{PartitionBy: []string{"k"}, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	for row := range rows {
		c, err := s.Next(t.Context())
		if err != nil || c.Rows != 1 || c.Partition[0].Value != fmt.Sprint("p", row) || len(c.Columns) != columns {
			t.Fatalf("row %d: %+v, %v", row, c, err)
		}
		if row > 0 {
			continue
		}
		// The batch is held: some 16 bytes for each value, in Arrow's form and in the table's, and some for each row.
		if held := live() - before; held > rows*(columns*40+1000) {
			t.Errorf("%d bytes are held after the first of %d rows of %d columns", held, rows, columns)
		}
	}
	if c, err := s.Next(t.Context()); err != io.EOF {
		t.Errorf("after the last row: %+v, %v", c, err)
	}
}

func TestMappingErrors(t *testing.T) {
	for _, tc := range []struct{ mapping, want string }{
		{`{"colums": {}}`, `unknown key "colums"; did you mean "columns"?`},
		{`{"columns": {"k": {"rol": "label"}}}`, `columns.k.rol: unknown key "rol"; did you mean "role"?`},
		{`{"columns": {"k": {"role": "lable"}}}`, `columns.k.role: role "lable" is none of feature, label`},
		{`{"columns": {"k": {}, "k": {}}}`, `given twice`},
		{`{"columns": {"kk": {"drop": true}}}`, `column that is not there: "kk"; did you mean "k"?`},
		{`{"columns": {"k": {"kind": "embedding"}}}`, `column "k": values of type int32 cannot be embedding`},
		{`{"columns": {"k": {"rename": "v"}}}`, `two features have the name "v"`},
		{`{"partition_by": ["day"]}`, `partition by: no column "day"`},
	} {
		text := strings.Replace(tc.mapping, "{",
			`{"text": {"delimiter": ",", "columns": [{"name": "k", "type": "int"}, {"name": "v", "type": "string"}]}, `,
			1)
		dir := writeFiles(t, map[string]string{"m.json": text, "p.csv": "1,x\n"})
		_, err := readPath(t, filepath.Join(dir, "p.csv"), Options{MappingFile: filepath.Join(dir, "m.json")})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.mapping, err, tc.want)
		}
	}
	dir := writeFiles(t, map[string]string{"m.json": kvMapping, "p.csv": "1,x\n"})
	_, err := readPath(t, filepath.Join(dir, "p.csv"), Options{MappingFile: filepath.Join(dir, "m.json"),
		SessionKey: "w"})
	if err == nil || !strings.Contains(err.Error(), `session key: no column "w"`) {
		t.Errorf("session key: %v", err)
	}
}

func TestInferMappingIsAMapping(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": `{"a": 1, "b": ["x"], "c": {"d": 1.5}, "n": null}` + "\n"})
	files, err := Discover(context.Background(), []string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := InferMapping(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mapping.Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !m.Columns["b"].Drop || m.Columns["c.d"] == nil || m.Columns["a"] == nil {
		t.Errorf("got\n%s", text)
	}
	path := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	chunks, err := readPath(t, dir, Options{MappingFile: path})
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(chunks); got != "a=1 c=1 c.d=1.5 n=null\n" {
		t.Errorf("got %s", got)
	}
}

// TestInferMappingKeeps: what the mapping file says that was given is in the one that comes out.
func TestInferMappingKeeps(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"t/a.csv": "a,b,c\n1,x,[y]\n",
		"m.json": `{"text": {"quote": "\"", "header": true}, "columns": {"a": {"type": "array<int>", "rename": ` +
			`"n"}, "c": {"drop": true}, "z": {"optional": true}}}`,
	})
	files, err := Discover(context.Background(), []string{filepath.Join(dir, "t")},
		Options{MappingFile: filepath.Join(dir, "m.json")})
	if err != nil {
		t.Fatal(err)
	}
	text, err := InferMapping(context.Background(), files)
	const want = `{
  "columns": {
    "a": {"//":"list<int32>","rename":"n","type":"array<int>"},
    "b": {"//":"string"},
    "c": {"drop":true},
    "z": {"optional":true}
  },
  "text": {"quote":"\"","header":true}
}
`
	if err != nil || string(text) != want {
		t.Errorf("%v, got\n%s", err, text)
	}
}

func TestFingerprint(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": "{}\n", "b.jsonl": "{}\n", "c.jsonl": "{} \n"})
	files, err := Discover(context.Background(), []string{dir}, Options{})
	if err != nil || len(files) != 3 {
		t.Fatal(err, len(files))
	}
	var prints []string
	for _, f := range files {
		p, err := f.Fingerprint(context.Background())
		if err != nil || len(p) != 32 {
			t.Fatal(err, p)
		}
		prints = append(prints, p)
	}
	if prints[0] != prints[1] || prints[0] == prints[2] {
		t.Errorf("fingerprints %v", prints)
	}
}

func TestPageBomb(t *testing.T) {
	rows := make([]modelRow, 1)
	rec := modelRecord(rows)
	defer rec.Release()
	data, err := writeParquet(rec)
	if err != nil {
		t.Fatal(err)
	}
	_, err = readBytes(t, "x.parquet", data, Options{Limits: column.Limits{PageBytes: 1}})
	if err == nil || !strings.Contains(err.Error(), "the limit is 1") {
		t.Errorf("got %v", err)
	}
}

func TestSessionKeyRole(t *testing.T) {
	dir := writeFiles(t, map[string]string{"m.json": kvMapping, "p.csv": "1,x\n"})
	files, err := Discover(context.Background(), []string{filepath.Join(dir, "p.csv")},
		Options{MappingFile: filepath.Join(dir, "m.json"), SessionKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := files[0].Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if f := s.Fields()[0]; f.Name != "k" || mapping.RoleName(f.Role) != "session_key" {
		t.Errorf("%+v", f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
}
