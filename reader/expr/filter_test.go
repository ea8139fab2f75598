package expr

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// oneField resolves every name to the same field.
func oneField(f Field) func([]string) ([]Field, error) {
	return func(names []string) ([]Field, error) { return slices.Repeat([]Field{f}, len(names)), nil }
}

func TestPrune(t *testing.T) {
	stats := func(typ vector.Type, rows, nulls uint64, lo, hi int64) FieldStats {
		return FieldStats{Type: typ, Rows: rows, Stats: &format.Stats{NullRows: nulls, Elements: 100, HasMinMax: true,
			MinInt: lo, MaxInt: hi}}
	}
	i := dense(vector.Int64)
	float := FieldStats{Type: dense(vector.Float64), Rows: 10,
		Stats: &format.Stats{HasMinMax: true, MinFloat: 1, MaxFloat: 2}}
	for _, c := range []struct {
		text string
		typ  vector.Type
		s    FieldStats
		want Verdict
	}{
		{"x > 5", i, stats(i, 10, 0, 1, 5), Never},
		{"x > 4", i, stats(i, 10, 0, 1, 5), Some},
		{"x > 0", i, stats(i, 10, 0, 1, 5), Always},
		{"x > 0", i, stats(i, 10, 1, 1, 5), Some},
		{"NOT x > 0", i, stats(i, 10, 1, 1, 5), Never},
		{"x != 7", i, stats(i, 10, 0, 1, 5), Always},
		{"x IN (0, 6, 7)", i, stats(i, 10, 0, 1, 5), Never},
		{"x IN (0, 3)", i, stats(i, 10, 0, 1, 5), Some},
		{"x BETWEEN 2.5 AND 2.6 OR x = 9", i, stats(i, 10, 0, 1, 5), Never},
		{"x IS NULL", i, stats(i, 10, 0, 1, 5), Never},
		{"x IS NOT NULL", i, stats(i, 10, 0, 1, 5), Always},
		{"x IS NULL", i, FieldStats{Rows: 10}, Always},
		{"x = 1", i, FieldStats{Rows: 10}, Never},
		{"x > 0", dense(vector.Float64), float, Some}, // there may be a NaN
		{"x > 2", dense(vector.Float64), float, Never},
		{"NOT x > 0", dense(vector.Float64), float, Some},
		{"contains(x, 6)", sparse(vector.Int64), stats(sparse(vector.Int64), 10, 0, 1, 5), Never},
		{"all(x) < 6", sparse(vector.Int64), stats(sparse(vector.Int64), 10, 0, 1, 5), Always},
		// of an empty list it is true
		{"all(x) > 6", sparse(vector.Int64), stats(sparse(vector.Int64), 10, 0, 1, 5), Some},
		{"len(x) > 100", sparse(vector.Int64), stats(sparse(vector.Int64), 10, 0, 1, 5), Never},
		// no list has an element
		{"all(x) > 6", sparse(vector.Int64), FieldStats{Rows: 3, Stats: &format.Stats{}}, Always},
		{"any(x) > 6", sparse(vector.Int64), FieldStats{Rows: 3, Stats: &format.Stats{}}, Never},
		{"x + 1 > 7", i, stats(i, 10, 0, 1, 5), Some},
		{"x + 1 > 7", i, FieldStats{Rows: 10}, Never},
		{"NOT x / 2 > 7", i, stats(i, 10, 10, 0, 0), Never},
		{"x + 1 IS NULL", i, FieldStats{Rows: 10}, Always},
		{"-x IS NOT NULL", i, FieldStats{Rows: 10}, Never},
		{"x + 1 IS NULL", i, stats(i, 10, 0, 1, 5), Some}, // it may be beyond 64 bits
		{"sample(0, key=x)", i, stats(i, 10, 0, 1, 5), Never},
		{"sample(1, key=x)", i, stats(i, 10, 0, 1, 5), Always},
	} {
		f, err := ParseFilter(c.text, oneField(Field{Type: c.typ}))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Prune(nil, func(int) FieldStats { return c.s }); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.text, got, c.want)
		}
	}
}

func TestFilterPartition(t *testing.T) {
	resolve := func(names []string) ([]Field, error) {
		var out []Field
		for _, n := range names {
			out = append(out, Field{Partition: n == "ds", Type: dense(vector.Int64)})
		}
		return out, nil
	}
	f, err := ParseFilter("ds > '2026-11-01' AND x = 1 OR ds IS NULL", resolve)
	if err != nil {
		t.Fatal(err)
	}
	never := func(int) FieldStats {
		return FieldStats{Type: dense(vector.Int64), Rows: 3, Stats: &format.Stats{HasMinMax: true, MaxInt: 5}}
	}
	for value, want := range map[string]Verdict{"2026-10-01": Never, "2026-11-02": Some} {
		if got := f.Prune(catalog.Partition{{Key: "ds", Value: value}}, never); got != want {
			t.Errorf("ds=%s: verdict %d, want %d", value, got, want)
		}
	}
	if got := f.Prune(nil, never); got != Always {
		t.Errorf("without ds: verdict %d", got)
	}
	if _, err := ParseFilter("ds = x", resolve); err == nil ||
		!strings.Contains(err.Error(), "column 1: ds is a partition key and x a feature") {
		t.Errorf("mixed: %v", err)
	}
	if _, err := ParseFilter("sample(0.5, key=ds)", resolve); err == nil ||
		!strings.Contains(err.Error(), "is a partition key") {
		t.Errorf("sample of a partition key: %v", err)
	}
}

// TestFilterNaN: NaN is not equal to itself, and neither below nor above anything, also where two features have it.
func TestFilterNaN(t *testing.T) {
	c := vector.NewColumn(dense(vector.Float64))
	c.Doubles = append(c.Doubles, math.NaN(), 1)
	c.AddSlot()
	c.AddSlot()
	for text, want := range map[string]uint64{"x = y": 2, "x != y": 1, "x < y": 0, "NOT x >= y": 1, "x = 1": 2,
		"x != 1": 1, "NOT x > 0": 1, "x NOT IN (2)": 3} {
		f, err := ParseFilter(text, oneField(Field{Type: c.Type}))
		if err != nil {
			t.Fatal(err)
		}
		got := make(vector.Bitmap, 1)
		new(Evaluator).Select(got, f, 2, nil, []*vector.Column{c, c})
		if got[0] != want {
			t.Errorf("%s: rows %b, want %b", text, got[0], want)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	text, list, embedding := vector.Type{Kind: vector.String}, sparse(vector.Int64),
		vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 2}
	for _, c := range []struct {
		text  string
		field Field
		want  string
	}{
		{"abc = 'x'", Field{Type: dense(vector.Int64)}, "column 7: 'x' is text, and is compared with int64"},
		{"abc = 1", Field{Type: text}, "column 7: 1 is compared with a feature of type string: quote it as '...'"},
		{"abc > 3", Field{Type: list}, "column 1: abc is list<int64>: compare len(abc), any(abc) or all(abc), or ask " +
			"contains(abc, id)"},
		{"len(abc) > 3", Field{Type: text}, "column 5: len(abc) is about lists, and abc is string"},
		{"contains(abc, 3)", Field{Type: dense(vector.Int8)}, "column 10: any(abc) is about lists, and abc is int8"},
		{"abc", Field{Type: dense(vector.Int8)}, "column 1: abc is int8, not true or false: compare it with something"},
		{"abc = TRUE", Field{Type: dense(vector.Int8)},
			"column 7: TRUE is compared with int8, which is not true or false"},
		{"abc LIKE 'a'", Field{Type: dense(vector.Int8)}, "column 1: LIKE is about strings, and abc is int8"},
		{"any(abc) IS NULL", Field{Type: list}, "column 5: no element of a list is null"},
		{"abc > 1", Field{Type: embedding}, "column 1: abc is an embedding"},
		{"1 = 1 AND abc = 2", Field{Err: errors.New("no feature, did you mean abd?")},
			"column 11: no feature, did you mean abd?"},
		{"abc > '2026-13-01'", Field{Type: dense(vector.Int32), Logical: "date32"},
			"column 7: '2026-13-01' is no date or time"},
		{"sample(0.1)", Field{}, "column 11: want key=name"},
		{"sample(1.5, key=abc)", Field{}, "column 8: a sample is a fraction from 0 to 1, and 1.5 is none"},
		{"sample(0.1, seed=-1, key=abc)", Field{}, "column 18: a seed is an integer"},
		{"sample(0.1, kee=abc)", Field{}, "want key=name or seed=integer"},
		{"sample(0.1, seed=1, key=abc, seed=2)", Field{Type: dense(vector.Int8)},
			"column 30: want key=name or seed=integer"},
		{"sample(0.1, key=abc, key=abc)", Field{Type: dense(vector.Int8)}, "column 22: want key=name or seed=integer"},
		{"sample(0.1, key=abc)", Field{Type: list},
			"column 17: a sample's key is an integer or a string, and abc is list<int64>"},
	} {
		_, err := ParseFilter(c.text, oneField(c.field))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		}
		if e := new(Error); !errors.As(err, &e) {
			t.Errorf("%s: %T has no place", c.text, err)
		}
	}
}

func TestFilterLogical(t *testing.T) {
	for _, c := range []struct {
		text, logical string
		elem          vector.Elem
		value         int64
		want          bool
	}{
		{"x = 0.1", "decimal(10, 2)", vector.Int64, 10, true},
		{"x > 0.105", "decimal(10, 2)", vector.Int64, 10, false},
		{"x > 0.105", "decimal(10, 2)", vector.Int64, 11, true},
		{"x = 3", "decimal(10, 2)", vector.Int64, 300, true},
		{"x = 300", "decimal(10, -2)", vector.Int64, 3, true},
		{"x = '2026-11-01'", "date32", vector.Int32, 20758, true},
		{"x < '1969-12-31'", "date32", vector.Int32, -2, true},
		{"x >= '2026-11-01 00:00:01.5'", "timestamp[ms, tz=UTC]", vector.Int64, 1793491201500, true},
		{"x >= '2026-11-01 00:00:01.5'", "timestamp[s]", vector.Int64, 1793491201, false},
		{"x = '2026-11-01T02:00:01+02:00'", "timestamp[us]", vector.Int64, 1793491201000000, true},
		{"x = 1793491201000000", "timestamp[us]", vector.Int64, 1793491201000000, true},
		{"x = 5", "time32[s]", vector.Int32, 5, true},
		{"x = '2026-11-01'", "timestamp[us]", vector.Uint64, 1793491200000000, true},
		{"x > '2026-11-01'", "timestamp[us]", vector.Uint64, 1793491200000000, false},
		{"x < '1969-12-31'", "timestamp[us]", vector.Uint64, 0, false},
		// More digits than a float64 tells apart.
		{"x = 1234567890123456.78", "decimal(18, 2)", vector.Int64, 123456789012345678, true},
		{"x = 1234567890123456.78", "decimal(18, 2)", vector.Int64, 123456789012345680, false},
		{"x = 123456789012345678e-2", "decimal(18, 2)", vector.Int64, 123456789012345678, true},
		{"x <= -1234567890123456.785", "decimal(18, 2)", vector.Int64, -123456789012345678, false},
		{"x = 9007199254740993.0", "", vector.Int64, 1<<53 + 1, true},
		{"x = 9007199254740993.0", "", vector.Int64, 1 << 53, false},
		{"x IN (1, 9007199254740992.0)", "", vector.Uint64, 1<<53 + 1, false},
		{"x = 1e76", "decimal(76, -76)", vector.Int64, 1, true},
		{"x > 1e-76", "decimal(76, 76)", vector.Int64, 1, false},
		// Digits and exponents that no rational should be made of.
		{"x > 1e-999999999", "", vector.Int64, 0, false},
		{"x >= -1e-999999999", "decimal(76, 76)", vector.Int64, 0, true},
		{"x >= 1e-999999999", "decimal(76, 76)", vector.Int64, 1, true},
		{"x = 0e999999999", "", vector.Int64, 0, true},
		{"x < 1e308", "decimal(76, -76)", vector.Int64, math.MaxInt64, true},
		{"x > -1e308", "", vector.Int64, math.MinInt64, true},
		{"x = 3." + strings.Repeat("0", 500_000), "", vector.Int64, 3, true},
		{"x = 3." + strings.Repeat("0", 500_000) + "1", "", vector.Int64, 3, false},
		{"x > 3." + strings.Repeat("0", 500_000) + "1", "", vector.Int64, 4, true},
		{"x > " + strings.Repeat("1", 400_000) + "e-399999", "", vector.Int64, 1, false},
		{"x > " + strings.Repeat("1", 400_000) + "e-399999", "", vector.Int64, 2, true},
	} {
		f, err := ParseFilter(c.text, oneField(Field{Type: dense(c.elem), Logical: c.logical}))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		column := vector.NewColumn(dense(c.elem))
		column.Ints = append(column.Ints, c.value)
		column.AddSlot()
		got := make(vector.Bitmap, 1)
		new(Evaluator).Select(got, f, 1, nil, []*vector.Column{column})
		if got.Get(0) != c.want {
			t.Errorf("%.50s of %d, %s: %v", c.text, c.value, c.logical, !c.want)
		}
	}
	if _, err := ParseFilter("x = 0.1", oneField(Field{Type: vector.Type{Kind: vector.Bytes},
		Logical: "decimal(30, 2)"})); err == nil {
		t.Error("a decimal stored as bytes is compared")
	}
}

// TestSampleForEver fixes which keys a sample has: they never change.
func TestSampleForEver(t *testing.T) {
	sampled := func(text string, c *vector.Column) string {
		f, err := ParseFilter(text, oneField(Field{Type: c.Type}))
		if err != nil {
			t.Fatal(err)
		}
		got := make(vector.Bitmap, vector.BitmapWords(c.Rows))
		new(Evaluator).Select(got, f, c.Rows, nil, []*vector.Column{c})
		var b strings.Builder
		for r := range c.Rows {
			if got.Get(r) {
				fmt.Fprintf(&b, "%d ", r)
			}
		}
		return strings.TrimSpace(b.String())
	}
	ints := func(e vector.Elem) *vector.Column {
		c := vector.NewColumn(dense(e))
		for i := range 40 {
			c.Ints = append(c.Ints, int64(i)-5)
			c.AddSlot()
		}
		return c
	}
	texts := vector.NewColumn(vector.Type{Kind: vector.String})
	for i := range 40 {
		texts.Data = append(texts.Data, fmt.Sprintf("user%d", i)...)
		texts.AddSlot()
	}
	texts.AppendNulls(1)
	for _, c := range []struct {
		text string
		c    *vector.Column
		want string
	}{
		{"sample(0.2, key=k, seed=7)", ints(vector.Int64), "6 10 20 28 29 39"},
		{"sample(0.2, key=k, seed=7)", ints(vector.Int8), "6 10 20 28 29 39"},
		{"sample(0.2, key=k)", ints(vector.Int64), "17 24 35"},
		{"sample(0.2, seed=7, key=k)", texts, "10 12 15 16 18 19 20 21 28 29 33"},
		{"NOT sample(1, key=k)", texts, ""},
	} {
		if got := sampled(c.text, c.c); got != c.want {
			t.Errorf("%s of %v: %s, want %s", c.text, c.c.Type, got, c.want)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{"a = 1 AND b IN ('x')", "sample(0.1, key=a, seed=3) OR a IS NULL",
		"all(a) NOT BETWEEN 1 AND 2", "contains(a, 3)", "len(a) > b"} {
		f.Add(s, uint8(1))
	}
	kinds := []vector.Type{dense(vector.Int64), dense(vector.Float32), sparse(vector.Uint64), {Kind: vector.String},
		dense(vector.Bool)}
	f.Fuzz(func(t *testing.T, text string, kind uint8) {
		typ := kinds[int(kind)%len(kinds)]
		x, err := ParseFilter(text, oneField(Field{Type: typ, Partition: kind > 200}))
		if err != nil {
			return
		}
		y, err := ParseFilter(x.String(), oneField(Field{Type: typ, Partition: kind > 200}))
		if err != nil || y.String() != x.String() {
			t.Fatalf("%q is printed %q: %v", text, x, err)
		}
		c := vector.NewColumn(typ)
		c.AppendNulls(3)
		columns := slices.Repeat([]*vector.Column{c}, len(x.Features()))
		var e Evaluator
		a, b := make(vector.Bitmap, 1), make(vector.Bitmap, 1)
		e.Select(a, x, 3, nil, columns)
		e.Select(b, y, 3, nil, columns)
		if a[0] != b[0] {
			t.Fatalf("%q selects %b, %q %b", text, a, y, b)
		}
	})
}

// The canonical text of a filter is the key under which its rows are kept: numbers that differ differ there,
// and those that a float64 tells are in its shortest form.
func TestNumbersAreWrittenInFull(t *testing.T) {
	for text, want := range map[string]string{
		"1234567890123456.78": "1234567890123456.78", "-1234567890123456.7800": "-1234567890123456.7800",
		"+1.50": "1.5", "3.": "3.0", ".5e1": "5.0",
		"1e-400": "1e-400", "0e9": "0.0", "-0.0": "-0.0", "2e9": "2e+09",
	} {
		f, err := ParseFilter("x = "+text, oneField(Field{Type: dense(vector.Int64)}))
		if err != nil || f.String() != "x = "+want {
			t.Errorf("%s is written as %v: %v", text, f, err)
		}
	}
}
