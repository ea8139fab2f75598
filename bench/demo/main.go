// Command demo is dsistore's main job in two minutes: a training table as nightly Parquet in the order of the logs is
// generated, ingested, and read as a trainer would read it, with sizes and rates beside those of the Parquet.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/azure" // stores at az://
	_ "github.com/dsistore/dsistore/storage/object/gcs"   // stores at gs://
	_ "github.com/dsistore/dsistore/storage/object/s3"    // stores at s3://
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

type flags struct {
	Dir    string  `help:"Where to leave the dump and the store." default:"out/demo"`
	Store  string  `help:"Where the store is to be instead: s3://bucket/prefix, gs://bucket/prefix or az://container/prefix, as the environment says it is reached. The table must not be there yet."`
	Rows   int64   `help:"Rows to generate." default:"100000"`
	Seed   uint64  `help:"Seed of the generator."`
	Share  float64 `help:"Share of the features to read." default:"0.1"`
	Rounds int     `help:"Rounds of reading." default:"3"`
	Dsi    string  `help:"How to call dsi in the suggestions." default:"bin/dsi"`
}

func main() {
	var f flags
	program.Main(&f, "demo", "Generate, ingest and scan a training table, beside the Parquet it came from.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 {
		return fmt.Errorf("rounds %d: want at least 1", f.Rounds)
	}
	o := workload.Options{Profile: "small", Rows: f.Rows, Seed: f.Seed}
	truth, err := workload.NewTruth(o)
	if err != nil {
		return err
	}
	fs, err := versus.Project(truth, f.Share, f.Seed)
	if err != nil {
		return err
	}
	fmt.Printf("A training table: %d rows, %d columns, user sessions spread over the log as they arrive.\n\n",
		truth.Rows(), len(truth.Features()))

	step := begin("1. Parquet as a nightly dump")
	o.Progress = step.set
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, "dump"), o)
	if err != nil {
		return err
	}
	step.end("%.0f MB of zstd Parquet (%.0f MB raw), %.1f samples/session", float64(dump.Bytes)/1e6,
		float64(dump.RawBytes)/1e6, dump.Stats.SamplesPerSession)

	step = begin("2. ingest, clustered by session")
	where, blobs, err := f.open()
	if err != nil {
		return err
	}
	store, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		return err
	}
	r, err := ingestNew(ctx, store, dump, step)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	step.end("%.0f rows/s, %.0f MB/s of raw values", float64(r.Rows)/r.Seconds.Total,
		float64(dump.RawBytes)/r.Seconds.Total/1e6)

	step = begin("3. the same rows on both sides")
	batch := 4096
	engines := []versus.Engine{
		&versus.StoreEngine{Label: "dsistore", Blobs: blobs, Features: fs, BatchSize: batch},
		&versus.ParquetEngine{Label: "Parquet (arrow-go)", Paths: dump.Paths(), Features: fs, BatchSize: batch},
	}
	d, err := versus.Equal(ctx, engines...)
	if err != nil {
		return err
	}
	step.end("%d rows, %d ids: every value equal", d.Rows, d.IDs)

	step = begin(fmt.Sprintf("4. scan %.0f %% of the features into tensors", 100*f.Share))
	m, err := versus.Rounds(ctx, d, 1, f.Rounds, func(round int) { step.set(int64(round), int64(f.Rounds+1)) },
		engines...)
	if err != nil {
		return err
	}
	step.end("%d rounds, in turns", f.Rounds)

	stored, err := versus.StoredBytes(ctx, blobs)
	if err != nil {
		return err
	}
	names := make([]string, len(fs))
	for i := range fs {
		names[i] = fs[i].Name
	}
	fmt.Println()
	versus.PrintSizes(os.Stdout, []versus.Size{
		versus.SizeOf("dsistore", stored, d.Rows), versus.SizeOf("source Parquet (zstd)", dump.Bytes, d.Rows),
		versus.SizeOf("raw values", dump.RawBytes, d.Rows),
	})
	versus.PrintScans(os.Stdout, len(fs), m)
	f.suggest(where, names)
	return nil
}

// open returns where the store is to be, and opens it: the directory is emptied, and an object store is left as it is.
func (f *flags) open() (where string, blobs object.Store, err error) {
	if where = f.Store; where == "" {
		where = filepath.Join(f.Dir, "store")
		if err := os.RemoveAll(where); err != nil {
			return "", nil, err
		}
	}
	blobs, err = object.Open(where)
	return where, blobs, err
}

// ingestNew makes the table in a store that has none of its name.
func ingestNew(ctx context.Context, store *storage.Store, dump *versus.Dump, step *step) (ingest.Report, error) {
	if tables, err := store.Tables(ctx); err != nil {
		return ingest.Report{}, err
	} else if slices.Contains(tables, versus.Table) {
		return ingest.Report{}, fmt.Errorf("the store has a table %q already: choose another prefix, or drop the table",
			versus.Table)
	}
	return versus.IngestInto(ctx, store, dump,
		ingest.Options{Progress: func(p ingest.Progress) { step.set(p.Bytes, p.TotalBytes) }})
}

// suggest says what to type next.
func (f *flags) suggest(store string, names []string) {
	list := strings.Join(names[:min(3, len(names))], ",")
	fmt.Printf("\nThe table is in %s. Try:\n", store)
	for _, c := range []string{
		fmt.Sprintf("describe %s %s", store, versus.Table),
		fmt.Sprintf("head %s %s --features %s", store, versus.Table, list),
		fmt.Sprintf("scan %s %s --features 'user_history_*' --batch-size 4096", store, versus.Table),
		fmt.Sprintf("verify %s --deep", store),
	} {
		fmt.Printf("  %s %s\n", f.Dsi, c)
	}
}

// A step is one stage of the demo and shows how far it is: a bar on a terminal, one line elsewhere.
type step struct {
	name  string
	start time.Time
	bar   *progressbar.ProgressBar
}

func begin(name string) *step {
	s := &step{name: name, start: time.Now()}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		s.bar = progressbar.NewOptions64(1000, progressbar.OptionSetDescription(name),
			progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond))
	} else {
		fmt.Fprintf(os.Stderr, "%s ...\n", name)
	}
	return s
}

// set shows done of total. What the bar cannot show is not worth an error.
func (s *step) set(done, total int64) {
	if s.bar != nil && total > 0 {
		_ = s.bar.Set64(min(1000*done/total, 999))
	}
}

func (s *step) end(format string, args ...any) {
	if s.bar != nil {
		_ = s.bar.Finish()
	}
	fmt.Printf("%-46s %6.1f s  %s\n", s.name, time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}
