package overlay

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fewer returns n, and under the race detector, where all takes ten times as long, a part of it: make test runs all of
// it without as well.
func fewer(n int) int {
	if race.Enabled {
		return max(1, n/6)
	}
	return n
}

// A value is what a row has of a column: what goes into JSON, nil for null, and the text by which tests compare it.
type value struct {
	json any
	text string
}

var null = value{nil, "null"}

// A row is a row of a table or file, by column. It shares no code with the package.
type row map[string]value

func intValue(v int64) value   { return value{v, fmt.Sprint([]int64{v})} }
func uintValue(v uint64) value { return value{v, fmt.Sprint([]uint64{v})} }
func textValue(s string) value { return value{s, fmt.Sprintf("%q", s)} }
func bytesValue(s string) value {
	return value{base64.StdEncoding.EncodeToString([]byte(s)), fmt.Sprintf("%q", s)}
}
func floatValue(v float32) value  { return value{v, fmt.Sprint([]float32{v})} }
func doubleValue(v float64) value { return value{v, fmt.Sprint([]float64{v})} }

func listValue(v []int64) value {
	if v == nil {
		v = []int64{}
	}
	return value{v, fmt.Sprint(v)}
}

// textOf returns the text of a row of a column.
func textOf(c *vector.Column, i int) string {
	if c.IsNull(i) {
		return "null"
	}
	lo, hi := c.RowRange(i)
	s := ""
	switch c.Type.Physical() {
	case vector.Int64Values:
		if c.Type.Elem == vector.Uint64 {
			var u []uint64
			for _, v := range c.Ints[lo:hi] {
				u = append(u, uint64(v))
			}
			s = fmt.Sprint(u)
		} else {
			s = fmt.Sprint(c.Ints[lo:hi])
		}
	case vector.Float32Values:
		s = fmt.Sprint(c.Floats[lo:hi])
	case vector.Float64Values:
		s = fmt.Sprint(c.Doubles[lo:hi])
	case vector.ByteValues:
		s = fmt.Sprintf("%q", c.Data[lo:hi])
	}
	switch c.Type.Score {
	case vector.Float32:
		s += fmt.Sprint(c.ScoreFloats[lo:hi])
	case vector.Float64:
		s += fmt.Sprint(c.ScoreDoubles[lo:hi])
	}
	return s
}

// writeArrow writes rows as an Arrow file of the given columns, in batches, and returns its path.
func writeArrow(t testing.TB, fields []arrow.Field, rows []row) string {
	t.Helper()
	schema := arrow.NewSchema(fields, nil)
	f, err := os.CreateTemp(t.TempDir(), "*.arrow")
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(rows, 100) {
		var objects []map[string]any
		for _, r := range part {
			o := map[string]any{}
			for _, f := range fields {
				o[f.Name] = r[f.Name].json
			}
			objects = append(objects, o)
		}
		text, err := json.Marshal(objects)
		if err != nil {
			t.Fatal(err)
		}
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func nullable(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// newStore returns a store in memory.
func newStore(t testing.TB, blobs object.Store) *storage.Store {
	t.Helper()
	s, err := storage.Create(t.Context(), blobs, storage.Options{MinKeyTableRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// small segments and stripes, so that there are several of both.
func ingestOptions() ingest.Options {
	return ingest.Options{Options: writer.Options{SegmentRows: 300, StripeRows: 70, Workers: 2}}
}

// ingestRows lands rows in table ads, partitioned by the column ds where rows have one.
func ingestRows(t testing.TB, s *storage.Store, fields []arrow.Field, rows []row, change func(*ingest.Options)) {
	t.Helper()
	opts := ingestOptions()
	if slices.ContainsFunc(fields, func(f arrow.Field) bool { return f.Name == "ds" }) {
		opts.PartitionBy = "ds"
	}
	opts.MappingFile = filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(opts.MappingFile, []byte(`{"columns": {"id": {"role": "request_key"}}}`),
		0o666); err != nil {
		t.Fatal(err)
	}
	opts.TempDir = t.TempDir()
	if change != nil {
		change(&opts)
	}
	if _, err := ingest.Run(t.Context(), s, "ads", []string{writeArrow(t, fields, rows)}, opts); err != nil {
		t.Fatal(err)
	}
}

func latest(t testing.TB, s *storage.Store) *storage.Snapshot {
	t.Helper()
	table, err := s.Table(t.Context(), "ads")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// readRows returns the texts of the features in all rows of a snapshot, deleted ones not, in its order.
func readRows(t testing.TB, snap *storage.Snapshot, features ...string) []map[string]string {
	t.Helper()
	return readUnder(t, snap, nil, features...)
}

// readUnder is readRows under overlays.
func readUnder(t testing.TB, snap *storage.Snapshot, overlays []string, features ...string) []map[string]string {
	t.Helper()
	plan, err := reader.NewPlan(t.Context(), snap, reader.PlanOptions{Features: features, Overlays: overlays})
	if err != nil {
		t.Fatal(err)
	}
	s, err := reader.Open(t.Context(), snap, plan, reader.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out []map[string]string
	for {
		b, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Rows {
			r := map[string]string{}
			for k, f := range features {
				r[f] = textOf(b.Columns[k], i)
			}
			out = append(out, r)
		}
		b.Release()
	}
}

// A readLayer is what an overlay has for a segment.
type readLayer struct {
	catalog.OverlaySegment
	covered []bool // by row of the segment
	rows    []map[string]string
}

// readOverlay returns the layers of an overlay, by segment. Their data are read as a table of their own, in a store
// that shares the objects.
func readOverlay(t testing.TB, snap *storage.Snapshot, name string) map[string]readLayer {
	t.Helper()
	ctx := t.Context()
	o, err := snap.Overlay(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	store := snap.Table().Store()
	out := map[string]readLayer{}
	var add []catalog.SegmentDescriptor
	of := map[string]string{}
	err = snap.EachOverlaySegment(ctx, o, func(l catalog.OverlaySegment) error {
		x := readLayer{OverlaySegment: l, covered: make([]bool, l.Data.Rows)}
		rows, err := store.Bitmaps().Read(ctx, l.Covered)
		if err != nil {
			return err
		}
		for i := range x.covered {
			x.covered[i] = l.All || rows.Contains(uint32(i))
		}
		out[l.Segment] = x
		add = append(add, l.Data)
		of[l.Data.ID] = l.Segment
		if int(l.Data.Features) != len(o.Features) {
			return fmt.Errorf("layer of %d features: the overlay has %d", l.Data.Features, len(o.Features))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(add) == 0 {
		return out
	}
	scratch, err := copied(t, snap).NewTable(ctx, "scratch")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scratch.Commit(ctx, commit.Change{Operation: "scratch",
		Ops: []commit.Operation{commit.AddSegments(add), commit.AddFeatures(o.Features)}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range o.Features {
		names = append(names, f.Name)
	}
	rows := readRows(t, made, names...)
	segments, err := made.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range segments {
		x := out[of[d.ID]]
		x.rows, rows = rows[:d.Rows], rows[d.Rows:]
		out[of[d.ID]] = x
	}
	return out
}

// checkOverlay holds an overlay to what want says of each row of the table, by the row's features; false: it is not
// covered. Rows of segments without a layer are not covered.
func checkOverlay(t testing.TB, snap *storage.Snapshot, name string, features []string,
	want func(map[string]string) (map[string]string, bool)) (covered int) {
	t.Helper()
	return checkLayers(t, snap, name, features, true, want)
}

// checkNew is checkOverlay of an overlay that was just added, and holds its report to the rows.
func checkNew(t testing.TB, snap *storage.Snapshot, report Report, features []string,
	want func(map[string]string) (map[string]string, bool)) (covered int) {
	t.Helper()
	nulls := map[string]uint64{}
	covered = checkOverlay(t, snap, report.Overlay, features, func(x map[string]string) (map[string]string, bool) {
		values, has := want(x)
		for f, text := range values {
			if text == "null" {
				nulls[f]++
			}
		}
		return values, has
	})
	for _, f := range report.Features {
		if f.Nulls == nil || *f.Nulls != nulls[f.Name] {
			t.Fatalf("feature %s of %d covered rows: %+v: want %d nulls", f.Name, covered, f, nulls[f.Name])
		}
	}
	if report.Covered != uint64(covered) || report.Rows != snap.Info().LiveRows() {
		t.Fatalf("report %+v: want %d covered of %d rows", report, covered, snap.Info().LiveRows())
	}
	return covered
}

// checkLayers is checkOverlay. deletedNull: rows that are deleted now were so when the layers were made, and are null
// in those that cover all others.
func checkLayers(t testing.TB, snap *storage.Snapshot, name string, features []string, deletedNull bool,
	want func(map[string]string) (map[string]string, bool)) (covered int) {
	t.Helper()
	layers := readOverlay(t, snap, name)
	rows := readRows(t, snap, features...)
	segments, err := snap.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := snap.DeletionVectors(t.Context(), segments...)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range segments {
		gone, err := snap.Table().Store().Bitmaps().Read(t.Context(), deleted[i])
		if err != nil {
			t.Fatal(err)
		}
		l, ok := layers[d.ID]
		for k := range int(d.Rows) {
			if gone.Contains(uint32(k)) {
				if ok && l.All && deletedNull {
					for f, text := range l.rows[k] {
						if text != "null" {
							t.Fatalf("segment %s, row %d is deleted and has %s %s", d.ID, k, f, text)
						}
					}
				}
				continue
			}
			row := rows[0]
			rows = rows[1:]
			values, has := want(row)
			switch {
			case !has && ok && l.covered[k]:
				t.Fatalf("segment %s, row %d (%v) is covered", d.ID, k, row)
			case !has:
				continue
			case !ok || !l.covered[k]:
				t.Fatalf("segment %s, row %d (%v) is not covered", d.ID, k, row)
			}
			covered++
			for f, text := range values {
				if l.rows[k][f] != text {
					t.Fatalf("segment %s, row %d (%v): %s is %s, want %s", d.ID, k, row, f, l.rows[k][f], text)
				}
			}
		}
	}
	if len(rows) > 0 {
		t.Fatalf("%d rows too many", len(rows))
	}
	return covered
}

// deleteRows deletes rows of each segment at random, and all of some.
func deleteRows(t testing.TB, s *storage.Store, r *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	snap := latest(t, s)
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := commit.Change{Operation: "delete", Base: snap.Info().Number}
	for _, d := range segments {
		set := randomRows(r, int(d.Rows), []float64{0, 0.1, 0.5, 1}[r.IntN(4)])
		rows, err := s.Bitmaps().Put(ctx, d.ID, d.Rows, set)
		if err != nil {
			t.Fatal(err)
		}
		if !rows.IsEmpty() {
			c.Set(append(commit.Op[commit.DeleteRows](&c), commit.DeletionVector{Segment: d.ID, Rows: rows}))
		}
	}
	if _, err := snap.Table().Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
}

// verifyClean checks every object of the store.
func verifyClean(t testing.TB, s *storage.Store) {
	t.Helper()
	report, err := s.Verify(context.WithoutCancel(t.Context()), "", true, nil)
	if err != nil || report.DamageCount > 0 {
		t.Fatalf("verify: %v, %v", err, report.Damage)
	}
}

// objects lists what a store holds, after gc without grace.
func objectsAfterGC(t testing.TB, s *storage.Store) []string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if _, err := s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	return objects(t, s)
}

// objects returns the names of a store's objects but the snapshots: gc makes one where it finds something.
func objects(t testing.TB, s *storage.Store) []string {
	t.Helper()
	var out []string
	for info, err := range s.Blobs().List(context.WithoutCancel(t.Context()), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(info.Name, "/snapshots/") {
			out = append(out, info.Name)
		}
	}
	return out
}

// copied returns a store with all segments of a snapshot's store and one table, scratch, which is to have some of the
// snapshot's table.
func copied(t testing.TB, snap *storage.Snapshot) *storage.Store {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	from, to := snap.Table().Store().Blobs(), object.NewMemory()
	root := "tables/" + snap.Table().Name() + "/table"
	for info, err := range from.List(ctx, "", "") {
		name := info.Name
		switch {
		case err != nil:
			t.Fatal(err)
		case name == root:
			name = "tables/scratch/table"
		case strings.HasPrefix(name, "tables/"):
			continue
		}
		b := make([]byte, info.Size)
		if err := errors.Join(from.ReadAt(ctx, info.Name, b, 0), to.PutIfAbsent(ctx, name, b)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := storage.Open(ctx, to, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newSegment writes a segment of one feature.
func newSegment(t testing.TB, table *storage.Table, stripes []uint32, f catalog.Feature,
	stripe func(rows int) *vector.Column) catalog.SegmentDescriptor {
	t.Helper()
	w, err := table.NewSegment(t.Context(), nil, stripes, segment.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = w.AddFeature(t.Context(), 0, f, func(out *format.Writer) error {
		for _, n := range stripes {
			if err := out.WriteStripe(stripe(int(n))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}
