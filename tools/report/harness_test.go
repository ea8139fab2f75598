package report

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/usage"
	"github.com/dsistore/dsistore/writer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testNow is the clock of stores and reports.
var testNow = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return testNow }

// openStore returns an empty store. Ids are the same in every run of a test, so that all sizes are.
func openStore(t *testing.T) *storage.Store {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 1)
	s, err := storage.Create(t.Context(), &object.Memory{Now: clock}, storage.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// generated ingests a generated table, with partial duplicates and groups, in several segments of several stripes.
// Under the race detector it is smaller.
func generated(t *testing.T, s *storage.Store, rows int64) *storage.Table {
	t.Helper()
	if race.Enabled {
		rows /= 2
	}
	dir := t.TempDir()
	if _, err := workload.Generate(t.Context(), dir, workload.Options{Rows: rows, Sparse: 14, Weighted: 2, Dense: 12,
		Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	return ingested(t, s, dir, ingest.Options{SessionKey: workload.SessionColumn, TimeKey: workload.TimeColumn,
		Options: writer.Options{StripeRows: 400}})
}

func ingested(t *testing.T, s *storage.Store, path string, o ingest.Options) *storage.Table {
	t.Helper()
	o.Workers = 1
	if _, err := ingest.Run(t.Context(), s, "t", []string{path}, o); err != nil {
		t.Fatal(err)
	}
	table, err := s.Table(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// jsonRows ingests rows as JSON lines.
func jsonRows(t *testing.T, s *storage.Store, text string, o ingest.Options) *storage.Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return ingested(t, s, path, o)
}

// testdata returns a folder of foreign files, and skips the test where there is none.
func testdata(t *testing.T) string {
	dir := os.Getenv("DSISTORE_TESTDATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "testdata")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no foreign files at %s: DSISTORE_TESTDATA may name a folder of them", dir)
	}
	return dir
}

// unread is a Summary of no reads.
func unread(context.Context, *storage.Table, time.Time, time.Time) (*usage.Summary, error) {
	return &usage.Summary{Table: "t"}, nil
}

// build makes the report of the table t.
func build(t *testing.T, s *storage.Store, o Options) *Table {
	t.Helper()
	if o.Usage == nil {
		o.Usage = unread
	}
	o.Now = clock
	r, err := Build(t.Context(), s, []string{"t"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return &r.Tables[0]
}

func latest(t *testing.T, table *storage.Table) *storage.Snapshot {
	t.Helper()
	s, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plainBytes reads all rows of a snapshot and returns what the values of each feature take as plain numbers. It shares
// no code with the package, nor with what directories say.
func plainBytes(t *testing.T, snap *storage.Snapshot) map[string]uint64 {
	t.Helper()
	ctx := t.Context()
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"@all"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := reader.Open(ctx, snap, plan, reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := map[string]uint64{}
	widths := map[vector.Elem]uint64{
		vector.Bool: 1, vector.Int8: 1, vector.Uint8: 1, vector.Int16: 2, vector.Uint16: 2, vector.Int32: 4,
		vector.Uint32: 4, vector.Float32: 4,
		vector.Int64: 8, vector.Uint64: 8, vector.Float64: 8,
	}
	for {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range b.Columns {
			f := plan.Features[i]
			if reader.IsPartitionKey(f) {
				continue
			}
			width := widths[f.Type.Elem] + widths[f.Type.Score]
			if f.Type.Elem == vector.NoElem {
				width = 1
			}
			for row := range b.Rows {
				if c != nil && !c.IsNull(row) {
					lo, hi := c.RowRange(row)
					out[f.Name] += uint64(hi-lo) * width
				}
			}
		}
		b.Release()
	}
}

// objectBytes returns the bytes of a snapshot's segments as the store lists their objects.
func objectBytes(t *testing.T, s *storage.Store, snap *storage.Snapshot) uint64 {
	t.Helper()
	segments, err := snap.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := uint64(0)
	for _, d := range segments {
		for o, err := range s.Blobs().List(t.Context(), strings.TrimSuffix(d.Index, "index.sst"), "") {
			if err != nil {
				t.Fatal(err)
			}
			sum += uint64(o.Size)
		}
	}
	return sum
}
