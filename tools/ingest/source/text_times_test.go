package source

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

const november = "1793491200" // 2026-11-01, in seconds

// TestTimeFormat: dates and timestamps of text and JSON are read as time_format says.
func TestTimeFormat(t *testing.T) {
	format := func(f, more string) string { return `{"columns": {"w": {"time_format": "` + f + `"` + more + `}}}` }
	const dates = "w\n1/11/2026\n\n02/11/2026\n"
	runText(t, []textCase{
		{"dates", "", format("%d/%m/%Y", ""), "", "id,w\n1,1/11/2026\n2,\n3,02/11/2026\n",
			"id=1 w=20758\nid=2 w=null\nid=3 w=20759\n"},
		{"as timestamps", "", format("%d/%m/%Y", `, "timestamp": "s"`), "", "w\n1/11/2026\n", "w=" + november + "\n"},
		{"as timestamps of a type", "", format("%d/%m/%Y", `, "type": "timestamp[s]"`), "", "w\n1/11/2026\n",
			"w=" + november + "\n"},
		{"timestamps", "", format("%m/%d/%Y %H:%M", `, "timestamp": "s"`), "", "w\n11/1/2026 0:00\n",
			"w=" + november + "\n"},
		{"nanoseconds, as no value is out of their range", "", format("%m/%d/%Y %H:%M", ""), "", "w\n11/1/2026 0:00\n",
			"w=" + november + "000000000\n"},
		{"microseconds, as one is", "", format("%m/%d/%Y %H:%M", ""), "", "w\n11/1/2026 0:00\n12/31/9999 0:00\n",
			"w=" + november + "000000\nw=253402214400000000\n"},
		{"a zone", "", format("%F %T%z", `, "timestamp": "s"`), "", "w\n2026-11-01 01:30:00+0130\n",
			"w=" + november + "\n"},
		{"a bad row", "", format("%d/%m/%Y", ""), "", "w\n1/11/2026\n2026-11-01\n",
			`column "w": "2026-11-01" is not written as "%d/%m/%Y"`},
		{"a type of text.columns", "f.txt", `{"text": {"delimiter": ";", "columns": [{"name": "w", "type": ` +
			`"date"}]}, ` + format("%d/%m/%Y", "")[1:], "", "1/11/2026\n", "w=20758\n"},
		{"a type of the DDL", "f.txt", format("%d/%m/%Y", ""), "CREATE TABLE t (w date)", "1/11/2026\n", "w=20758\n"},
		{"a list", "", format("%d/%m/%Y", `, "type": "array<date>", "kind": "sparse"`), "",
			"id,w\n1,\"[1/11/2026, 2/11/2026]\"\n2,[]\n", "id=1 w=[20758,20759]\nid=2 w=[]\n"},
		{"JSON", "f.jsonl", format("%d/%m/%Y", ""), "", `{"w": "1/11/2026"}` + "\n" + `{"w": null}` + "\n",
			"w=20758\nw=null\n"},
		{"a member of JSON", "f.jsonl", strings.Replace(format("%d/%m/%Y", ""), `"w"`, `"o.w"`, 1), "",
			`{"o": {"w": "1/11/2026"}}` + "\n", "o=1 o.w=20758\n"},
		{"a key of a map", "f.jsonl", `{"columns": {"m": {"map": "explode", "type": "map<string,string>"}, "m.k": ` +
			`{"time_format": "%d/%m/%Y"}}}`, "", `{"m": {"k": "1/11/2026"}}` + "\n",
			`time_format of the key "k": give it to the column, for all keys`},
		{"a member whose parent has a type", "f.jsonl", `{"columns": {"o": {"type": "struct<w:string>"}, "o.w": ` +
			`{"time_format": "%d/%m/%Y"}}}`, "", `{"o": {"w": "1/11/2026"}}` + "\n",
			`column "o.w": time_format is for columns of text, and for columns and members of JSON around which ` +
				`nothing has a "type": this is string`},
		{"another type", "", format("%d/%m/%Y", `, "type": "int"`), "", dates,
			`column "w": time_format is for dates and timestamps, not for int32`},
		{"a date of a format with a clock", "", format("%d/%m/%Y %H:%M", `, "type": "date"`), "", dates,
			`time_format "%d/%m/%Y %H:%M" has a time of the day: want type timestamp, not date`},
		{"another type of the DDL", "f.txt", format("%d/%m/%Y", ""), "CREATE TABLE t (w string)", "1/11/2026\n",
			`time_format is for dates and timestamps, not for string`},
		{"no format", "", format("dd/MM/yyyy", ""), "", dates,
			`columns.w.time_format: "dd/MM/yyyy": want the directives of strptime, as in "%d/%m/%Y %H:%M:%S"`},
	})
	t.Run("Parquet", func(t *testing.T) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
			{Name: "w", Type: arrow.BinaryTypes.String}}, nil))
		b.Field(0).(*array.StringBuilder).Append("1/11/2026")
		file, err := writeParquet(b.NewRecordBatch())
		if err != nil {
			t.Fatal(err)
		}
		dir := writeFiles(t, map[string]string{"m.json": format("%d/%m/%Y", ""), "f.parquet": string(file)})
		_, err = readPath(t, filepath.Join(dir, "f.parquet"), Options{MappingFile: filepath.Join(dir, "m.json")})
		if want := `time_format is for columns of text, and for columns and members of JSON`; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// TestColumnsThatLookLikeTimes: of a column of text that looks like dates or timestamps, the hint is a mapping file
// with which it is read as such, and names every format that fits.
func TestColumnsThatLookLikeTimes(t *testing.T) {
	const both = "looks like times: MAPPING in a mapping file (--mapping) reads them"
	for _, tc := range []struct{ name, text, format, others, want string }{
		{"the day first", "25/11/2026\n01/11/2026\n", "%d/%m/%Y", "", "w=20782 w=20758"},
		{"the month first", "11/25/2026\n11/01/2026\n", "%m/%d/%Y", "", "w=20782 w=20758"},
		{"either", "01/11/2026\n", "%d/%m/%Y", "%m/%d/%Y", "w=20758"},
		{"UCI's", "12/1/2010 8:26\n12/13/2010 10:03\n", "%m/%d/%Y %H:%M", "",
			"w=1291191960000000000 w=1292234580000000000"},
		{"points", "25.11.2026 10:00:01\n", "%d.%m.%Y %H:%M:%S", "", "w=1795600801000000000"},
		{"half days", "11/25/2026 10:00 pm\n", "%m/%d/%Y %I:%M %p", "", "w=1795644000000000000"},
		{"names", "25-Nov-2026\n", "%d-%b-%Y", "", "w=20782"},
		{"a word for null", "25/11/2026\nNA\n", "%d/%m/%Y", "", "w=20782 w=null"},
		{"one that is no time", "25/11/2026\n25/11/2026\nx\n", "", "", ""},
		{"one that is another's", "25/11/2026\n11/25/2026\n", "", "", ""},
		{"versions", "1.2.3\n", "", "", ""},
		{"fractions", "1/2\n", "", "", ""},
		{"no such day", "32/01/2026\n", "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hint := ""
			c := textCase{text: "w,i\n" + strings.ReplaceAll(tc.text, "\n", ",1\n")}
			if _, err := c.read(t, Options{Inferred: func(i Inferred) {
				for _, col := range i.Columns {
					hint += col.Hint
				}
			}}); err != nil {
				t.Fatal(err)
			}
			if tc.format == "" {
				if strings.Contains(hint, "looks like") {
					t.Error(hint)
				}
				return
			}
			found := regexp.MustCompile(`\{.*\}`).FindString(hint)
			want := strings.Replace(both, "MAPPING", found, 1)
			if tc.others != "" {
				want += `; or "` + tc.others + `", which fits too`
			}
			if hint != want || !strings.Contains(found, `"time_format": "`+tc.format+`"`) {
				t.Fatalf("told %q, want %q with %s", hint, want, tc.format)
			}
			c.mapping = found
			got, err := c.read(t, Options{})
			if err != nil {
				t.Fatalf("%s: %v", c.mapping, err)
			}
			got = strings.Join(strings.Fields(strings.ReplaceAll(got, "i=1", "")), " ")
			if got != tc.want {
				t.Errorf("%s gives %s, want %s", c.mapping, got, tc.want)
			}
		})
	}
}

// TestTimesOfTheTable: where the table has timestamps, or dates, the hint is for them.
func TestTimesOfTheTable(t *testing.T) {
	for _, tc := range []struct{ logical, text, want string }{
		{"timestamp[us]", "25/11/2026", `{"time_format": "%d/%m/%Y", "timestamp": "us"}`},
		{"timestamp[us, tz=UTC]", "25/11/2026", `{"time_format": "%d/%m/%Y", "timestamp": "us, tz=UTC"}`},
		{"date32", "25/11/2026", `{"time_format": "%d/%m/%Y"}`},
		{"date32", "25/11/2026 10:00", ""},
	} {
		hint := ""
		elem := vector.Int64
		if tc.logical == "date32" {
			elem = vector.Int32
		}
		known := catalog.Feature{Name: "w", Type: vector.Type{Kind: vector.Dense, Elem: elem}, Logical: tc.logical}
		c := textCase{text: "w,i\n" + tc.text + ",1\n"}
		_, err := c.read(t, Options{Known: func() []catalog.Feature { return []catalog.Feature{known} },
			Inferred: func(i Inferred) {
				for _, col := range i.Columns {
					hint += col.Hint
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(hint, tc.want) || (tc.want == "") != (hint == "") {
			t.Errorf("%s, %s: told %q", tc.logical, tc.text, hint)
		}
	}
}

// TestTimesOfFiles: what fits is what fits in all files.
func TestTimesOfFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.csv": "w,i\n01/11/2026,1\n", "b.csv": "w,i\n,2\n",
		"c.csv": "w,i\n25/11/2026,3\n"})
	hint := ""
	if _, err := readPath(t, dir, Options{Inferred: func(i Inferred) {
		for _, col := range i.Columns {
			hint += col.Hint
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(hint, `"%d/%m/%Y"`) || strings.Contains(hint, "; or") {
		t.Errorf("told %q", hint)
	}
}
