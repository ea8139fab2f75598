package metamorphic

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/race"
)

var (
	hours = flag.Float64("hours", 0, "run this long, from the seed on, instead of a few seeds")
	first = flag.Uint64("seed", 1, "the first seed; those after it follow")
	seeds = flag.Int("seeds", 0, "how many seeds; 0: a few")
	steps = flag.Int("steps", 0, "steps a seed; 0: a few")
)

const otherArgs = "DSISTORE_METAMORPHIC_OTHER"

func TestMain(m *testing.M) {
	if os.Getenv(otherArgs) != "" {
		if err := Other(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestMetamorphic runs a few seeds, so that each operation comes; -hours or -seeds more of them.
func TestMetamorphic(t *testing.T) {
	done := map[string]int{}
	few, fewSteps := 12, 40
	if race.Enabled {
		few, fewSteps = 2, 20
	}
	n := runSeeds(t, few, fewSteps, func(seed uint64) Options {
		opts := Options{Local: seed%4 == 2, Done: done}
		if opts.Local {
			opts.Other = other
		}
		return opts
	})
	if n < 12 {
		return
	}
	for _, o := range operations {
		if done[o.name] == 0 {
			t.Errorf("%s: it never had anything to do", o.name)
		}
	}
}

// runSeeds runs as many seeds and steps as flags say, by default few, each on what options returns. It returns how many
// seeds.
func runSeeds(t *testing.T, few, fewSteps int, options func(seed uint64) Options) int {
	n := cmp.Or(*seeds, few)
	until := time.Now().Add(time.Duration(*hours * float64(time.Hour)))
	for i := 0; i < n || time.Now().Before(until); i++ {
		seed := *first + uint64(i)
		// Not t.Run and t.TempDir: there may be a hundred thousand.
		dir, err := os.MkdirTemp("", "metamorphic-*")
		if err != nil {
			t.Fatal(err)
		}
		opts := options(seed)
		opts.Steps, opts.Dir = cmp.Or(*steps, fewSteps), dir
		err = Run(t.Context(), seed, opts)
		os.RemoveAll(dir)
		if err != nil {
			t.Fatalf("%v\n\nagain: go test ./internal/metamorphic -run %s -seed %d -seeds 1 -steps %d", err, t.Name(),
				seed, opts.Steps)
		}
		if *hours > 0 && i%100 == 99 {
			fmt.Printf("%d seeds, the last %d\n", i+1, seed)
		}
	}
	return n
}

// other runs Other in another process.
func other(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), otherArgs+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("other process: %w: %s", err, out)
	}
	return nil
}
