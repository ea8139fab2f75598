package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/writer"
)

// A testRow is one row of the dumps that writeDump makes.
type testRow struct {
	part    int64
	session int64
	time    int64
	version int64
	history []int64
	name    string // empty: null
}

// dumpRows returns the rows of a version of a dump, in log order.
func dumpRows(version, rows int) []testRow {
	out := make([]testRow, rows)
	for i := range out {
		h := uint64(i)*0x9e3779b97f4a7c15 + uint64(version)
		h ^= h >> 29
		out[i] = testRow{
			part: int64(i % 2), session: int64(h % uint64(rows/5+1)), time: int64(rows - i), version: int64(version),
		}
		for j := range h % 7 {
			out[i].history = append(out[i].history, int64(h>>j))
		}
		if h%3 > 0 {
			out[i].name = fmt.Sprint("name ", h%1000)
		}
	}
	return out
}

// writeDump writes rows as an Arrow file and returns its path.
func writeDump(t testing.TB, dir string, rows []testRow) string {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "part", Type: arrow.PrimitiveTypes.Int64},
		{Name: "session", Type: arrow.PrimitiveTypes.Int64},
		{Name: "time", Type: arrow.PrimitiveTypes.Int64},
		{Name: "version", Type: arrow.PrimitiveTypes.Int64},
		{Name: "history", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	path := filepath.Join(dir, fmt.Sprintf("dump-%d-%d.arrow", rows[0].version, len(rows)))
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for len(rows) > 0 {
		n := min(len(rows), 1000)
		for _, r := range rows[:n] {
			for i, v := range []int64{r.part, r.session, r.time, r.version} {
				b.Field(i).(*array.Int64Builder).Append(v)
			}
			l := b.Field(4).(*array.ListBuilder)
			l.Append(true)
			l.ValueBuilder().(*array.Int64Builder).AppendValues(r.history, nil)
			if s := b.Field(5).(*array.StringBuilder); r.name == "" {
				s.AppendNull()
			} else {
				s.Append(r.name)
			}
		}
		rows = rows[n:]
		record := b.NewRecordBatch()
		if err := w.Write(record); err != nil {
			t.Fatal(err)
		}
		record.Release()
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// expectedRows returns what a table clustered by session and time holds of rows, partition by partition.
func expectedRows(rows []testRow) map[string][]map[string]cell {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b testRow) int {
		return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.time, b.time))
	})
	out := map[string][]map[string]cell{}
	for _, r := range rows {
		row := map[string]cell{
			"session": fmt.Sprint([]int64{r.session}), "time": fmt.Sprint([]int64{r.time}),
			"version": fmt.Sprint([]int64{r.version}), "history": fmt.Sprint(r.history),
		}
		if r.name != "" {
			row["name"] = fmt.Sprintf("%q", r.name)
		}
		p := fmt.Sprint("part=", r.part)
		out[p] = append(out[p], row)
	}
	return out
}

func openStore(t testing.TB, root string) *storage.Store {
	t.Helper()
	blobs, err := object.NewLocal(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Create(t.Context(), blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// latest returns the number of a table's newest snapshot, 0 when there is none.
func latest(t testing.TB, s *storage.Store) uint64 {
	t.Helper()
	table, err := s.NewTable(t.Context(), "ads")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(t.Context())
	if errors.Is(err, storage.ErrNotFound) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return snap.Info().Number
}

// storedRows decodes every row of a snapshot.
func storedRows(t testing.TB, s *storage.Store, number uint64) map[string][]map[string]cell {
	t.Helper()
	ctx := t.Context()
	table, err := s.Table(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.At(ctx, number)
	if err != nil {
		t.Fatal(err)
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]map[string]cell{}
	decoder := format.NewStripeDecoder(format.Limits{})
	for _, d := range segments {
		g, err := snap.OpenSegment(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		rows := make([]map[string]cell, d.Rows)
		for i := range rows {
			rows[i] = map[string]cell{}
		}
		entries, err := g.Entries(ctx)
		if err != nil {
			t.Fatal(err)
		}
		decode := func(e *segment.Entry, i int, inverse *vector.Column) *vector.Column {
			st := e.Meta.Stripes[i]
			raw := make([]byte, st.Length)
			if err := s.Blobs().ReadAt(ctx, e.Object, raw, int64(e.Offset+st.Offset)); err != nil {
				t.Fatal(err)
			}
			decoder.Use(nil)
			if at, length := e.Meta.Dictionary.Range(); length > 0 {
				src, dictionary := make([]byte, length), new(format.Dictionary)
				err := s.Blobs().ReadAt(ctx, e.Object, src, int64(e.Offset+at))
				if err = errors.Join(err, decoder.DecodeDictionary(dictionary, e.Meta, src)); err != nil {
					t.Fatal(err)
				}
				decoder.Use(dictionary)
			}
			col := vector.NewColumn(e.Meta.Type)
			if err := decoder.DecodeStripe(col, e.Meta, i, raw, inverse); err != nil {
				t.Fatal(err)
			}
			return col
		}
		for _, e := range entries {
			if e.Meta.Type.Kind == vector.Inverse {
				continue
			}
			group, err := g.Lookup(ctx, catalog.FeatureID(e.Meta.Group))
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			for i := range e.Meta.Stripes {
				var inverse *vector.Column
				if e.Meta.Group != 0 {
					inverse = decode(group[0], i, nil)
				}
				col := decode(e, i, inverse)
				for row := range col.Rows {
					if v := cellOf(col, row); v != nil {
						rows[at+row][e.Meta.Name] = v
					}
				}
				at += col.Rows
			}
		}
		out[d.Partition.String()] = append(out[d.Partition.String()], rows...)
	}
	return out
}

func checkStored(t testing.TB, s *storage.Store, number uint64, want map[string][]map[string]cell) {
	t.Helper()
	got := storedRows(t, s, number)
	if len(got) != len(want) {
		t.Fatalf("%d partitions: want %d", len(got), len(want))
	}
	for part, rows := range want {
		if len(got[part]) != len(rows) {
			t.Fatalf("partition %s has %d rows: want %d", part, len(got[part]), len(rows))
		}
		for i := range rows {
			if !reflect.DeepEqual(got[part][i], rows[i]) {
				t.Fatalf("partition %s row %d is\n%v, want\n%v", part, i, got[part][i], rows[i])
			}
		}
	}
}

// testOptions spill a few times for each thousand rows and make several segments.
func testOptions() Options {
	return Options{
		SessionKey: "session", TimeKey: "time", PartitionBy: "part",
		Options: writer.Options{Memory: 400_000, StripeRows: 300, SegmentRows: 1500, Workers: 2},
	}
}

func TestStoreHoldsTheDump(t *testing.T) {
	root, dumps := t.TempDir(), t.TempDir()
	s := openStore(t, root)
	first, second := dumpRows(1, 9000), dumpRows(2, 4000)
	for i := range second {
		second[i].session += 1 << 40 // sorts after the first dump's, in a segment of its own
	}
	opts := testOptions()
	var phases []Phase
	opts.Progress = func(p Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
	}
	report, err := Run(t.Context(), s, "ads", []string{writeDump(t, dumps, first)}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if report.Spills < 3 || report.Rows != 9000 || report.Partitions != 2 || report.Segments != 6 ||
		report.Features != 5 {
		t.Fatalf("report: %+v", report)
	}
	if want := []Phase{PhaseCheck, PhaseRead, PhaseWrite, PhaseCommit}; !slices.Equal(phases, want) {
		t.Fatalf("phases %v: want %v", phases, want)
	}
	checkStored(t, s, 1, expectedRows(first))

	// Without keys named: the table knows them.
	opts.SessionKey, opts.TimeKey, opts.Progress = "", "", nil
	if _, err := Run(t.Context(), s, "ads", []string{writeDump(t, dumps, second)}, opts); err != nil {
		t.Fatal(err)
	}
	checkStored(t, s, 2, expectedRows(append(slices.Clone(first), second...)))

	// Nothing but the store's own files is left.
	left, err := filepath.Glob(filepath.Join(root, "_tmp", "*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left in _tmp: %v, %v", left, err)
	}
}

func TestIngestTwiceIsRefused(t *testing.T) {
	s := openStore(t, t.TempDir())
	rows := dumpRows(1, 3000)
	dumps := t.TempDir()
	path := writeDump(t, dumps, rows)
	if _, err := Run(t.Context(), s, "ads", []string{path}, testOptions()); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), s, "ads", []string{path}, testOptions())
	if !errors.Is(err, storage.ErrDuplicateSource) || !strings.Contains(err.Error(), path) {
		t.Fatalf("the same file again: %v", err)
	}
	if err := os.Link(path, path+".copy.arrow"); err != nil {
		t.Fatal(err)
	}
	opts := testOptions()
	opts.Overwrite = true
	opts.TakeCopies = true
	if _, err := Run(t.Context(), s, "ads", []string{path, path + ".copy.arrow"}, opts); !errors.Is(err,
		storage.ErrDuplicateSource) || !errors.Is(err, ErrSameFile) {
		t.Fatalf("one file under two names: %v", err)
	}
	// Only partition 1 is in the second dump.
	var odd []testRow
	for _, r := range dumpRows(2, 500) {
		if r.part == 1 {
			odd = append(odd, r)
		}
	}
	if _, err := Run(t.Context(), s, "ads", []string{writeDump(t, dumps, odd)}, opts); err != nil {
		t.Fatal(err)
	}
	want := expectedRows(rows)
	want["part=1"] = expectedRows(odd)["part=1"]
	checkStored(t, s, 2, want)
	if _, err := Run(t.Context(), s, "ads", []string{path}, opts); err != nil {
		t.Fatalf("the same file again, with overwrite: %v", err)
	}
	checkStored(t, s, 3, expectedRows(rows))
}

// TestCopiesAreTaken: files of a dump with the same bytes are refused, or taken each for its rows when that is asked
// for; the table knows them all afterwards.
func TestCopiesAreTaken(t *testing.T) {
	s := openStore(t, t.TempDir())
	dumps := t.TempDir()
	var rows []testRow
	for _, r := range dumpRows(1, 300) {
		if r.part == 1 {
			rows = append(rows, r)
		}
	}
	path := writeDump(t, dumps, rows)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{path}
	for i := range 2 {
		paths = append(paths, fmt.Sprintf("%s.%d.arrow", path, i))
		if err := os.WriteFile(paths[i+1], raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opts := testOptions()
	if _, err := Run(t.Context(), s, "ads", paths, opts); !errors.Is(err, storage.ErrDuplicateSource) ||
		!errors.Is(err, ErrSameBytes) {
		t.Fatalf("copies: got %v", err)
	}
	opts.TakeCopies = true
	report, err := Run(t.Context(), s, "ads", paths, opts)
	if err != nil || report.Rows != int64(3*len(rows)) {
		t.Fatalf("got %d rows, %v; want %d", report.Rows, err, 3*len(rows))
	}
	for _, p := range paths {
		if _, err := Run(t.Context(), s, "ads", []string{p}, opts); !errors.Is(err, storage.ErrDuplicateSource) {
			t.Errorf("%s again: got %v", p, err)
		}
	}
}

// TestStoreFails: whichever operation of the object store fails, before or after it is done, once or from then on, the
// table holds nothing or all, and the ingest completes afterwards.
func TestStoreFails(t *testing.T) {
	dumps := t.TempDir()
	rows := dumpRows(1, 800)
	path, want := writeDump(t, dumps, rows), expectedRows(rows)
	opts := testOptions()
	operations := int64(1)
	for n := int64(0); n <= operations; n += 1 + n/8 {
		for _, mode := range []object.FaultMode{object.FailBefore, object.FailAfter} {
			for _, arm := range []func(*object.Fault, int64, object.FaultMode){(*object.Fault).FailAt,
				(*object.Fault).DieAt} {
				fault := object.NewFault(object.NewMemory())
				arm(fault, n, mode)
				s, failed := storage.Create(t.Context(), fault, storage.Options{})
				if failed == nil {
					_, failed = Run(t.Context(), s, "ads", []string{path}, opts)
				}
				if n == 0 {
					operations = fault.Operations()
				}
				if failed != nil && !errors.Is(failed, object.ErrInjected) {
					t.Fatalf("operation %d of %d: %v", n, operations, failed)
				}
				fault.FailAt(0, 0)
				var err error
				if s, err = storage.Create(t.Context(), fault, storage.Options{}); err != nil {
					t.Fatal(err)
				}
				number := latest(t, s)
				if number > 1 || (failed == nil && number != 1) || (failed != nil && mode == object.FailBefore &&
					number != 0) {
					t.Fatalf("operation %d of %d: snapshot %d after %v", n, operations, number, failed)
				}
				if number == 0 {
					if _, err := Run(t.Context(), s, "ads", []string{path}, opts); err != nil {
						t.Fatalf("operation %d of %d, again: %v", n, operations, err)
					}
				}
				checkStored(t, s, 1, want)
			}
		}
	}
}

func TestPartitionKeysAgree(t *testing.T) {
	s := openStore(t, t.TempDir())
	dumps := t.TempDir()
	if _, err := Run(t.Context(), s, "ads", []string{writeDump(t, dumps, dumpRows(1, 100))},
		testOptions()); err != nil {
		t.Fatal(err)
	}
	opts := testOptions()
	opts.PartitionBy = "version"
	_, err := Run(context.Background(), s, "ads", []string{writeDump(t, dumps, dumpRows(2, 100))}, opts)
	if err == nil || !strings.Contains(err.Error(), `partitioned by (version), but the table by (part)`) {
		t.Fatalf("another partitioning: %v", err)
	}
}

// TestPartitionIsTooLong: a partition that cannot be stored ends the ingest when its first rows are read, not when its
// segment begins.
func TestPartitionIsTooLong(t *testing.T) {
	store, dir := openStore(t, t.TempDir()), t.TempDir()
	path := filepath.Join(dir, "a.csv")
	text := "p,x\nshort,1\n" + strings.Repeat("v", catalog.MaxPartition) + ",2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Run(context.Background(), store, "other", []string{path}, Options{PartitionBy: "p"})
	want := fmt.Sprintf("a.csv: partition of %d bytes: want at most %d", catalog.MaxPartition+2, catalog.MaxPartition)
	if err == nil || !strings.Contains(err.Error(), want) || report.Seconds.Write != 0 {
		t.Errorf("got %v after %v seconds of writing, want %s", err, report.Seconds.Write, want)
	}
}

// TestLongPartition: a partition that is longer than a fingerprint may be is one like others, and tells sources apart.
func TestLongPartition(t *testing.T) {
	long := strings.Repeat("v", 250)
	var prints []string
	for _, value := range []string{"1", long + "1", long + "2"} {
		p := catalog.Partition{{Key: "ds", Value: value}}
		prints = append(prints, sourcePrint(strings.Repeat("0", 32), p))
		if n := len(prints[len(prints)-1]); n > 256 {
			t.Errorf("a fingerprint of %d bytes", n)
		}
	}
	if prints[0] != strings.Repeat("0", 32)+"@ds=1" || prints[1] == prints[2] {
		t.Errorf("got %q", prints)
	}
}
