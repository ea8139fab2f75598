// Command page measures dsistat's page in a headless Chromium, for reports of several sizes in turn: its bytes, the
// time until it can be used, what the browser holds, and how long a search, a sort and a step of scrolling take. With
// --pictures it takes those of the documentation.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/internal/browser"
	"github.com/dsistore/dsistore/tools/report/page"
	"github.com/dsistore/dsistore/tools/report/page/pagetest"
)

type flags struct {
	Features []int  `help:"Features of the reports." default:"200,4000,20000"`
	Rounds   int    `help:"Pages opened of each." default:"9"`
	Pictures string `help:"Only take the documentation's pictures, into this directory: of the page of --month, and of a made-up one of 20,000 features." placeholder:"DIR"`
	Month    string `help:"The page that bench/month --html wrote." placeholder:"FILE"`
	program.ResultsFlag
}

// A sample is one page, opened once. Times are milliseconds.
type sample struct {
	Bytes       int64   `json:"bytes"`
	GzipBytes   int64   `json:"gzip_bytes"`
	WriteMillis float64 `json:"write_ms"` // of page.Write
	// ReadyMillis is from the beginning of the navigation until all of the page is drawn and answers; PaintedMillis
	// until that was on the screen.
	ReadyMillis   float64 `json:"ready_ms"`
	PaintedMillis float64 `json:"painted_ms"`
	SearchMillis  float64 `json:"search_ms"` // from a change of the search until it is laid out
	SortMillis    float64 `json:"sort_ms"`
	ScrollMillis  float64 `json:"scroll_ms"` // the page's thread works for a step of scrolling
	Elements      int64   `json:"elements"`
	Rows          int64   `json:"rows"` // of the table, in the document, at most while it is scrolled
	HeapBytes     int64   `json:"heap_bytes"`
}

type sizeResult struct {
	Features int `json:"features"`
	sample
	Samples []sample `json:"samples"`
}

func main() {
	var f flags
	program.Main(&f, "page", "Measure dsistat's page in a headless Chromium.",
		func(ctx context.Context) error { return f.run(ctx) })
}

func (f *flags) run(ctx context.Context) (err error) {
	if f.Rounds < 1 {
		return errors.New("rounds: want at least 1")
	}
	path, err := browser.Find()
	if err != nil {
		return err
	}
	b, err := browser.Start(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	dir, err := os.MkdirTemp("", "dsistore-page-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if f.Pictures != "" {
		return f.pictures(ctx, b, dir)
	}
	results := make([]sizeResult, len(f.Features))
	for round := range f.Rounds {
		for i, n := range f.Features {
			s, err := measure(ctx, b, dir, n)
			if err != nil {
				return fmt.Errorf("%d features: %w", n, err)
			}
			results[i].Features = n
			results[i].Samples = append(results[i].Samples, s)
		}
		program.Log("round %d of %d", round+1, f.Rounds)
	}
	for i := range results {
		results[i].sample = median(results[i].Samples)
	}
	print(results)
	return f.WriteResults("page", results)
}

// write writes the page of a made-up report and returns its address.
func write(dir string, features int) (address string, s sample, err error) {
	r := pagetest.Report(1, features)
	var text bytes.Buffer
	start := time.Now()
	if err := page.Write(&text, r); err != nil {
		return "", s, err
	}
	s.WriteMillis = program.Milliseconds(time.Since(start))
	s.Bytes = int64(text.Len())
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	if _, err := z.Write(text.Bytes()); err != nil {
		return "", s, err
	}
	if err := z.Close(); err != nil {
		return "", s, err
	}
	s.GzipBytes = int64(small.Len())
	file := filepath.Join(dir, fmt.Sprintf("features-%d.html", features))
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String(), s, os.WriteFile(file, text.Bytes(), 0o644)
}

// script measures a page that is open.
const script = `(async () => {
	const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
	const ready = performance.getEntriesByName("dsistat-ready")[0].startTime;
	let paints = [];
	// the browser tells of its first paint when it is on the screen
	for (let i = 0; i < 200 && paints.length === 0; i++) {
		await frame();
		paints = performance.getEntriesByName("first-contentful-paint").map((p) => p.startTime);
	}
	const painted = Math.max(ready, ...paints);
	const time = async (change) => {
		await frame();
		const t = performance.now();
		change();
		document.body.offsetHeight;
		return performance.now() - t;
	};
	const search = document.querySelector("#features input");
	const set = (text) => { search.value = text; search.dispatchEvent(new Event("input")); };
	const searched = await time(() => set("user clicks 7d"));
	set("");
	const sorted = await time(() => document.querySelector("#features th button").click());
	await frame();
	return {ready_ms: ready, painted_ms: painted, search_ms: searched, sort_ms: sorted,
		elements: document.querySelectorAll("*").length,
		heap_bytes: performance.memory ? performance.memory.usedJSHeapSize : 0};
})()`

// steps of scrolling go from one end of the table to the other, a frame each.
const steps = 100

const scroll = `(async () => {
	const box = document.querySelector("#features .rows"), body = document.querySelector("#features tbody.body");
	const far = box.scrollHeight - box.clientHeight;
	let rows = 0;
	for (let i = 1; i <= %d; i++) {
		box.scrollTop = far * i / %[1]d;
		await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
		rows = Math.max(rows, body.childElementCount);
	}
	return {rows};
})()`

func measure(ctx context.Context, b *browser.Browser, dir string, features int) (sample, error) {
	address, s, err := write(dir, features)
	if err != nil {
		return s, err
	}
	p, err := b.NewPage(ctx, 1280, 900)
	if err != nil {
		return s, err
	}
	if err := p.Open(ctx, address); err != nil {
		return s, err
	}
	if err := p.Eval(ctx, script, &s); err != nil {
		return s, err
	}
	before, err := busy(ctx, p)
	if err != nil {
		return s, err
	}
	if err := p.Eval(ctx, fmt.Sprintf(scroll, steps), &s); err != nil {
		return s, err
	}
	after, err := busy(ctx, p)
	if err != nil {
		return s, err
	}
	s.ScrollMillis = (after - before) / steps * 1e3
	if complaints := p.Messages(); len(complaints) > 0 {
		return s, fmt.Errorf("the page complains: %q", complaints)
	}
	return s, p.Close(ctx)
}

// busy returns the processor seconds of the page's thread: for its scripts, and for styles, layout and painting.
func busy(ctx context.Context, p *browser.Page) (float64, error) {
	if err := p.Call(ctx, "Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil); err != nil {
		return 0, err
	}
	var out struct {
		Metrics []struct {
			Name  string  `json:"name"`
			Value float64 `json:"value"`
		} `json:"metrics"`
	}
	if err := p.Call(ctx, "Performance.getMetrics", nil, &out); err != nil {
		return 0, err
	}
	for _, m := range out.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value, nil
		}
	}
	return 0, errors.New("the browser does not count TaskDuration")
}

func median(samples []sample) sample {
	of := func(field func(*sample) float64) float64 {
		return program.MedianOf(samples, func(s sample) float64 { return field(&s) })
	}
	return sample{
		Bytes:         int64(of(func(s *sample) float64 { return float64(s.Bytes) })),
		GzipBytes:     int64(of(func(s *sample) float64 { return float64(s.GzipBytes) })),
		WriteMillis:   of(func(s *sample) float64 { return s.WriteMillis }),
		ReadyMillis:   of(func(s *sample) float64 { return s.ReadyMillis }),
		PaintedMillis: of(func(s *sample) float64 { return s.PaintedMillis }),
		SearchMillis:  of(func(s *sample) float64 { return s.SearchMillis }),
		SortMillis:    of(func(s *sample) float64 { return s.SortMillis }),
		ScrollMillis:  of(func(s *sample) float64 { return s.ScrollMillis }),
		Elements:      int64(of(func(s *sample) float64 { return float64(s.Elements) })),
		Rows:          int64(of(func(s *sample) float64 { return float64(s.Rows) })),
		HeapBytes:     int64(of(func(s *sample) float64 { return float64(s.HeapBytes) })),
	}
}

func print(results []sizeResult) {
	mb := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/1e6) }
	ms := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	whole := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	w := table.NewWriter()
	w.SetOutputMirror(os.Stdout)
	w.AppendHeader(table.Row{"features", "page MB", "gzip MB", "write ms", "ready ms", "painted ms", "search ms",
		"sort ms", "scroll ms", "elements", "rows", "heap MB"})
	for _, r := range results {
		w.AppendRow(table.Row{r.Features, mb(r.Bytes), mb(r.GzipBytes), whole(r.WriteMillis), whole(r.ReadyMillis),
			whole(r.PaintedMillis), ms(r.SearchMillis), ms(r.SortMillis), ms(r.ScrollMillis), r.Elements, r.Rows,
			mb(r.HeapBytes)})
	}
	w.Render()
}
