package main

import (
	"testing"
	"time"

	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/objectserver"
)

func TestMeasures(t *testing.T) {
	objectserver.StartS3(t, bucket) // or skips, and says why
	f := flags{
		TableFlags: versus.TableFlags{Profile: "small", Rows: 300, Dir: t.TempDir()}, Share: 0.1, Threads: 1,
		BatchSize: 128, Latency: []time.Duration{0}, Rounds: 1, Seconds: 0.2, Reads: 200, Burst: 0.5,
		Quota: 24 << 20, Writers: 2, Commits: 3,
	}
	r, err := f.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Throughput.Bytes == 0 || r.Stalls.Ratio == 0 || r.Burst.Before == 0 || r.Burst.Refused == 0 {
		t.Errorf("%+v", r)
	}
	if c := r.Commits; c.Rate == 0 || c.Puts < 1 {
		t.Errorf("%+v", c)
	}
	e := r.Epochs[0]
	if e.Rows != 300 || e.Requests == 0 || e.Data != 0 {
		t.Errorf("%+v; want 300 rows, and no request for data with a warm cache", e)
	}
	if w := r.Warm; w.Ratio == 0 || w.RawRatio == 0 || w.Data != 0 {
		t.Errorf("warm cache: %+v; want ratios, and no request for data", w)
	}
	if q := r.Quota; q.Samples == 0 || q.Most > 1.01 || q.End < 0.9 || q.Misses == 0 {
		t.Errorf("quota: %+v; want a full cache, never larger than its quota", q)
	}
}
