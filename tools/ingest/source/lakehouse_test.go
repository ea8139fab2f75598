package source

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// TestLakehouses: to take all the files of a table that has a log would bring back rows that were deleted, whatever
// part of it a path names.
func TestLakehouses(t *testing.T) {
	const (
		delta, iceberg, hudi = "a Delta Lake table", "an Iceberg table", "a Hudi table"
		acid                 = "a transactional (ACID) table of Hive"
		base                 = "0f0e3b1c-5b6c-4a7e-9d4f-2f3b6b1a9c01-0_0-12-34_20240102030405678"
	)
	for _, tc := range []struct {
		name, marker, data string // the data file is JSON lines
		paths              []string
		want               string
	}{
		{"delta", "_delta_log/00000000000000000000.json", "year=2020/month=1/a.jsonl",
			[]string{".", "year=2020", "year=2020/month=1", "year=2020/month=1/a.jsonl", "_delta_log",
				"_delta_log/00000000000000000000.json", ".."}, delta},
		{"delta's change data", "_delta_log/00000000000000000000.json", "_change_data/a.jsonl", []string{"_change_data",
			"_change_data/a.jsonl"}, delta},
		{"delta's deletion vectors", "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin", "a.jsonl",
			[]string{"."}, delta},
		{"iceberg", "metadata/00000-8accf787-0699-40c9-a687-d06bb2ee65d3.metadata.json",
			"data/year=2020/month=1/a.jsonl",
			[]string{".", "data", "data/year=2020", "data/year=2020/month=1", "data/year=2020/month=1/a.jsonl",
				"metadata"}, iceberg},
		{"iceberg's hashed paths", "metadata/v1.metadata.json", "data/0110/1001/a.jsonl", []string{"data", "data/0110",
			"data/0110/1001/a.jsonl"}, iceberg},
		{"iceberg, compressed", "metadata/00002-8accf787.gz.metadata.json", "data/a.jsonl", []string{".", "data"},
			iceberg},
		{"iceberg, migrated", "metadata/version-hint.text", "year=2020/a.jsonl", []string{"year=2020"}, iceberg},
		{"hudi", ".hoodie/hoodie.properties", "2020/01/a.jsonl", []string{".", "2020", "2020/01", "2020/01/a.jsonl",
			".hoodie", ".hoodie/hoodie.properties"}, hudi},
		{"a copied partition of hudi", ".hoodie_partition_metadata", "a.jsonl", []string{".", "a.jsonl", ".."}, hudi},
		{"a copied partition of hudi in orc", "p/.hoodie_partition_metadata.orc", "p/a.jsonl", []string{".", "p",
			"p/a.jsonl"}, hudi},
		{"hudi's logs", ".f-0_20240102030405678.log.1_0-12-34", "a.jsonl", []string{"."}, hudi},
		{"hudi's base files", "x", base + ".parquet", []string{".", base + ".parquet"}, hudi},
		{"acid", "ds=1/delta_0000006_0000006_0000/_orc_acid_version", "ds=1/base_0000005/a.jsonl",
			[]string{".", "ds=1", "ds=1/base_0000005", "ds=1/base_0000005/a.jsonl", "ds=1/delta_0000006_0000006_0000"},
			acid},
		{"acid, of Impala", "delta_1_1/a7f0e2d3c4b5a697-1234567800000000_1433346310_data.0.parq", "base_2/000000_0",
			[]string{".", "base_2", "base_2/000000_0", "delta_1_1"}, acid},
		{"acid, with many transactions", "ds=1/base_10000005_v0000012/x", "ds=1/delta_10000006_10000007/bucket_00000",
			[]string{".", "ds=1", "ds=1/delta_10000006_10000007"}, acid},
		{"acid's deletes", "x", "ds=1/delete_delta_0000006_0000006/a.jsonl", []string{".",
			"ds=1/delete_delta_0000006_0000006"}, acid},

		{"a directory called data", "_x", "data/year=2020/a.jsonl", []string{".", "data", "data/year=2020",
			"data/year=2020/a.jsonl"}, ""},
		{"metadata of another kind", "metadata/set.metadata.json", "data/a.jsonl", []string{"data", "data/a.jsonl"},
			""},
		{"a file called as a marker", "_delta_log", "year=2020/a.jsonl", []string{".", "year=2020"}, ""},
		{"names that begin like Hive's", "delta_x/y", "base_/a.jsonl", []string{"base_", "base_/a.jsonl"}, ""},
		{"directories numbered as Impala's", "delta_1_2/_x", "base_2/ds=1/a.jsonl", []string{"base_2", "base_2/ds=1",
			"base_2/ds=1/a.jsonl", "."}, ""},
		{"directories numbered by the day", "_x", "base_20261101/part-00000.jsonl", []string{".", "base_20261101",
			"base_20261101/part-00000.jsonl"}, ""},
		{"a program's old log", ".spark.log.1", "a.jsonl", []string{".", "a.jsonl"}, ""},
		{"a table beside it", "t/_delta_log/00000000000000000000.json", "plain/a.jsonl", []string{"plain",
			"plain/a.jsonl"}, ""},
	} {
		dir := writeFiles(t, map[string]string{"top/[t]/" + tc.marker: "x", "top/[t]/" + tc.data: `{"a": 1}` + "\n"})
		for _, p := range tc.paths {
			given := filepath.Join(dir, "top/[t]", p)
			if p == "." {
				given = filepath.Join(dir, "top/[t]")
			}
			_, err := readPath(t, given, Options{})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "export the table with")) {
				t.Errorf("%s, %s: got %v, want %q", tc.name, p, err, tc.want)
			}
		}
	}
}

// TestLakehouseLinks: a link into a table is refused as what it leads to, from outside and from inside.
func TestLakehouseLinks(t *testing.T) {
	dir := writeFiles(t, map[string]string{"t/_delta_log/0.json": "x", "t/year=2020/a.jsonl": `{"a": 1}`,
		"plain/b.jsonl": `{"a": 2}`, "links/c.jsonl": `{"a": 3}`})
	for link, to := range map[string]string{"part": "t/year=2020", "file.jsonl": "t/year=2020/a.jsonl",
		"links/in.jsonl": "t/year=2020/a.jsonl", "t/out": "plain"} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"part", "file.jsonl", "links", "links/in.jsonl", "t/out"} {
		if _, err := readPath(t, filepath.Join(dir, p), Options{}); err == nil ||
			!strings.Contains(err.Error(), "a Delta Lake table") {
			t.Errorf("%s: got %v", p, err)
		}
	}
	t.Chdir(filepath.Join(dir, "t/year=2020"))
	for _, p := range []string{".", "a.jsonl", "../year=2020"} {
		if _, err := readPath(t, p, Options{}); err == nil || !strings.Contains(err.Error(), "a Delta Lake table") {
			t.Errorf("%s: got %v", p, err)
		}
	}
}

// TestLakehouseBoundary: a marker in the directory for temporary files, or above it, says nothing of what lies below.
func TestLakehouseBoundary(t *testing.T) {
	dir := writeFiles(t, map[string]string{"_delta_log/0.json": "x", "tmp/_delta_log/0.json": "x",
		"tmp/year=2020/a.jsonl": `{"a": 1}`})
	p := filepath.Join(dir, "tmp/year=2020")
	if _, err := readPath(t, p, Options{}); err == nil {
		t.Error("a table's partition was taken")
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	if chunks, err := readPath(t, p, Options{}); err != nil || dump(chunks) != "year=2020: a=1\n" {
		t.Errorf("got %q, %v", dump(chunks), err)
	}
}

// parquetOf writes a row of a string and an integer for each column, with Iceberg's ids where they are given and
// metadata.
func parquetOf(t *testing.T, columns []string, ids []string, meta map[string]string) []byte {
	t.Helper()
	var fields []arrow.Field
	for i, c := range columns {
		f := arrow.Field{Name: c, Type: arrow.BinaryTypes.String, Nullable: true}
		if ids != nil {
			f.Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{ids[i]})
		}
		fields = append(fields, f)
	}
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i := range columns {
		b.Field(i).(*arrowarray.StringBuilder).Append("x")
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range meta {
		if err := w.AppendKeyValueMetadata(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestLakehouseFiles: a file of deletes, or of one of several versions of rows, is known by its footer, wherever it was
// copied.
func TestLakehouseFiles(t *testing.T) {
	hudi := []string{"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path",
		"_hoodie_file_name", "a"}
	drops := `{"columns": {"_hoodie_commit_time": {"drop": true}, "_hoodie_commit_seqno": {"drop": true}, ` +
		`"_hoodie_record_key": {"drop": true},
		"_hoodie_partition_path": {"drop": true}, "_hoodie_file_name": {"drop": true}}}`
	for _, tc := range []struct {
		name    string
		columns []string
		ids     []string
		meta    map[string]string
		mapping string
		want    string
	}{
		{"position deletes", []string{"file_path", "pos"}, []string{"2147483546", "2147483545"}, nil, "",
			"Iceberg's position deletes"},
		{"position deletes with rows", []string{"file_path", "pos", "row"}, []string{"2147483546", "2147483545",
			"2147483544"}, nil, "", "Iceberg's position deletes"},
		{"equality deletes", []string{"id"}, []string{"1"}, map[string]string{"delete-type": "equality",
			"delete-field-ids": "1"}, "", "Iceberg's equality deletes"},
		{"columns that are called so", []string{"file_path", "pos"}, nil, nil, "", ""},
		{"hudi's footer", []string{"a"}, nil, map[string]string{"hoodie_min_record_key": "1"}, "",
			"a Hudi table (its footer has hoodie_min_record_key)"},
		{"hudi's columns", hudi, nil, nil, "", `the meta columns of a Hudi table`},
		{"an export of hudi's", hudi, nil, nil, drops, ""},
		{"hudi's footer, and the columns dropped", hudi, nil, map[string]string{"hoodie_max_record_key": "1"}, drops,
			"a Hudi table"},
		{"one such column", hudi[4:], nil, nil, "", ""},
	} {
		dir := writeFiles(t, map[string]string{"m.json": tc.mapping,
			"f.parquet": string(parquetOf(t, tc.columns, tc.ids, tc.meta))})
		opts := Options{}
		if tc.mapping != "" {
			opts.MappingFile = filepath.Join(dir, "m.json")
		}
		_, err := readPath(t, filepath.Join(dir, "f.parquet"), opts)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) ||
			!strings.Contains(err.Error(), "f.parquet")) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}
