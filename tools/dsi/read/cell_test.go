package read

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// column returns a column of one row that fill sets.
func column(typ vector.Type, fill func(*vector.Column)) *vector.Column {
	c := &vector.Column{Type: typ, Rows: 1, Slots: 1}
	fill(c)
	if n := c.Elements(); typ.IsList() {
		c.Offsets = []int32{0, int32(n)}
	}
	return c
}

func TestCells(t *testing.T) {
	dense := func(e vector.Elem) vector.Type { return vector.Type{Kind: vector.Dense, Elem: e} }
	ints := func(vals ...int64) func(*vector.Column) { return func(c *vector.Column) { c.Ints = vals } }
	data := func(s string) func(*vector.Column) { return func(c *vector.Column) { c.Data = []byte(s) } }
	str, raw := vector.Type{Kind: vector.String}, vector.Type{Kind: vector.Bytes}
	tests := []struct {
		name, logical string
		c             *vector.Column
		text, json    string
	}{
		{"int", "", column(dense(vector.Int64), ints(-5)), "-5", "-5"},
		{"bool", "", column(dense(vector.Bool), ints(1)), "true", "true"},
		{"uint64", "", column(dense(vector.Uint64), ints(-1)), "18446744073709551615", "18446744073709551615"},
		{"float32", "", column(dense(vector.Float32), func(c *vector.Column) { c.Floats = []float32{0.1} }), "0.1",
			"0.1"},
		{"NaN", "", column(dense(vector.Float32), func(c *vector.Column) { c.Floats = []float32{float32(math.NaN())} }),
			"NaN", `"NaN"`},
		{"infinity", "", column(dense(vector.Float64), func(c *vector.Column) { c.Doubles = []float64{math.Inf(-1)} }),
			"-Inf", `"-Inf"`},
		{"null", "", column(dense(vector.Int64), func(c *vector.Column) {
			c.Ints, c.Present = []int64{0},
				make(vector.Bitmap, 1)
		}), "null", "null"},
		{"empty list", "", column(vector.Type{Kind: vector.Sparse, Elem: vector.Int64}, ints()), "[]", "[]"},
		{"list", "", column(vector.Type{Kind: vector.Sparse, Elem: vector.Int64}, ints(1, 2, 3)), "[1 2 3]", "[1,2,3]"},
		{"long list", "", column(vector.Type{Kind: vector.Sparse, Elem: vector.Int64}, ints(1, 2, 3, 4, 5, 6, 7)),
			"[1 2 3 4 5 6 ... 7 in all]", "[1,2,3,4,5,6,7]"},
		{"weighted", "", column(vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32},
			func(c *vector.Column) {
				c.Ints, c.ScoreFloats = []int64{7, 8}, []float32{0.5, 1}
			}), "[7:0.5 8:1]", "[[7,0.5],[8,1]]"},
		{"embedding", "", column(vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 2},
			func(c *vector.Column) {
				c.Floats = []float32{1.5, -2}
			}), "[1.5 -2]", "[1.5,-2]"},
		{"string", "", column(str, data("a\"b\n")), `"a\"b\n"`, `"a\"b\n"`},
		{"long string", "", column(str, data(strings.Repeat("é", 30))),
			`"` + strings.Repeat("é", 20) + `"... 60 bytes in all`, `"` + strings.Repeat("é", 30) + `"`},
		{"bytes", "", column(raw, data("\x00\xff")), "0x00ff", `"AP8="`},
		{"date32", "date32", column(dense(vector.Int32), ints(-1)), "1969-12-31", "-1"},
		{"date64", "date64", column(dense(vector.Int64), ints(86400000)), "1970-01-02", "86400000"},
		{"timestamp", "timestamp[us]", column(dense(vector.Int64), ints(-1)), "1969-12-31 23:59:59.999999", "-1"},
		{"timestamp with zone", "timestamp[ms, tz=UTC]", column(dense(vector.Int64), ints(1000)),
			"1970-01-01 00:00:01Z", "1000"},
		{"time", "time32[ms]", column(dense(vector.Int32), ints(3661001)), "01:01:01.001", "3661001"},
		{"duration", "duration[ns]", column(dense(vector.Int64), ints(17)), "17ns", "17"},
		{"decimal", "decimal(9, 2)", column(dense(vector.Int64), ints(-5)), "-0.05", "-5"},
		{"wide decimal", "decimal(38, 3)", column(raw,
			data("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe")), "-0.002",
			`"/////////////////////g=="`},
		{"uuid", "uuid", column(raw, data("0123456789abcdef")), "30313233-3435-3637-3839-616263646566",
			`"MDEyMzQ1Njc4OWFiY2RlZg=="`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.c.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := cellText(test.c, test.logical, 0); got != test.text {
				t.Errorf("printed as %s, want %s", got, test.text)
			}
			got, err := json.Marshal(cellValue(test.c, 0))
			if err != nil || string(got) != test.json {
				t.Errorf("JSON %s (%v), want %s", got, err, test.json)
			}
		})
	}
}
