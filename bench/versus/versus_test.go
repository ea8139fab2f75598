package versus

import (
	"context"
	"testing"

	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/ingest"
)

// Store and Parquet give the same rows, whatever the order; Rounds measures each.
func TestEnginesGiveTheSameRows(t *testing.T) {
	dir := t.TempDir()
	o := workload.Options{Rows: 1500, Sparse: 30, Dense: 30, Files: 2}
	dump, err := Generate(t.Context(), dir+"/dump", o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Generate(t.Context(), dir+"/dump", o); err != nil || again.Bytes != dump.Bytes {
		t.Fatalf("the dump that is there was not used: %+v, %v", again, err)
	}
	if _, err := Ingest(t.Context(), dir+"/store", dump, ingest.Options{}); err != nil {
		t.Fatal(err)
	}
	truth, err := workload.NewTruth(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []float64{0.1, 1} {
		fs, err := Project(truth, share, 1)
		if err != nil {
			t.Fatal(err)
		}
		if want := int(share * 60); len(fs) != want {
			t.Errorf("%d features for a share of %v; want %d", len(fs), share, want)
		}
		engines := []Engine{
			&StoreEngine{Label: "store", Dir: dir + "/store", Features: fs, BatchSize: 128},
			&ParquetEngine{Label: "parquet", Paths: dump.Paths(), Features: fs, BatchSize: 128},
		}
		d, err := Equal(t.Context(), engines...)
		if err != nil {
			t.Fatal(err)
		}
		if d.Rows != o.Rows || d.IDs == 0 {
			t.Errorf("digest %+v; want %d rows and some ids", d, o.Rows)
		}
		m, err := Rounds(t.Context(), d, 1, 2, nil, engines...)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range m {
			if len(m.Seconds) != 2 || m.SamplesPerSec <= 0 || m.StoredBytes <= 0 {
				t.Errorf("measured %+v", m)
			}
		}
	}
}

// Slots and inverse, as the store has them, expand to the rows of Parquet.
func TestDedupEnginesGiveTheSameRows(t *testing.T) {
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
	store := func(d reader.Dedup) *StoreEngine {
		return &StoreEngine{Label: d.String(), Dir: dir + "/store", Features: fs, BatchSize: 128, Dedup: d}
	}
	ikjt := store(reader.DedupIKJT)
	parquet := &ParquetEngine{Label: "parquet", Paths: dump.Paths(), Features: fs, BatchSize: 128}
	if _, err := Equal(t.Context(), parquet, store(reader.DedupKJT), ikjt, store(reader.DedupPartial)); err != nil {
		t.Fatal(err)
	}
	if f := ikjt.Stats.EmittedFactor; f < 2 {
		t.Errorf("%v rows/slot; want 2 or more", f)
	}
	// A difference in a slot's values is found.
	if _, err := Equal(t.Context(), ikjt,
		changed{ikjt, func(t *reader.Tensors) { t.Groups[0].Inverse[0] ^= 1 }}); err == nil {
		t.Error("a difference in an inverse was not found")
	}
}

// changed is an engine with one value of another changed.
type changed struct {
	Engine
	change func(*reader.Tensors)
}

func (c changed) Epoch(ctx context.Context, threads int, each Each) error {
	first := true
	return c.Engine.Epoch(ctx, threads, func(t *reader.Tensors, rows int) error {
		if first {
			c.change(t)
			first = false
		}
		return each(t, rows)
	})
}

// Any difference in values, weights, lengths or presence is found.
func TestDifferencesAreFound(t *testing.T) {
	o := workload.Options{Rows: 300, Sparse: 30, Dense: 30}
	dump, err := Generate(t.Context(), t.TempDir()+"/dump", o)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := workload.NewTruth(o)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := Project(truth, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	engine := &ParquetEngine{Label: "parquet", Paths: dump.Paths(), Features: fs, BatchSize: 128}
	if _, err := Equal(t.Context(), engine, engine); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*reader.Tensors){
		"dense":    func(t *reader.Tensors) { t.Dense.Values[77]++ },
		"presence": func(t *reader.Tensors) { t.Dense.Present[3] ^= 4 },
		"id":       func(t *reader.Tensors) { t.Sparse.Values[5]++ },
		"order":    func(t *reader.Tensors) { v := t.Sparse.Values; v[0], v[1] = v[1], v[0] },
		"score":    func(t *reader.Tensors) { t.Weighted.Weights[9] += 0.5 },
		"empty":    func(t *reader.Tensors) { t.Sparse.Present[0] ^= 1 },
	} {
		if _, err := Equal(t.Context(), engine, changed{engine, change}); err == nil {
			t.Errorf("a difference in %s was not found", name)
		}
	}
}
