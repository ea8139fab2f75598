package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// dedupSteps are in the order in which steps build on each other.
var dedupSteps = []writer.Dedup{writer.DedupOff, writer.DedupRuns, writer.DedupSlots, writer.DedupPartial,
	writer.DedupGroups}

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		os.Exit(ingestChild(job))
	}
	race.Rapid()
	goleak.VerifyTestMain(m)
}

// A dump is random files, and what the model says they hold.
type dump struct {
	files []fakeFile
	rows  []modelRow
}

type fakeFile struct {
	path   string
	part   catalog.Partition
	fields []*source.Field
	chunks []*source.Chunk
}

func (d *dump) sources(fail map[int]int) []source.File {
	var out []source.File
	for i, f := range d.files {
		failAt := -1
		if n, ok := fail[i]; ok {
			failAt = n
		}
		out = append(out, source.File{
			Path: f.path, Size: 1, Partition: f.part,
			Open: func(context.Context) (source.Source, error) {
				return &fakeSource{fields: f.fields, chunks: slices.Clone(f.chunks), failAt: failAt, err: errFake}, nil
			},
			Fingerprint: func(context.Context) (string, error) { return "print of " + f.path, nil },
		})
	}
	return out
}

var fakeTypes = [][]vector.Type{ // types of a feature, in the order in which it may widen
	{{Kind: vector.Dense, Elem: vector.Int8}, {Kind: vector.Dense, Elem: vector.Int32}, {Kind: vector.Dense,
		Elem: vector.Float64}},
	{{Kind: vector.Dense, Elem: vector.Bool}},
	{{Kind: vector.Dense, Elem: vector.Uint64}},
	{{Kind: vector.Dense, Elem: vector.Int16}},
	{{Kind: vector.Dense, Elem: vector.Float32}, {Kind: vector.Dense, Elem: vector.Float64}},
	{{Kind: vector.Sparse, Elem: vector.Int64}},
	{{Kind: vector.Sparse, Elem: vector.Uint16}, {Kind: vector.Sparse, Elem: vector.Uint32}},
	{{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, {Kind: vector.Weighted, Elem: vector.Int64,
		Score: vector.Float64}},
	{{Kind: vector.Embedding, Elem: vector.Float32, Dim: 3}},
	{{Kind: vector.Embedding, Elem: vector.Int8, Dim: 2}},
	{{Kind: vector.String}, {Kind: vector.Bytes}},
	{{Kind: vector.Bytes}},
}

// randomRow appends a random row to c and returns its model cell once widened to t.
func randomRow(r *rand.Rand, c *vector.Column, nulls float64) {
	if r.Float64() < nulls {
		c.AppendNulls(1)
		return
	}
	n := 1
	switch {
	case c.Type.IsList():
		n = r.IntN(4) * r.IntN(4)
	case c.Type.Kind == vector.Embedding:
		n = int(c.Type.Dim)
	}
	for range n {
		v := int64(r.IntN(100))
		switch c.Type.Elem {
		case vector.Bool:
			v &= 1
		case vector.Int8, vector.Int16, vector.Int32:
			v -= 50
		case vector.Uint64:
			v = int64(r.Uint64())
		}
		switch c.Type.Physical() {
		case vector.Int64Values:
			c.Ints = append(c.Ints, v)
		case vector.Float32Values:
			c.Floats = append(c.Floats, float32(v)/4)
		case vector.Float64Values:
			c.Doubles = append(c.Doubles, float64(v)/8)
		case vector.ByteValues:
			c.Data = append(c.Data, byte('a'+v%26))
		}
		if c.Type.Kind == vector.Weighted {
			if c.Type.Score == vector.Float64 {
				c.ScoreDoubles = append(c.ScoreDoubles, float64(v)/2)
			} else {
				c.ScoreFloats = append(c.ScoreFloats, float32(v)/2)
			}
		}
	}
	c.AddSlot()
}

// randomDump draws a dump whose features widen from file to file, with keys, partitions and empty chunks.
func randomDump(t *rapid.T) *dump {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	nfiles := rapid.IntRange(1, 4).Draw(t, "files")
	nfeatures := rapid.IntRange(1, 14).Draw(t, "features")
	nparts := rapid.SampledFrom([]int{1, 3, 50}).Draw(t, "partitions")
	maxRows := rapid.SampledFrom([]int{1, 10, 300}).Draw(t, "rows")
	if nparts == 50 {
		maxRows = min(maxRows, 20)
	}
	sessionType := rapid.SampledFrom([]vector.Type{{}, {Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Dense,
		Elem: vector.Float32},
		{Kind: vector.Dense, Elem: vector.Uint64}, {Kind: vector.String}}).Draw(t, "session")
	timeType := rapid.SampledFrom([]vector.Type{{}, {Kind: vector.Dense, Elem: vector.Int32}, {Kind: vector.Dense,
		Elem: vector.Float64}}).Draw(t, "time")
	nulls := rapid.SampledFrom([]float64{0, 0.3, 0.97}).Draw(t, "nulls")
	d := &dump{}
	final := map[string]vector.Type{}
	type rowAt struct {
		col *vector.Column
		row int
	}
	var later []map[string]rowAt
	for fi := range nfiles {
		f := fakeFile{path: fmt.Sprintf("file-%d", fi)}
		for i := range nfeatures {
			types := fakeTypes[i%len(fakeTypes)]
			if i > 0 && r.IntN(5) == 0 {
				continue // the file lacks it
			}
			f.fields = append(f.fields, &source.Field{Name: fmt.Sprintf("f%02d", i), Type: types[r.IntN(len(types))]})
		}
		if sessionType.Kind != 0 && r.IntN(6) > 0 {
			f.fields = append(f.fields, &source.Field{Name: "session", Type: sessionType, Role: catalog.RoleSessionKey})
		}
		if timeType.Kind != 0 && r.IntN(6) > 0 {
			f.fields = append(f.fields, &source.Field{Name: "time", Type: timeType, Role: catalog.RoleTimeKey})
		}
		for _, x := range f.fields {
			if old, ok := final[x.Name]; ok {
				w, err := vector.Widen(old, x.Type)
				if err != nil {
					t.Fatal(err)
				}
				final[x.Name] = w
			} else {
				final[x.Name] = x.Type
			}
		}
		ord := 0
		for range r.IntN(6 + 4*(nparts/10)) {
			c := &source.Chunk{Rows: r.IntN(maxRows + 1)}
			c.Partition = catalog.Partition{}
			if nparts > 1 {
				c.Partition = catalog.Partition{{Key: "p", Value: fmt.Sprint(r.IntN(nparts))}}
			}
			rows := make([]map[string]rowAt, c.Rows)
			for i := range rows {
				rows[i] = map[string]rowAt{}
			}
			for _, x := range f.fields {
				if r.IntN(4) == 0 && x.Role == 0 {
					continue // null throughout the chunk
				}
				col := vector.NewColumn(x.Type)
				for i := range c.Rows {
					if x.Role != 0 {
						randomKey(r, col)
					} else {
						randomRow(r, col, nulls)
					}
					rows[i][x.Name] = rowAt{col, i}
				}
				c.Fields = append(c.Fields, x)
				c.Columns = append(c.Columns, col)
			}
			for i := range rows {
				m := modelRow{part: c.Partition.String(), ord: fi<<32 + ord}
				ord++
				if at, ok := rows[i]["session"]; ok {
					m.session = keyOf(at.col, at.row)
				}
				if at, ok := rows[i]["time"]; ok {
					m.time = keyOf(at.col, at.row)
				}
				d.rows = append(d.rows, m)
			}
			later = append(later, rows...)
			f.chunks = append(f.chunks, c)
		}
		d.files = append(d.files, f)
	}
	for i, row := range later {
		d.rows[i].cells = map[string]cell{}
		for name, at := range row {
			one := vector.NewColumn(at.col.Type)
			one.AppendRow(at.col, at.row)
			wide, err := vector.Convert(one, final[name])
			if err != nil {
				t.Fatal(err)
			}
			if v := cellOf(wide, 0); v != nil {
				d.rows[i].cells[name] = v
			}
		}
	}
	return d
}

func randomKey(r *rand.Rand, c *vector.Column) {
	if r.IntN(10) == 0 {
		c.AppendNulls(1)
		return
	}
	v := int64(r.IntN(12)) - 4
	switch c.Type.Physical() {
	case vector.Int64Values:
		c.Ints = append(c.Ints, v)
	case vector.Float32Values:
		c.Floats = append(c.Floats, float32(v)/4)
	case vector.Float64Values:
		c.Doubles = append(c.Doubles, float64(v)/4)
	case vector.ByteValues:
		c.Data = fmt.Appendf(c.Data, "s%d", v)
	}
	c.AddSlot()
}

// keyOf returns a key as an int64, uint64, float64 or string.
func keyOf(c *vector.Column, row int) cell {
	if c.IsNull(row) {
		return nil
	}
	switch {
	case c.Type.Elem == vector.Uint64:
		return uint64(c.Ints[row])
	case c.Type.Physical() == vector.Int64Values:
		return c.Ints[row]
	case c.Type.Physical() == vector.Float32Values:
		return float64(c.Floats[row])
	case c.Type.Physical() == vector.Float64Values:
		return c.Doubles[row]
	}
	return string(c.Data[c.Offsets[row]:c.Offsets[row+1]])
}

func compareKeys(a, b cell) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	switch x := a.(type) {
	case int64:
		return cmp.Compare(x, b.(int64))
	case uint64:
		return cmp.Compare(x, b.(uint64))
	case float64:
		return cmp.Compare(x, b.(float64))
	}
	return cmp.Compare(a.(string), b.(string))
}

// expected returns a partition's rows in the promised order.
func (d *dump) expected(part string, dropped map[string]bool) []map[string]cell {
	var rows []modelRow
	for _, r := range d.rows {
		if r.part == part && !dropped[d.files[r.ord>>32].path] {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(x, y modelRow) int {
		if c := compareKeys(x.session, y.session); c != 0 {
			return c
		}
		if x.session == nil {
			return cmp.Compare(x.ord, y.ord)
		}
		return cmp.Or(compareKeys(x.time, y.time), cmp.Compare(x.ord, y.ord))
	})
	var out []map[string]cell
	for _, r := range rows {
		out = append(out, r.cells)
	}
	return out
}

func (d *dump) parts() []string {
	var out []string
	for _, r := range d.rows {
		if !slices.Contains(out, r.part) {
			out = append(out, r.part)
		}
	}
	return out
}

// drawOptions draws options that spill often and cut small stripes and segments.
func drawOptions(t *rapid.T) Options {
	return Options{
		Options: writer.Options{
			Memory:      rapid.SampledFrom([]int64{1, 20_000, 200_000, 1 << 30}).Draw(t, "memory"),
			Workers:     rapid.IntRange(1, 4).Draw(t, "workers"),
			StripeRows:  rapid.SampledFrom([]int{1, 7, 100, 16384}).Draw(t, "stripe rows"),
			StripeBytes: rapid.SampledFrom([]int64{100, 10_000, 64 << 20}).Draw(t, "stripe bytes"),
			SegmentRows: rapid.SampledFrom([]int{1, 50, 1 << 20}).Draw(t, "segment rows"),
			Dedup:       rapid.SampledFrom(append(dedupSteps, writer.DedupAuto, "")).Draw(t, "dedup"),
		},
	}
}

func testEngine(opts Options, d *dump, fail map[int]int, table *fakeTable, dir string) *engine {
	opts.FanIn = 3 // so that what was spilled is merged more than once
	e := newEngine(opts.withDefaults(), d.sources(fail), table, &quarantine{})
	e.dir = func() (string, error) { return dir, nil }
	return e
}

func checkRows(t *rapid.T, d *dump, table *fakeTable, dropped map[string]bool) {
	for _, part := range d.parts() {
		got, want := table.rows(part), d.expected(part, dropped)
		if len(got) != len(want) {
			t.Fatalf("partition %q has %d rows: want %d", part, len(got), len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("partition %q row %d is\n%v, want\n%v", part, i, got[i], want[i])
			}
		}
	}
}

// TestRowsAreClustered: whatever the files, types, keys, partitions and memory, the table has the dump's rows, widened,
// in the promised order.
func TestRowsAreClustered(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := randomDump(t)
		opts := drawOptions(t)
		table := newFakeTable()
		report, err := testEngine(opts, d, nil, table, dir).run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkRows(t, d, table, nil)
		if report.Rows != int64(len(d.rows)) || table.open != 0 || len(table.written) != 0 {
			t.Fatalf("report says %d rows of %d; %d segments open, %d not committed", report.Rows, len(d.rows),
				table.open, len(table.written))
		}
		if opts.Memory == 1 && report.Rows > int64(opts.StripeRows*1000) && report.Spills == 0 {
			t.Fatal("no memory, and nothing was spilled")
		}
	})
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Fatalf("left in the directory of spill files: %v, %v", left, err)
	}
}

// TestFailureLeavesTheTable: an error at any call leaves the table as it was and no segment behind; run again, it
// completes.
func TestFailureLeavesTheTable(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := randomDump(t)
		opts := drawOptions(t)
		table := newFakeTable()
		var fail map[int]int
		if rapid.Bool().Draw(t, "source fails") {
			fail = map[int]int{rapid.IntRange(0, len(d.files)-1).Draw(t, "file"): rapid.IntRange(0, 3).Draw(t, "chunk")}
		} else {
			table.failAfter = rapid.IntRange(0, 60).Draw(t, "call")
		}
		_, err := testEngine(opts, d, fail, table, dir).run(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, errFake) {
			t.Fatal(err)
		}
		if table.commits != 0 || len(table.segments) != 0 || table.open != 0 {
			t.Fatalf("%d commits, %d segments, %d open after %v", table.commits, len(table.segments), table.open, err)
		}
		table.failAfter = -1
		if _, err := testEngine(opts, d, nil, table, dir).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkRows(t, d, table, nil)
	})
}

// TestBadFilesAreLeftOut: with quarantine, a file that fails on the way is left out whole, the others are there.
func TestBadFilesAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := randomDump(t)
		opts := drawOptions(t)
		opts.OnBadRow = BadRowQuarantine
		table := newFakeTable()
		table.nullFeatures = true
		bad := rapid.IntRange(0, len(d.files)-1).Draw(t, "bad file")
		at := rapid.IntRange(0, len(d.files[bad].chunks)).Draw(t, "chunk")
		report, err := testEngine(opts, d, map[int]int{bad: at}, table, dir).run(t.Context())
		if len(d.files) == 1 {
			if err == nil {
				t.Fatal("no file could be read, and there was no error")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		// Types may have been widened by the file that was left out: cells are compared as the whole dump has them.
		checkRows(t, d, table, map[string]bool{d.files[bad].path: true})
		if report.BadFiles != 1 || table.sources["print of "+d.files[bad].path] {
			t.Fatalf("report says %d bad files; sources %v", report.BadFiles, table.sources)
		}
	})
}

// TestTwice: the same files are refused the second time, and replace their partitions with overwrite.
func TestTwice(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := randomDump(t)
		opts := drawOptions(t)
		table := newFakeTable()
		if _, err := testEngine(opts, d, nil, table, dir).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(d.rows) == 0 {
			return
		}
		if _, err := testEngine(opts, d, nil, table, dir).run(t.Context()); !errors.Is(err,
			storage.ErrDuplicateSource) {
			t.Fatalf("the same files again: %v", err)
		}
		opts.Overwrite = true
		if _, err := testEngine(opts, d, nil, table, dir).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkRows(t, d, table, nil)
	})
}

func TestCancelledIngestEnds(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := randomDump(t)
		opts := drawOptions(t)
		table := newFakeTable()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		left := rapid.IntRange(1, 40).Draw(t, "progress calls")
		opts.Progress = func(Progress) {
			if left--; left == 0 {
				cancel()
			}
		}
		_, err := testEngine(opts, d, nil, table, dir).run(ctx)
		if err != nil && (!errors.Is(err, context.Canceled) || table.commits > 0) {
			t.Fatalf("%v after %d commits", err, table.commits)
		}
	})
}
