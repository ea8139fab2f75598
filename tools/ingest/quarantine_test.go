package ingest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage"
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
	// A file is never replaced: it may be the report of the ingest before.
	second := &quarantine{path: path, numbered: true}
	if err := second.check(); err != nil {
		t.Fatal(err)
	}
	second.badFile("d.parquet", errors.New("no footer"))
	third := &quarantine{path: path, numbered: true}
	third.badFile("e.parquet", errors.New("no footer"))
	if err := errors.Join(second.close(), third.close()); err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(path, ".jsonl")
	for name, file := range map[string]string{path: "a.parquet", base + "-2.jsonl": "d.parquet",
		base + "-3.jsonl": "e.parquet"} {
		if got, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(got), `{"file":"`+file) {
			t.Errorf("%s: %v %s", name, err, got)
		}
	}
	if second.made != base+"-2.jsonl" || third.made != base+"-3.jsonl" {
		t.Errorf("the reports are %s and %s", second.made, third.made)
	}
	named := &quarantine{path: path}
	if err := named.check(); err == nil || !strings.Contains(err.Error(), "there is a file of this name") {
		t.Errorf("a report whose name is taken: %v", err)
	}
	named.badFile("f.parquet", errors.New("no footer"))
	if err := named.close(); err == nil || !strings.Contains(err.Error(), "there is a file of this name") {
		t.Errorf("a report whose name was taken meanwhile: %v", err)
	}
	empty := &quarantine{path: filepath.Join(t.TempDir(), "empty.jsonl")}
	if err := errors.Join(os.WriteFile(empty.path, nil, 0o600), empty.check()); err != nil {
		t.Fatal(err)
	}
	empty.badFile("g.parquet", errors.New("no footer"))
	if err := empty.close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(empty.path); err != nil || !strings.HasPrefix(string(got), `{"file":"g.parquet"`) {
		t.Errorf("an empty file that was made for the report: %v %s", err, got)
	}
	full := &quarantine{path: filepath.Join(path, "not a directory")}
	if err := full.failed(); err != nil {
		t.Fatal(err)
	}
	full.badRow(source.Place{}, "", errors.New("x"))
	if err := full.failed(); err == nil {
		t.Fatal("a report that cannot be written does not end the ingest")
	}
	if err := full.close(); err == nil {
		t.Fatal("a report that cannot be written is no error")
	}
}

// TestAllRowsAreBad: a dump all of whose rows are left out, by a wrong mapping for example, is refused: it would make
// an empty table whose types are wrong.
func TestAllRowsAreBad(t *testing.T) {
	dir := t.TempDir()
	dump, mapping, bad := filepath.Join(dir, "d.csv"), filepath.Join(dir, "m.json"), filepath.Join(dir, "bad.jsonl")
	for path, text := range map[string]string{dump: "id,day\n1,24/11/2026\n2,25/11/2026\n",
		mapping: `{"columns": {"day": {"type": "date"}}}`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, newOnly := range []bool{false, true} {
		s := openStore(t, t.TempDir())
		report, err := Run(t.Context(), s, "t", []string{dump}, Options{MappingFile: mapping, NewOnly: newOnly,
			OnBadRow: BadRowQuarantine, BadRowReport: bad, NumberReports: true})
		var row *source.RowError
		want := `nothing to ingest: all 2 rows are bad, such as ` + dump + `, line 2, column "day": ` +
			`"24/11/2026" is no date`
		if !errors.As(err, &row) || !strings.HasPrefix(err.Error(), want) ||
			!strings.HasSuffix(err.Error(), "; see "+report.BadReport) || report.BadRows != 2 ||
			report.Committed {
			t.Fatalf("%v, %+v, want %s", err, report, want)
		}
		if lines, err := os.ReadFile(report.BadReport); err != nil || strings.Count(string(lines), "\n") != 2 {
			t.Errorf("%s: %v", lines, err)
		}
		if _, err := s.Table(t.Context(), "t"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("there is a table: %v", err)
		}
	}
}
