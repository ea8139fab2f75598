// Command dedupreal ingests tables from real logs and reports what was found to repeat in them, and what they take
// beside zstd Parquet of the same rows in the same order, as arrow-go, pyarrow and DuckDB write it (the latter two
// where python3 has them).
//
//	movielens strict    a row a rating; the history is all ratings before, newest first, cut
//	movielens session   the same, with the history as it was when the session began
//	retail              a row an invoice line (bench/retail), clustered by invoice, a partition a day
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/retail"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/arrowbatch"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	Data   string `help:"Directory of the data sets, with recsys/derived and recsys/online-retail." env:"DSISTORE_TESTDATA" required:""`
	Dir    string `help:"Where stores and Parquet files lie." default:"out/dedupreal"`
	Python string `help:"Python that writes the baselines' Parquet; empty: none." default:"python3"`
	Page   string `help:"Page whose part between <!-- real --> and <!-- /real --> becomes the table; empty: none." default:"docs/internals/duplicates.md"`
	program.ResultsFlag
}

// A report is what one table gave.
type report struct {
	Table       string             `json:"table"`
	Rows        int64              `json:"rows"`
	Factor      float64            `json:"dedupe_factor"`
	Partial     int64              `json:"partial"`
	Groups      int                `json:"groups"`
	BytesPerRow float64            `json:"bytes_per_row"`
	OffPerRow   float64            `json:"bytes_per_row_without_dedup"`
	Baselines   map[string]float64 `json:"parquet_bytes_per_row"`
	Features    []featureReport    `json:"features"`
}

type featureReport struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Factor   float64 `json:"dedupe_factor"`
	Slots    uint64  `json:"slots"`
	Partial  uint64  `json:"partial"`
	Group    string  `json:"group"`
	PerRow   float64 `json:"bytes_per_row"`
	SavedRow float64 `json:"saved_bytes_per_row_estimate"`
}

func main() {
	var f flags
	program.Main(&f, "dedupreal", "Duplicates in tables from real logs.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	reports, err := f.tables(ctx)
	if err != nil {
		return err
	}
	for i := range reports {
		show(&reports[i])
	}
	if f.Page != "" {
		if err := program.ReplacePart(f.Page, "real", pageTable(reports)); err != nil {
			return err
		}
	}
	return f.WriteResults("dedupreal", reports)
}

func (f *flags) tables(ctx context.Context) ([]report, error) {
	derived := filepath.Join(f.Data, "recsys", "derived")
	movielens := ingest.Options{SessionKey: "session_id", TimeKey: "timestamp"}
	days := filepath.Join(f.Dir, "retail")
	if err := errors.Join(os.RemoveAll(days), os.MkdirAll(days, 0o777)); err != nil {
		return nil, err
	}
	if _, err := retail.Derive(filepath.Join(f.Data, "recsys", "online-retail", "data", "retail-data", "by-day"),
		days); err != nil {
		return nil, err
	}
	var reports []report
	for _, t := range []struct {
		name, path string
		opts       ingest.Options
	}{
		{"movielens strict", filepath.Join(derived, "ml-latest-small.strict.parquet"), movielens},
		{"movielens session", filepath.Join(derived, "ml-latest-small.session.parquet"), movielens},
		{"retail", days, ingest.Options{SessionKey: "invoice", TimeKey: "time"}},
	} {
		r, err := f.table(ctx, t.name, t.path, t.opts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func (f *flags) table(ctx context.Context, name, path string, o ingest.Options) (report, error) {
	r := report{Table: name, Baselines: map[string]float64{}}
	dir := filepath.Join(f.Dir, "store")
	o.Dedup = writer.DedupOff
	off, err := ingestNew(ctx, dir, path, o)
	if err != nil {
		return r, err
	}
	o.Dedup = writer.DedupAuto
	on, err := ingestNew(ctx, dir, path, o)
	if err != nil {
		return r, err
	}
	rows := float64(on.Rows)
	d := on.Duplicates
	r.Rows, r.Factor, r.Partial, r.Groups = on.Rows, d.Factor, d.Partial, d.Groups
	r.BytesPerRow, r.OffPerRow = float64(on.BytesOut)/rows, float64(off.BytesOut)/rows
	s, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return r, err
	}
	parquet := filepath.Join(f.Dir, "clustered.parquet")
	err = f.look(ctx, s, &r, parquet)
	if err = errors.Join(err, s.Close()); err != nil {
		return r, err
	}
	return r, f.baselines(ctx, parquet, &r)
}

func ingestNew(ctx context.Context, dir, path string, o ingest.Options) (ingest.Report, error) {
	if err := os.RemoveAll(dir); err != nil {
		return ingest.Report{}, err
	}
	s, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return ingest.Report{}, err
	}
	r, err := ingest.Run(ctx, s, versus.Table, []string{path}, o)
	return r, errors.Join(err, s.Close())
}

// look reports the features and writes the table's rows, in its order, as Parquet.
func (f *flags) look(ctx context.Context, s *storage.Store, r *report, parquet string) error {
	_, snap, err := s.Newest(ctx, versus.Table)
	if err != nil {
		return err
	}
	all, err := snap.FeatureTotals(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		t := &all[i]
		r.Features = append(r.Features, featureReport{
			Name: t.Name, Type: t.Type.String(), Factor: t.Factor(), Slots: t.Slots, Partial: t.Partial, Group: t.Group,
			PerRow: float64(t.StoredBytes) / float64(r.Rows), SavedRow: float64(t.SavedBytes) / float64(r.Rows),
		})
	}
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"@all"}, Output: reader.OutputColumns})
	if err != nil {
		return err
	}
	sc, err := reader.Open(ctx, snap, plan, reader.Options{})
	if err != nil {
		return err
	}
	defer sc.Close()
	out, err := os.Create(parquet)
	if err != nil {
		return err
	}
	_, err = arrowbatch.Write(ctx, out, arrowbatch.Parquet, sc, arrowbatch.Options{Fold: true})
	return errors.Join(err, out.Close())
}

// script writes the Parquet file argv[1] anew with what Python has, and prints the bytes as JSON.
const script = `
import json, os, sys
path, sizes = sys.argv[1], {}
try:
    import pyarrow, pyarrow.parquet as pq
    pq.write_table(pq.read_table(path), path + ".baseline", compression="zstd", compression_level=3)
    sizes["pyarrow " + pyarrow.__version__] = os.path.getsize(path + ".baseline")
except ImportError:
    pass
try:
    import duckdb
    duckdb.sql(f"set enable_progress_bar to false; set threads to 1; copy (from '{path}') to '{path}.baseline' "
               "(format parquet, compression zstd, compression_level 3)")
    sizes["duckdb " + duckdb.__version__] = os.path.getsize(path + ".baseline")
except ImportError:
    pass
print(json.dumps(sizes))
`

// baselines adds the bytes per row of the Parquet files.
func (f *flags) baselines(ctx context.Context, parquet string, r *report) error {
	info, err := os.Stat(parquet)
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	if f.Python != "" {
		if python, err := exec.LookPath(f.Python); err == nil {
			cmd := exec.CommandContext(ctx, python, "-c", script, parquet)
			cmd.Stderr = os.Stderr
			text, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s: %w", python, err)
			}
			if err := json.Unmarshal(text, &sizes); err != nil {
				return fmt.Errorf("%s printed %q: %w", python, text, err)
			}
		} else {
			fmt.Fprintf(os.Stderr, "dedupreal: no %s: Parquet by arrow-go alone\n", f.Python)
		}
	}
	sizes["arrow-go"] = info.Size()
	for name, n := range sizes {
		r.Baselines[name] = float64(n) / float64(r.Rows)
	}
	return nil
}

// pageTable returns the tables for the page, a line each.
func pageTable(reports []report) string {
	engines := map[string]bool{}
	for _, r := range reports {
		for name := range r.Baselines {
			engines[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(engines))
	var b strings.Builder
	fmt.Fprintf(&b, "| table | rows | factor | partial | groups | B/row | without dedup | Parquet by %s |\n",
		strings.Join(names, " | "))
	b.WriteString(strings.Repeat("|---", 7+len(names)) + "|\n")
	for _, r := range reports {
		fmt.Fprintf(&b, "| %s | %d | %.2f | %d | %d | %.1f | %.1f |", r.Table, r.Rows, r.Factor, r.Partial, r.Groups,
			r.BytesPerRow, r.OffPerRow)
		for _, name := range names {
			fmt.Fprintf(&b, " %.1f |", r.Baselines[name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

func show(r *report) {
	fmt.Printf("%s: %d rows, %.1f B/row, %.1f without dedup; each stored value is used %.2f times, %d partial "+
		"duplicates, %d groups\n",
		r.Table, r.Rows, r.BytesPerRow, r.OffPerRow, r.Factor, r.Partial, r.Groups)
	for name, n := range r.Baselines {
		fmt.Printf("  zstd Parquet, %-18s %8.1f B/row\n", name, n)
	}
	for _, x := range r.Features {
		if x.Partial > 0 || x.PerRow >= 0.5 {
			fmt.Printf("  %-28s %-28s factor %6.2f, %8d slots, %7d partial duplicates, %7.2f B/row, group %s\n",
				x.Name, x.Type, x.Factor, x.Slots, x.Partial, x.PerRow, x.Group)
		}
	}
	fmt.Println()
}
