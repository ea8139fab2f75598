package golden

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/version"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/dsi"
)

const testdata = "testdata"

// A Golden is golden.json.
type Golden struct {
	Version string `json:"version"`
	// Candidate: the version is not released, and the store may be made anew.
	Candidate bool `json:"candidate,omitempty"`
	// Sum is sumOf the directory: a file that somebody changed, or a tool that changes ends of lines, is noticed.
	Sum   string `json:"sha256"`
	Views []View `json:"views"`
}

// A View is a way to read a table, and the name of the file of its rows.
type View struct {
	Name     string   `json:"name"`
	Table    string   `json:"table"` // or table@branch
	At       uint64   `json:"at,omitempty"`
	Overlays []string `json:"overlays,omitempty"`
	List     string   `json:"list,omitempty"`
	// InOrder: the table has no session key, and keeps the order of its rows.
	InOrder bool `json:"in_order,omitempty"`
}

// dsiOK runs dsi, which must succeed, and returns what it prints.
func dsiOK(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := dsi.Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("dsi %s: exit code %d\n%s%s", strings.Join(args, " "), code, &stdout, &stderr)
	}
	return stdout.String()
}

// sumOf returns the SHA-256 of the names and bytes of all files below a directory but golden.json.
func sumOf(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "golden.json" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		fmt.Fprintf(sum, "%x  %s\n", sha256.Sum256(data), filepath.ToSlash(name))
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// TestGolden: the stores of all releases are read, value by value.
func TestGolden(t *testing.T) {
	if *remake {
		t.Run("make", makeGolden)
	}
	found, err := filepath.Glob(filepath.Join(testdata, "*", "golden.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no golden stores: %v", err)
	}
	for _, path := range found {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) { readGolden(t, dir) })
	}
}

func readGolden(t *testing.T, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g Golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	if g.Version != filepath.Base(dir) || g.Candidate && g.Version != version.Number {
		t.Errorf("%s is of version %s, candidate %v, in version %s: a released store is no candidate", dir, g.Version,
			g.Candidate, version.Number)
	}
	if sum, err := sumOf(dir); err != nil || sum != g.Sum {
		t.Errorf("the files of %s have the SHA-256 %s, want %s: golden files are never edited (%v)", dir, sum, g.Sum,
			err)
	}
	// A copy: readers leave leases and usage records.
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(filepath.Join(dir, "store"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DSISTORE_USAGE", "off")
	rows := 0
	for _, v := range g.Views {
		want := readModel(t, filepath.Join(dir, v.Name+".jsonl.gz"))
		rows += len(want)
		compare(t, v, "reader", scan(t, root, v), want)
		compare(t, v, "dsi export", export(t, root, v), want)
	}
	if len(g.Views) < 9 || rows < 3000 {
		t.Errorf("%d views with %d rows: want more", len(g.Views), rows)
	}
	dsiOK(t, "verify", root, "--deep")
	writeOn(t, root, dir, g)
}

// writeOn: this version ingests into the store, compacts it and reads what it had.
func writeOn(t *testing.T, root, dir string, g Golden) {
	i := slices.IndexFunc(g.Views, func(v View) bool { return v.Name == "ads" })
	v := g.Views[i]
	more := filepath.Join(t.TempDir(), "more.jsonl")
	if err := os.WriteFile(more, []byte(`{"row": 999999, "session": 5, "time": 1, "user": "new", "day": "2026-12-24"}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	dsiOK(t, "ingest", root, v.Table, more)
	dsiOK(t, "compact", root, v.Table, "--repack")
	dsiOK(t, "gc", root)
	got, want := scan(t, root, v), readModel(t, filepath.Join(dir, v.Name+".jsonl.gz"))
	if last := got[len(got)-1]; len(got) != len(want)+1 || last["user"] != `"new"` {
		t.Errorf("written on, %d rows: want %d; the last is %v", len(got), len(want)+1, last)
	}
	compare(t, v, "reader, written on and compacted", got[:len(got)-1], want)
	dsiOK(t, "verify", root, "--deep")
}

// cells are the values of a row that are not null, each as a text that is equal for equal values.
type cells map[string]string

// compare compares rows that were read with those of the model, all in the order of their numbers.
func compare(t *testing.T, v View, by string, got, want []cells) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s, by %s: %d rows, want %d", v.Name, by, len(got), len(want))
		return
	}
	wrong := 0
	for i := range want {
		if !maps.Equal(got[i], want[i]) && wrong < 3 {
			wrong++
			t.Errorf("%s, by %s: row %s: %s", v.Name, by, want[i]["row"], difference(got[i], want[i]))
		}
	}
}

func difference(got, want cells) string {
	var b strings.Builder
	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if got[name] != want[name] {
			fmt.Fprintf(&b, "%s is %s, want %s; ", name, cmp.Or(got[name], "null"), cmp.Or(want[name], "null"))
		}
	}
	return b.String()
}

// inOrder sorts rows by their number, or says that they are not sorted already.
func inOrder(t *testing.T, v View, rows []cells) []cells {
	number := func(a, b cells) int {
		x, _ := strconv.Atoi(a["row"])
		y, _ := strconv.Atoi(b["row"])
		return x - y
	}
	if v.InOrder && !slices.IsSortedFunc(rows, number) {
		t.Errorf("%s: its rows are not in the order in which they were ingested", v.Name)
	}
	slices.SortFunc(rows, number)
	return rows
}

// readModel reads the rows of a view as the model has them.
func readModel(t *testing.T, path string) []cells {
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return readLines(t, text)
}

func readLines(t *testing.T, text []byte) []cells {
	var out []cells
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for d.More() {
		var r map[string]any
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		c := cells{}
		for name, v := range r {
			if v != nil {
				c[name] = printed(v)
			}
		}
		out = append(out, c)
	}
	return out
}

// printed returns a value of JSON as a text. A map, and the list of keys and values that Arrow has for it, are alike.
func printed(v any) string {
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			if pair, ok := x.(map[string]any); ok {
				parts[i] = printed(pair["key"]) + ":" + printed(pair["value"])
			} else {
				parts[i] = printed(x)
			}
		}
		if len(v) > 0 && strings.Contains(parts[0], ":") {
			slices.Sort(parts)
		}
		return fmt.Sprint(parts)
	case map[string]any:
		var parts []string
		for key, x := range v {
			parts = append(parts, key+":"+printed(x))
		}
		slices.Sort(parts)
		return fmt.Sprint(parts)
	}
	return fmt.Sprintf("%#v", v)
}

// number returns a number as a text: 5, 5.0 and 5e0 are alike.
func number(text string) string {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(i, 10)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// export reads a view by dsi export.
func export(t *testing.T, root string, v View) []cells {
	to := filepath.Join(t.TempDir(), "read.jsonl")
	args := []string{"export", root, v.Table, "--to", to, "--no-lease"}
	for _, o := range v.Overlays {
		args = append(args, "--overlay", o)
	}
	if v.At != 0 {
		args = append(args, "--at", fmt.Sprint(v.At))
	}
	if v.List != "" {
		args = append(args, "--sample-list", v.List)
	}
	dsiOK(t, args...)
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return inOrder(t, v, readLines(t, text))
}

// scan reads a view by the reader, with the duplicates that are stored.
func scan(t *testing.T, root string, v View) []cells {
	ctx := t.Context()
	blobs, err := object.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(ctx, blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	view, err := s.Open(ctx, v.Table)
	if err != nil {
		t.Fatal(err)
	}
	if v.At != 0 {
		at, err := s.At(ctx, v.Table, v.At)
		if err != nil {
			t.Fatal(err)
		}
		view = &storage.View{Snapshot: at}
	}
	p, err := reader.NewViewPlan(ctx, view, reader.PlanOptions{Features: []string{"@all"}, BatchSize: 64,
		Dedup: reader.DedupPartial, Overlays: v.Overlays, SampleList: v.List})
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	layout, err := reader.NewLayoutWith(ctx, view.Snapshot, p, reader.LayoutOptions{View: view})
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	sc, err := layout.Open(reader.Options{Lease: reader.LeaseOptions{Off: true}})
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	defer sc.Close()
	var out []cells
	for {
		b, err := sc.Next(context.Background())
		if err == io.EOF {
			return inOrder(t, v, out)
		}
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		for i := range b.Rows {
			c := cells{}
			for j, col := range b.Columns {
				if text, ok := valueOf(col, i); ok {
					c[p.Features[j].Name] = text
				}
			}
			out = append(out, c)
		}
		b.Release()
	}
}

// valueOf returns the value of a row as printed does, and false if it is null.
func valueOf(c *vector.Column, row int) (string, bool) {
	slot := row
	if c.Inverse != nil {
		slot = int(c.Inverse[row])
	}
	if c.Present != nil && c.Present[slot/64]>>(slot%64)&1 == 0 {
		return "", false
	}
	from, to := slot, slot+1
	switch {
	case c.Type.Kind == vector.Embedding:
		from, to = slot*int(c.Type.Dim), (slot+1)*int(c.Type.Dim)
	case c.Lengths != nil:
		from, to = int(c.Offsets[slot]), int(c.Offsets[slot]+c.Lengths[slot])
	case c.Type.Kind != vector.Dense:
		from, to = int(c.Offsets[slot]), int(c.Offsets[slot+1])
	}
	switch {
	case c.Type.Kind == vector.String:
		return fmt.Sprintf("%#v", string(c.Data[from:to])), true
	case c.Type.Kind == vector.Bytes:
		return fmt.Sprintf("%#v", base64.StdEncoding.EncodeToString(c.Data[from:to])), true
	case c.Type.Elem == vector.Bool:
		return fmt.Sprint(c.Ints[slot] != 0), true
	}
	parts := []string{}
	for i := from; i < to; i++ {
		var text string
		switch {
		case len(c.Floats) > 0:
			text = number(strconv.FormatFloat(float64(c.Floats[i]), 'g', -1, 32))
		case len(c.Doubles) > 0:
			text = number(strconv.FormatFloat(c.Doubles[i], 'g', -1, 64))
		default:
			text = strconv.FormatInt(c.Ints[i], 10)
		}
		if c.Type.Kind == vector.Weighted {
			text += ":" + number(strconv.FormatFloat(float64(c.ScoreFloats[i]), 'g', -1, 32))
		}
		parts = append(parts, text)
	}
	if c.Type.Kind == vector.Dense {
		return parts[0], true
	}
	if c.Type.Kind == vector.Weighted {
		slices.Sort(parts)
	}
	return fmt.Sprint(parts), true
}
