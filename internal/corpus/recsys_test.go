package corpus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/bench/retail"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

// A realTable is a table from a real log: its source and how to ingest it. With a session key, each session's rows must
// come together, ordered by time and then as in the source; without, all rows must come as in the source.
type realTable struct {
	name  string
	opts  ingest.Options
	paths func(t *testing.T, dir string) (ingested, model []string)
}

func derived(file string) func(*testing.T, string) ([]string, []string) {
	return func(_ *testing.T, dir string) ([]string, []string) {
		p := []string{filepath.Join(dir, "recsys", "derived", file)}
		return p, p
	}
}

func retailPaths(t *testing.T, dir string) ([]string, []string) {
	out := t.TempDir()
	if _, err := retail.Derive(filepath.Join(dir, "recsys", "online-retail", "data", "retail-data", "by-day"),
		out); err != nil {
		t.Fatal(err)
	}
	return []string{out}, hiveFiles(t, out)
}

// TestRecsys ingests tables from real logs and compares every value that the reader gives, in both outputs, for batch
// sizes from 1 to more than all rows and random projections, with the source as arrow-go's table reader reads it.
func TestRecsys(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	dir := corpusDir(t)
	keys := ingest.Options{SessionKey: "session_id", TimeKey: "timestamp", Options: writer.Options{Memory: 64 << 20}}
	for _, table := range []realTable{
		{"movielens-strict", keys, derived("ml-latest-small.strict.parquet")},
		{"movielens-session", keys, derived("ml-latest-small.session.parquet")},
		{"retail", ingest.Options{}, retailPaths},
		{"retail-clustered", ingest.Options{SessionKey: "invoice", TimeKey: "time"}, retailPaths},
	} {
		t.Run(table.name, func(t *testing.T) {
			t.Parallel()
			ingested, files := table.paths(t, dir)
			m := readModel(t, files...)
			snap := ingestTable(t, ingested, table.opts)
			if got := snap.Info().Rows; got != uint64(m.rows) {
				t.Fatalf("%d rows in the table, %d in the source", got, m.rows)
			}
			c := &checker{t: t, m: m, snap: snap, opts: table.opts}
			seed := uint64(1)
			rng := rand.New(rand.NewPCG(seed, 0))
			all := m.names()
			sizes, most := []int{1, 7, 4096, m.rows + 1}, 24
			for _, size := range sizes {
				for _, out := range []reader.Output{reader.OutputColumns, reader.OutputTensors} {
					features := all
					if size == 1 || len(all) > most {
						features = sample(rng, all, min(most, 12))
					}
					features = sample(rng, features, len(features))
					if key := table.opts.SessionKey; key != "" {
						features = append(features, key)
					}
					c.scan(features, size, out)
				}
			}
			t.Logf("%d rows, %d features, %d values compared (projections from seed %d)", m.rows, len(all), c.compared,
				seed)
		})
	}
}

// sample returns n of the names in random order.
func sample(rng *rand.Rand, names []string, n int) []string {
	out := make([]string, 0, n)
	for _, i := range rng.Perm(len(names))[:min(n, len(names))] {
		out = append(out, names[i])
	}
	return out
}

func ingestTable(t *testing.T, paths []string, opts ingest.Options) *storage.Snapshot {
	t.Helper()
	blobs, err := object.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Create(t.Context(), blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if _, err := ingest.Run(t.Context(), store, "t", paths, opts); err != nil {
		t.Fatal(err)
	}
	table, err := store.Table(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// sessions returns the model's rows of each session in the order in which they must come.
func (c *checker) sessions() map[cell][]int {
	out := map[cell][]int{}
	for row, key := range c.m.columns[c.opts.SessionKey] {
		out[key] = append(out[key], row)
	}
	times := c.m.columns[c.opts.TimeKey]
	for _, rows := range out {
		slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(times[a].(int64), times[b].(int64)) })
	}
	return out
}

type checker struct {
	t        *testing.T
	m        *model
	snap     *storage.Snapshot
	opts     ingest.Options
	compared int
}

func (c *checker) scan(features []string, size int, out reader.Output) {
	c.t.Helper()
	ctx := context.Background()
	plan, err := reader.NewPlan(ctx, c.snap, reader.PlanOptions{Features: features, BatchSize: size, Output: out})
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := reader.Open(ctx, c.snap, plan, reader.Options{Presence: true, RoundIntegers: true})
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	o := &order{key: place(plan, c.opts.SessionKey)}
	if c.opts.SessionKey != "" {
		o.left = c.sessions()
	}
	for {
		b, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.t.Fatalf("batch size %d, %v: %v", size, out, err)
		}
		rows, err := o.take(b)
		if err != nil {
			c.t.Fatalf("batch size %d, %v: %v", size, out, err)
		}
		c.batch(plan, b, rows)
		b.Release()
	}
	if o.next != c.m.rows {
		c.t.Fatalf("batch size %d: %d rows of %d", size, o.next, c.m.rows)
	}
}

// An order says which row of the source must come next.
type order struct {
	next    int            // rows taken
	key     int            // place of the session key in the plan, where there is one
	left    map[cell][]int // rows of each session still to come; nil: the source's order
	current cell           // the session that has begun and not ended
}

// take returns the model's row for each row of the batch.
func (o *order) take(b *reader.Batch) ([]int, error) {
	out := make([]int, b.Rows)
	for i := range out {
		out[i] = o.next
		o.next++
		if o.left == nil {
			continue
		}
		session := columnCell(b.Columns[o.key], i)
		if session != o.current && len(o.left[o.current]) > 0 {
			return nil, fmt.Errorf("row %d is of session %v while %d rows of session %v are still to come",
				out[i], session, len(o.left[o.current]), o.current)
		}
		rows := o.left[session]
		if len(rows) == 0 {
			return nil, fmt.Errorf("row %d: session %v has more rows than in the source", out[i], session)
		}
		out[i], o.left[session], o.current = rows[0], rows[1:], session
	}
	return out, nil
}

func place(plan *reader.Plan, name string) int {
	for i, f := range plan.Features {
		if f.Name == name {
			return i
		}
	}
	return -1
}

func (c *checker) batch(plan *reader.Plan, b *reader.Batch, rows []int) {
	c.t.Helper()
	given := make([]bool, len(plan.Features))
	for i, col := range b.Columns {
		if col == nil {
			continue
		}
		given[i] = true
		if err := col.Validate(); err != nil {
			c.t.Fatalf("feature %s: %v", plan.Features[i].Name, err)
		}
		want := c.m.columns[plan.Features[i].Name]
		for r, row := range rows {
			if got := columnCell(col, r); !equal(got, want[row]) {
				c.t.Fatalf("feature %s, source row %d: got %v, want %v", plan.Features[i].Name, row, got, want[row])
			}
		}
		c.compared += len(rows)
	}
	if t := b.Tensors; t != nil {
		c.matrix(plan, &t.Dense, rows, given)
		c.matrix(plan, &t.Labels, rows, given)
		c.jagged(plan, &t.Sparse, rows, given)
		c.jagged(plan, &t.Weighted, rows, given)
		c.jagged(plan, &t.Floats, rows, given)
	}
	for i, ok := range given {
		if !ok {
			c.t.Fatalf("feature %s is nowhere in the batch", plan.Features[i].Name)
		}
	}
}

func columnCell(col *vector.Column, row int) cell {
	if col.IsNull(row) {
		return nil
	}
	lo, hi := col.RowRange(row)
	value := func(i int) cell {
		switch col.Type.Physical() {
		case vector.Float32Values:
			return float64(col.Floats[i])
		case vector.Float64Values:
			return col.Doubles[i]
		}
		return col.Ints[i]
	}
	switch col.Type.Kind {
	case vector.Dense:
		return value(lo)
	case vector.Bytes, vector.String:
		return string(col.Data[lo:hi])
	case vector.Weighted:
		out := []pair{}
		for i := lo; i < hi; i++ {
			out = append(out, pair{col.Ints[i], float64(col.ScoreFloats[i])})
		}
		return out
	}
	out := []any{}
	for i := lo; i < hi; i++ {
		out = append(out, value(i))
	}
	return out
}

// matrix compares a dense matrix: float32 of the model's value, 0 with a clear presence bit where it is null.
func (c *checker) matrix(plan *reader.Plan, m *reader.Matrix, rows []int, given []bool) {
	words := vector.BitmapWords(len(rows))
	for j, f := range m.Features {
		given[f] = true
		want := c.m.columns[plan.Features[f].Name]
		present := vector.Bitmap(m.Present[j*words : (j+1)*words])
		for r, row := range rows {
			got, null := m.Values[r*m.Width+j], !present.Get(r)
			var value float32
			switch v := want[row].(type) {
			case int64:
				value = float32(v)
			case float64:
				value = float32(v)
			}
			if null != (want[row] == nil) || math.Float32bits(got) != math.Float32bits(value) {
				c.t.Fatalf("feature %s, source row %d: got %v (null %v), want %v", plan.Features[f].Name, row, got,
					null, want[row])
			}
		}
		c.compared += len(rows)
	}
}

// jagged compares the lists of a keyed jagged tensor.
func (c *checker) jagged(plan *reader.Plan, j *reader.Jagged, rows []int, given []bool) {
	words, b := vector.BitmapWords(len(rows)), len(rows)
	for k, f := range j.Features {
		given[f] = true
		name := plan.Features[f].Name
		want := c.m.columns[name]
		present := vector.Bitmap(j.Present[k*words : (k+1)*words])
		for r, row := range rows {
			lo, hi := j.Offsets[k*b+r], j.Offsets[k*b+r+1]
			if hi-lo != j.Lengths[k*b+r] {
				c.t.Fatalf("feature %s, source row %d: length %d of [%d, %d)", name, row, j.Lengths[k*b+r], lo, hi)
			}
			var got cell
			switch {
			case !present.Get(r):
			case plan.Features[f].Type.Kind == vector.Weighted:
				list := []pair{}
				for i := lo; i < hi; i++ {
					list = append(list, pair{j.Values[i], float64(j.Weights[i])})
				}
				got = list
			default:
				list := []any{}
				for i := lo; i < hi; i++ {
					if !plan.Features[f].Type.Elem.IsInteger() {
						list = append(list, float64(j.FloatValues[i]))
					} else {
						list = append(list, j.Values[i])
					}
				}
				got = list
			}
			if !equal(got, want[row]) {
				c.t.Fatalf("feature %s, source row %d: got %v, want %v", name, row, got, want[row])
			}
		}
		c.compared += len(rows)
	}
}
