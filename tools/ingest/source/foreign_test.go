package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"path/filepath"
	"strings"
	"testing"
)

func TestForeignFiles(t *testing.T) {
	const ddl = "CREATE TABLE t (a int, b string)"
	var deflate bytes.Buffer
	z := zlib.NewWriter(&deflate)
	if _, err := z.Write([]byte("1\x01x\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]struct{ bytes, want string }{
		"000000_0.deflate": {deflate.String(), "a=1 b=\"x\"\n"},
		"000000_0.snappy":  {"\x00\x00\x00\x08", "compressed with snappy"},
		"000000_0.lz4":     {"\x00\x00\x00\x08", "compressed with lz4"},
		"a":                {"\x04\x22\x4d\x18x", "compressed with lz4"},
		"b":                {"\xfd7zXZ\x00", "compressed with xz"},
		"c.txt":            {"PK\x03\x04", "a zip archive"},
		"d":                {"SEQ\x06", "SequenceFile"},
		"e":                {"Obj\x01", "Avro"},
		"_COPYING_":        {"x", "no files with data"},
		"g._COPYING_":      {"1\x01x\n", "a copy that is not finished"},
	} {
		for _, format := range []string{"text", "auto"} {
			dir := writeFiles(t, map[string]string{"t.sql": ddl, "t/" + name: f.bytes})
			chunks, err := readPath(t, filepath.Join(dir, "t"), Options{Format: format,
				DDLFile: filepath.Join(dir, "t.sql")})
			if got := dump(chunks); got != f.want && (err == nil || !strings.Contains(err.Error(), f.want)) {
				t.Errorf("%s as %s: %v, %q", name, format, err, got)
			}
		}
	}
}

// TestManagedTables: to take all the files of such a table would bring back rows that were deleted.
func TestManagedTables(t *testing.T) {
	for files, want := range map[string]string{
		"base_0000005/bucket_00000":                       "a transactional (ACID) table of Hive",
		"ds=1/delta_0000006_0000006_0000/f.jsonl":         "a transactional (ACID) table of Hive",
		"ds=1/delete_delta_0000006_0000006_0000/f.jsonl":  "a transactional (ACID) table of Hive",
		"_delta_log/00000000000000000000.json":            "a Delta Lake table",
		".hoodie/hoodie.properties":                       "a Hudi table",
		"metadata/v1.metadata.json":                       "an Iceberg table",
		"metadata/a.jsonl":                                "",
		"delta_x/a.jsonl":                                 "",
		"_temporary/0/part.jsonl":                         "",
		".hive-staging_hive_2020/-ext-10000/000000.jsonl": "",
	} {
		dir := writeFiles(t, map[string]string{"[t]/" + files: `{"a": 2}`, "[t]/a.jsonl": `{"a": 1}`})
		chunks, err := readPath(t, filepath.Join(dir, "[t]"), Options{})
		if want == "" && err == nil && strings.HasPrefix(dump(chunks), "a=1\n") {
			continue
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", files, err, want)
		}
	}
}

// TestUnderscoredKeys: what begins with _ is hidden, but for a key of partitions, which Spark writes so.
func TestUnderscoredKeys(t *testing.T) {
	dir := writeFiles(t, map[string]string{"_ds=1/a.jsonl": `{"a": 1}`, "_SUCCESS": "x",
		"_started_1/a.jsonl": `{"a": 2}`})
	chunks, err := readPath(t, dir, Options{})
	if got := dump(chunks); err != nil || got != "_ds=1: a=1\n" {
		t.Errorf("%v, %s", err, got)
	}
}

// TestTarArchives: an archive is told as such, compressed or not, whatever format it is said to be.
func TestTarArchives(t *testing.T) {
	var archive, zipped bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "a.csv", Size: 4, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("a\n1\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(archive.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.tar": archive.String(), "a.tar.gz": zipped.String(),
		"a.tgz": zipped.String(), "a.csv": archive.String(), "b.csv.gz": zipped.String(),
		"a.json": zipped.String(), "c.tar.bz2": "BZh9", "d.tar.zst": "\x28\xb5\x2f\xfd"} {
		for _, format := range []string{"csv", "auto", "jsonl"} {
			dir := writeFiles(t, map[string]string{name: text})
			_, err := readPath(t, filepath.Join(dir, name), Options{Format: format})
			if err == nil || !strings.Contains(err.Error(), "a tar archive, which is not supported: unpack it, "+
				"and ingest the files in it") {
				t.Errorf("%s as %s: %v", name, format, err)
			}
		}
	}
}
