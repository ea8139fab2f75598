package source

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// TestPlainCSVCorpus reads every .csv and .tsv of the sample data sets without a mapping file, and compares each value
// with what encoding/csv reads.
func TestPlainCSVCorpus(t *testing.T) {
	root := corpusRoot(t)
	files, rows := 0, 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".csv" && filepath.Ext(path) != ".tsv" {
			return err
		}
		files++
		n, err := compareCSV(t, path)
		if rows += n; err != nil {
			var row *RowError
			if !errors.Is(err, column.ErrRefused) && !errors.As(err, &row) {
				t.Errorf("%s: %v", path, err)
			}
			t.Logf("refused: %.300s", strings.ReplaceAll(err.Error(), root+"/", ""))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows of %d files", rows, files)
	if files > 0 && rows == 0 {
		t.Error("nothing was read")
	}
}

// compareCSV returns how many rows of a file are alike.
func compareCSV(t *testing.T, path string) (rows int, err error) {
	t.Helper()
	layout := ""
	chunks, err := readPath(t, path, Options{Inferred: func(i Inferred) { layout = i.Layout }})
	if err != nil {
		return 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	for text, name := range map[rune]string{'\t': "tabs", ';': "semicolons", '|': "bars"} {
		if strings.HasPrefix(layout, name) {
			r.Comma = text
		}
	}
	names, err := r.Read()
	if err != nil {
		return 0, err
	}
	at := map[string]int{}
	for i, name := range names {
		name = strings.TrimPrefix(name, "\xef\xbb\xbf")
		if name == "" {
			name = fmt.Sprintf("_c%d", i)
		}
		at[name] = i
	}
	for _, c := range chunks {
		for row := range c.Rows {
			want, err := r.Read()
			if err != nil {
				return rows, fmt.Errorf("row %d: %w", rows, err)
			}
			for i, f := range c.Fields {
				if err := sameCell(c.Columns[i], f.Logical, row, want[at[f.Path]]); err != nil {
					t.Errorf("%s, row %d, column %s: %v", path, rows, f.Path, err)
					return rows, nil
				}
			}
			rows++
		}
	}
	if extra, err := r.Read(); err == nil {
		t.Errorf("%s: %d rows, and then %q", path, rows, extra)
	}
	return rows, nil
}

// sameCell returns an error unless a value is what a text spells.
func sameCell(c *vector.Column, logical string, row int, text string) error {
	lo, _ := c.RowRange(row)
	wrong := func(got any) error { return fmt.Errorf("%v of type %v, want %q", got, c.Type, text) }
	switch {
	case c.IsNull(row):
		if text != "" {
			return wrong(nil)
		}
		return nil
	case c.Type.Kind == vector.String:
		if got := cellText(c, row); got != strconv.Quote(text) && got != fmt.Sprintf("%q", []byte(text)) {
			return wrong(got)
		}
		return nil
	case c.Type.Elem == vector.Bool:
		if want, err := strconv.ParseBool(strings.ToLower(text)); err != nil || want != (c.Ints[lo] != 0) {
			return wrong(c.Ints[lo])
		}
		return nil
	case c.Type.Elem == vector.Float64:
		if want, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil ||
			want != c.Doubles[lo] && !(math.IsNaN(want) && math.IsNaN(c.Doubles[lo])) {
			return wrong(c.Doubles[lo])
		}
		return nil
	case logical == "date32":
		if got := time.Unix(c.Ints[lo]*86400, 0).UTC().Format(time.DateOnly); got != text {
			return wrong(got)
		}
		return nil
	case strings.HasPrefix(logical, "timestamp["):
		per := column.TimeUnits[column.TimestampUnit(logical)]
		text := strings.TrimSuffix(strings.Replace(text, "T", " ", 1), "+00:00")
		got, err := time.Parse("2006-01-02 15:04:05.999999999", text)
		if err != nil || got.Unix()*per+int64(got.Nanosecond())/(1e9/per) != c.Ints[lo] {
			return wrong(c.Ints[lo])
		}
		return nil
	}
	if got := strconv.FormatInt(c.Ints[lo], 10); got != strings.TrimSpace(text) {
		return wrong(got)
	}
	return nil
}
