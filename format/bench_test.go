package format_test

import (
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

var benchColumns = []struct {
	name    string
	ty      vector.Type
	inverse int
}{
	{"dense float32", dense(vector.Float32), 0},
	{"dense bool", dense(vector.Bool), 0},
	{"list", sparse(vector.Int64), 0},
	{"list, equal rows", sparse(vector.Int64), 1},
	{"list, slots found by hash", sparse(vector.Int64), 3},
	{"string", vector.Type{Kind: vector.String}, 0},
}

// BenchmarkDecodeStripe reports decoded bytes per second, expanded or not.
func BenchmarkDecodeStripe(b *testing.B) {
	for _, c := range benchColumns {
		b.Run(c.name, func(b *testing.B) {
			file, m := writeFile(fatal{b}, c.ty, format.WriterOptions{}, typicalStripes(c.ty, c.inverse, 1)...)
			d := format.NewStripeDecoder(format.Limits{})
			dst := new(vector.Column)
			b.ReportAllocs()
			for b.Loop() {
				if err := d.DecodeStripe(dst, m, 0, stripeBytes(file, m, 0), nil); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(dst.SizeBytes()))
		})
	}
}

func BenchmarkWriteStripe(b *testing.B) {
	for _, c := range benchColumns {
		b.Run(c.name, func(b *testing.B) {
			column := typicalStripes(c.ty, c.inverse, 1)[0]
			b.ReportAllocs()
			for b.Loop() {
				writeFile(fatal{b}, c.ty, format.WriterOptions{}, column)
			}
			b.SetBytes(int64(column.SizeBytes()))
		})
	}
}

// BenchmarkDecodeMeta decodes the directory of a list of seven stripes, what planning does for each projected feature.
func BenchmarkDecodeMeta(b *testing.B) {
	_, m := writeFile(fatal{b}, sparse(vector.Int64), format.WriterOptions{Name: "user_clicks"},
		typicalStripes(sparse(vector.Int64), 1, 7)...)
	src := format.AppendMeta(nil, m)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := format.DecodeMeta(src, format.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
