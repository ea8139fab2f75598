package source

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// TestTimestamps: timestamps become those of the unit, and of the zone, that the mapping file says, or their row is
// bad.
func TestTimestamps(t *testing.T) {
	const text = "1970-01-01 00:00:02\n-\n1969-12-31 23:59:59\n1970-01-01 00:00:00.5\n2200-01-01 00:00:00\n"
	for unit, want := range map[string]string{
		"s":           "t=2\nt=null\nt=-1\nbad 4 \"1970-01-01 00:00:00.5\" is no whole number of s\nt=7258118400\n",
		"ms":          "t=2000\nt=null\nt=-1000\nt=500\nt=7258118400000\n",
		"us, tz=UTC":  "t=2000000\nt=null\nt=-1000000\nt=500000\nt=7258118400000000\n",
		"ns":          "t=2000000000\nt=null\nt=-1000000000\nt=500000000\nt=7258118400000000000\n",
		"h":           `timestamp "h": want s, ms, us or ns`,
		"us, tz=Mars": `timestamp "us, tz=Mars": want`,
	} {
		dir := writeFiles(t, map[string]string{
			"m.json": `{"text": {"null": "-", "columns": [{"name": "t", "type": "timestamp"}]}, "columns": {"t": ` +
				`{"timestamp": "` + unit + `"}}}`, "a.txt": text,
		})
		got, logical := "", ""
		files, err := Discover(t.Context(), []string{filepath.Join(dir, "a.txt")}, Options{
			MappingFile: filepath.Join(dir, "m.json"), ChunkBytes: 1,
			OnBadRow: func(p Place, _ string, err error) {
				got += "bad " + string(rune('0'+p.Line)) + " " + err.Error() + "\n"
			},
		})
		if err == nil {
			s, err := files[0].Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			logical = s.Fields()[0].Logical
			for {
				c, err := s.Next(t.Context())
				if err != nil {
					break
				}
				got += dump([]*Chunk{c})
			}
			s.Close()
			if logical != "timestamp["+unit+"]" {
				t.Errorf("%s: logical type %s", unit, logical)
			}
		}
		if got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got\n%s%v, want\n%s", unit, got, err, want)
		}
	}
	a := column.NewArray(&column.Type{Shape: column.Number, Logical: "timestamp[s]"})
	a.Ints, a.Len = []int64{9223372036, 9223372037, -9223372036, -9223372037}, 4
	bad := []int{}
	r, err := column.NewRescaling("timestamp[s]", "timestamp[ns]")
	if err != nil {
		t.Fatal(err)
	}
	r.Apply(a, func(i int, _ error) { bad = append(bad, i) })
	if len(bad) != 2 || bad[0] != 1 || bad[1] != 3 {
		t.Errorf("out of range: %v", bad)
	}
	if _, err := column.NewRescaling("date32", "timestamp[ns]"); err == nil {
		t.Error("dates were taken for timestamps")
	}
}
