package workload

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"pgregory.net/rapid"
)

func truth(t testing.TB, o Options) *Truth {
	t.Helper()
	tr, err := NewTruth(o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func values(t testing.TB, tr *Truth, feature int, from, to int64) *vector.Column {
	t.Helper()
	c, err := tr.Column(feature, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatalf("feature %s: %v", tr.Features()[feature].Name, err)
	}
	return c
}

// sum hashes everything that a table holds.
func sum(t testing.TB, o Options) uint64 {
	tr := truth(t, o)
	h := fnv.New64a()
	var b []byte
	for f := range tr.Features() {
		c := values(t, tr, f, 0, tr.Rows())
		b = append(b[:0], tr.Features()[f].Name...)
		for _, v := range c.Present {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		for _, v := range c.Offsets {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		for _, v := range c.Ints {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		for _, v := range c.Floats {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		for _, v := range c.Doubles {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		for _, v := range c.ScoreFloats {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		h.Write(b)
	}
	return h.Sum64()
}

// The values of a version never change: figures of different days are about the same table.
func TestValuesOfThisVersion(t *testing.T) {
	const want = 0xa959d785a43fa0fd
	if got := sum(t, Options{Rows: 2000, Seed: 7, Partitions: 2}); got != want {
		t.Errorf("the table of seed 7 hashes to %#x; version %d has %#x: raise Version when values change", got,
			Version, uint64(want))
	}
	if sum(t, Options{Rows: 500}) == sum(t, Options{Rows: 500, Seed: 1}) {
		t.Error("seeds 0 and 1 give the same table")
	}
}

// Any range of rows is what the whole table has there, asked for in any order.
func TestRowsAreIndependentOfTheAsking(t *testing.T) {
	for _, order := range []Order{Interleaved, Clustered} {
		// Two windows a partition would need 131,073 rows; partitions make windows too.
		o := Options{Rows: 3000, Sparse: 20, Dense: 20, Partitions: 3, Order: order}
		whole := truth(t, o)
		var want []*vector.Column
		for f := range whole.Features() {
			want = append(want, values(t, whole, f, 0, whole.Rows()))
		}
		rapid.Check(t, func(rt *rapid.T) {
			tr := truth(t, o)
			for range 5 {
				f := rapid.IntRange(0, len(want)-1).Draw(rt, "feature")
				from := rapid.Int64Range(0, o.Rows-1).Draw(rt, "from")
				to := rapid.Int64Range(from, o.Rows).Draw(rt, "to")
				got := values(t, tr, f, from, to)
				for i := range got.Rows {
					if !vector.RowsEqual(got, i, want[f], int(from)+i) {
						rt.Fatalf("feature %s row %d differs", tr.Features()[f].Name, from+int64(i))
					}
				}
			}
		})
	}
}

// The interleaved and the clustered table have the same rows, in both layouts the same values.
func TestOrdersHoldTheSameRows(t *testing.T) {
	o := Options{Rows: 4000, Sparse: 30, Dense: 30, Partitions: 2}
	inter := truth(t, o)
	o.Order = Clustered
	clus := truth(t, o)
	place := make(map[int64]int)
	requests := values(t, inter, 1, 0, inter.Rows())
	for i, id := range requests.Ints {
		place[id] = i
	}
	if len(place) != int(inter.Rows()) {
		t.Fatalf("%d requests in %d rows", len(place), inter.Rows())
	}
	keys := values(t, clus, 1, 0, clus.Rows())
	for f := range inter.Features() {
		a, b := values(t, inter, f, 0, inter.Rows()), values(t, clus, f, 0, clus.Rows())
		for i, id := range keys.Ints {
			at, ok := place[id]
			if !ok || !vector.RowsEqual(a, at, b, i) {
				t.Fatalf("feature %s: clustered row %d is not interleaved row %d", inter.Features()[f].Name, i, at)
			}
		}
	}
	for i := range clus.Rows() {
		r, err := clus.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		if at := place[keys.Ints[i]]; int64(at) != r.Arrival {
			t.Fatalf("clustered row %d arrived %d; it is interleaved row %d", i, r.Arrival, at)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{Profile: "tiny"}, {Rows: -1}, {Sparse: -1}, {Sparse: 10, Weighted: 4}, {Order: "random"}, {Layout: "orc"},
		{Codec: "lzo"}, {Rows: 5, Partitions: 6}, {Rows: 5, Files: 6}, {Files: -1}, {RowGroupRows: -1},
		{RowGroupRows: windowRows + 1},
		{Sparse: 1 << 20, Dense: 1},
	} {
		if _, err := NewTruth(o); err == nil {
			t.Errorf("options %+v: no error", o)
		}
	}
}
