package ingest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/writer"
)

// ingestRows ingests rows, JSON objects, clustered by "session", and returns the feature files by name.
func ingestRows(t *testing.T, rows []map[string]any, o Options) (Report, map[string]*segment.Entry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	e := json.NewEncoder(f)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	o.SessionKey, o.TimeKey = "session", "time"
	return ingestFiles(t, []string{path}, o)
}

func ingestFiles(t *testing.T, paths []string, o Options) (Report, map[string]*segment.Entry) {
	t.Helper()
	s := openStore(t, t.TempDir())
	report, err := Run(t.Context(), s, "t", paths, o)
	if err != nil {
		t.Fatal(err)
	}
	table, err := s.Table(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	segments, err := snap.Segments(t.Context(), nil)
	if err != nil || len(segments) != 1 {
		t.Fatalf("%d segments: %v", len(segments), err)
	}
	g, err := snap.OpenSegment(t.Context(), segments[0])
	if err != nil {
		t.Fatal(err)
	}
	entries, err := g.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*segment.Entry{}
	for _, e := range entries {
		out[e.Meta.Name] = e
	}
	return report, out
}

func randomIDs(rng *rand.Rand, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = rng.Int64N(1 << 40)
	}
	return out
}

// onlyWhole skips a test of sizes under the race detector, which has nothing to find in it: make test runs it without.
func onlyWhole(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("sizes are the same under the race detector")
	}
}

// A feature in which nothing repeats takes the same bytes as without looking for duplicates.
func TestNothingToFindCostsNothing(t *testing.T) {
	onlyWhole(t)
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var rows []map[string]any
		for i := range 6000 {
			r := map[string]any{"session": i / 7, "time": i, "number": rng.Int64N(1 << 50), "float": rng.NormFloat64(),
				"list": randomIDs(rng, 1+rng.IntN(9)), "text": fmt.Sprint("text ", rng.Int64())}
			if rng.IntN(5) == 0 {
				r["some"] = rng.Int64N(1 << 50) // else null, which repeats, but takes no value
			}
			rows = append(rows, r)
		}
		_, off := ingestRows(t, rows, Options{Options: writer.Options{Dedup: writer.DedupOff, StripeRows: 1000}})
		report, on := ingestRows(t, rows, Options{Options: writer.Options{StripeRows: 1000}})
		for name, e := range on {
			most := off[name]
			if most == nil {
				t.Errorf("seed %d: %s", seed, name)
				continue
			}
			if name == "session" || name == "some" {
				continue
			}
			if e.Length != most.Length {
				t.Errorf("seed %d: %s takes %d bytes, %d with nothing looked for", seed, name, e.Length, most.Length)
			}
		}
		if on["some"].Length > off["some"].Length {
			t.Errorf("seed %d: nulls take %d bytes, %d with nothing looked for", seed, on["some"].Length,
				off["some"].Length)
		}
		if report.Duplicates.Partial != 0 {
			t.Errorf("%+v", report.Duplicates)
		}
	}
}

// foundBytes is what field 2 of a directory takes at most, which is stored twice, with its stripes' slots.
const foundBytes = 64

// Whatever repeats in a random table, no feature takes much more than without looking, and the table takes less: what
// was seen in the stripes that were examined may not hold in the others.
func TestRandomTablesPay(t *testing.T) {
	onlyWhole(t)
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 2))
		keep := map[string]float64{} // chance that a value stays from row to row
		for i := range 8 {
			keep[fmt.Sprint("dense ", i)] = rng.Float64()
			keep[fmt.Sprint("list ", i)] = rng.Float64()
		}
		last := map[string]any{}
		var rows []map[string]any
		for i := range 8000 {
			r := map[string]any{"session": i / 7, "time": i}
			for name, k := range keep {
				if rng.Float64() >= k || last[name] == nil {
					if last[name] = any(rng.Int64N(2000)); name[0] == 'l' {
						last[name] = randomIDs(rng, rng.IntN(9))
					}
				}
				r[name] = last[name]
			}
			rows = append(rows, r)
		}
		offReport, off := ingestRows(t, rows, Options{Options: writer.Options{Dedup: writer.DedupOff,
			StripeRows: 1000}})
		for _, d := range dedupSteps[1:] {
			report, on := ingestRows(t, rows, Options{Options: writer.Options{Dedup: d, StripeRows: 1000}})
			for name := range keep {
				if e := on[name]; e.Length > off[name].Length+off[name].Length/16+foundBytes {
					t.Errorf("seed %d, %s: %s (kept %.2f) takes %d bytes, %d with nothing looked for", seed, d, name,
						keep[name], e.Length, off[name].Length)
				}
			}
			if report.BytesOut > offReport.BytesOut {
				t.Errorf("seed %d, %s: %d bytes, %d with nothing looked for", seed, d, report.BytesOut,
					offReport.BytesOut)
			}
		}
	}
}

// A first stripe that is not like the others decides nothing: neither does what repeats only there make a group or a
// form that the rest pays for, nor does what repeats everywhere else stay unseen.
func TestFirstStripeIsNotTypical(t *testing.T) {
	onlyWhole(t)
	const stripe, stripes = 1000, 12
	for _, firstRepeats := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(7, 3))
		var rows []map[string]any
		last := map[string]any{}
		for i := range stripe * stripes {
			r := map[string]any{"session": i / 10, "time": i}
			repeats := (i < stripe) == firstRepeats
			for k := range 12 {
				name := fmt.Sprint("f", k)
				if last[name] == nil || !repeats || i%10 == 0 {
					last[name] = randomIDs(rng, 4)
				}
				r[name] = last[name]
			}
			rows = append(rows, r)
		}
		offReport, _ := ingestRows(t, rows, Options{Options: writer.Options{Dedup: writer.DedupOff,
			StripeRows: stripe}})
		report, _ := ingestRows(t, rows, Options{Options: writer.Options{StripeRows: stripe}})
		t.Logf("the first stripe repeats %v: %d bytes, %d with nothing looked for; %+v", firstRepeats, report.BytesOut,
			offReport.BytesOut, report.Duplicates)
		if firstRepeats && report.BytesOut > offReport.BytesOut+offReport.BytesOut/100 {
			t.Errorf("%d bytes, %d with nothing looked for", report.BytesOut, offReport.BytesOut)
		}
		if !firstRepeats && (report.Duplicates.Groups != 1 || report.Duplicates.GroupFeatures < 12 ||
			report.BytesOut > offReport.BytesOut) {
			t.Errorf("%d bytes, %d with nothing looked for; %+v", report.BytesOut, offReport.BytesOut,
				report.Duplicates)
		}
	}
}

// Each step makes the generated table smaller, or leaves it as it is, whether rows are clustered or sessions
// interleave: what was estimated holds in encoded bytes. The report and the index say what was found.
func TestStepsPay(t *testing.T) {
	t.Run("clustered", func(t *testing.T) {
		stepsPay(t, Options{SessionKey: workload.SessionColumn, TimeKey: workload.TimeColumn})
	})
	t.Run("interleaved", func(t *testing.T) { stepsPay(t, Options{}) })
}

func stepsPay(t *testing.T, o Options) {
	onlyWhole(t)
	dir := t.TempDir()
	options := workload.Options{Rows: 16_000, Sparse: 28, Weighted: 4, Dense: 24}
	s, err := workload.Generate(t.Context(), dir, options)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := workload.NewTruth(options)
	if err != nil {
		t.Fatal(err)
	}
	features := truth.Features()
	var paths []string
	for _, f := range s.Files {
		paths = append(paths, f.Path)
	}
	clustered := o.SessionKey != ""
	o.StripeRows = 4000
	off, before := int64(0), int64(0)
	for _, o.Dedup = range dedupSteps {
		report, entries := ingestFiles(t, paths, o)
		d := report.Duplicates
		t.Logf("%s: %d bytes, %+v", o.Dedup, report.BytesOut, d)
		if before != 0 && report.BytesOut > before+before/200 {
			t.Errorf("%s: %d bytes, %d without the step", o.Dedup, report.BytesOut, before)
		}
		if before == 0 {
			off = report.BytesOut
		}
		before = report.BytesOut
		// Of this table, clustered, the estimates are a quarter to a half of what is saved.
		is := off - report.BytesOut
		if d.BytesSaved > 2*max(is, 0) || !clustered && d.BytesSaved < is/2 {
			t.Errorf("%s: %d bytes saved, estimated %d", o.Dedup, is, d.BytesSaved)
		}
		var slots, partial, saved, groups int64
		for _, e := range entries {
			partial += int64(e.Meta.Found.Partial)
			saved += int64(e.Meta.Found.SavedBytes)
			if len(e.Meta.Name) > 10 && e.Meta.Name[:10] == "inverse of" {
				groups++
				continue
			}
			for _, st := range e.Meta.Stripes {
				slots += int64(st.Slots)
			}
		}
		if slots != d.Slots || partial != d.Partial || groups != int64(d.Groups) || saved < d.BytesSaved {
			t.Errorf("%s: the index has %d slots, %d partial duplicates, %d groups, %d bytes saved: %+v", o.Dedup,
				slots, partial, groups, saved, d)
		}
		partials := o.Dedup == writer.DedupGroups || o.Dedup == writer.DedupPartial
		if (d.Groups > 0) != (o.Dedup == writer.DedupGroups) || clustered && (d.Partial > 0) != partials {
			t.Errorf("%s: %+v", o.Dedup, d)
		}
		for _, f := range features {
			if f.Family != workload.UserHistory && f.Family != workload.UserWeighted {
				continue
			}
			slots, e := 0, entries[f.Name]
			for _, st := range e.Meta.Stripes {
				slots += int(st.Slots)
			}
			// Histories slide, newest or oldest first, and drop what is past their length.
			if n := int(e.Meta.Found.Partial); d.Partial > 0 && n < slots/3 {
				t.Errorf("%s: %s (oldest first %v) has %d partial duplicates of %d slots", o.Dedup, f.Name,
					f.OldestFirst, n, slots)
			}
		}
		if o.Dedup != writer.DedupOff && (clustered || o.Dedup != writer.DedupRuns) && d.Factor < 2 {
			t.Errorf("%s: %+v", o.Dedup, d)
		}
	}
}

// TestEstimates: what the report says of bytes that are saved is what a writer without looking for duplicates takes
// more, however far apart the rows are that come again.
func TestEstimates(t *testing.T) {
	onlyWhole(t)
	const rows, users = 9000, 3000
	for name, userOf := range map[string]func(rng *rand.Rand, i int) int{
		"users in turn":     func(_ *rand.Rand, i int) int { return i % users },
		"users at random":   func(rng *rand.Rand, _ int) int { return rng.IntN(users) },
		"within few rows":   func(rng *rand.Rand, i int) int { return i/40*10 + rng.IntN(10) },
		"three in a row":    func(_ *rand.Rand, i int) int { return i / 3 },
		"never the same":    func(_ *rand.Rand, i int) int { return i },
		"in turn and twice": func(_ *rand.Rand, i int) int { return i / 2 % (users / 3) },
	} {
		for _, length := range []int{1, 40} {
			t.Run(fmt.Sprintf("%s, lists of %d", name, length), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(7, uint64(length)))
				var table []map[string]any
				for i := range rows {
					user := userOf(rng, i)
					r := map[string]any{"session": i, "time": i}
					of := rand.New(rand.NewPCG(8, uint64(user)))
					for f := range 4 {
						r[fmt.Sprint("list", f)] = randomIDs(of, length)
						r[fmt.Sprint("number", f)] = of.Int64N(1 << 40)
					}
					table = append(table, r)
				}
				off, _ := ingestRows(t, table, Options{Options: writer.Options{Dedup: writer.DedupOff}})
				on, _ := ingestRows(t, table, Options{})
				is, said := off.BytesOut-on.BytesOut, on.Duplicates.BytesSaved
				t.Logf("%d bytes, %d with nothing looked for, estimated %d more; %+v", on.BytesOut, off.BytesOut, said,
					on.Duplicates)
				if slack := off.BytesOut / 20; said < is/2-slack || said > 2*is+slack {
					t.Errorf("%d bytes saved, estimated %d", is, said)
				}
			})
		}
	}
}
