package keytext

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func read(path, text string) (keys []string, err error) {
	t := New(strings.NewReader(text), path, "id")
	for {
		k, err := t.Next()
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return keys, err
		}
		keys = append(keys, fmt.Sprintf("%d:%s", t.Line(), k))
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ path, text, want, wrong string }{
		{"a.txt", "id\n1\r\n\n\"x,\"\"y\"\nid", `2:1 3: 4:x,"y 5:id`, ""},
		{"a.txt", "\ufeffid\na,b\n\"\n", `2:a,b 3:"`, ""},
		{"a", "1\t2,3\n", "1:1\t2,3", ""},
		{"-", "", "", ""},
		{"a.csv", "1\n2\n\n3", "1:1 2:2 3: 4:3", ""},
		{"a.csv", "\ufeffid\n1\n", "2:1", ""},
		{"a.CSV", "name,id,\"x,y\"\nann,17,\"a\"\"b,\"\n\"b,c\",,\n\n,18,z\r\n", "2:17 3: 4: 5:18", ""},
		{"a.tsv", "x\tid\n1,5\t2\n\"a\tb\"\t\"3\"\n", "2:2 3:3", ""},
		{"a.csv", "\"id\"\n\"1,2\"\n", "2:1,2", ""},
		{"a.csv", "1,ann\n2,ben\n", "", `a.csv, line 1: 2 columns, and none of them is named "id"`},
		{"a.csv", "1\n2,ben\n", "1:1", "a.csv, line 2: 2 columns, and 1 in the first line"},
		{"a.csv", "id,x\n2\n", "", "line 2: 1 columns, and 2 in"},
		{"a.csv", "id,x\n\"2\n,3", "", "line 2: a quote is not closed"},
		{"a.csv", "id,x\n\"2\"3,4\n", "", "line 2: column 1: text after"},
		{"a.txt", strings.Repeat("x", maxLine+1), "", "a.txt, line 1"},
	} {
		got, err := read(c.path, c.text)
		if s := strings.Join(got, " "); s != c.want || (err == nil) != (c.wrong == "") || err != nil &&
			!strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s %.40q: %q %v, want %q %q", c.path, c.text, s, err, c.want, c.wrong)
		}
	}
}

// FuzzColumns: what a CSV reader makes of text without quotes, and of what a CSV writer quotes, is what is made of it
// here.
func FuzzColumns(f *testing.F) {
	f.Add("a", "b", "c,d")
	f.Add("\"", "", "x\"\"y")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		row := []string{a, b, c}
		if slices.ContainsFunc(row, func(s string) bool { return strings.ContainsAny(s, "\r\n") }) {
			return
		}
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		if err := errors.Join(w.Write([]string{"x", "id", "y"}), w.Write(row)); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		got, err := read("f.csv", text.String())
		if err != nil || len(got) != 1 || got[0] != "2:"+b {
			t.Errorf("%q: %q %v, want %q", text.String(), got, err, b)
		}
		_, _ = read("f.csv", a+"\n"+b+"\n"+c) // no panic
	})
}
