package ingest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/usage"
)

// PopularDays is over how many days what was read makes a feature popular, where nobody says otherwise.
const PopularDays = 30

// Reads are what was read of a table lately, by its usage records: a Popularity that keeps together what the same jobs
// read.
type Reads struct{ *usage.Summary }

// RecentlyRead returns the reads of a table in so many days up to now; nil: there are none on record. Its cost is a
// listing, and an object or a few a day.
func RecentlyRead(ctx context.Context, table *storage.Table, days int) (*Reads, error) {
	until := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	s, err := usage.Load(ctx, table, until.AddDate(0, 0, -days), until)
	if err != nil || len(s.Features) == 0 {
		return nil, err
	}
	return &Reads{s}, nil
}

// maxSigned is how many jobs tell features apart that are read about as often: a float64 has no bits for more.
const maxSigned = 50

// Popularity orders features by how often their stripes were fetched, to a power of two, and those alike by which jobs
// fetched them: what the job that reads most bytes reads comes first, of that what the second reads too, and so on.
//
//	fetched  64 to 127          32 to 63             16 to 31
//	job 1    # # # # . . .      # # # . . . . .      # . . .
//	job 2    # # . . # # .      # . . # # . . .      . # # .
//	job 3    # . # . # . #      . . # # . # # #      . # . #
//
// A job's features then are a few runs among those read about as often, rather than here and there: it reads fewer
// unneeded bytes, in fewer requests, than by popularity alone (docs/internals/usage-month.md has the figures).
func (r *Reads) Popularity(features []catalog.Feature) []float64 {
	fetched, signature := map[catalog.FeatureID]float64{}, map[catalog.FeatureID]float64{}
	order := make([]*usage.JobTotal, len(r.Jobs))
	for i := range r.Jobs {
		order[i] = &r.Jobs[i]
	}
	slices.SortStableFunc(order, func(a, b *usage.JobTotal) int { return cmp.Compare(b.BytesNeeded, a.BytesNeeded) })
	for rank, j := range order {
		for i := range j.Features {
			u := &j.Features[i]
			if u.Stripes == 0 {
				continue
			}
			fetched[u.ID] += float64(u.Stripes)
			if rank < maxSigned {
				signature[u.ID] += math.Ldexp(1, -rank-1)
			}
		}
	}
	out := make([]float64, len(features))
	for i, f := range features {
		if n := fetched[f.ID]; n > 0 {
			out[i] = 1 + 2*math.Floor(math.Log2(n)) + signature[f.ID]
		}
	}
	return out
}
