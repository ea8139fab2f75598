// Command month simulates a month of training jobs on a table, and holds what the usage records say of it to what the
// list of jobs says. It draws the popularity curve; measures the read amplification of a popular job, in how many
// requests, before and after a compaction that packs by popularity, locally and with latency; and what recording costs.
// It ends with 1 where figures differ.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsistore/dsistore/bench/jobs"
	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/report"
)

type flags struct {
	versus.TableFlags
	Jobs         int           `help:"Training jobs." default:"40"`
	Days         int           `help:"Days of the month." default:"30"`
	Runs         int           `help:"How often the job runs that runs most often." default:"60"`
	RunZipf      float64       `help:"Exponent of Zipf's law for how often jobs run." default:"0.8"`
	MinShare     float64       `help:"Share of the features that a job reads, at least." default:"0.09"`
	MaxShare     float64       `help:"And at most." default:"0.11"`
	FeatureZipf  float64       `help:"Exponent of Zipf's law for which features jobs take." default:"0.9"`
	SparseFavour float64       `help:"How much more a job takes to an id list than to a number." default:"3"`
	JobSeed      uint64        `help:"Seed of the list of jobs." default:"1"`
	BatchSize    int           `help:"Rows of a batch." default:"4096"`
	Threads      int           `help:"Processors of what is timed." default:"1"`
	Rounds       int           `help:"Rounds that count, of what is timed; one more runs before." default:"9"`
	Latency      time.Duration `help:"What every request takes longer, where it takes longer." default:"10ms"`
	Only         []string      `help:"Only some of check, pack and cost." default:"check,pack,cost" enum:"check,pack,cost"`
	CostRows     int64         `help:"Rows of the table of which the cost of recording is measured; 0: those of small."`
	CostReads    int           `help:"Reads of 10 % of its features in a block; more of smaller ones." default:"4"`
	CostBlocks   int           `help:"Blocks of each, with recording and without." default:"200"`
	HTML         string        `name:"html" help:"Write dsistat's page of the month to this file, of which bench/page takes the documentation's pictures." placeholder:"FILE"`
	program.ResultsFlag
}

// Results are what a run found. Its keys are stable.
type results struct {
	Profile  string     `json:"profile"`
	Rows     uint64     `json:"rows"`
	Features int        `json:"features"`
	Shape    jobs.Shape `json:"shape"`
	Month    *summary   `json:"month,omitempty"`
	Pack     *packing   `json:"pack,omitempty"`
	Cost     []cost     `json:"recording,omitempty"`
}

// A summary is the month, and what was compared.
type summary struct {
	Runs          int     `json:"runs"`
	BytesRead     uint64  `json:"bytes_read"`
	Amplification float64 `json:"read_amplification"` // bytes read and not needed, of those needed
	// JobFeatures and JobBytes are the shares of features and of stored bytes that a job reads, on average; 9 to 11 %
	// and 21 to 37 % by summaries of the study.
	JobFeatures  float64      `json:"job_features"`
	JobBytes     float64      `json:"job_bytes"`
	FeaturesRead int          `json:"features_read"`
	Curve        []curvePoint `json:"curve"`
	// Dsistat are the same points of dsistat, which counts what features of a group share apart.
	Dsistat []report.CurvePoint `json:"dsistat_curve"`
	// Promised is how many fewer bytes the month would have read without need, as dsistat's advice says, in packs as
	// dsi compact --repack writes them.
	Promised    uint64     `json:"read_amplification_bytes_promised"`
	Records     uint64     `json:"records"` // objects
	RecordBytes int64      `json:"record_bytes"`
	Compared    int        `json:"figures_compared"`
	Mismatches  []mismatch `json:"mismatches"`
}

func main() {
	var f flags
	program.Main(&f, "month", "Simulate a month of training jobs, and check what is recorded of it.", f.run)
}

// errDiffers is matched when the usage records, or dsistat, do not say what the list of jobs says.
var errDiffers = errors.New("the usage records differ from the list of jobs")

func (f *flags) wants(what string) bool {
	for _, o := range f.Only {
		if o == what {
			return true
		}
	}
	return false
}

func (f *flags) run(ctx context.Context) error {
	if f.Jobs < 1 || f.Days < 1 || f.Runs < 1 || f.Rounds < 1 || f.Threads < 1 || f.BatchSize < 1 || f.CostReads < 1 ||
		f.CostBlocks < 1 {
		return errors.New("jobs, days, runs, rounds, threads, batch-size, cost-reads and cost-blocks: want at least " +
			"1 of each")
	}
	truth, err := workload.NewTruth(f.Options(workload.Clustered))
	if err != nil {
		return err
	}
	rep := results{Profile: f.Profile, Rows: uint64(truth.Rows()), Features: len(truth.Features()), Shape: jobs.Shape{
		Jobs: f.Jobs, Days: f.Days, Runs: f.Runs, RunZipf: f.RunZipf, MinShare: f.MinShare, MaxShare: f.MaxShare,
		FeatureZipf: f.FeatureZipf, SparseFavour: f.SparseFavour, Seed: f.JobSeed,
	}}
	var differs error
	if f.wants("check") || f.wants("pack") {
		made, _, err := f.Store(ctx, workload.Clustered, true, ingest.Options{})
		if err != nil {
			return err
		}
		// The month's records go to a copy, so that a store that is kept has none of the run before.
		dir := filepath.Join(filepath.Dir(made), "month")
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
			return err
		}
		list := jobs.New(truth, time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), rep.Shape,
			[]string{workload.ClickColumn})
		if rep.Month, err = f.month(ctx, dir, list); err != nil {
			return err
		}
		rep.Month.print()
		if len(rep.Month.Mismatches) > 0 {
			differs = fmt.Errorf("%w in %d of %d figures", errDiffers, len(rep.Month.Mismatches), rep.Month.Compared)
		}
		if f.wants("pack") && differs == nil {
			if rep.Pack, err = f.pack(ctx, dir, list); err != nil {
				return err
			}
			rep.Pack.print()
			first, last := &rep.Pack.States[0].Month, &rep.Pack.States[len(rep.Pack.States)-1].Month
			fmt.Printf("\ndsistat promised %d bytes of read amplification less; %d are\n", rep.Month.Promised,
				int64(first.BytesUnneeded)-int64(last.BytesUnneeded))
		}
	}
	if f.wants("cost") {
		if rep.Cost, err = f.costs(ctx); err != nil {
			return err
		}
		printCosts(rep.Cost)
	}
	return errors.Join(f.WriteResults("month-"+strings.Join(f.Only, "-"), rep), differs)
}

func (s *summary) print() {
	fmt.Printf("%d runs read %.2f GB, read amplification %.3f; a job reads %.1f %% of the features and %.1f %% of "+
		"the bytes, and all of them %d features\n",
		s.Runs, float64(s.BytesRead)/1e9, s.Amplification, 100*s.JobFeatures, 100*s.JobBytes, s.FeaturesRead)
	fmt.Printf("%d objects of usage records, %d bytes\n", s.Records, s.RecordBytes)
	fmt.Println("\n| traffic | bytes that serve it | features | bytes, by dsistat |")
	fmt.Println("|---|---|---|---|")
	for i, p := range s.Curve {
		shown := ""
		if i < len(s.Dsistat) {
			shown = fmt.Sprintf("%.1f %%", 100*s.Dsistat[i].Bytes)
		}
		fmt.Printf("| %.0f %% | %.1f %% | %.1f %% | %s |\n", 100*p.Traffic, 100*p.Bytes, 100*p.Features, shown)
	}
	fmt.Printf("\n%d figures of the usage records and of dsistat compared with the list of jobs, %d differ\n",
		s.Compared, len(s.Mismatches))
	for i, m := range s.Mismatches {
		if i == 20 {
			fmt.Println("...")
			break
		}
		fmt.Printf("  %s: %s, want %s\n", m.What, m.Got, m.Want)
	}
}
