package versus

import (
	"context"
	"os"

	"github.com/dsistore/dsistore/bench/workload"
)

// Compare checks that sides give the same rows, then times them beside a copy of as many bytes, for each number of threads, and
// prints what each took. It calls each with the scans of every number of threads, after they are printed.
func Compare(ctx context.Context, share float64, fs []workload.Feature, batchSize int, threads []int, rounds int, sides []Side,
	log func(string, ...any), each func(threads int, s Scans) error) error {
	log("%d features: checking that all sides give the same rows", len(fs))
	d, err := Equal(ctx, sides...)
	if err != nil {
		return err
	}
	log("%d rows, %d ids: equal", d.Rows, d.IDs)
	sides = append(sides, &CopySide{Rows: d.Rows, RowBytes: float64(d.TensorBytes) / float64(d.Rows), BatchSize: batchSize})
	names := make([]string, len(fs))
	for i := range fs {
		names[i] = fs[i].Name
	}
	for _, n := range threads {
		log("%d rounds, %d threads", rounds, n)
		m, err := Rounds(ctx, d, n, rounds, nil, sides...)
		if err != nil {
			return err
		}
		s := Scans{Share: share, Features: names, Digest: d, Measures: m}
		PrintScans(os.Stdout, s)
		if err := each(n, s); err != nil {
			return err
		}
	}
	return nil
}
