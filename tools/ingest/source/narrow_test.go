package source

import (
	"fmt"
	"path/filepath"
	"testing"
)

// TestNarrowing: a number that does not fit the element type that the mapping file says is a bad row, and no other
// number. What is infinite or NaN in the source is stored so in floats.
func TestNarrowing(t *testing.T) {
	const mapping = `{"text": {"delimiter": "|", "items": ",", "null": "", "columns": [
		{"name": "d", "type": "double"}, {"name": "l", "type": "array<double>"}, {"name": "e", "type": "array<double>"},
		{"name": "i", "type": "bigint"}, {"name": "u", "type": "bigint"}, {"name": "n", "type": "double"}]},
		"columns": {"d": {"elem": "float32"}, "l": {"elem": "float32"},
		"e": {"elem": "float32", "kind": "embedding", "dim": 1}, "i": {"elem": "int32"}, "u": {"elem": "uint32"},
		"n": {"elem": "int8"}}}`
	for line, want := range map[string]string{
		"3.4028234663852886e38|1,2|3|2147483647|4294967295|-128\n": "d=3.4028235e+38 l=[1,2] e=[3] i=2147483647 " +
			"u=4294967295 n=-128\n",
		"Inf|-Inf,NaN|NaN|||\n":           "d=+Inf l=[-Inf,NaN] e=[NaN] i=null u=null n=null\n",
		"1e-300|0|0|||\n":                 "d=0 l=[0] e=[0] i=null u=null n=null\n", // rounded
		"1e300|1|1|1|1|1\n":               "d: 1e+300 does not fit float32",
		"-3.4028236e38|1|1|1|1|1\n":       "d: -3.4028236e+38 does not fit float32",
		"1|1,1e39|1|1|1|1\n":              "l: 1e+39 does not fit float32",
		"1|1|-1e39|1|1|1\n":               "e: -1e+39 does not fit float32",
		"1|1|1|2147483648|1|1\n":          "i: 2147483648 does not fit int32",
		"1|1|1|1|-1|1\n":                  "u: -1 does not fit uint32",
		"1|1|1|1|1|128\n":                 "n: 128 does not fit int8",
		"1|1|1|1|1|0.5\n":                 "n: 0.5 does not fit int8",
		"1|1|1|1|1|NaN\n":                 "n: NaN does not fit int8",
		"1|1|1|1|1|1e300\n":               "n: 1e+300 does not fit int8",
		"1|1|1|-9223372036854775808||1\n": "i: -9223372036854775808 does not fit int32",
	} {
		dir := writeFiles(t, map[string]string{"m.json": mapping, "a.txt": line})
		got := ""
		chunks, err := readPath(t, filepath.Join(dir, "a.txt"), Options{MappingFile: filepath.Join(dir, "m.json"),
			OnBadRow: func(_ Place, column string, err error) { got = fmt.Sprintf("%s: %v", column, err) }})
		if err != nil {
			t.Fatal(err)
		}
		if got += dump(chunks); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
