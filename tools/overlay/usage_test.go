package overlay

import (
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/usage"
)

// TestAddIsRecorded: what an overlay reads of its table is recorded under its purpose, and is what the directories of
// the segments say: the key, all of it, of files; the features of an expression.
func TestAddIsRecorded(t *testing.T) {
	s := newStore(t, object.NewMemory())
	ids := nullable("id", arrow.PrimitiveTypes.Int64)
	fields := []arrow.Field{ids, nullable("click", arrow.PrimitiveTypes.Int64),
		nullable("other", arrow.PrimitiveTypes.Int64)}
	var rows, some []row
	for i := range int64(700) {
		rows = append(rows, row{"id": intValue(i), "click": intValue(i % 3), "other": intValue(i)})
		if i%2 == 0 {
			some = append(some, row{"id": intValue(i), "extra": intValue(i)})
		}
	}
	ingestRows(t, s, fields, rows, nil)
	snap := latest(t, s)
	table := snap.Table()
	recorder, err := usage.NewWriter(table, usage.Options{Interval: -1})
	if err != nil {
		t.Fatal(err)
	}
	records := reader.UsageOptions{Writer: recorder, Job: "labels", Purpose: usage.PurposeRead}
	from := writeArrow(t, []arrow.Field{ids, nullable("extra", arrow.PrimitiveTypes.Int64)}, some)
	for name, opts := range map[string]Options{"id": {From: []string{from}},
		"click": {Exprs: []string{"clicked = click = 1"}}} {
		opts.Usage, opts.TempDir = records, t.TempDir()
		if _, err := Add(t.Context(), s, "ads", "over-"+name, opts); err != nil {
			t.Fatal(err)
		}
	}
	if err := recorder.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := usage.Load(t.Context(), table, time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Jobs) != 1 || got.Jobs[0].Job != "labels" || len(got.Jobs[0].Purposes) != 1 ||
		got.Jobs[0].Purposes[0] != usage.PurposeOverlay || len(got.Features) != 2 {
		t.Fatalf("%+v of %+v", got.Jobs, got.Features)
	}
	segments, err := snap.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	needed := uint64(0)
	for i := range got.Features {
		f := &got.Features[i]
		var stripes, bytes uint64
		for _, d := range segments {
			index, err := snap.OpenSegment(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			entries, err := index.Lookup(t.Context(), f.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range entries[0].Meta.Stripes {
				stripes++
				bytes += x.Length
			}
			_, dictionary := entries[0].Meta.Dictionary.Range()
			bytes += dictionary
		}
		// The key is read once for the rows that match; what is more of it, of files that do not fit, is not here.
		if f.Name != "id" && f.Name != "click" || f.Stripes != stripes || f.BytesNeeded != bytes || f.Rows != 700 ||
			f.Readers != 1 {
			t.Errorf("%+v, want %d stripes and %d bytes", f.FeatureUse, stripes, bytes)
		}
		needed += bytes
	}
	if got.Total.BytesNeeded != needed || got.Total.Rows != 1400 || got.Total.Readers != 2 {
		t.Errorf("%+v, want %d bytes", got.Total, needed)
	}
}
