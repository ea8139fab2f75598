package expr

import (
	"fmt"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// BenchmarkSelect evaluates filters over a stripe of 16,384 rows: dense features without an inverse, and lists
// of 20 elements.
func BenchmarkSelect(b *testing.B) {
	const rows = 16384
	types := map[string]vector.Type{
		"i": dense(vector.Int64), "j": dense(vector.Int64), "f": dense(vector.Float32), "s": {Kind: vector.String},
		"l": sparse(vector.Int64),
	}
	columns := map[string]*vector.Column{}
	for name, t := range types {
		c := vector.NewColumn(t)
		for r := range rows {
			v := int64(r*7919%rows) + int64(len(name))
			switch name {
			case "i":
				c.Ints = append(c.Ints, v)
			case "j":
				c.Ints = append(c.Ints, v%1000)
			case "f":
				c.Floats = append(c.Floats, float32(v)/100)
			case "s":
				c.Data = fmt.Appendf(c.Data, "user%d", v)
			case "l":
				for k := range int64(20) {
					c.Ints = append(c.Ints, v+100*k)
				}
			}
			c.AddSlot()
		}
		columns[name] = c
	}
	for _, text := range []string{
		"i > 4000", "f > 50.5", "i IN (1, 5, 7, 9, 11, 5000)", "s LIKE 'user1%'", "any(l) = 5000", "all(l) > 100",
		"len(l) > 3",
		"i > j", "s = s", "any(l) < j", "i / (j + 1) > 3.5", "i + j IN (1, 5, 7)",
	} {
		b.Run(text, func(b *testing.B) {
			f, err := ParseFilter(text, func(names []string) (out []Field, _ error) {
				for _, n := range names {
					out = append(out, Field{Type: types[n]})
				}
				return out, nil
			})
			if err != nil {
				b.Fatal(err)
			}
			var given []*vector.Column
			for _, n := range f.Features() {
				given = append(given, columns[n])
			}
			var x Evaluator
			dst := make(vector.Bitmap, vector.BitmapWords(rows))
			b.ReportAllocs()
			for b.Loop() {
				x.Select(dst, f, rows, nil, given)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
