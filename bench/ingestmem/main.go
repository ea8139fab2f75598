// Command ingestmem ingests a dump that is several times larger than the memory that ingest is given, in a process of
// its own, and reports the most memory that the process was resident in, and the speed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/result"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	MemoryMiB int64   `name:"memory-mib" help:"Memory of ingest." default:"128"`
	Times     float64 `help:"Size of the dump's files, in memories." default:"3"`
	Files     int     `help:"Files of the dump." default:"4"`
	Workers   int     `help:"Goroutines of ingest; 0: one a core."`
	Dir       string  `help:"Where the data lies; a dump that is there already is used." default:"out/ingestmem"`
	program.ResultsFlag
	Child bool `help:"Internal: ingest the dump and print the report." hidden:""`
}

// A report is what a run found.
type report struct {
	MemoryBytes int64         `json:"memory_bytes"`
	DumpBytes   int64         `json:"dump_bytes"`
	RawBytes    int64         `json:"raw_bytes"`
	PeakBytes   int64         `json:"peak_resident_bytes"` // of the whole process, its program included
	RowsPerSec  float64       `json:"rows_per_second"`
	MBPerSec    float64       `json:"mb_per_second"` // 10^6 bytes of the dump's files
	RawMBPerSec float64       `json:"raw_mb_per_second"`
	Ingest      ingest.Report `json:"ingest"`
}

func main() {
	var f flags
	program.Main(&f, "ingestmem", "Ingest a dump larger than memory and measure the peak.", f.run)
}

// parquetRowBytes is what a row of "small" takes as interleaved zstd Parquet, for sizing the dump.
const parquetRowBytes = 2380

func (f *flags) run(ctx context.Context) error {
	if f.MemoryMiB < 1 || f.Times <= 0 || f.Files < 1 {
		return errors.New("memory-mib, times and files: want more than 0")
	}
	memory := f.MemoryMiB << 20
	o := workload.Options{Rows: int64(float64(memory)*f.Times/parquetRowBytes) + 1, Files: f.Files}
	if !f.Child {
		fmt.Fprintf(os.Stderr, "dump of %d rows: %s\n", o.Rows, filepath.Join(f.Dir, "dump"))
	}
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, "dump"), o)
	if err != nil {
		return err
	}
	if f.Child {
		r, err := versus.Ingest(ctx, filepath.Join(f.Dir, "store"), dump,
			ingest.Options{Options: writer.Options{Memory: memory, Workers: f.Workers}})
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(report{PeakBytes: result.PeakBytes(), Ingest: r})
	}
	rep, err := f.measure(ctx)
	if err != nil {
		return err
	}
	rep.MemoryBytes, rep.DumpBytes, rep.RawBytes = memory, dump.Bytes, dump.RawBytes
	seconds := rep.Ingest.Seconds.Total
	rep.RowsPerSec = float64(dump.Rows) / seconds
	rep.MBPerSec, rep.RawMBPerSec = float64(dump.Bytes)/seconds/1e6, float64(dump.RawBytes)/seconds/1e6
	fmt.Printf("memory given        %8.1f MiB\n", float64(memory)/(1<<20))
	fmt.Printf("dump                %8.1f MiB of Parquet, %.1f MiB raw, %d rows\n", float64(dump.Bytes)/(1<<20),
		float64(dump.RawBytes)/(1<<20), dump.Rows)
	fmt.Printf("peak resident       %8.1f MiB\n", float64(rep.PeakBytes)/(1<<20))
	fmt.Printf("spilled             %8.1f MiB in %d runs\n", float64(rep.Ingest.SpillBytes)/(1<<20), rep.Ingest.Spills)
	fmt.Printf("speed               %8.0f rows/s, %.1f MB/s of Parquet, %.1f MB/s raw\n", rep.RowsPerSec, rep.MBPerSec,
		rep.RawMBPerSec)
	return f.WriteResults("ingestmem", rep)
}

// measure ingests in a new process, so that the peak is that of ingest alone.
func (f *flags) measure(ctx context.Context) (rep report, err error) {
	self, err := os.Executable()
	if err != nil {
		return rep, err
	}
	cmd := exec.CommandContext(ctx, self, "--child", "--dir", f.Dir, fmt.Sprintf("--memory-mib=%d", f.MemoryMiB),
		fmt.Sprintf("--times=%v", f.Times), fmt.Sprintf("--files=%d", f.Files), fmt.Sprintf("--workers=%d", f.Workers))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return rep, err
	}
	return rep, json.Unmarshal(out, &rep)
}
