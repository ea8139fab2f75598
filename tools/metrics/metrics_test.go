package metrics_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/metrics"
	"github.com/dsistore/dsistore/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape asks for the metrics over HTTP, as Prometheus does, holds them to its lint, and returns the families.
func scrape(t testing.TB, url string) map[string]*dto.MetricFamily {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", resp.Status, err, text)
	}
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "dsi_") {
			t.Errorf("promlint: %s: %s", p.Metric, p.Text)
		}
	}
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// value returns the value of the one series of a family that has the labels, given as name, value, ...; -1 where there
// is none.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	for _, m := range families[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		all := true
		for i := 0; i < len(labels); i += 2 {
			all = all && has[labels[i]] == labels[i+1]
		}
		if all {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return -1
}

// A worked is a Metrics that has seen an ingest, a scan that is not at its end, takes and a conflict, and what they
// should show.
type worked struct {
	metrics *metrics.Metrics
	url     string
	scanner *reader.Scanner
	closed  func() // tells the metrics that the scanner is
	taker   *reader.Taker
	store   *storage.Store
	blobs   object.Store
	// found is what readers to come found in memory, and did not, of a filter that was looked at twice and of two
	// readers with Reuse.
	found reader.ReuseStats
}

const workedRows = 300

func work(t *testing.T) *worked {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	made, err := workload.Generate(ctx, dir+"/dump", workload.Options{Rows: workedRows, Sparse: 3, Dense: 3})
	if err != nil {
		t.Fatal(err)
	}
	w := &worked{metrics: metrics.New()}
	server, err := metrics.Serve(":0", w.metrics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	w.url = server.URL()
	blobs, err := object.NewLocal(dir + "/store")
	if err != nil {
		t.Fatal(err)
	}
	w.blobs = w.metrics.Blobs(blobs)
	store, err := storage.Create(ctx, w.blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w.metrics.AddStore(store)
	w.store = store
	written := w.metrics.Ingest()
	_, err = ingest.Run(ctx, store, "ads", []string{made.Files[0].Path},
		ingest.Options{Progress: func(p ingest.Progress) {
			w.metrics.Work("ingest", string(p.Phase), p.Bytes, p.TotalBytes)
			if p.Phase == ingest.PhaseWrite {
				written(p.Rows)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	w.metrics.Work("compact", "job 1 of 2", 30, 40)
	table, err := store.Table(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	_, err = table.Commit(ctx, commit.Change{Operation: "compact", Base: 1,
		Ops: []commit.Operation{commit.RemoveSegments{strings.Repeat("ab", 16)}}})
	if !errors.Is(err, storage.ErrConflict) {
		t.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"user_*"}, BatchSize: 50,
		Output: reader.OutputTensors})
	if err != nil {
		t.Fatal(err)
	}
	layout, err := reader.NewLayout(ctx, snap, plan)
	if err != nil {
		t.Fatal(err)
	}
	if w.scanner, err = layout.Open(reader.Options{Workers: 1, RoundIntegers: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.scanner.Close() })
	w.closed = w.metrics.AddReader(w.scanner)
	selections := reader.NewSelections(1 << 20)
	for range 2 {
		b, err := w.scanner.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	before := reader.Reused()
	for range 2 {
		if _, err := reader.Matching(ctx, snap, reader.PlanOptions{Filter: "sample(0.5, key=session_id, seed=8)"},
			reader.LayoutOptions{Selections: selections}); err != nil {
			t.Fatal(err)
		}
		s, err := layout.Open(reader.Options{Workers: 1, Reuse: true, RoundIntegers: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	reader.ReleaseReused()
	after := reader.Reused()
	w.found = reader.ReuseStats{
		SelectionHits:   after.SelectionHits - before.SelectionHits,
		SelectionMisses: after.SelectionMisses - before.SelectionMisses,
		MemoryHits:      after.MemoryHits - before.MemoryHits, MemoryMisses: after.MemoryMisses - before.MemoryMisses,
	}
	if w.taker, err = layout.Taker(reader.Options{Workers: 1, RoundIntegers: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.taker.Close() })
	w.metrics.AddReader(w.taker)
	for range 5 {
		b, err := w.taker.Take(ctx, []uint64{7})
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	return w
}

// What a scrape gives is what readers, stores and the ingest say of themselves, and stays when a reader is closed.
func TestScrape(t *testing.T) {
	w := work(t)
	got := scrape(t, w.url)
	check := func(want float64, name string, labels ...string) {
		t.Helper()
		if v := value(got, name, labels...); v != want {
			t.Errorf("%s%q is %v, want %v", name, labels, v, want)
		}
	}
	taken := w.taker.Stats()
	reused := reader.Reused()
	// of one segment
	if want := (reader.ReuseStats{SelectionHits: 1, SelectionMisses: 1, MemoryHits: 1,
		MemoryMisses: 1}); w.found != want {
		t.Errorf("%+v, want %+v", w.found, want)
	}
	check(float64(reused.SelectionHits), "dsi_cache_hits_total", "cache", "selection")
	check(float64(reused.SelectionMisses), "dsi_cache_misses_total", "cache", "selection")
	check(float64(reused.MemoryHits), "dsi_cache_hits_total", "cache", "memory")
	check(float64(reused.MemoryMisses), "dsi_cache_misses_total", "cache", "memory")
	hits, misses := w.store.RunCacheStats()
	check(float64(hits), "dsi_cache_hits_total", "cache", "index")
	check(float64(misses), "dsi_cache_misses_total", "cache", "index")
	check(105, "dsi_reader_rows_total") // those that were taken too
	check(7, "dsi_reader_batches_total")
	check(2, "dsi_reader_open")
	check(float64(taken.StripeHits), "dsi_cache_hits_total", "cache", "stripe")
	check(float64(taken.StripeMisses), "dsi_cache_misses_total", "cache", "stripe")
	if taken.StripeHits == 0 || taken.StripeMisses == 0 {
		t.Errorf("of a stripe taken again and again %d were found and %d not", taken.StripeHits, taken.StripeMisses)
	}
	if v := value(got, "dsi_reader_dedup_ratio"); v <= 1 {
		t.Errorf("sessions of the workload give %v rows/slot, want more than 1", v)
	}
	records := usage.Totals()
	check(float64(records.Written), "dsi_usage_records_total", "outcome", "written")
	check(float64(records.Lost), "dsi_usage_records_total", "outcome", "lost")
	check(workedRows, "dsi_ingest_rows_total")
	check(0, "dsi_commit_conflicts_total", "outcome", "retried")
	check(1, "dsi_commit_conflicts_total", "outcome", "refused")
	check(0.75, "dsi_command_progress_ratio", "command", "compact", "phase", "job 1 of 2")
	check(1, "dsi_build_info")
	for _, op := range []string{"read", "write", "list"} {
		if v := value(got, "dsi_reader_requests_total", "store", "file", "op", op, "code", "ok"); v < 1 {
			t.Errorf("%v requests to %s", v, op)
		}
	}
	for _, name := range []string{"dsi_reader_decode_seconds_total", "dsi_reader_assemble_seconds_total",
		"dsi_reader_stall_seconds_total"} {
		if v := value(got, name); v <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}

	// The rest is read, and the reader closed: nothing goes back, and everything is told.
	for {
		b, err := w.scanner.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if err := w.scanner.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		switch i {
		case 1:
			w.closed()
			w.closed() // nothing is counted again
		case 2:
			w.metrics.CloseStore(w.blobs, w.store)
			w.metrics.CloseStore(w.blobs, w.store)
		}
		before := got
		got = scrape(t, w.url)
		all := w.scanner.Stats()
		check(float64(workedRows+taken.Rows), "dsi_reader_rows_total")
		check(float64(all.Batches+taken.Batches), "dsi_reader_batches_total")
		check(float64(all.BytesNeeded+taken.BytesNeeded), "dsi_reader_bytes_read_total", "class", "needed")
		check(float64(all.BytesUnneeded+taken.BytesUnneeded), "dsi_reader_bytes_read_total", "class", "unneeded")
		check(all.StallSeconds+taken.StallSeconds, "dsi_reader_stall_seconds_total")
		check(0, "dsi_reader_prefetch_batches")
		check(float64(2-min(i, 1)), "dsi_reader_open")
		check(1, "dsi_commit_conflicts_total", "outcome", "refused")
		for name, f := range before {
			if f.GetType() != dto.MetricType_COUNTER || !strings.HasPrefix(name, "dsi_") {
				continue
			}
			for _, m := range f.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetName(), l.GetValue())
				}
				if now := value(got, name, labels...); now < m.GetCounter().GetValue() {
					t.Errorf("%s%q went from %v to %v", name, labels, m.GetCounter().GetValue(), now)
				}
			}
		}
	}
}

// A process has few series, whatever it reads: none for a feature.
func TestSeriesAreFew(t *testing.T) {
	w := work(t)
	n := 0
	for name, f := range scrape(t, w.url) {
		if !strings.HasPrefix(name, "dsi_") {
			continue
		}
		n += len(f.GetMetric())
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.Contains(l.GetValue(), "user_") || strings.Contains(l.GetValue(), "/") &&
					l.GetName() != "version" {
					t.Errorf("%s has %s=%q", name, l.GetName(), l.GetValue())
				}
			}
		}
	}
	if n == 0 || n > 60 {
		t.Errorf("%d series, want a few dozen", n)
	}
}

// Without a host only this machine reaches the metrics.
func TestServeIsForThisMachineUnlessTold(t *testing.T) {
	for addr, host := range map[string]string{":0": "http://127.0.0.1:", "localhost:0": "http://127.0.0.1:",
		"0.0.0.0:0": "http://0.0.0.0:"} {
		s, err := metrics.Serve(addr, metrics.New())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s.URL(), host) {
			t.Errorf("%s: %s, want %s", addr, s.URL(), host)
		}
		got := scrape(t, strings.Replace(s.URL(), "0.0.0.0", "127.0.0.1", 1))
		if v := value(got, "dsi_reader_rows_total"); v != 0 {
			t.Errorf("%s: %v rows before anything was read", addr, v)
		}
		taken := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/metrics")
		if _, err := metrics.Serve(taken, metrics.New()); err == nil || !strings.Contains(err.Error(), taken) {
			t.Errorf("an address that is taken: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if resp, err := http.Get(s.URL()); err == nil {
			resp.Body.Close()
			t.Error("it answers after Close")
		}
	}
	for _, addr := range []string{"9090", "", "localhost", "1.2.3.4.5:6:7", ":99999"} {
		if s, err := metrics.Serve(addr, metrics.New()); err == nil {
			s.Close()
			t.Errorf("%q is an address", addr)
		} else if !strings.Contains(err.Error(), "metrics address") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// Nobody asked for metrics: what is told is taken, and costs nothing.
func TestNil(t *testing.T) {
	var m *metrics.Metrics
	blobs := object.NewMemory()
	if m.Blobs(blobs) != object.Store(blobs) {
		t.Error("a store is wrapped")
	}
	m.AddStore(nil)
	m.CloseStore(blobs, nil)
	m.Ingest()(10)
	m.Work("a", "b", 1, 2)
	m.AddReader(nil)()
}
