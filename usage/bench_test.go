package usage

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// A still is a Source that has read the same each time.
type still struct {
	features []Feature
}

func (s *still) Features() []Feature { return s.features }
func (s *still) Counters() (Counters, bool) {
	return Counters{Rows: 1, Batches: 1, BytesNeeded: 1}, true
}
func (s *still) Uses(to *Uses) {
	for i := range s.features {
		to.Add(i, 1, 1, 1, 0)
	}
}

// What a reader costs that is opened, read and closed: all that it waits for. Of readers of one layout the features are
// the same slice; those of others are compared.
func BenchmarkSession(b *testing.B) {
	for _, features := range []int{3, 16, 400, 20000} {
		for _, anew := range []bool{false, true} {
			b.Run(fmt.Sprintf("features=%d/layout=%v", features, anew), func(b *testing.B) {
				table := tableIn(b, object.NewMemory())
				defer table.Store().Close()
				same := newReading(features).features
				b.ReportAllocs()
				for b.Loop() {
					r := &still{same}
					if anew {
						r.features = slices.Clone(same)
					}
					Begin(table, Key{Job: Job(), Program: "go", Purpose: PurposeRead}, 1, r).End()
				}
			})
		}
	}
}

// What is encoded and decoded: the records of a day of 40 jobs that read 400 of 4,000 features each.
func BenchmarkRollup(b *testing.B) {
	f := &file{kind: rollupKind, day: dayOf(noon), written: 1}
	for job := range 40 {
		r := &Record{Key: Key{Job: fmt.Sprint("job", job), User: "ann"}, Start: noon, End: noon}
		for i := range 400 {
			r.Features = append(r.Features, FeatureUse{
				ID: catalog.FeatureID((job*37+i*7)%4000+1) << 50, Name: fmt.Sprintf("feature_%05d", (job*37+i*7)%4000),
				Readers: 9, Stripes: 1000, Rows: 1e7, BytesNeeded: 1e9, BytesUnneeded: 1e7, Last: noon,
			})
		}
		f.records = append(f.records, r)
	}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.SetBytes(int64(len(f.append(nil))))
		}
	})
	text := f.append(nil)
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			d, err := decode("x", text)
			if err != nil {
				b.Fatal(err)
			}
			if err := d.each(func(*Record) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What Load takes of a month in which each of 40 jobs reads 400 of 4,000 features per day.
func BenchmarkLoadMonth(b *testing.B) {
	table := tableIn(b, object.NewMemory())
	for d := range 30 {
		w := writer(b, table, Options{})
		for job := range 40 {
			r := &Record{Key: Key{Job: fmt.Sprint("job", job)}, End: noon.Add(time.Duration(d) * 24 * time.Hour),
				Counters: Counters{Rows: 1}}
			for i := range 400 {
				feature := (job*37 + i*7) % 4000
				r.Features = append(r.Features, FeatureUse{
					ID: catalog.FeatureID(feature+1) << 50, Name: fmt.Sprintf("feature_%05d", feature), Readers: 9,
					Stripes: 1000, Rows: 1e7, BytesNeeded: 1e9,
				})
			}
			w.Add(r)
		}
		flush(b, w)
	}
	if _, err := Rollup(b.Context(), table, RollupOptions{MinAge: -1}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		load(b, table)
	}
}
