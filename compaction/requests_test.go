package compaction

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/objecttest"
)

// inChild names the variable that says how many ingests a process counts the requests for.
const inChild = "DSISTORE_TEST_INGESTS"

// TestRequests counts the requests and the round trips of a compaction and of an erasure, by the formulas of
// PROTOCOL.md.
func TestRequests(t *testing.T) {
	for _, ingests := range []int{4, 40} {
		// Each in a process of its own: encoders are pooled, with channels of the bubble.
		if os.Getenv(inChild) == "" {
			child := exec.Command(os.Args[0], "-test.run=^TestRequests$", "-test.v")
			child.Env = append(os.Environ(), inChild+"="+strconv.Itoa(ingests))
			out, err := child.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if os.Getenv(inChild) != strconv.Itoa(ingests) {
			continue
		}
		mem := object.NewMemory()
		x := newTester(t, mem, 1)
		x.keyRows = 0 // segments as small as these have no key table
		x.open()
		for i := range ingests {
			rows := x.newRows(8, 1)
			for r := range rows {
				if rows[r].Session = "another person"; i < 3 {
					rows[r].Session = "the person"
				}
			}
			x.ingest(rows)
		}
		keys := sessionKeys(x, "the person")
		synctest.Test(t, func(t *testing.T) {
			counted := objecttest.NewMeter(mem)
			measure := func(what string, f func(ctx context.Context, table *storage.Table) (requests, trips int64,
				err error)) {
				store, err := storage.Open(t.Context(), counted, storage.Options{})
				if err != nil {
					t.Fatal(err)
				}
				table, err := store.Table(t.Context(), "ads")
				if err != nil {
					t.Fatal(err)
				}
				var requests, trips int64
				what = fmt.Sprintf("%d ingests: %s", ingests, what)
				counted.Measure(t, what, func() (err error) {
					requests, trips,
						err = f(t.Context(), table)
					return err
				}).Check(t, what, requests, trips)
			}
			measure("erase", func(ctx context.Context, table *storage.Table) (requests, trips int64, err error) {
				r, err := Erase(ctx, table, Erasure{Keys: keys, Compact: x.options()})
				if err != nil {
					return 0, 0, err
				}
				segments, objects, expired := int64(r.TableSegments), int64(r.Search.Objects), int64(len(r.Expired))
				return 87 + 5*segments + objects + 3*expired, 69 + segments/2 + objects/8, nil
			})
			measure("compaction", func(ctx context.Context, table *storage.Table) (requests, trips int64, err error) {
				o := x.options()
				o.SegmentRows = 1000
				p, err := NewPlan(ctx, table, o)
				if err != nil {
					return 0, 0, err
				}
				if _, err = Run(ctx, table, p, o); len(p.Jobs) > 1 || len(p.Jobs) == 0 && ingests > 4 {
					t.Fatalf("%d jobs", len(p.Jobs))
				}
				return 3 + int64(len(p.Jobs))*11 + 2*int64(p.Segments()), 3 +
					int64(len(p.Jobs))*(14+2*int64(p.Segments())/32), err
			})
		})
	}
}
