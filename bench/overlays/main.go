// Command overlays measures a scan through stacks of overlays that cover all rows, or half of them here and there, beside one without, in
// alternating rounds. The overlays have a dense feature and an id list of the projection, with the table's own values, so that every scan
// must give the same: it fails where one does not.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/result"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

type flags struct {
	versus.TableFlags
	Share      float64 `help:"Share of the features." default:"0.1"`
	Stacks     []int   `help:"How many overlays to read through." default:"1,3,10"`
	BatchSize  int     `help:"Rows of a batch." default:"4096"`
	Dedup      string  `help:"kjt, ikjt or windowed." default:"kjt"`
	Threads    int     `help:"Threads." default:"1"`
	Rounds     int     `help:"Rounds that count; one more runs before." default:"15"`
	CPUProfile string  `name:"cpuprofile" help:"Write a profile of the scans to a file."`
	program.ResultsFlag
}

// A measure is a scan under some overlays: medians of the rounds.
type measure struct {
	Overlays   int     `json:"overlays"`
	Half       bool    `json:"half"` // each covers half of the rows
	PerSecond  float64 `json:"samples_per_second"`
	CPUSeconds float64 `json:"cpu_seconds_per_million_samples"`
	OpenMillis float64 `json:"open_ms"` // the plan and where its rows lie
	Requests   uint64  `json:"requests"`
	Bytes      uint64  `json:"bytes"` // read
	// Slower is the time of a scan over that without overlays, of the same round.
	Slower float64 `json:"time_ratio"`

	names                    []string
	seconds, cpu, open, over []float64
}

type report struct {
	Profile  string    `json:"profile"`
	Rows     uint64    `json:"rows"`
	Features int       `json:"features"`
	Overlaid []string  `json:"overlaid"`
	Dedup    string    `json:"dedup"`
	Threads  int       `json:"threads"`
	Measures []measure `json:"measures"`
}

func main() {
	var f flags
	program.Main(&f, "overlays", "Measure scans through overlays.", f.run)
}

func (f *flags) run(ctx context.Context) (err error) {
	if f.Rounds < 1 || f.Threads < 1 || len(f.Stacks) == 0 || slices.Min(f.Stacks) < 1 {
		return errors.New("rounds, threads and stacks: want at least 1 of each")
	}
	dedup, err := reader.ParseDedup(f.Dedup)
	if err != nil {
		return err
	}
	p, err := f.OpenProjection(ctx, f.Share, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	snap, overlaid, err := makeOverlays(ctx, p.Table, p.Names, slices.Max(f.Stacks))
	if err != nil {
		return err
	}
	opts := reader.PlanOptions{Features: p.Names, BatchSize: f.BatchSize, Output: reader.OutputTensors, Dedup: dedup}
	measures := []measure{{}}
	for _, half := range []bool{false, true} {
		for _, n := range f.Stacks {
			m := measure{Overlays: n, Half: half}
			for i := range n {
				m.names = append(m.names, overlayName(half, i))
			}
			measures = append(measures, m)
		}
	}
	if err := f.measure(ctx, snap, opts, measures); err != nil {
		return err
	}
	rep := report{Profile: f.Profile, Rows: snap.Info().Rows, Features: len(p.Names), Overlaid: overlaid, Dedup: f.Dedup, Threads: f.Threads, Measures: measures}
	printReport(&rep)
	return f.WriteResults("overlays", rep)
}

func (f *flags) measure(ctx context.Context, snap *storage.Snapshot, opts reader.PlanOptions, measures []measure) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	if f.CPUProfile != "" {
		file, err := os.Create(f.CPUProfile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var want uint64
	for round := range f.Rounds + 1 {
		for i := range measures {
			m := &measures[i]
			var sum *uint64
			if round == 0 {
				sum = new(uint64)
			}
			if err := m.scan(ctx, snap, opts, f.Threads, sum); err != nil {
				return err
			}
			if round > 0 {
				m.over = append(m.over, m.seconds[round]/measures[0].seconds[round])
				continue
			}
			if i == 0 {
				want = *sum
			} else if *sum != want {
				return fmt.Errorf("under overlays %v a scan gives something else than without", m.names)
			}
		}
	}
	for i := range measures {
		m := &measures[i]
		rows := float64(snap.Info().Rows)
		m.PerSecond = rows / result.Median(m.seconds[1:])
		m.CPUSeconds = result.Median(m.cpu[1:]) / rows * 1e6
		m.OpenMillis = result.Median(m.open[1:])
		m.Slower = result.Median(m.over)
	}
	return nil
}

// scan reads all rows, and sums up what they are where sum is not nil.
func (m *measure) scan(ctx context.Context, snap *storage.Snapshot, opts reader.PlanOptions, threads int, sum *uint64) (err error) {
	opts.Overlays = m.names
	start := time.Now()
	plan, err := reader.NewPlan(ctx, snap, opts)
	if err != nil {
		return err
	}
	layout, err := reader.NewLayout(ctx, snap, plan)
	if err != nil {
		return err
	}
	m.open = append(m.open, time.Since(start).Seconds()*1e3)
	cpu, start := result.CPUSeconds(), time.Now()
	s, err := layout.Open(reader.Options{Workers: threads, Presence: true, Reuse: true, RoundIntegers: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var all summer
	for {
		b, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if sum != nil {
			if err := all.add(b); err != nil {
				return err
			}
		}
		b.Release()
	}
	m.seconds, m.cpu = append(m.seconds, time.Since(start).Seconds()), append(m.cpu, result.CPUSeconds()-cpu)
	st := s.Stats()
	m.Requests, m.Bytes = st.Requests, st.BytesNeeded+st.BytesOverRead
	if sum != nil {
		*sum = all.sum
	}
	return nil
}

// A summer makes one number of batches, the same for the same rows however lists are held.
type summer struct {
	sum   uint64
	bytes []byte
	list  reader.Jagged
}

func (s *summer) add(b *reader.Batch) error {
	t := b.Tensors
	for _, m := range []*reader.Matrix{&t.Dense, &t.Labels} {
		s.floats(-1, m.Values)
	}
	for i := range t.Embeddings {
		s.floats(-2, t.Embeddings[i].Values)
	}
	for _, j := range []*reader.Jagged{&t.Sparse, &t.Weighted, &t.Floats} {
		if err := t.Expand(&s.list, j); err != nil {
			return err
		}
		for i, f := range j.Features {
			from, to := s.list.Offsets[i*b.Rows], s.list.Offsets[(i+1)*b.Rows]
			s.bytes = s.bytes[:0]
			for _, n := range s.list.Lengths[i*b.Rows : (i+1)*b.Rows] {
				s.bytes = binary.LittleEndian.AppendUint32(s.bytes, uint32(n))
			}
			if s.list.Values != nil {
				for _, v := range s.list.Values[from:to] {
					s.bytes = binary.LittleEndian.AppendUint64(s.bytes, uint64(v))
				}
			}
			s.end(f)
			if s.list.FloatValues != nil {
				s.floats(f, s.list.FloatValues[from:to])
			}
			if s.list.Weights != nil {
				s.floats(f, s.list.Weights[from:to])
			}
		}
	}
	return nil
}

func (s *summer) floats(feature int32, values []float32) {
	s.bytes = s.bytes[:0]
	for _, v := range values {
		s.bytes = binary.LittleEndian.AppendUint32(s.bytes, math.Float32bits(v))
	}
	s.end(feature)
}

// end adds the bytes of a feature, whose place among the others does not matter: groups differ.
func (s *summer) end(feature int32) {
	s.bytes = binary.LittleEndian.AppendUint32(s.bytes, uint32(feature))
	s.sum += xxhash.Sum64(s.bytes)
}

func printReport(r *report) {
	fmt.Printf("%d rows, %d features, %d of them overlaid (%v), %s, %d threads; medians\n\n",
		r.Rows, r.Features, len(r.Overlaid), r.Overlaid, r.Dedup, r.Threads)
	fmt.Printf("%-22s %12s %8s %10s %8s %9s %9s\n", "overlays", "samples/s", "time", "cpu s/M", "open ms", "requests", "MB read")
	for _, m := range r.Measures {
		name := "none"
		if m.Overlays > 0 {
			name = fmt.Sprintf("%d over all rows", m.Overlays)
		}
		if m.Half {
			name = fmt.Sprintf("%d over half of them", m.Overlays)
		}
		fmt.Printf("%-22s %12.0f %8.3f %10.3f %8.2f %9d %9.3f\n", name, m.PerSecond, m.Slower, m.CPUSeconds, m.OpenMillis, m.Requests, float64(m.Bytes)/1e6)
	}
}
