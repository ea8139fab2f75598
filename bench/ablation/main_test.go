package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/format/vector"
)

// Every step reads what its technique says. The program itself compares the values that the tables give.
func TestSteps(t *testing.T) {
	f := flags{
		TableFlags: versus.TableFlags{Profile: "small", Rows: 2000, Dir: t.TempDir()}, Small: 256, Large: 1024,
		Gap: 64 << 10, Seek: 10 * time.Millisecond, Bandwidth: 1 << 30, Latency: []time.Duration{time.Millisecond},
		Jobs: 6, BatchSize: 512, Threads: 1, Rounds: 1,
	}
	r, err := f.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	maps, flat, coalesced, popular, large := r.Steps[0], r.Steps[1], r.Steps[2], r.Steps[3], r.Steps[4]
	if maps.BytesPerRow < 3*flat.BytesPerRow || flat.BytesPerRow != flat.Needed {
		t.Errorf("maps %+v, flat %+v: want all bytes, and a job's alone", maps, flat)
	}
	if flat.Requests < 5*maps.Requests || coalesced.Requests > flat.Requests/2 ||
		coalesced.BytesPerRow <= coalesced.Needed {
		t.Errorf("flat %+v, coalesced %+v: want many requests, then fewer, and bytes between them", flat, coalesced)
	}
	if popular.BytesPerRow >= coalesced.BytesPerRow || large.Requests >= popular.Requests {
		t.Errorf("coalesced %+v, popular %+v, large %+v: want fewer bytes, then fewer requests", coalesced, popular,
			large)
	}
	for _, s := range r.Steps {
		if s.Disk <= 0 || s.Slow[0].Throughput <= 0 {
			t.Errorf("%s: no throughput: %+v", s.Name, s)
		}
	}
	if text := r.page(); !strings.Contains(text, "| + large stripes |") || strings.Contains(text, "NaN") {
		t.Error(text)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, "tables")); err == nil {
		t.Error("the tables were left")
	}
}

// A value that differs in the maps is found.
func TestMapsAreCompared(t *testing.T) {
	dense := vector.Type{Kind: vector.Dense, Elem: vector.Float32}
	list := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	number := &vector.Column{Type: dense, Rows: 1, Slots: 1, Floats: []float32{2}}
	ids := &vector.Column{Type: list, Rows: 1, Slots: 1, Offsets: []int32{0, 2}, Ints: []int64{5, 6}}
	null := &vector.Column{Type: list, Rows: 1, Slots: 1, Offsets: []int32{0, 0}, Present: vector.Bitmap{0}}
	m := rowMaps{dense: map[int64]float32{1: 2, 3: 4}, lists: map[int64][2]int{2: {0, 2}, 4: {2, 2}},
		ids: &vector.Column{Type: list, Ints: []int64{5, 6}}}
	for _, c := range []struct {
		key    int64
		column *vector.Column
		want   bool
	}{{1, number, true}, {3, number, false}, {9, number, false}, {2, ids, true}, {4, ids, false}, {9, ids, false},
		{9, null, true}, {4, null, false}} {
		if got := m.has(c.key, c.column, 0); got != c.want {
			t.Errorf("key %d, %v: %v", c.key, c.column, got)
		}
	}
}
