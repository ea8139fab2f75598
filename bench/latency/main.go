// Command latency reads a table through a store whose every request takes some milliseconds longer, as an object
// store's would, and prints what it took as JSON: what bench/baselines sets beside baselines that read from a server as
// slow.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/object"
)

type flags struct {
	Store     string        `arg:"" help:"Directory of the store."`
	Features  []string      `help:"Features to read." required:""`
	Latency   time.Duration `help:"What every request takes longer." default:"10ms"`
	Workers   int           `help:"Workers that decode." default:"1"`
	BatchSize int           `help:"Rows of a batch." default:"4096"`
	Gap       int64         `help:"Bytes of a gap that is read rather than be two requests; 0: the reader's default, below 0: none."`
	Check     bool          `help:"First compare the rows with those read without latency."`
}

// A report is what one epoch took, opening included.
type report struct {
	Seconds       float64 `json:"seconds"`
	Rows          uint64  `json:"rows"`
	Requests      int64   `json:"requests"` // of opening, planning and reading
	Bytes         int64   `json:"bytes"`
	IDs           int64   `json:"ids,omitempty"`          // with Check
	TensorBytes   int64   `json:"tensor_bytes,omitempty"` // with Check
	OpenSeconds   float64 `json:"open_seconds"`           // to a plan
	OpenRequests  int64   `json:"open_requests"`
	StallSeconds  float64 `json:"stall_seconds"`
	DecodeSeconds float64 `json:"decode_seconds"`
}

func main() {
	var f flags
	program.Main(&f, "latency", "Read a table through a store with latency.", func(ctx context.Context) error {
		r, err := f.run(ctx)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	})
}

func (f *flags) run(ctx context.Context) (report, error) {
	var r report
	if f.Check {
		slow, err := versus.DigestOf(ctx, &engine{f: f, latency: f.Latency})
		if err != nil {
			return r, err
		}
		direct, err := versus.DigestOf(ctx, &engine{f: f})
		if err != nil {
			return r, err
		}
		if slow != direct {
			return r, fmt.Errorf("rows differ with latency: %+v, without: %+v", slow, direct)
		}
		r.IDs, r.TensorBytes = slow.IDs, slow.TensorBytes
	}
	s := &engine{f: f, latency: f.Latency, report: &r}
	return r, s.Epoch(ctx, f.Workers, func(*reader.Tensors, int) error { return nil })
}

// An engine reads the table through a store that is slow, and counts.
type engine struct {
	f       *flags
	latency time.Duration
	report  *report // what the last epoch took; nil: nobody asks
}

func (s *engine) Name() string { return "dsistore" }
func (s *engine) Bytes(context.Context) (int64, error) {
	return 0, errors.New("not counted before an epoch")
}

// Epoch opens the store and reads all rows once.
func (s *engine) Epoch(ctx context.Context, workers int, each versus.Each) (err error) {
	start := time.Now()
	local, err := object.NewLocal(s.f.Store)
	if err != nil {
		return err
	}
	counted := object.NewCounted(object.NewDelayed(local, s.latency))
	table := versus.StoreEngine{Blobs: counted, BatchSize: s.f.BatchSize, Bare: true, GapBytes: s.f.Gap}
	for _, name := range s.f.Features {
		table.Features = append(table.Features, workload.Feature{Name: name})
	}
	sc, closeAll, err := table.Open(ctx, workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	opened, requests := time.Since(start), counted.Counts().Requests()
	err = versus.Drain(ctx, sc, func(b *reader.Batch) error { return each(b.Tensors, b.Rows) })
	if err != nil {
		return err
	}
	if s.report != nil {
		st, c := sc.Stats(), counted.Counts()
		s.report.Seconds, s.report.Rows = time.Since(start).Seconds(), st.Rows
		s.report.Requests, s.report.Bytes = c.Requests(), c.BytesRead
		s.report.OpenSeconds, s.report.OpenRequests = opened.Seconds(), requests
		s.report.StallSeconds, s.report.DecodeSeconds = st.StallSeconds, st.DecodeSeconds
	}
	return nil
}
