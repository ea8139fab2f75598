package versus

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/dsistore/dsistore/bench/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/ingest"
)

// Slots and inverse, of the store as they are stored and of Parquet by hashing, expand to the rows of both.
func TestDedupSidesGiveTheSameRows(t *testing.T) {
	dir := t.TempDir()
	o := workload.Options{Rows: 1500, Sparse: 30, Dense: 10, Order: workload.Clustered}
	dump, err := Generate(t.Context(), dir+"/dump", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Ingest(t.Context(), dir+"/store", dump, ingest.Options{}); err != nil {
		t.Fatal(err)
	}
	truth, err := workload.NewTruth(o)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := Project(truth, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	store := func(d reader.Dedup) *StoreSide {
		return &StoreSide{Label: d.String(), Dir: dir + "/store", Features: fs, BatchSize: 128, Dedup: d}
	}
	parquet := &ParquetSide{Label: "parquet", Paths: dump.Paths(), Features: fs, BatchSize: 128}
	groups, err := GroupsOf(t.Context(), store(reader.DedupIKJT))
	if err != nil {
		t.Fatal(err)
	}
	hashed := &HashSide{Label: "hashed", Side: parquet, Groups: groups}
	few := &HashSide{Label: "few", Side: parquet, Groups: groups[:1]}
	sides := []Side{parquet, hashed, few, store(reader.DedupKJT), store(reader.DedupIKJT), store(reader.DedupWindowed)}
	if _, err := Equal(t.Context(), sides...); err != nil {
		t.Fatal(err)
	}
	ikjt := sides[4].(*StoreSide)
	if f := ikjt.Stats.EmittedFactor; f < 2 || float64(hashed.SlotRows)/float64(hashed.Slots) < f {
		t.Errorf("%v rows a slot as stored, %d/%d by hashing", f, hashed.SlotRows, hashed.Slots)
	}
	// A difference in a slot's values is found.
	if _, err := Equal(t.Context(), ikjt, changed{ikjt, func(t *reader.Tensors) { t.Groups[0].Inverse[0] ^= 1 }}); err == nil {
		t.Error("a difference in an inverse was not found")
	}
}

func TestBytesOf(t *testing.T) {
	var want []byte
	ids, scores := []int64{1, -2, math.MaxInt64, math.MinInt64}, []float32{1.5, float32(math.NaN()), 0}
	for _, v := range ids {
		want = binary.NativeEndian.AppendUint64(want, uint64(v))
	}
	if !bytes.Equal(bytesOf(ids), want) {
		t.Error("ids")
	}
	want = nil
	for _, v := range scores {
		want = binary.NativeEndian.AppendUint32(want, math.Float32bits(v))
	}
	if !bytes.Equal(bytesOf(scores), want) || len(bytesOf(scores[:0])) != 0 {
		t.Error("scores")
	}
}
