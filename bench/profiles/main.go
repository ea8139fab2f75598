// Command profiles measures what the weight of a stored byte trades: bytes per row against samples/s
// that one thread decodes and the CPU seconds of the ingest, for the profiles speed, balanced and size and for weights
// between them, on the generated table and on one of real logs. Medians of rounds in which the weights take turns.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	Rows    int64     `help:"Rows of the generated table; 0: the profile's."`
	Data    string    `help:"Directory of the data sets, with recsys/derived; empty: the generated table alone." env:"DSISTORE_TESTDATA"`
	Weights []float64 `help:"What a stored byte counts for, in ns of decoding, beside the profiles." default:"0.1,2,30,500"`
	Rounds  int       `help:"How often each weight is timed, in turn with the others." default:"3"`
	Dir     string    `help:"Where the data lies; a dump that is there already is used." default:"out/profiles"`
	Page    string    `help:"Page whose part between <!-- profiles --> and <!-- /profiles --> becomes the tables; empty: none." default:"docs/guide/profiles.md"`
	program.ResultsFlag
}

// A point is what one weight gives.
type point struct {
	Name        string    `json:"name"` // of the profile; "" of a weight between
	NsPerByte   float64   `json:"ns_per_byte"`
	BytesPerRow float64   `json:"bytes_per_row"`
	Samples     []float64 `json:"samples_per_second"` // decoded by one thread, all features as columns; three a round
	Ingest      []float64 `json:"ingest_cpu_seconds"`
	Rate        float64   `json:"median_samples_per_second"`
	CPU         float64   `json:"median_ingest_cpu_seconds"`
}

// A curve is one table.
type curve struct {
	Table  string   `json:"table"`
	Rows   int64    `json:"rows"`
	Points []*point `json:"points"`

	paths         []string
	session, time string
}

func main() {
	var f flags
	program.Main(&f, "profiles", "Bytes against time to decode and to write, by profile.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 {
		return errors.New("rounds: want more than 0")
	}
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, "dump"), workload.Options{Rows: f.Rows})
	if err != nil {
		return err
	}
	curves := []*curve{{Table: "small", paths: dump.Paths(), session: workload.SessionColumn,
		time: workload.TimeColumn}}
	if f.Data != "" {
		curves = append(curves, &curve{
			Table: "movielens", session: "session_id", time: "timestamp",
			paths: []string{filepath.Join(f.Data, "recsys", "derived", "ml-latest-small.strict.parquet")},
		})
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range curves {
		if c.Points, err = f.points(); err != nil {
			return err
		}
		for range f.Rounds {
			for _, p := range c.Points {
				if err := f.round(ctx, c, p); err != nil {
					return fmt.Errorf("%s, %v ns/byte: %w", c.Table, p.NsPerByte, err)
				}
			}
		}
		for _, p := range c.Points {
			p.Rate, p.CPU = program.Median(p.Samples), program.Median(p.Ingest)
		}
	}
	text := page(curves)
	fmt.Print(text)
	if f.Page != "" {
		if err := program.ReplacePart(f.Page, "profiles", text); err != nil {
			return err
		}
	}
	return f.WriteResults("profiles", curves)
}

// points returns a point for each profile and weight, by weight.
func (f *flags) points() ([]*point, error) {
	var out []*point
	for _, name := range format.ProfileNames() {
		p, err := format.ParseProfile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, &point{Name: name, NsPerByte: p.NsPerByte()})
	}
	for _, w := range f.Weights {
		at := 0
		for at < len(out) && out[at].NsPerByte < w {
			at++
		}
		out = append(out[:at], append([]*point{{NsPerByte: w}}, out[at:]...)...)
	}
	return out, nil
}

// round ingests the table with the weight of p, and reads it.
func (f *flags) round(ctx context.Context, c *curve, p *point) (err error) {
	dir := filepath.Join(f.Dir, "store")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	s, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	before := program.CPUSeconds()
	r, err := ingest.Run(ctx, s, versus.Table, c.paths, ingest.Options{
		SessionKey: c.session, TimeKey: c.time,
		Options: writer.Options{NsPerByte: p.NsPerByte, Workers: 1},
	})
	if err != nil {
		return err
	}
	c.Rows, p.BytesPerRow = r.Rows, float64(r.BytesOut)/float64(r.Rows)
	p.Ingest = append(p.Ingest, program.CPUSeconds()-before)
	_, snap, err := s.Newest(ctx, versus.Table)
	if err != nil {
		return err
	}
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"@all"}, Output: reader.OutputColumns})
	if err != nil {
		return err
	}
	for i := range 4 { // what is read once is in the page cache
		before := program.CPUSeconds()
		sc, err := reader.Open(ctx, snap, plan, reader.Options{Workers: 1})
		if err != nil {
			return err
		}
		if err := errors.Join(versus.Drain(ctx, sc, nil), sc.Close()); err != nil {
			return err
		}
		if i > 0 {
			p.Samples = append(p.Samples, float64(r.Rows)/(program.CPUSeconds()-before))
		}
	}
	return nil
}

func page(curves []*curve) string {
	var b strings.Builder
	for _, c := range curves {
		fmt.Fprintf(&b, "\n%s, %d rows:\n\n| profile | ns/byte | bytes per row | samples/s | CPU s to ingest "+
			"|\n|---|---|---|---|---|\n", c.Table, c.Rows)
		for _, p := range c.Points {
			fmt.Fprintf(&b, "| %s | %g | %.1f | %.0f | %.2f |\n", p.Name, p.NsPerByte, p.BytesPerRow, p.Rate, p.CPU)
		}
		fmt.Fprintf(&b, "\n![B/row against samples/s, %s](../img/profiles-%s.svg)\n", c.Table, c.Table)
	}
	return b.String()
}
