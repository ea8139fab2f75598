// Command compaction ingests the workload in many small parts, lays an overlay over it, compacts it, and reports what
// that changed: size, segments, scan rate, time to plan; what it cost; and that the table and the overlay are what they
// were.
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/result"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/tools/ingest"
)

type flags struct {
	Rows    int64   `help:"Rows of the dump; 0: the profile's."`
	Profile string  `help:"Profile of the workload." default:"small"`
	Ingests int     `help:"Into how many ingests the rows are cut." default:"100"`
	Share   float64 `help:"Share of the features that is read." default:"0.1"`
	Threads int     `help:"Processors of the scans." default:"1"`
	Rounds  int     `help:"How often each table is scanned; medians count." default:"5"`
	Dir     string  `help:"Where the data lies; a dump that is there already is used." default:"out/compaction"`
	program.ResultsFlag
}

// A state is a table in one of its forms.
type state struct {
	Name        string  `json:"name"`
	Segments    uint64  `json:"segments"`
	Bytes       uint64  `json:"bytes"`
	BytesPerRow float64 `json:"bytes_per_row"`
	// opening, plan, layout and the costs of all segments; a round each
	PlanSeconds  []float64 `json:"plan_seconds"`
	FirstSeconds []float64 `json:"first_batch_seconds"` // from opening to the first batch
	Scan         []float64 `json:"scan_seconds"`        // a round each

	dir string
}

// A cost is what making a table took.
type cost struct {
	Name         string  `json:"name"`
	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpu_seconds"`
	BytesRead    int64   `json:"bytes_read"`
	BytesWritten int64   `json:"bytes_written"`
	// Amplification is the bytes written over the bytes of the table that comes of it.
	Amplification float64 `json:"write_amplification"`
}

func main() {
	var f flags
	program.Main(&f, "compaction", "What a compaction of many small ingests changes, and what it costs.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || f.Threads < 1 || f.Ingests < 1 {
		return errors.New("rounds, threads and ingests: want more than 0")
	}
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, "dump"),
		workload.Options{Profile: f.Profile, Rows: f.Rows, Files: f.Ingests})
	if err != nil {
		return err
	}
	once, parts := &state{Name: "one ingest", dir: filepath.Join(f.Dir, "once")},
		&state{Name: "many ingests", dir: filepath.Join(f.Dir, "parts")}
	compacted, tiered := &state{Name: "compacted", dir: filepath.Join(f.Dir, "compacted")},
		&state{Name: "compacted as it grew", dir: filepath.Join(f.Dir, "tiered")}
	program.Log("one ingest")
	if _, err := versus.Ingest(ctx, once.dir, dump, ingest.Options{}); err != nil {
		return err
	}
	var costs []cost
	timed := func(s *state, name string, do func(store *storage.Store) error) error {
		program.Log("%s", name)
		c, err := measured(ctx, s.dir, name, do)
		costs = append(costs, c)
		return err
	}
	ingestAll := func(after func(*storage.Table) error) func(*storage.Store) error {
		return func(store *storage.Store) error {
			for _, p := range dump.Paths() {
				opts := ingest.Options{SessionKey: workload.SessionColumn, TimeKey: workload.TimeColumn}
				if _, err := ingest.Run(ctx, store, versus.Table, []string{p}, opts); err != nil {
					return err
				}
				t, err := store.Table(ctx, versus.Table)
				if err != nil {
					return err
				}
				if err := after(t); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, s := range []*state{parts, compacted, tiered} {
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
	}
	if err := timed(parts, "ingests", ingestAll(func(*storage.Table) error { return nil })); err != nil {
		return err
	}
	if err := withTable(ctx, parts.dir, func(t *storage.Table) error { return layOver(ctx, t) }); err != nil {
		return err
	}
	if err := os.CopyFS(compacted.dir, os.DirFS(parts.dir)); err != nil {
		return err
	}
	err = timed(compacted, "compaction", func(store *storage.Store) error {
		t, err := store.Table(ctx, versus.Table)
		if err != nil {
			return err
		}
		return compact(ctx, t, compaction.Options{Full: true})
	})
	if err != nil {
		return err
	}
	err = timed(tiered, "ingests, each with a compaction",
		ingestAll(func(t *storage.Table) error { return compact(ctx, t, compaction.Options{}) }))
	if err != nil {
		return err
	}
	if err := f.checkOverlay(ctx, compacted.dir, dump.Rows); err != nil {
		return err
	}
	erased, err := f.erase(ctx, compacted.dir)
	if err != nil {
		return err
	}
	states := []*state{once, parts, compacted, tiered}
	if err := f.measure(ctx, dump, states); err != nil {
		return err
	}
	for i, s := range []*state{parts, compacted, tiered} {
		costs[i].Amplification = float64(costs[i].BytesWritten) / float64(s.Bytes)
	}
	show(states, costs)
	fmt.Printf("\n%.1f %% of the users erased: %d rows, %.3f of the table's %.1f MB rewritten, %d values decoded and "+
		"%.1f MB searched, none found; %.1f s\n",
		100*eraseShare, erased.Rows, float64(erased.Bytes)/float64(erased.TableBytes), float64(erased.TableBytes)/1e6,
		erased.Search.Slots,
		float64(erased.Search.Bytes)/1e6, erased.Seconds)
	return f.WriteResults("compaction", struct {
		Flags   *flags         `json:"flags"`
		Machine result.Machine `json:"machine"`
		States  []*state       `json:"states"`
		Costs   []cost         `json:"costs"`
		Erased  any            `json:"erased"`
	}{f, result.ThisMachine(), states, costs, erased})
}

// measured runs do on the store in a directory, and counts.
func measured(ctx context.Context, dir, name string, do func(*storage.Store) error) (cost, error) {
	c := cost{Name: name}
	local, err := object.NewLocal(dir)
	if err != nil {
		return c, err
	}
	blobs := object.NewCounted(local)
	store, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		return c, err
	}
	start, cpu := time.Now(), result.CPUSeconds()
	err = do(store)
	c.Seconds, c.CPUSeconds = time.Since(start).Seconds(), result.CPUSeconds()-cpu
	n := blobs.Counts()
	c.BytesRead, c.BytesWritten = n.BytesRead, n.BytesWritten
	return c, errors.Join(err, store.Close())
}

// withTable calls do with the table in a directory.
func withTable(ctx context.Context, dir string, do func(*storage.Table) error) error {
	store, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return err
	}
	t, err := store.Table(ctx, versus.Table)
	if err == nil {
		err = do(t)
	}
	return errors.Join(err, store.Close())
}

// mark is the overlay's value in a row: of what else the row has, so that a row that got another's would be seen.
func mark(session string, time int64) int64 { return int64(len(session))*1_000_003 ^ time*31 }

// overlayName is the overlay's, and its feature's.
const overlayName = "mark"

var markType = vector.Type{Kind: vector.Dense, Elem: vector.Int64}

// eachKey calls visit with session and time of every row, and with further columns, in the table's order.
func eachKey(ctx context.Context, snap *storage.Snapshot, features []string,
	visit func(session string, time int64, columns []*vector.Column, row int) error) error {
	names := append([]string{workload.SessionColumn, workload.TimeColumn}, features...)
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: names})
	if err != nil {
		return err
	}
	s, err := reader.Open(ctx, snap, plan, reader.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		b, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for row := range b.Rows {
			if err := visit(keyText(b.Columns[0], row), b.Columns[1].Ints[row], b.Columns, row); err != nil {
				return err
			}
		}
		b.Release()
	}
}

// keyText is a session key as text.
func keyText(c *vector.Column, row int) string {
	if c.Type.Physical() == vector.ByteValues {
		return string(c.Data[c.Offsets[row]:c.Offsets[row+1]])
	}
	return fmt.Sprint(c.Ints[row])
}

// layOver makes an overlay over all segments.
func layOver(ctx context.Context, t *storage.Table) error {
	snap, err := t.Latest(ctx)
	if err != nil {
		return err
	}
	features, err := snap.NewFeatures(ctx, catalog.Feature{Name: overlayName, Type: markType})
	if err != nil {
		return err
	}
	var values []int64
	if err := eachKey(ctx, snap, nil, func(session string, time int64, _ []*vector.Column, _ int) error {
		values = append(values, mark(session, time))
		return nil
	}); err != nil {
		return err
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		return err
	}
	c := commit.Change{Operation: "overlay", Base: snap.Info().Number,
		Ops: []commit.Operation{commit.DefineOverlays{{Name: overlayName, Features: features}}}}
	for _, d := range segments {
		g, err := snap.OpenSegment(ctx, d)
		if err != nil {
			return err
		}
		stripes := g.StripeRows()
		if err := g.Close(); err != nil {
			return err
		}
		w, err := t.NewOverlaySegment(ctx, d, segment.Options{})
		if err != nil {
			return err
		}
		err = w.AddFeature(ctx, 0, features[0], func(out *format.Writer) error {
			for _, n := range stripes {
				col := &vector.Column{Type: markType, Rows: int(n), Slots: int(n), Ints: values[:n]}
				if err := out.WriteStripe(col); err != nil {
					return err
				}
				values = values[n:]
			}
			return nil
		})
		if err != nil {
			return err
		}
		l := catalog.OverlaySegment{Overlay: overlayName, Segment: d.ID, All: true}
		if l.Data, err = w.Finish(ctx); err != nil {
			return err
		}
		c.Set(append(commit.Op[commit.SetOverlaySegments](&c), l))
	}
	_, err = t.Commit(ctx, c)
	return err
}

// checkOverlay makes the overlay of a copy of the table part of it, compacts that, and reads every row.
func (f *flags) checkOverlay(ctx context.Context, dir string, rows int64) error {
	copied, err := f.copied(dir, "merged")
	if err != nil {
		return err
	}
	return withTable(ctx, copied, func(t *storage.Table) error {
		snap, err := t.Latest(ctx)
		if err != nil {
			return err
		}
		if _, err := t.Commit(ctx, commit.Change{Operation: "merge", Base: snap.Info().Number,
			Ops: []commit.Operation{commit.MergeOverlays{overlayName}}}); err != nil {
			return err
		}
		if err := compact(ctx, t, compaction.Options{Repack: true}); err != nil {
			return err
		}
		if snap, err = t.Latest(ctx); err != nil {
			return err
		}
		err = eachKey(ctx, snap, []string{overlayName}, func(session string, time int64, columns []*vector.Column,
			row int) error {
			rows--
			if got, want := columns[2].Ints[row], mark(session, time); columns[2].IsNull(row) || got != want {
				return fmt.Errorf("the overlay has %d in a row of session %s: want %d", got, session, want)
			}
			return nil
		})
		if err == nil && rows != 0 {
			err = fmt.Errorf("%d rows too few", rows)
		}
		return err
	})
}

// copied returns a copy of a store beside it.
func (f *flags) copied(dir, name string) (string, error) {
	to := filepath.Join(f.Dir, name)
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	return to, os.CopyFS(to, os.DirFS(dir))
}

// eraseShare is how many of the users are erased.
const eraseShare = 0.02

// erase erases users of a copy of the table.
func (f *flags) erase(ctx context.Context, dir string) (out *compaction.EraseReport, err error) {
	program.Log("erase")
	copied, err := f.copied(dir, "erased")
	if err != nil {
		return nil, err
	}
	err = withTable(ctx, copied, func(t *storage.Table) error {
		snap, err := t.Latest(ctx)
		if err != nil {
			return err
		}
		user, err := compaction.KeyFeature(ctx, snap, workload.UserColumn)
		if err != nil {
			return err
		}
		var keys strings.Builder
		err = eachKey(ctx, snap, []string{workload.UserColumn},
			func(_ string, _ int64, columns []*vector.Column, row int) error {
				text := keyText(columns[2], row)
				// The first row's at least.
				if keys.Len() == 0 || float64(crc32.ChecksumIEEE([]byte(text))) < eraseShare*(1<<32) {
					keys.WriteString(text + "\n")
				}
				return nil
			})
		if err != nil {
			return err
		}
		set, err := compaction.ReadKeys(*user, strings.NewReader(keys.String()), "keys")
		if err != nil {
			return err
		}
		out, err = compaction.Erase(ctx, t, compaction.Erasure{Keys: set})
		return err
	})
	return out, err
}

// compact plans and runs.
func compact(ctx context.Context, t *storage.Table, opts compaction.Options) error {
	p, err := compaction.NewPlan(ctx, t, opts)
	if err == nil {
		_, err = compaction.Run(ctx, t, p, opts)
	}
	return err
}

// measure reads all tables in turns, and holds what they give to each other.
func (f *flags) measure(ctx context.Context, dump *versus.Dump, states []*state) error {
	truth, err := workload.NewTruth(dump.Options)
	if err != nil {
		return err
	}
	projected, err := versus.Project(truth, f.Share, 0)
	if err != nil {
		return err
	}
	var engines []versus.Engine
	for _, s := range states {
		engines = append(engines, &versus.StoreEngine{Label: s.Name, Dir: s.dir, Features: projected, BatchSize: 4096})
		err := withTable(ctx, s.dir, func(t *storage.Table) error {
			snap, err := t.Latest(ctx)
			if err == nil {
				i := snap.Info()
				s.Segments, s.Bytes, s.BytesPerRow = i.Segments, i.Bytes, float64(i.Bytes)/float64(i.Rows)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	digest, err := versus.Equal(ctx, engines...)
	if err != nil {
		return err
	}
	m, err := versus.Rounds(ctx, digest, f.Threads, f.Rounds,
		func(round int) { program.Log("round %d of %d", round, f.Rounds) }, engines...)
	if err != nil {
		return err
	}
	for i, s := range states {
		s.Scan = m[i].Seconds
	}
	var names []string
	for _, x := range projected {
		names = append(names, x.Name)
	}
	for range f.Rounds {
		for _, s := range states {
			if err := s.plan(ctx, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// plan times planning, and the first batch.
func (s *state) plan(ctx context.Context, names []string) error {
	start := time.Now()
	return withTable(ctx, s.dir, func(t *storage.Table) error {
		snap, err := t.Latest(ctx)
		if err != nil {
			return err
		}
		p, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: names, Output: reader.OutputTensors})
		if err != nil {
			return err
		}
		l, err := reader.NewLayout(ctx, snap, p)
		if err != nil {
			return err
		}
		if _, err := l.Cost(ctx, reader.Options{}); err != nil {
			return err
		}
		s.PlanSeconds = append(s.PlanSeconds, time.Since(start).Seconds())
		start = time.Now()
		r, err := reader.Open(ctx, snap, p, reader.Options{RoundIntegers: true})
		if err != nil {
			return err
		}
		defer r.Close()
		b, err := r.Next(ctx)
		if err != nil {
			return err
		}
		s.FirstSeconds = append(s.FirstSeconds, time.Since(start).Seconds())
		b.Release()
		return nil
	})
}

func show(states []*state, costs []cost) {
	fmt.Println("| table | segments | bytes a row | scan s | plan ms | first batch ms |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, s := range states {
		fmt.Printf("| %s | %d | %.1f | %.3f | %.2f | %.2f |\n", s.Name, s.Segments, s.BytesPerRow,
			result.Median(s.Scan),
			1000*result.Median(s.PlanSeconds), 1000*result.Median(s.FirstSeconds))
	}
	fmt.Println("\n| what | s | CPU s | MB read | MB written | written / table |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, c := range costs {
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %.1f | %.2f |\n", c.Name, c.Seconds, c.CPUSeconds,
			float64(c.BytesRead)/1e6, float64(c.BytesWritten)/1e6, c.Amplification)
	}
}
