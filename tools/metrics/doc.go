// Package metrics shows what readers, stores and long commands do as Prometheus metrics.
//
//	reader.Scanner, RankScanner, Taker ── Stats ─────┐
//	object.Counted ── Endings ───────────────────────┤
//	endpoint.EachService ── object.TrafficCounter ───┤
//	storage.Store ── Conflicts ──────────────────────┼─ Metrics, a prometheus.Collector ─ registry ─ HTTP /metrics
//	ingest ── rows; a command ── how far it is ──────┘
//
// A program with a registry of its own registers a Metrics in it, and names its readers as it opens them:
//
//	m := metrics.New()
//	registry.MustRegister(m)
//	...
//	defer m.AddReader(scanner)()
//
// # Invariants
//
//   - Nothing is counted twice: a scrape reads the counters that readers and stores keep anyway. So metrics cost
//     nothing while nobody scrapes.
//   - Counters never go back: what a reader did stays in the sums after it is closed.
//   - No label has the name of a feature, a table, a job or a file: a process has a few dozen series, whatever it
//     reads. What was read of each feature is in the usage records.
//   - The names are users' interface: they change as the command line does.
//
// Everything here is safe for concurrent use. The methods of a nil *Metrics do nothing, so callers need not check
// whether metrics were requested.
package metrics
