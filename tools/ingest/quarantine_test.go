package ingest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source"
)

func TestQuarantineReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	q := &quarantine{path: path}
	if err := q.flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a report without a bad row")
	}
	q.badRow(source.Place{File: "a.parquet", RowGroup: 2, Row: 0}, "m", errors.New(`key "x" twice`))
	q.badRow(source.Place{File: "b.txt", RowGroup: -1, Row: 17, Line: 18}, "n", errors.New("not a number"))
	q.badFile("c.parquet", errors.New("no footer"))
	if err := q.close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"file":"a.parquet","row_group":2,"row":0,"column":"m","reason":"key \"x\" twice"}
{"file":"b.txt","row":17,"line":18,"column":"n","reason":"not a number"}
{"file":"c.parquet","reason":"no footer"}
`
	if string(got) != want || q.rows != 2 || len(q.left) != 1 {
		t.Fatalf("%d rows, %d files, report\n%s", q.rows, len(q.left), got)
	}
	full := &quarantine{path: filepath.Join(path, "not a directory")}
	full.badRow(source.Place{}, "", errors.New("x"))
	if err := full.close(); err == nil {
		t.Fatal("a report that cannot be written is no error")
	}
}
