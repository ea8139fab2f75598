// Command codecs measures what decoding costs a value, by codec and by kernel, with the plain loops and with the vector
// instructions that the processor has: it runs the Go benchmarks of the packages in turns with each level of
// DSISTORE_SIMD, in processes of their own, and prints the fastest rounds as a table of Markdown: what disturbs a loop
// of microseconds only slows it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/internal/simd"
)

type flags struct {
	Rounds int    `help:"Rounds that count; one more runs before." default:"5"`
	Time   string `help:"Time of one benchmark in a round." default:"50ms"`
	Only   string `help:"Benchmarks: a pattern of go test -bench." default:"Decode|Unpack|LookUp|Inverse|Expand"`
	program.ResultsFlag
}

// packages have the benchmarks.
var packages = []string{"./format/encoding", "./format", "./reader/expand"}

// levels are those of DSISTORE_SIMD that are measured.
var levels = []string{"off", "avx2", "avx512"}

// A codec is the fastest round of one benchmark, and the median, by level.
type codec struct {
	Name           string             `json:"name"`
	BitsPerValue   float64            `json:"bits_per_value,omitempty"` // as stored
	NsPerValue     map[string]float64 `json:"ns_per_value"`
	MBPerSecond    map[string]float64 `json:"mb_per_second"`
	CyclesPerValue map[string]float64 `json:"cycles_per_value"`
	MedianNs       map[string]float64 `json:"median_ns_per_value"`
}

// A report is what a run found.
type report struct {
	GHz    float64  `json:"ghz"` // of a loop of one cycle a turn
	Codecs []*codec `json:"codecs"`
}

func main() {
	var f flags
	program.Main(&f, "codecs", "Measure decoding by codec and kernel, plain and with vectors.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 {
		return errors.New("rounds: want at least 1")
	}
	rep := report{GHz: gigahertz()}
	dir, err := os.MkdirTemp("", "codecs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	seen := map[string]*codec{}
	ns, mb := map[[2]string][]float64{}, map[[2]string][]float64{}
	for i, p := range packages {
		binary := filepath.Join(dir, strconv.Itoa(i))
		fmt.Fprintln(os.Stderr, "build", p)
		if out, err := exec.CommandContext(ctx, "go", "test", "-tags", "pebblegozstd", "-c", "-o", binary,
			p).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		order := slices.Clone(levels)
		for round := range f.Rounds + 1 {
			fmt.Fprintf(os.Stderr, "%s: round %d\n", p, round)
			for _, level := range order {
				cmd := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", f.Only, "-test.benchtime",
					f.Time)
				cmd.Dir = p
				cmd.Env = append(os.Environ(), simd.Env+"="+level, "GOMAXPROCS=1")
				out, err := cmd.Output()
				if err != nil {
					return fmt.Errorf("%s: %w: %s", p, err, out)
				}
				for _, l := range parse(out) {
					c := seen[l.name]
					if c == nil {
						c = &codec{Name: l.name, BitsPerValue: l.bits, NsPerValue: map[string]float64{},
							MBPerSecond: map[string]float64{}, CyclesPerValue: map[string]float64{},
							MedianNs: map[string]float64{}}
						seen[l.name] = c
						rep.Codecs = append(rep.Codecs, c)
					}
					if key := [2]string{l.name, level}; round > 0 {
						ns[key], mb[key] = append(ns[key], l.ns), append(mb[key], l.mb)
					}
				}
			}
			slices.Reverse(order)
		}
	}
	for _, c := range rep.Codecs {
		for _, level := range levels {
			key := [2]string{c.Name, level}
			c.NsPerValue[level], c.MBPerSecond[level], c.MedianNs[level] = slices.Min(ns[key]), slices.Max(mb[key]),
				program.Median(ns[key])
			c.CyclesPerValue[level] = c.NsPerValue[level] * rep.GHz
		}
	}
	rep.print()
	return f.WriteResults("codecs", rep)
}

// gigahertz returns the clock of the processor, by a loop that takes a cycle a turn: the best of many short tries.
func gigahertz() float64 {
	const turns = 1 << 18
	best := time.Hour
	for range 500 {
		start := time.Now()
		for i := 0; i < turns; i++ {
		}
		best = min(best, time.Since(start))
	}
	return turns / float64(best.Nanoseconds())
}

// A line is one of go test's.
type line struct {
	name         string
	ns, mb, bits float64
}

// parse reads the lines of benchmarks: "BenchmarkX/y-2  123  456 ns/op  78 MB/s  0.9 ns/value".
func parse(out []byte) (lines []line) {
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		l := line{name: strings.TrimPrefix(fields[0], "Benchmark")}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				continue
			}
			switch fields[i+1] {
			case "ns/value":
				l.ns = v
			case "MB/s":
				l.mb = v
			case "bits/value":
				l.bits = v
			}
		}
		if l.ns > 0 {
			lines = append(lines, l)
		}
	}
	return lines
}

func (r *report) print() {
	fmt.Printf("%.2f GHz.\n\n", r.GHz)
	fmt.Println("| | bits/value | GB/s plain | AVX2 | AVX-512 | cycles/value, plain | AVX2 | AVX-512 " +
		"|\n|---|---|---|---|---|---|---|---|")
	for _, c := range r.Codecs {
		bits := ""
		if c.BitsPerValue > 0 {
			bits = fmt.Sprintf("%.1f", c.BitsPerValue)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(c.Name, "Decode/"), "(") // of nested codecs the outermost
		fmt.Printf("| %s | %s |", name, bits)
		for _, level := range levels {
			fmt.Printf(" %.1f |", c.MBPerSecond[level]/1e3)
		}
		for _, level := range levels {
			fmt.Printf(" %.2f |", c.CyclesPerValue[level])
		}
		fmt.Println()
	}
}
