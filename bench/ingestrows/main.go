// Command ingestrows ingests rows that lie in memory as Arrow, clustering and finding duplicates included, and reports
// the seconds by the clock, the CPU seconds, the bytes per row, and how much faster more workers are: medians of rounds
// in which the settings take turns. What was written is read back and held against the Parquet that the rows came from.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	Rows       int64            `help:"Rows; 0: the profile's."`
	Workload   string           `help:"Profile of the workload." default:"small"`
	Orders     []workload.Order `help:"Orders in which the rows come." default:"clustered,interleaved"`
	Workers    []int            `help:"Numbers of workers, each with as many processors." default:"1,2"`
	Rounds     int              `help:"How often each setting is timed, in turn with the others; the medians count." default:"3"`
	Stream     bool             `help:"Take the rows as a stream whose values count as memory that ingest holds."`
	MemoryMiB  int64            `help:"Memory of ingest; 0: its default."`
	Check      bool             `help:"Hold what was written against the Parquet." default:"true"`
	CPUProfile string           `name:"cpuprofile" help:"Write a profile of all rounds to this file."`
	Trace      string           `help:"Write an execution trace of all rounds to this file."`
	Dir        string           `help:"Where the data lies; what is there already is used." default:"out/ingestrows"`
	program.ResultsFlag
}

// A report is what one setting took.
type report struct {
	Order       workload.Order `json:"order"`
	Workers     int            `json:"workers"`
	Seconds     []float64      `json:"seconds"` // a round each
	CPUSeconds  []float64      `json:"cpu_seconds"`
	Phases      []phases       `json:"phases"`
	Median      float64        `json:"median_seconds"`
	MedianCPU   float64        `json:"median_cpu_seconds"`
	MedianRead  float64        `json:"median_read_seconds"`
	MedianWrite float64        `json:"median_write_seconds"`
	BytesPerRow float64        `json:"bytes_per_row"`
	Spills      int            `json:"spills"`
	Speedup     float64        `json:"speedup"` // by the clock, over the first number of workers of the order
}

// A phases is the seconds by the clock, and those of the processor, of reading and of sorting and writing.
type phases struct {
	Read     float64 `json:"read"`
	ReadCPU  float64 `json:"read_cpu"`
	Write    float64 `json:"write"`
	WriteCPU float64 `json:"write_cpu"`
}

func main() {
	var f flags
	program.Main(&f, "ingestrows", "Speed of ingesting Arrow rows in memory.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || len(f.Orders) == 0 || len(f.Workers) == 0 {
		return errors.New("rounds, orders and workers: want at least one")
	}
	inputs := make([]*input, len(f.Orders))
	for i, order := range f.Orders {
		var err error
		if inputs[i], err = f.open(ctx, order); err != nil {
			return err
		}
		defer inputs[i].close()
	}
	if f.CPUProfile != "" {
		out, err := os.Create(f.CPUProfile)
		if err != nil {
			return err
		}
		defer out.Close()
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if f.Trace != "" {
		out, err := os.Create(f.Trace)
		if err != nil {
			return err
		}
		defer out.Close()
		if err := trace.Start(out); err != nil {
			return err
		}
		defer trace.Stop()
	}
	var reports []*report
	for _, order := range f.Orders {
		for _, n := range f.Workers {
			reports = append(reports, &report{Order: order, Workers: n})
		}
	}
	for round := range f.Rounds {
		for k := range reports {
			r := reports[k]
			if round%2 == 1 {
				r = reports[len(reports)-1-k]
			}
			in := inputs[0]
			for _, other := range inputs {
				if other.dump.Options.Order == r.Order {
					in = other
				}
			}
			if err := f.round(ctx, in, r); err != nil {
				return err
			}
		}
	}
	pprof.StopCPUProfile()
	trace.Stop()
	if f.Check {
		for _, in := range inputs {
			if err := in.check(ctx); err != nil {
				return err
			}
		}
	}
	first := map[workload.Order]*report{}
	fmt.Printf("%-12s %7s %9s %7s %7s %12s %14s %7s %8s\n",
		"order", "workers", "seconds", "read", "write", "CPU seconds", "bytes per row", "spills", "speedup")
	for _, r := range reports {
		r.Median, r.MedianCPU = program.Median(r.Seconds), program.Median(r.CPUSeconds)
		if first[r.Order] == nil {
			first[r.Order] = r
		}
		r.Speedup = first[r.Order].Median / r.Median
		r.MedianRead = program.MedianOf(r.Phases, func(p phases) float64 { return p.Read })
		r.MedianWrite = program.MedianOf(r.Phases, func(p phases) float64 { return p.Write })
		fmt.Printf("%-12s %7d %9.2f %7.2f %7.2f %12.2f %14.1f %7d %8.2f\n",
			r.Order, r.Workers, r.Median, r.MedianRead, r.MedianWrite, r.MedianCPU, r.BytesPerRow, r.Spills, r.Speedup)
	}
	return f.WriteResults("ingestrows", reports)
}

// An input is the rows of one order.
type input struct {
	dump  *versus.Dump
	rows  *versus.Rows
	store string
}

func (f *flags) open(ctx context.Context, order workload.Order) (*input, error) {
	dir := filepath.Join(f.Dir, string(order))
	dump, err := versus.Generate(ctx, filepath.Join(dir, "dump"),
		workload.Options{Profile: f.Workload, Rows: f.Rows, Order: order})
	if err != nil {
		return nil, err
	}
	rows, err := versus.MapRows(ctx, filepath.Join(dir, "rows.arrow"), dump)
	if err != nil {
		return nil, err
	}
	return &input{dump: dump, rows: rows, store: filepath.Join(dir, "store")}, nil
}

func (in *input) close() { in.rows.Close() }

// round ingests the rows once.
func (f *flags) round(ctx context.Context, in *input, r *report) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(r.Workers))
	read, err := array.NewRecordReader(in.rows.Schema, in.rows.Records)
	if err != nil {
		return err
	}
	records := source.NewRecords(read, !f.Stream)
	defer records.Close()
	runtime.GC()
	before := program.CPUSeconds()
	at := map[ingest.Phase]float64{} // CPU seconds when a phase began
	progress := func(p ingest.Progress) {
		if _, ok := at[p.Phase]; !ok {
			at[p.Phase] = program.CPUSeconds()
		}
	}
	rep, err := versus.Ingest(ctx, in.store, in.dump, ingest.Options{
		Records: records, Progress: progress,
		Options: writer.Options{Workers: r.Workers, Memory: f.MemoryMiB << 20},
	})
	if err != nil {
		return err
	}
	r.Phases = append(r.Phases, phases{
		Read: rep.Seconds.Read, ReadCPU: at[ingest.PhaseWrite] - at[ingest.PhaseRead],
		Write: rep.Seconds.Write, WriteCPU: at[ingest.PhaseCommit] - at[ingest.PhaseWrite],
	})
	r.Seconds = append(r.Seconds, rep.Seconds.Total)
	r.CPUSeconds = append(r.CPUSeconds, program.CPUSeconds()-before)
	r.BytesPerRow, r.Spills = float64(rep.BytesOut)/float64(rep.Rows), rep.Spills
	return nil
}

// check reads every feature back, and from the Parquet.
func (in *input) check(ctx context.Context) error {
	truth, err := workload.NewTruth(in.dump.Options)
	if err != nil {
		return err
	}
	features, err := versus.Project(truth, 1, 0)
	if err != nil {
		return err
	}
	_, err = versus.Equal(ctx,
		&versus.ParquetEngine{Label: "Parquet", Paths: in.dump.Paths(), Features: features, BatchSize: 4096},
		&versus.StoreEngine{Label: "dsistore", Dir: in.store, Features: features, BatchSize: 4096})
	return err
}
