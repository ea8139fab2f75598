package source

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestWideLines: the chunks of text and of JSON lines are bounded by what their columns take, and not by the text
// alone, which says nothing of most columns.
func TestWideLines(t *testing.T) {
	const columns, rows, chunkBytes = 2000, 4000, 64 << 10
	var ddl, lines, objects strings.Builder
	ddl.WriteString("CREATE TABLE t (c0 bigint")
	for i := 1; i < columns; i++ {
		fmt.Fprintf(&ddl, ", c%d double", i)
	}
	ddl.WriteString(") ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS TEXTFILE")
	for i := range rows {
		fmt.Fprintln(&lines, i)
		fmt.Fprintf(&objects, "{\"c%d\":%d}\n", i%columns, i)
	}
	dir := writeFiles(t, map[string]string{"t.sql": ddl.String(), "a.txt": lines.String(), "a.jsonl": objects.String()})
	for name, opts := range map[string]Options{"a.txt": {DDLFile: filepath.Join(dir, "t.sql")}, "a.jsonl": {}} {
		opts.ChunkBytes = chunkBytes
		chunks, err := readPath(t, filepath.Join(dir, name), opts)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, c := range chunks {
			size := 0
			for i, col := range c.Columns {
				size += col.SizeBytes()
				for r := range c.Rows {
					at, want := i == 0, n+r
					if name == "a.jsonl" {
						at = c.Fields[i].Name == fmt.Sprint("c", want%columns)
					}
					if col.IsNull(r) == at || at && col.Ints[r] != int64(want) {
						t.Fatalf("%s: row %d, column %s: %s", name, want, c.Fields[i].Name, cellText(col, r))
					}
				}
			}
			if n += c.Rows; size > 12*chunkBytes {
				t.Fatalf("%s: a chunk of %d rows and %d bytes", name, c.Rows, size)
			}
		}
		if n != rows {
			t.Fatalf("%s: %d rows", name, n)
		}
	}
}
