package engine

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// served serves the metrics of e until the test ends.
func served(t *testing.T, e *Engine) (url string) {
	t.Helper()
	url = must[string](t, e, "serve_metrics", map[string]any{"addr": ":0"})
	t.Cleanup(func() {
		if err := e.metrics.Load().server.Close(); err != nil {
			t.Error(err)
		}
	})
	return url
}

// scrape returns the metrics at url.
func scrape(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What is opened after metrics are served is in them: rows that are ingested, requests, readers.
func TestServeMetrics(t *testing.T) {
	e := newEngine(t)
	url := served(t, e)
	if again := must[string](t, e, "serve_metrics", map[string]any{"addr": ":0"}); again != url {
		t.Errorf("served at %s, and asked again at %s", url, again)
	}
	if err := fails(t, e, `{"method":"serve_metrics","params":{"addr":":1"}}`); err.Kind != "usage" ||
		!strings.Contains(err.Message, url) {
		t.Errorf("at another address: %+v", err)
	}
	expect := func(want ...string) {
		t.Helper()
		text := scrape(t, url)
		for _, w := range want {
			if !strings.Contains("\n"+text, "\n"+w+"\n") {
				t.Errorf("no %s", w)
			}
		}
		if t.Failed() {
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "dsi_") {
					t.Log(strings.TrimSpace(line))
				}
			}
		}
	}
	at := ingested(t, e, 200)
	expect("dsi_ingest_rows_total 200", "dsi_reader_open 0", "dsi_reader_rows_total 0")
	p := must[planAnswer](t, e, "plan", with(at, "features", []string{"list", "click"}, "output", "tensors",
		"batch_size", 50))
	h := must[loaderAnswer](t, e, "loader_open", map[string]any{"uri": at["uri"], "plan": p.Plan}).Handle
	given, status, text := e.Next(h, time.Minute)
	if status != StatusBatch {
		t.Fatalf("%s", text)
	}
	if err := e.Release(given.ID); err != nil {
		t.Fatal(err)
	}
	expect("dsi_reader_rows_total 50", "dsi_reader_open 1")
	if err := e.CloseLoader(h); err != nil {
		t.Fatal(err)
	}
	expect("dsi_reader_rows_total 50", "dsi_reader_batches_total 1", "dsi_reader_open 0",
		`dsi_commit_conflicts_total{outcome="refused"} 0`)
	if err := fails(t, newEngine(t), fmt.Sprintf(`{"method":"serve_metrics","params":{"addr":"%s"}}`,
		strings.TrimPrefix(strings.TrimSuffix(url, "/metrics"), "http://"))); err.Kind != "usage" {
		t.Errorf("an address that is taken: %+v", err)
	}
}

// A store that is kept no more is in the metrics as long as readers of it are open, and no longer. Readers that are
// opened later, of a plan from before, have it opened again.
func TestMetricsOfAnEvictedStore(t *testing.T) {
	e := newEngine(t)
	url := served(t, e)
	const missing = `dsi_reader_requests_total{code="not_found",op="stat",store="file"} `
	stats := func() (n int) {
		t.Helper()
		text := scrape(t, url)
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, missing); ok {
				var err error
				if n, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return n
	}
	at := ingested(t, e, 200)
	p := must[planAnswer](t, e, "plan", with(at, "features", []string{"list", "click"}, "output", "tensors",
		"batch_size", 50))
	key := place{uri: at["uri"].(string)}
	for range 2 {
		h := must[loaderAnswer](t, e, "loader_open", map[string]any{"uri": at["uri"], "plan": p.Plan}).Handle
		s, ok := cached(e, e.stores, key)
		if !ok {
			t.Fatal("the store of a loader is not kept")
		}
		e.mu.Lock()
		e.stores.Remove(key)
		e.mu.Unlock()
		before := stats()
		ask := func() {
			if _, err := s.blobs.Stat(t.Context(), "none"); err == nil {
				t.Fatal("there is an object none")
			}
		}
		ask()
		if n := stats(); n != before+1 {
			t.Errorf("%d requests while a loader is open, want %d", n, before+1)
		}
		if err := e.CloseLoader(h); err != nil {
			t.Fatal(err)
		}
		ask()
		if n := stats(); n != before+1 {
			t.Errorf("%d requests after the loader was closed, want %d: the store is held", n, before+1)
		}
	}
}
