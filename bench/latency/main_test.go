package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/tools/ingest"
)

func TestReadsAllRowsAndCountsRequests(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	dump, err := versus.Generate(ctx, filepath.Join(dir, "dump"), workload.Options{Rows: 500})
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store")
	if _, err := versus.Ingest(ctx, store, dump, ingest.Options{}); err != nil {
		t.Fatal(err)
	}
	f := flags{Store: store, Features: []string{"user_history_00000", "item_dense_00000"}, Latency: time.Millisecond,
		Workers: 1, BatchSize: 128, Check: true}
	r, err := f.run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rows != 500 || r.IDs == 0 || r.Requests <= r.OpenRequests || r.OpenRequests != 3 || r.Bytes == 0 {
		t.Errorf("read %+v; want 500 rows, ids, 3 requests of opening, and more of reading", r)
	}
	// Opening asks for one thing after the other.
	if least := time.Millisecond.Seconds(); r.OpenSeconds < least || r.Seconds < r.OpenSeconds {
		t.Errorf("took %+v; want at least a request's latency to open, and more to read", r)
	}
}
