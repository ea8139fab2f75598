package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// TestTextAmongScalars: where the table has a scalar and bad rows are left out, values that are text by themselves have
// no say in the type of a column, and are bad. All others keep their say.
func TestTextAmongScalars(t *testing.T) {
	known := func(elem vector.Elem, logical string) catalog.Feature {
		return catalog.Feature{Name: "w", Type: vector.Type{Kind: vector.Dense, Elem: elem}, Logical: logical}
	}
	list := catalog.Feature{Name: "w", Type: vector.Type{Kind: vector.Sparse, Elem: vector.Int64}}
	date, time := known(vector.Int32, "date32"), known(vector.Int64, "timestamp[us]")
	const leaves, null = " leaves", ` fits {"text": {"null": "NA"}}`
	for _, tc := range []struct {
		name   string
		known  catalog.Feature
		values string // of lines 2 on
		strict string // the type if the first bad row ends all, and what is said of it
		want   string // the type with quarantine, what is said, and the lines that are left out
	}{
		{"integers", known(vector.Int64, ""), "7;8", "int64", "int64"},
		{"text", known(vector.Int64, ""), "7;12x;8", "string" + leaves, "int64 3"},
		{"text first", known(vector.Int64, ""), "x;7", "string" + leaves, "int64 2"},
		{"text, and no value", known(vector.Int64, ""), "x;", "string", "null 2"},
		{"text, and no text", known(vector.Int64, ""), `x;""`, "string" + leaves, "int64 2"},
		{"unsigned", known(vector.Uint64, ""), "18446744073709551615;x", "string" + leaves, "uint64 3"},
		{"booleans", known(vector.Bool, ""), "true;x", "string" + leaves, "bool 3"},
		{"dates", date, "2026-11-01;2026-13-01", "string" + leaves, "date32 3"},
		{"timestamps", time, "2026-11-01 10:00;2026-11-01;x", "string" + leaves, "timestamp[us] 4"},

		{"integers that a float64 rounds", known(vector.Float64, ""), "9007199254740993;x", "string", "int64 3"},
		{"and fractions", known(vector.Float64, ""), "9007199254740993;x;0.5", "string", "string"},
		{"integers that a float32 rounds", known(vector.Float32, ""), "16777217;x;0.5", "string" + leaves, "float64 3"},

		{"names", known(vector.Int64, ""), "007;+5;7;00", "string" + leaves, "int64 2 3 5"},
		{"blanks", known(vector.Int64, ""), " 5;x;7 ", "string" + leaves, "int64 3"},
		{"points", known(vector.Float64, ""), ".5;5.;x;0_1;0x1", "string" + leaves, "float64 4 5 6"},
		{"a minus before nothing", known(vector.Int64, ""), "-0;5", "string" + leaves, "int64 2"},
		{"and a fraction", known(vector.Int32, ""), "-0;2.5;x", "string" + leaves, "float64 4"},
		{"a minus before nothing in floats", known(vector.Float64, ""), "-0;x;", "string" + leaves, "float64 3"},
		{"and after text", known(vector.Float32, ""), "x;-0", "string" + leaves, "float32 2"},
		{"integers beyond 64 bits", known(vector.Int64, ""), "7;123456789012345678901", "string" + leaves, "int64 3"},

		{"fractions in integers of 32 bits", known(vector.Int32, ""), "2.5;x", "string" + leaves, "float64 3"},
		{"fractions in integers", known(vector.Int64, ""), "2.5;x", "string", "float64 3"},
		{"fractions in integers, without text", known(vector.Int64, ""), "2.5;7", "float64", "float64"},
		{"large ones in float32", known(vector.Float32, ""), "1e300;x;0.1", "string" + leaves, "float64 3"},
		{"integers in booleans", known(vector.Bool, ""), "0;1;x", "string" + leaves, "int64 4"},
		{"integers and booleans", known(vector.Bool, ""), "0;true;x", "string", "string"},
		{"wider ones", known(vector.Int8, ""), "300;x", "string" + leaves, "int64 3"},
		{"numbers in timestamps", time, "1700000000;x", "string", "int64 3"},

		{"a word for null", known(vector.Int64, ""), "NA;7", "string" + null, "string" + null},
		{"alone", known(vector.Int64, ""), "NA;", "string" + null, "string" + null},
		{"and text", known(vector.Int64, ""), "NA;x;7", "string" + null, "string" + null},
		{"text, and a word for null", known(vector.Int64, ""), "7;x;NA", "string" + null, "string" + null},
		{"a word for null among what does not mix", known(vector.Int64, ""), "2.5;NA;x", "string" + null[5:],
			"string" + null[5:]},
		{"a quoted word for null", known(vector.Int64, ""), `"NA";7`, "string" + leaves, "int64 2"},

		{"lists in integers", known(vector.Int64, ""), "1|2;7", "string looks like lists" + leaves, "int64 2"},
		{"nothing but lists", known(vector.Int64, ""), "1|2;3|4", "string looks like lists", "null 2 3"},
		{"a bar, and no other value", known(vector.Int64, ""), ";see x|y;", "string looks like lists", "null 3"},
		{"lists in lists", list, "1|2;7", "string fits looks like lists", "string fits looks like lists"},
		{"lists of fractions in lists", list, "1.5|2;7", "string looks like lists", "string looks like lists"},
		{"text in lists", list, "x;7", "string", "string"},
		{"times in integers", known(vector.Int64, ""), "25/11/2026;26/11/2026", "string looks like times",
			"null 2 3"},
		{"times in dates", date, "25/11/2026;26/11/2026", "string fits looks like times",
			"string fits looks like times"},
		{"times in timestamps", time, "25/11/2026;26/11/2026", "string fits looks like times",
			"string fits looks like times"},
		{"two forms of times", time, "2026-11-01 10:00:00;25/11/2026;x", "string" + leaves, "timestamp[us] 3 4"},
		{"timestamps in dates", date, "2026-11-01 10:00:00;2026-11-02;x", "string", "timestamp[ns] 4"},
		{"instants", known(vector.Int64, "timestamp[us, tz=UTC]"), "2026-11-01 10:00:00;x", "string",
			"timestamp[us] 3"},

		{"decimals", known(vector.Int64, "decimal(4, 2)"), "12;x", "string", "string"},
		{"times of the day", known(vector.Int64, "time64[us]"), "10:00;x", "string", "string"},
		{"strings", catalog.Feature{Name: "w", Type: vector.Type{Kind: vector.String}}, "7;x", "string", "string"},
		{"no feature", catalog.Feature{Name: "y", Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}, "7;x",
			"string", "string"},
	} {
		read := func(lenient bool) string {
			got := ""
			var bad []int64
			opts := Options{Known: func() []catalog.Feature { return []catalog.Feature{tc.known} }}
			opts.Inferred = func(i Inferred) {
				c := i.Columns[1]
				got = c.Type
				if c.Fits {
					got += " fits"
				}
				for _, hint := range []string{"looks like lists", "looks like times", `{"text": {"null": "NA"}}`} {
					if strings.Contains(c.Hint, hint) {
						got += " " + hint
					}
				}
				if c.Leaves && !lenient {
					got += leaves
				}
			}
			if lenient {
				opts.OnBadRow = func(p Place, _ string, err error) {
					if !strings.Contains(err.Error(), " is text, and the table has ") {
						t.Errorf("%s: %v", tc.name, err)
					}
					bad = append(bad, p.Line)
				}
			}
			text := "id,w\n"
			for i, v := range strings.Split(tc.values, ";") {
				text += fmt.Sprintf("%d,%s\n", i, v)
			}
			if _, err := (&textCase{text: text}).read(t, opts); err != nil {
				return fmt.Sprint(got, " ", err)
			}
			for _, line := range bad {
				got += fmt.Sprint(" ", line)
			}
			return got
		}
		if got := read(false); got != tc.strict {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.strict)
		}
		if got := read(true); got != tc.want {
			t.Errorf("%s, with quarantine: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestTextAfterTheSample: what is read once is of the type of its first values, without the text among them. Text that
// comes later is bad, as other values are that the type does not hold.
func TestTextAfterTheSample(t *testing.T) {
	const rows = 400_000 // more than is looked at
	for name, tc := range map[string]struct{ first, late, want string }{
		"text later":             {"7", "12x", `f: "12x" is no int64, which is what the stream's first values are`},
		"text before and later":  {"x", "007", `t: "x" is text, and the table has int64; f: "007" is text`},
		"a fraction after text":  {"x", "2.5", `t: "x" is text, and the table has int64; f: "2.5" is no int64, which`},
		"a word for null, later": {"x", "NA", `t: "x" is text, and the table has int64; f: "NA" is text`},
	} {
		var got []string
		opts := Options{
			Format: "text",
			Stdin: strings.NewReader("id,w\n0," + tc.first + "\n" + strings.Repeat("1,5\n", rows) + "2," + tc.late +
				"\n"),
			Known: func() []catalog.Feature {
				return []catalog.Feature{{Name: "w", Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}}
			},
			OnBadRow: func(p Place, _ string, err error) {
				at := "t"
				if p.Line > rows {
					at = "f"
				}
				got = append(got, at+": "+err.Error())
			},
		}
		if _, err := readPath(t, "-", opts); err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(got, "; "); !strings.HasPrefix(all, tc.want) {
			t.Errorf("%s: got %s, want %s", name, all, tc.want)
		}
	}
}

// TestTwoWordsForNull: where the mapping file says which word stands for null, another one is text. Only one can be
// said, so an error that asks for the other would end nothing.
func TestTwoWordsForNull(t *testing.T) {
	c := textCase{mapping: `{"text": {"null": "NA"}}`, text: "id,w\n1,NA\n2,3\n3,null\n4,6\n"}
	var bad []int64
	var told Inferred
	opts := Options{
		Known: func() []catalog.Feature {
			return []catalog.Feature{{Name: "w", Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}}
		},
		OnBadRow: func(p Place, _ string, _ error) { bad = append(bad, p.Line) },
		Inferred: func(i Inferred) { told = i },
	}
	if _, err := c.read(t, opts); err != nil {
		t.Fatal(err)
	}
	if w := told.Columns[1]; fmt.Sprint(bad) != "[4]" || w.Type != "int64" || w.Hint != "" {
		t.Errorf("bad lines %d, %+v; want line 4, int64", bad, w)
	}
	opts.OnBadRow, bad = nil, nil
	if _, err := c.read(t, opts); err != nil {
		t.Fatal(err)
	}
	if w := told.Columns[1]; w.Type != "string" || w.Hint != "" || !w.Leaves || !strings.Contains(w.Because, "null") {
		t.Errorf("%+v, want a string because of null, which quarantine leaves out", w)
	}
}
