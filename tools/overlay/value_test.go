package overlay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/dsistore/dsistore/storage/object"
)

// TestValues holds numbers that are computed to Go's, over nulls, deleted rows and several segments.
func TestValues(t *testing.T) {
	for seed := range uint64(fewer(4)) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := newStore(t, object.NewMemory())
		var rows []row
		for i := range 400 + r.IntN(1000) {
			rows = append(rows, row{
				"id": intValue(int64(i)), "ds": textValue(fmt.Sprint("2026-11-0", r.IntN(3))),
				"clicks": withNulls(r, 0.2, func(r *rand.Rand) value { return intValue(int64(r.IntN(10))) }),
				"shows":  withNulls(r, 0.2, func(r *rand.Rand) value { return intValue(int64(r.IntN(4))) }),
				"dwell":  withNulls(r, 0.2, func(r *rand.Rand) value { return floatValue(float32(r.IntN(20)) / 4) }),
				"hist":   withNulls(r, 0.2, columnKinds[7].make),
				"big":    intValue(math.MaxInt64 - int64(r.IntN(3))),
			})
		}
		ingestRows(t, s, []arrow.Field{
			nullable("id", arrow.PrimitiveTypes.Int64), nullable("ds", arrow.BinaryTypes.String),
			nullable("clicks", arrow.PrimitiveTypes.Int64),
			nullable("shows", arrow.PrimitiveTypes.Int32), nullable("dwell", arrow.PrimitiveTypes.Float32),
			nullable("hist", arrow.ListOf(arrow.PrimitiveTypes.Int64)), nullable("big", arrow.PrimitiveTypes.Int64),
		}, rows, nil)
		if seed%2 == 0 {
			deleteRows(t, s, r)
		}
		report, err := Add(t.Context(), s, "ads", "o", Options{Exprs: []string{
			"ctr = clicks / shows", "both = clicks + 2 * shows", "long = len(hist) - 1", "time = dwell",
			"mix = dwell * clicks - 0.5",
			"shows = shows - 100", "beyond = big + 1", "dwell = -shows", "click = clicks > 3",
		}, Workers: 2})
		if err == nil || !strings.Contains(err.Error(),
			"feature dwell is float32 in the table, and the expression gives int64") {
			t.Fatal(err)
		}
		report, err = Add(t.Context(), s, "ads", "o", Options{Exprs: []string{
			"ctr = clicks / shows", "both = clicks + 2 * shows", "long = len(hist) - 1", "time = dwell",
			"mix = dwell * clicks - 0.5",
			"shows = shows - 100", "beyond = big + 1", "dwell = dwell + 0.25", "click = clicks > 3",
		}, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		snap := latest(t, s)
		checkNew(t, snap, report, []string{"clicks", "shows", "dwell", "hist", "big"}, wantValues)
		if report.Covered != report.Rows {
			t.Fatalf("not all rows are covered: %+v", report)
		}
		o, err := snap.Overlay(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		types := map[string]string{
			"ctr": "float64", "both": "int64", "long": "int64", "time": "float32", "mix": "float64", "shows": "int64",
			"beyond": "int64", "dwell": "float64", "click": "int8",
		}
		for _, f := range o.Features {
			if f.Type.String() != types[f.Name] {
				t.Errorf("feature %s is %v, want %s", f.Name, f.Type, types[f.Name])
			}
		}
		// A reader of the table under the overlay gets what it replaces as the wider type.
		if got := readUnder(t, snap, []string{"o"}, "shows", "dwell"); uint64(len(got)) != report.Rows {
			t.Errorf("%d rows", len(got))
		}
		verifyClean(t, s)
	}
}

// wantValues is what the expressions of TestValues give in a row.
func wantValues(x map[string]string) (map[string]string, bool) {
	number := func(name string) (float64, bool) {
		var v float64
		_, err := fmt.Sscanf(x[name], "[%g]", &v)
		return v, err == nil
	}
	clicks, hasClicks := number("clicks")
	shows, hasShows := number("shows")
	dwell, hasDwell := number("dwell")
	float := func(v float64, ok bool) string {
		if !ok {
			return "null"
		}
		return fmt.Sprint([]float64{v})
	}
	integer := func(v float64, ok bool) string { return float(v, ok) } // small ones print alike
	out := map[string]string{
		"ctr":  float(clicks/shows, hasClicks && hasShows && shows != 0),
		"both": integer(clicks+2*shows, hasClicks && hasShows),
		"long": "null", "time": x["dwell"], "mix": float(dwell*clicks-0.5, hasDwell && hasClicks),
		"shows":  integer(shows-100, hasShows),
		"beyond": "null", "dwell": float(dwell+0.25, hasDwell), "click": "null",
	}
	if x["hist"] != "null" {
		out["long"] = fmt.Sprint([]int{len(strings.Fields(strings.Trim(x["hist"], "[]"))) - 1})
	}
	if x["big"] != fmt.Sprint([]int64{math.MaxInt64}) {
		var v int64
		_, _ = fmt.Sscanf(x["big"], "[%d]", &v)
		out["beyond"] = fmt.Sprint([]int64{v + 1})
	}
	if hasClicks {
		out["click"] = fmt.Sprint([]int{map[bool]int{true: 1}[clicks > 3]})
	}
	return out, true
}
