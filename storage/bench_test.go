package storage

import (
	"fmt"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// BenchmarkOpenLookup opens a table as a process that has just started does, looks up ten features, and finds their
// files in a segment: its cost must follow the ten, not the features that the table has.
func BenchmarkOpenLookup(b *testing.B) {
	for _, n := range []int{200, 20000} {
		b.Run(fmt.Sprint(n, "features"), func(b *testing.B) {
			ctx := b.Context()
			l := localStore(b)
			tab := newTable(b, l)
			var names []string
			for i := range n {
				names = append(names, fmt.Sprintf("feature_%05d", i*7919%n))
			}
			stripes := make([]uint32, 8)
			for i := range stripes {
				stripes[i] = 20
			}
			d := writeSegment(b, tab, partition("ds", "1"), stripes, 1, segment.Options{}, names...)
			if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
				Ops: []commit.Operation{commit.AddFeatures(features(names...)), commit.AddSegments{d}}}); err != nil {
				b.Fatal(err)
			}
			var ask []string
			for i := range 10 {
				ask = append(ask, fmt.Sprintf("feature_%05d", i*n/10))
			}
			counted := object.NewCounted(l)
			b.ReportAllocs()
			for b.Loop() {
				s, err := Create(ctx, counted, Options{})
				if err != nil {
					b.Fatal(err)
				}
				tab, err := s.Table(ctx, "ads")
				if err != nil {
					b.Fatal(err)
				}
				snap, err := tab.Latest(ctx)
				if err != nil {
					b.Fatal(err)
				}
				found, err := snap.Lookup(ctx, ask...)
				if err != nil {
					b.Fatal(err)
				}
				ids := make([]catalog.FeatureID, len(found))
				for i, f := range found {
					ids[i] = f.ID
				}
				segments, err := snap.Segments(ctx, nil)
				if err != nil {
					b.Fatal(err)
				}
				g, err := snap.OpenSegment(ctx, segments[0])
				if err != nil {
					b.Fatal(err)
				}
				entries, err := g.Lookup(ctx, ids...)
				if err != nil || entries[9] == nil {
					b.Fatal(err)
				}
			}
			c := counted.Counts()
			b.ReportMetric(float64(c.BytesRead)/float64(b.N), "read-B/op")
			b.ReportMetric(float64(c.Requests())/float64(b.N), "requests/op")
			b.ReportMetric(float64(d.IndexSize), "index-B")
		})
	}
}

// BenchmarkCommit appends one segment to a table that has many: it must write what it adds, amortised.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprint(n, "segments"), func(b *testing.B) {
			ctx := b.Context()
			mem := object.NewMemory()
			counted := object.NewCounted(mem)
			tab := newTable(b, counted)
			var add []catalog.SegmentDescriptor
			for i := range n {
				d, err := fakeSegment(ctx, tab, partition("ds", fmt.Sprintf("2026-%03d", i/100), "hr",
					fmt.Sprint(i%24)), 1000)
				if err != nil {
					b.Fatal(err)
				}
				add = append(add, d)
			}
			if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
				Ops: []commit.Operation{commit.AddSegments(add)}}); err != nil {
				b.Fatal(err)
			}
			before := counted.Counts()
			for b.Loop() {
				d, err := fakeSegment(ctx, tab, partition("ds", "2027-001", "hr", "1"), 1000)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
					Ops: []commit.Operation{commit.AddSegments{d}}}); err != nil {
					b.Fatal(err)
				}
			}
			c := counted.Counts().Sub(before)
			b.ReportMetric(float64(c.BytesWritten)/float64(b.N), "written-B/op")
			b.ReportMetric(float64(c.BytesRead)/float64(b.N), "read-B/op")
			b.ReportMetric(float64(c.Requests()+c.Writes)/float64(b.N), "requests/op")
		})
	}
}

// BenchmarkOpenPartition opens one partition of a table of many segments.
func BenchmarkOpenPartition(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		b.Run(fmt.Sprint(n, "segments"), func(b *testing.B) {
			ctx := b.Context()
			mem := object.NewMemory()
			tab := newTable(b, mem)
			var add []catalog.SegmentDescriptor
			for i := range n {
				d, err := fakeSegment(ctx, tab, partition("ds", fmt.Sprintf("%05d", i/100)), 1000)
				if err != nil {
					b.Fatal(err)
				}
				add = append(add, d)
			}
			if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
				Ops: []commit.Operation{commit.AddSegments(add)}}); err != nil {
				b.Fatal(err)
			}
			counted := object.NewCounted(mem)
			for b.Loop() {
				snap, err := newTable(b, counted).Latest(ctx)
				if err != nil {
					b.Fatal(err)
				}
				d, err := snap.Partition(ctx, partition("ds", "00004"))
				if err != nil || len(d) != 100 {
					b.Fatal(len(d), err)
				}
			}
			c := counted.Counts()
			b.ReportMetric(float64(c.BytesRead)/float64(b.N), "read-B/op")
			b.ReportMetric(float64(c.Requests())/float64(b.N), "requests/op")
		})
	}
}
