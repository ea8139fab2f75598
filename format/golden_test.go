package format_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

var update = flag.Bool("update", false, "write golden files that do not exist yet (format/testdata/golden)")

// goldenDir holds files of format version 1 and, beside each, its rows as text. They are kept for ever: a golden file
// is never written again, new ones are added under new names.
const goldenDir = "testdata/golden/v1"

// goldens are the recipes of the golden files. A feature of a group comes after its group's inverse file.
var goldens = []struct {
	name   string
	ty     vector.Type
	group  uint64
	shapes []shape
}{
	{"dense_bool", dense(vector.Bool), 0, []shape{{rows: 100, null: 10}, {rows: 70, inverse: 1}}},
	{"dense_int8", dense(vector.Int8), 0, []shape{{rows: 30, null: 30, extremes: true}}},
	{"dense_int16", dense(vector.Int16), 0, []shape{{rows: 30, extremes: true}}},
	{"dense_int32", dense(vector.Int32), 0, []shape{{rows: 30, null: 30, extremes: true}}},
	{"dense_int64", dense(vector.Int64), 0, []shape{{rows: 30, null: 30, extremes: true}, {rows: 5, null: 100},
		{rows: 64, inverse: 2}}},
	{"dense_uint8", dense(vector.Uint8), 0, []shape{{rows: 30, extremes: true}}},
	{"dense_uint16", dense(vector.Uint16), 0, []shape{{rows: 30, extremes: true}}},
	{"dense_uint32", dense(vector.Uint32), 0, []shape{{rows: 30, extremes: true}}},
	{"dense_uint64", dense(vector.Uint64), 0, []shape{{rows: 30, null: 30, extremes: true}}},
	{"dense_float32", dense(vector.Float32), 0, []shape{{rows: 200, null: 30, extremes: true}, {rows: 20,
		constant: true}}},
	{"dense_float64", dense(vector.Float64), 0, []shape{{rows: 200, null: 30, extremes: true}, {rows: 20, inverse: 4}}},
	{"sparse_int64", sparse(vector.Int64), 0, []shape{{rows: 60, null: 30, empty: 20, maxLength: 9}, {rows: 61,
		maxLength: 3}, {rows: 3, null: 100}, {rows: 4, empty: 100}}},
	{"sparse_uint64_runs", sparse(vector.Uint64), 0, []shape{{rows: 300, null: 10, inverse: 1, maxLength: 5}}},
	{"sparse_int32_slots", sparse(vector.Int32), 0, []shape{{rows: 300, null: 10, inverse: 3, maxLength: 5}}},
	{"sparse_int64_windows", sparse(vector.Int64), 0, []shape{{rows: 80, null: 10, inverse: 1, maxLength: 9,
		partial: true}}},
	{"sparse_float32", sparse(vector.Float32), 0, []shape{{rows: 40, null: 10, maxLength: 5, extremes: true}}},
	{"sparse_float64", sparse(vector.Float64), 0, []shape{{rows: 40, null: 10, maxLength: 5, extremes: true}}},
	{"weighted_float32", vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, 0,
		[]shape{{rows: 50, null: 20, empty: 10, maxLength: 6}, {rows: 50, inverse: 1, maxLength: 6, partial: true}}},
	{"weighted_float64", vector.Type{Kind: vector.Weighted, Elem: vector.Uint32, Score: vector.Float64}, 0,
		[]shape{{rows: 50, null: 20, inverse: 2, maxLength: 6, extremes: true}}},
	{"embedding_float32", vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 8}, 0, []shape{{rows: 20,
		null: 20}, {rows: 20, inverse: 3}}},
	{"embedding_int8", vector.Type{Kind: vector.Embedding, Elem: vector.Int8, Dim: 3}, 0, []shape{{rows: 20,
		null: 20}}},
	{"bytes", vector.Type{Kind: vector.Bytes}, 0, []shape{{rows: 40, null: 20, empty: 10, maxLength: 12}, {rows: 40,
		maxLength: 12, partial: true}}},
	{"string", vector.Type{Kind: vector.String}, 0, []shape{{rows: 40, null: 20, empty: 10, maxLength: 12},
		{rows: 200, inverse: 3, maxLength: 4}}},
	{"group_inverse", vector.Type{Kind: vector.Inverse}, 0, []shape{{rows: 90, inverse: 1}, {rows: 90, inverse: 3},
		{rows: 9}}},
	{"group_sparse", sparse(vector.Int64), 1, []shape{{rows: 90, inverse: 1, null: 20, maxLength: 4}, {rows: 90,
		inverse: 3, maxLength: 4}, {rows: 9, maxLength: 2}}},
	{"group_dense", dense(vector.Int32), 1, []shape{{rows: 90, inverse: 1}, {rows: 90, inverse: 3, null: 30},
		{rows: 9, null: 100}}},
	{"no_stripes", dense(vector.Int64), 0, nil},
	{"no_rows", sparse(vector.Int64), 0, []shape{{}, {}}},
	{"dense_int64_time", dense(vector.Int64), 0, []shape{{rows: 400, style: "time"}}},
	{"dense_int64_zipf", dense(vector.Int64), 0, []shape{{rows: 400, style: "zipf"}}},
	{"dense_int32_skewed", dense(vector.Int32), 0, []shape{{rows: 3000, style: "skewed"}}},
	{"sparse_int64_skewed", sparse(vector.Int64), 0, []shape{{rows: 500, null: 20, maxLength: 12, style: "skewed"}}},
	{"dense_uint64_hashed", dense(vector.Uint64), 0, []shape{{rows: 600, style: "hashed"}}},
	{"dense_float32_decimal", dense(vector.Float32), 0, []shape{{rows: 400, null: 3, style: "decimal"}}},
	{"dense_float64_decimal", dense(vector.Float64), 0, []shape{{rows: 400, style: "decimal"}}},
	{"dense_float32_gauss", dense(vector.Float32), 0, []shape{{rows: 400, style: "gauss"}}},
	{"dense_float64_gauss", dense(vector.Float64), 0, []shape{{rows: 400, null: 98, style: "gauss"}, {rows: 300,
		style: "gauss"}}},
	{"dense_float64_zipf", dense(vector.Float64), 0, []shape{{rows: 400, style: "zipf"}}},
	{"sparse_int64_hashed", sparse(vector.Int64), 0, []shape{{rows: 200, null: 50, maxLength: 12, style: "hashed"},
		{rows: 200, inverse: 1, maxLength: 12, style: "hashed"}}},
	{"sparse_int64_zipf", sparse(vector.Int64), 0, []shape{{rows: 200, null: 2, maxLength: 12, style: "zipf"}}},
	{"string_words", vector.Type{Kind: vector.String}, 0, []shape{{rows: 400, null: 20, maxLength: 1, style: "word"}}},
	{"bytes_zipf", vector.Type{Kind: vector.Bytes}, 0, []shape{{rows: 100, maxLength: 60, style: "zipf"}}},
	{"sparse_int64_sessions", sparse(vector.Int64), 0, []shape{{rows: 320, inverse: 5, maxLength: 3}, {rows: 320,
		inverse: 6, null: 10, maxLength: 3}}},
	{"embedding_float32_gauss", vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 16}, 0,
		[]shape{{rows: 40, style: "gauss"}}},
	{"sparse_int64_shared", sparse(vector.Int64), 0, sharedShapes},
	{"sparse_uint32_shared", sparse(vector.Uint32), 0, sharedShapes},
	{"weighted_float32_shared", vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, 0,
		sharedShapes},
	{"dense_uint64_shared", dense(vector.Uint64), 0, []shape{{rows: 500, style: "ids"}, {rows: 400, null: 20,
		style: "ids"}, {rows: 50, null: 100}, {rows: 700, inverse: 2, style: "ids"}}},
}

// sharedShapes are stripes that share most of their values.
var sharedShapes = []shape{
	{rows: 100, null: 10, maxLength: 9, style: "ids"}, {rows: 90, inverse: 1, maxLength: 9, partial: true,
		style: "ids"},
	{rows: 20, null: 100}, {rows: 0}, {rows: 120, empty: 20, maxLength: 9, style: "ids"},
}

func dense(e vector.Elem) vector.Type  { return vector.Type{Kind: vector.Dense, Elem: e} }
func sparse(e vector.Elem) vector.Type { return vector.Type{Kind: vector.Sparse, Elem: e} }

const goldenGroup = 1000 // the feature id of group_inverse

func TestGolden(t *testing.T) {
	if *update {
		updateGolden(t)
	}
	paths, err := filepath.Glob(goldenDir + "/*.dsf")
	if err != nil || len(paths) < len(goldens) {
		t.Fatalf("%d golden files, want at least %d: %v", len(paths), len(goldens), err)
	}
	group, err := os.ReadFile(goldenDir + "/group_inverse.dsf")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(path, ".dsf") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := goldenText(t, file, group); got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}
}

// goldenText returns the rows of a file, whose group, if any, is the one given.
func goldenText(t *testing.T, file, group []byte) string {
	m, err := format.OpenFile(bytes.NewReader(file), 0, int64(len(file)), format.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("feature %d %q, group %d, %d rows\n", m.Feature, m.Name, m.Group, m.Rows)
	d := format.NewStripeDecoder(format.Limits{})
	if err := use(d, file, m); err != nil {
		t.Fatal(err)
	}
	var c, inverse vector.Column
	for i := range m.Stripes {
		if m.Group != 0 {
			gm, err := format.OpenFile(bytes.NewReader(group), 0, int64(len(group)), format.Limits{})
			if err != nil || gm.Feature != m.Group {
				t.Fatalf("group %d: %v", m.Group, err)
			}
			if err := d.DecodeStripe(&inverse, gm, i, stripeBytes(group, gm, i), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.DecodeStripe(&c, m, i, stripeBytes(file, m, i), &inverse); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		text += columnText(fmt.Sprintf("stripe %d", i), &c)
	}
	return text
}

// updateGolden writes the golden files that do not exist. The text comes from the columns, not from what is read back.
func updateGolden(t *testing.T) {
	if err := os.MkdirAll(goldenDir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, g := range goldens {
		path := filepath.Join(goldenDir, g.name)
		if _, err := os.Stat(path + ".dsf"); err == nil {
			continue
		}
		opts := format.WriterOptions{Feature: uint64(i + 1), Salt: uint32(i), Name: g.name,
			Group: g.group * goldenGroup}
		if g.name == "group_inverse" {
			opts.Feature = goldenGroup
		}
		text := fmt.Sprintf("feature %d %q, group %d, %d rows\n", opts.Feature, opts.Name, opts.Group, rowsOf(g.shapes))
		var stripes []*vector.Column
		for k, s := range g.shapes {
			// One seed a stripe: the features of a group draw the group's inverse.
			c := makeColumn(rand.New(rand.NewPCG(uint64(k), 2026)), g.ty, s)
			stripes = append(stripes, c)
			text += columnText(fmt.Sprintf("stripe %d", k), c)
		}
		file, _ := writeFile(fatal{t}, g.ty, opts, stripes...)
		if err := os.WriteFile(path+".txt", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".dsf", file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func rowsOf(shapes []shape) (n int) {
	for _, s := range shapes {
		n += s.rows
	}
	return n
}

// goldenFiles returns all golden files, as seeds.
func goldenFiles(t testing.TB) (files [][]byte) {
	paths, err := filepath.Glob(goldenDir + "/*.dsf")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b)
	}
	return files
}
