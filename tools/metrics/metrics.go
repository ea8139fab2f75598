package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dsistore/dsistore/internal/version"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/usage"
)

// A Reader is a reader.Scanner, a reader.RankScanner or a reader.Taker.
type Reader interface {
	// Stats may be called at any time, from any goroutine, also after the reader was closed.
	Stats() reader.Stats
}

// Metrics are the metrics of a process: a prometheus.Collector.
type Metrics struct {
	mu      sync.Mutex // guards what follows
	readers map[*openReader]bool
	closed  reader.Stats // of readers that are closed, added up; factors are not looked at
	blobs   []*object.Counted
	stores  []*storage.Store
	was     storeSums // of stores that are closed
	rows    int64     // that ingests have written
	work    work
}

// storeSums are what stores did, added up.
type storeSums struct {
	conflicts    storage.Conflicts
	opened, open uint64              // runs of indexes
	ended        map[[3]string]int64 // requests, by kind of store, op and code
}

func (t *storeSums) addStore(s *storage.Store) {
	hits, misses := s.RunCacheStats()
	t.open, t.opened = t.open+hits, t.opened+misses
	c := s.Conflicts()
	t.conflicts.Retried += c.Retried
	t.conflicts.Refused += c.Refused
}

func (t *storeSums) addBlobs(c *object.Counted) {
	for _, e := range c.Endings() {
		t.ended[[3]string{kindOf(c.URI()), e.Op, e.Code}] += e.N
	}
}

type openReader struct{ Reader }

// work is what a long command is at.
type work struct {
	command, phase string
	done, total    int64 // total 0: not known
}

// New returns Metrics of nothing yet.
func New() *Metrics {
	return &Metrics{readers: map[*openReader]bool{}, was: storeSums{ended: map[[3]string]int64{}}}
}

// AddReader shows what r does, until closed is called: then what it did stays in the sums. Call it after the reader's
// Close.
func (m *Metrics) AddReader(r Reader) (closed func()) {
	if m == nil {
		return func() {}
	}
	o := &openReader{r}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers[o] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.readers[o] {
			delete(m.readers, o)
			add(&m.closed, r.Stats())
			m.closed.Prefetched = 0
		}
	}
}

// add adds up what can be added up.
func add(to *reader.Stats, s reader.Stats) {
	to.Rows += s.Rows
	to.Batches += s.Batches
	to.BytesNeeded += s.BytesNeeded
	to.BytesUnneeded += s.BytesUnneeded
	to.DecodeSeconds += s.DecodeSeconds
	to.AssembleSeconds += s.AssembleSeconds
	to.StallSeconds += s.StallSeconds
	to.DecodedRows += s.DecodedRows
	to.DecodedSlots += s.DecodedSlots
	to.Prefetched += s.Prefetched
	to.StripeHits += s.StripeHits
	to.StripeMisses += s.StripeMisses
}

// Blobs returns a store over s whose requests are shown; s itself where m is nil.
func (m *Metrics) Blobs(s object.Store) object.Store {
	if m == nil {
		return s
	}
	c := object.NewCounted(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs = append(m.blobs, c)
	return c
}

// AddStore shows what becomes of the store's commits, and how often it has runs of its indexes open. It is held until
// it is told to CloseStore.
func (m *Metrics) AddStore(s *storage.Store) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stores = append(m.stores, s)
}

// CloseStore forgets a store that nobody uses any more, with what Blobs returned for it; what they did stays in the
// sums. s is nil where the store could not be opened.
func (m *Metrics) CloseStore(blobs object.Store, s *storage.Store) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stores = slices.DeleteFunc(m.stores, func(x *storage.Store) bool {
		if x == s {
			m.was.addStore(x)
		}
		return x == s
	})
	m.blobs = slices.DeleteFunc(m.blobs, func(x *object.Counted) bool {
		if x == blobs {
			m.was.addBlobs(x)
		}
		return x == blobs
	})
}

// Ingest returns what an ingest tells how many rows it has written so far. Those of several add up.
func (m *Metrics) Ingest() (written func(rows int64)) {
	if m == nil {
		return func(int64) {}
	}
	told := int64(0) // guarded by m.mu
	return func(rows int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.rows += max(rows-told, 0)
		told = max(rows, told)
	}
}

// Work says how far a long command is with a phase of its work; a total of 0 is not known. The newest counts. Neither
// name may come from data.
func (m *Metrics) Work(command, phase string, done, total int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.work = work{command, phase, done, total}
}

var (
	bytesRead = prometheus.NewDesc("dsi_reader_bytes_read_total",
		"Bytes that readers have fetched: needed, of the projected stripes, and unneeded, of the gaps between them.",
		[]string{"class"}, nil)
	requests = prometheus.NewDesc("dsi_reader_requests_total",
		"What was asked of stores and has ended, of the caches on the local disk too, by kind of store (file, memory, "+
			"s3), op (read, stat, list, write, delete) and how it ended.",
		[]string{"store", "op", "code"}, nil)
	sent = prometheus.NewDesc("dsi_store_requests_total",
		"Requests that services of stores were sent, as often as they were sent, and have ended, by service (s3, gs, "+
			"az), kind as it is billed (read, list, write, delete) and outcome (ok, refused, throttled, failed, lost, "+
			"canceled).",
		[]string{"store", "kind", "outcome"}, nil)
	moved = prometheus.NewDesc("dsi_store_bytes_total",
		"Bytes of bodies to and from services of stores (up, down).",
		[]string{"store", "direction"}, nil)
	rowsRead = prometheus.NewDesc("dsi_reader_rows_total", "Rows in the batches that readers have given.", nil, nil)
	batches  = prometheus.NewDesc("dsi_reader_batches_total", "Batches that readers have given.", nil, nil)
	stall    = prometheus.NewDesc("dsi_reader_stall_seconds_total", "Seconds that callers waited for batches.", nil,
		nil)
	decode = prometheus.NewDesc("dsi_reader_decode_seconds_total",
		"Seconds of all threads spent on checksums, decoding and widening.", nil, nil)
	assemble = prometheus.NewDesc("dsi_reader_assemble_seconds_total",
		"Seconds of all threads spent on making batches of stripes.", nil, nil)
	prefetch = prometheus.NewDesc("dsi_reader_prefetch_batches",
		"Batches that are made now and were not yet asked for.", nil, nil)
	dedup = prometheus.NewDesc("dsi_reader_dedup_ratio",
		"Rows a slot of the stripes that were decoded: how often a stored value is used; 1 without duplicates.", nil,
		nil)
	cacheHits = prometheus.NewDesc("dsi_cache_hits_total",
		"Things that were asked for and found in memory: stripe, decoded stripes of readers that take rows at "+
			"places; selection, what a filter selects of a segment; "+
			"memory, that of a closed reader for the next one like it; index, open runs of the stores' indexes.",
		[]string{"cache"}, nil)
	cacheMisses = prometheus.NewDesc("dsi_cache_misses_total", "Things that were asked for and were not in memory.",
		[]string{"cache"}, nil)
	openReaders = prometheus.NewDesc("dsi_reader_open", "Readers that are open now.", nil, nil)
	ingestRows  = prometheus.NewDesc("dsi_ingest_rows_total", "Rows that ingests have written into segments.", nil, nil)
	conflicts   = prometheus.NewDesc("dsi_commit_conflicts_total",
		"Commits that met another's: retried on top of it, or refused because they do not commute.",
		[]string{"outcome"}, nil)
	progress = prometheus.NewDesc("dsi_command_progress_ratio",
		"How much of a phase of a long command is done, where that is known.", []string{"command", "phase"}, nil)
	usageRecords = prometheus.NewDesc("dsi_usage_records_total",
		"Usage records: written, as objects; failed, writes that are tried again; lost, records that no object has.",
		[]string{"outcome"}, nil)
	buildInfo = prometheus.NewDesc("dsi_build_info", "1, with what this program was built from.",
		[]string{"version", "revision", "go"}, nil)

	all = []*prometheus.Desc{bytesRead, requests, sent, moved, rowsRead, batches, stall, decode, assemble, prefetch,
		dedup, openReaders, cacheHits, cacheMisses, ingestRows, conflicts, progress, usageRecords, buildInfo}
)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
}

// Collect implements prometheus.Collector. A series whose labels a name alone decides is there from the beginning, at
// 0.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.closed
	for r := range m.readers {
		add(&s, r.Stats())
	}
	counter(bytesRead, float64(s.BytesNeeded), "needed")
	counter(bytesRead, float64(s.BytesUnneeded), "unneeded")
	counter(rowsRead, float64(s.Rows))
	counter(batches, float64(s.Batches))
	counter(stall, s.StallSeconds)
	counter(decode, s.DecodeSeconds)
	counter(assemble, s.AssembleSeconds)
	gauge(prefetch, float64(s.Prefetched))
	gauge(dedup, ratio(s.DecodedRows, s.DecodedSlots))
	found := func(cache string, hits, misses uint64) {
		counter(cacheHits, float64(hits), cache)
		counter(cacheMisses, float64(misses), cache)
	}
	reused := reader.Reused()
	found("stripe", s.StripeHits, s.StripeMisses)
	found("selection", reused.SelectionHits, reused.SelectionMisses)
	found("memory", reused.MemoryHits, reused.MemoryMisses)
	gauge(openReaders, float64(len(m.readers)))
	counter(ingestRows, float64(m.rows))
	sums := m.was
	sums.ended = maps.Clone(sums.ended)
	for _, x := range m.stores {
		sums.addStore(x)
	}
	for _, c := range m.blobs {
		sums.addBlobs(c)
	}
	found("index", sums.open, sums.opened)
	counter(conflicts, float64(sums.conflicts.Retried), "retried")
	counter(conflicts, float64(sums.conflicts.Refused), "refused")
	for labels, n := range sums.ended {
		counter(requests, float64(n), labels[:]...)
	}
	endpoint.EachService(func(store string, c *object.TrafficCounter) {
		c.EachEnded(func(kind, outcome string, n uint64) { counter(sent, float64(n), store, kind, outcome) })
		t := c.Traffic()
		counter(moved, float64(t.BytesDown), store, "down")
		counter(moved, float64(t.BytesUp), store, "up")
	})
	if w := m.work; w.total > 0 {
		gauge(progress, min(float64(w.done)/float64(w.total), 1), w.command, w.phase)
	}
	records := usage.Totals()
	counter(usageRecords, float64(records.Written), "written")
	counter(usageRecords, float64(records.Failed), "failed")
	counter(usageRecords, float64(records.Lost), "lost")
	built := version.Get()
	gauge(buildInfo, 1, built.Version, built.Commit, built.Go)
}

func ratio(rows, slots uint64) float64 {
	if slots == 0 {
		return 1
	}
	return float64(rows) / float64(slots)
}

// kindOf returns the scheme of a store's URI, which may have no other part: a path is a file's, and a word is its own.
func kindOf(uri string) string {
	if scheme, _, ok := strings.Cut(uri, "://"); ok {
		return scheme
	}
	if uri == "memory" {
		return uri
	}
	return "file"
}
