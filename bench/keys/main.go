// Command keys measures what it takes to find the rows with 1,000 keys in a table of 1,000 segments: looking them up,
// deleting them, joining an overlay by them and erasing them. It says bytes read, requests and seconds of each, and
// what the key tables take.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/tools/overlay"
	"github.com/dsistore/dsistore/tools/selection"
)

type flags struct {
	Segments int    `help:"Segments of the table." default:"1000"`
	Rows     int    `help:"Rows of a segment." default:"131072"`
	Stripe   int    `help:"Rows of a stripe." default:"16384"`
	Keys     int    `help:"How many keys." default:"1000"`
	Rounds   int    `help:"Measurements of each look-up, of which the medians are told." default:"3"`
	Erase    bool   `help:"Erase the rows, too, not only say what would be erased." default:"true"`
	Dir      string `help:"Where the table lies; it is removed first." default:"out/keys"`
	program.ResultsFlag
}

// A cost is what an operation took.
type cost struct {
	Operation string  `json:"operation"`
	Rows      uint64  `json:"rows"`
	Seconds   float64 `json:"seconds"`
	Requests  int64   `json:"requests"`
	BytesRead int64   `json:"bytes_read"`
}

type report struct {
	Machine    program.Machine `json:"machine"`
	Segments   int             `json:"segments"`
	Rows       int             `json:"rows_of_a_segment"`
	Keys       int             `json:"keys"`
	TableBytes int64           `json:"table_bytes"`
	KeysBytes  int64           `json:"keys_bytes"` // of the key tables
	WriteTime  float64         `json:"write_seconds"`
	Costs      []cost          `json:"costs"`
}

func main() {
	var f flags
	program.Main(&f, "keys", "Measure finding the rows with some keys in a table of many segments.", f.run)
}

var (
	dense      = vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	sessionKey = catalog.Feature{ID: catalog.NewFeatureID("session_id", 0), Name: "session_id", Type: dense,
		Role: catalog.RoleSessionKey}
	requestKey = catalog.Feature{ID: catalog.NewFeatureID("request_id", 0), Name: "request_id", Type: dense,
		Role: catalog.RoleRequestKey}
	userKey = catalog.Feature{ID: catalog.NewFeatureID("user_id", 0), Name: "user_id", Type: dense,
		Role: catalog.RoleUserKey}
	price = catalog.Feature{ID: catalog.NewFeatureID("price", 0), Name: "price", Type: dense}
)

// sessionRows is how many rows a session has, next to each other.
const sessionRows = 16

// mix is splitmix64, without the sign.
func mix(v uint64) int64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return int64((v ^ v>>31) >> 1)
}

func requestOf(segment, row int) int64 { return mix(uint64(segment)<<32 | uint64(row)) }

func (f *flags) run(ctx context.Context) error {
	if err := os.RemoveAll(f.Dir); err != nil {
		return err
	}
	local, err := object.NewLocal(f.Dir)
	if err != nil {
		return err
	}
	blobs := object.NewCounted(local)
	start := time.Now()
	if err := f.make(ctx, blobs); err != nil {
		return err
	}
	out := report{Machine: program.ThisMachine(), Segments: f.Segments, Rows: f.Rows, Keys: f.Keys,
		WriteTime: time.Since(start).Seconds()}
	for info, err := range blobs.List(ctx, "", "") {
		if err != nil {
			return err
		}
		out.TableBytes += info.Size
		if filepath.Base(info.Name) == "keys.sst" {
			out.KeysBytes += info.Size
		}
	}
	program.Log("written in %.1f s: %d bytes, of which tables of keys %d", out.WriteTime, out.TableBytes, out.KeysBytes)
	rng := rand.New(rand.NewPCG(7, 7))
	var there, absent []string
	for range f.Keys {
		there = append(there, fmt.Sprint(requestOf(rng.IntN(f.Segments), rng.IntN(f.Rows))))
		absent = append(absent, fmt.Sprint(rng.Int64()))
	}
	find := func(keys []string) func(context.Context, *storage.Table) (uint64, error) {
		return func(ctx context.Context, t *storage.Table) (uint64, error) {
			snap, err := t.Latest(ctx)
			if err != nil {
				return 0, err
			}
			s, err := (&selection.Query{Keys: &selection.KeySource{Given: keys}}).Find(ctx, snap, reader.Options{})
			if err != nil {
				return 0, err
			}
			return s.Rows, nil
		}
	}
	file := filepath.Join(f.Dir, "_labels.jsonl")
	if err := writeLabels(file, there); err != nil {
		return err
	}
	erase := func(dry bool) func(context.Context, *storage.Table) (uint64, error) {
		return func(ctx context.Context, t *storage.Table) (uint64, error) {
			named := filepath.Join(f.Dir, "_keys.txt")
			if err := writeLines(named, there); err != nil {
				return 0, err
			}
			keys, err := compaction.NewKeys(requestKey)
			if err != nil {
				return 0, err
			}
			if err := (&selection.KeySource{Paths: []string{named}}).Each(ctx, requestKey, keys.Add); err != nil {
				return 0, err
			}
			r, err := compaction.Erase(ctx, t, compaction.Erasure{Keys: keys, DryRun: dry})
			if err != nil {
				return 0, err
			}
			return r.Rows + r.Deleted, nil
		}
	}
	type step struct {
		name   string
		rounds int
		do     func(context.Context, *storage.Table) (uint64, error)
	}
	steps := []step{
		{"look-up", f.Rounds, find(there)},
		{"look-up of keys that no row has", f.Rounds, find(absent)},
		{"look-up of 10 keys", f.Rounds, find(there[:min(10, f.Keys)])},
		{"feature totals", f.Rounds, func(ctx context.Context, t *storage.Table) (uint64, error) {
			snap, err := t.Latest(ctx)
			if err != nil {
				return 0, err
			}
			totals, err := snap.FeatureTotals(ctx)
			return uint64(len(totals)), err
		}},
		{"erase, dry run", f.Rounds, erase(true)},
		{"overlay join", 1, func(ctx context.Context, t *storage.Table) (uint64, error) {
			r, err := overlay.Add(ctx, t.Store(), "t", "labels", overlay.Options{From: []string{file}})
			return r.Covered, err
		}},
		{"delete", 1, func(ctx context.Context, t *storage.Table) (uint64, error) {
			r, err := selection.Delete(ctx, t, &selection.Query{Keys: &selection.KeySource{Given: there}},
				selection.Options{})
			if err != nil {
				return 0, err
			}
			return r.Deleted, nil
		}},
	}
	if f.Erase {
		steps = append(steps, step{"erase", 1, erase(false)})
	}
	for _, s := range steps {
		var costs []cost
		for range s.rounds {
			c, err := measure(ctx, blobs, s.do)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			c.Operation = s.name
			costs = append(costs, c)
		}
		slices.SortFunc(costs, func(a, b cost) int { return int(1e9 * (a.Seconds - b.Seconds)) })
		c := costs[len(costs)/2]
		out.Costs = append(out.Costs, c)
		fmt.Printf("%-34s %8d rows %8.3f s %8d requests %12d bytes read\n", c.Operation, c.Rows, c.Seconds, c.Requests,
			c.BytesRead)
	}
	return f.WriteResults("keys", out)
}

// measure runs an operation on a table that was just opened.
func measure(ctx context.Context, blobs *object.Counted,
	do func(context.Context, *storage.Table) (uint64, error)) (c cost, err error) {
	s, err := storage.Open(ctx, blobs, storage.Options{})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	before, start := blobs.Counts(), time.Now()
	t, err := s.Table(ctx, "t")
	if err != nil {
		return c, err
	}
	c.Rows, err = do(ctx, t)
	c.Seconds = time.Since(start).Seconds()
	counts := blobs.Counts().Sub(before)
	c.Requests, c.BytesRead = counts.Requests(), counts.BytesRead
	return c, err
}

// make writes the table, in one commit.
func (f *flags) make(ctx context.Context, blobs object.Store) error {
	s, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	t, err := s.NewTable(ctx, "t")
	if err != nil {
		return err
	}
	segments := make(commit.AddSegments, f.Segments)
	// The first gives the table its identity.
	if segments[0], err = f.segment(ctx, t, 0); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for i := 1; i < f.Segments; i++ {
		g.Go(func() (err error) {
			segments[i], err = f.segment(gctx, t, i)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, err = t.Commit(ctx, commit.Change{Operation: "ingest", Ops: []commit.Operation{
		commit.AddFeatures{sessionKey, requestKey, userKey, price}, segments,
	}})
	return err
}

// segment writes a segment: sessions in order, of a user each, with a request for each row.
func (f *flags) segment(ctx context.Context, t *storage.Table, n int) (catalog.SegmentDescriptor, error) {
	var stripes []uint32
	for rows := f.Rows; rows > 0; rows -= f.Stripe {
		stripes = append(stripes, uint32(min(rows, f.Stripe)))
	}
	w, err := t.NewSegment(ctx, catalog.Partition{{Key: "part", Value: fmt.Sprint(n % 10)}}, stripes,
		segment.Options{})
	if err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	defer w.Abort()
	sessions := make([]int64, (f.Rows+sessionRows-1)/sessionRows)
	for i := range sessions {
		sessions[i] = mix(1<<63 | uint64(n)<<32 | uint64(i))
	}
	slices.Sort(sessions)
	each := func(shared bool, value func(row int) int64) func(*format.Writer) error {
		return func(to *format.Writer) error {
			first := 0
			for _, rows := range stripes {
				c := &vector.Column{Type: dense, Rows: int(rows)}
				for row := first; row < first+int(rows); row++ {
					if !shared || row == first || row%sessionRows == 0 {
						c.Ints = append(c.Ints, value(row))
					}
					if shared {
						c.Inverse = append(c.Inverse, int32(len(c.Ints)-1))
					}
				}
				c.Slots, c.Monotone = len(c.Ints), shared
				if err := to.WriteStripe(c); err != nil {
					return err
				}
				first += int(rows)
			}
			return nil
		}
	}
	err = errors.Join(
		w.AddFeature(ctx, 0, sessionKey, each(true, func(row int) int64 { return sessions[row/sessionRows] })),
		w.AddFeature(ctx, 1, requestKey, each(false, func(row int) int64 { return requestOf(n, row) })),
		w.AddFeature(ctx, 2, userKey, each(true,
			func(row int) int64 { return mix(uint64(sessions[row/sessionRows]) % (1 << 24)) })),
		w.AddFeature(ctx, 3, price, each(false, func(row int) int64 { return requestOf(n, row) & 0xff })))
	if err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	return w.Finish(ctx)
}

func writeLines(path string, lines []string) error {
	return write(path, lines, func(w *bufio.Writer, line string) { fmt.Fprintln(w, line) })
}

func writeLabels(path string, keys []string) error {
	return write(path, keys, func(w *bufio.Writer, key string) {
		fmt.Fprintf(w, "{\"request_id\": %s, \"label\": 1}\n", key)
	})
}

func write(path string, items []string, put func(w *bufio.Writer, item string)) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := bufio.NewWriter(out)
	for _, x := range items {
		put(w, x)
	}
	return w.Flush()
}
