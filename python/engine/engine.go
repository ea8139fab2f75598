package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/internal/lru"
	"github.com/dsistore/dsistore/internal/version"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/azure" // stores at az://
	"github.com/dsistore/dsistore/storage/object/diskcache"
	_ "github.com/dsistore/dsistore/storage/object/gcs" // stores at gs://
	"github.com/dsistore/dsistore/tools/metrics"
)

// An Engine holds what Python has open. Its methods are safe for concurrent use.
type Engine struct {
	allocator reader.Allocator
	locked    reader.Allocator // pages are locked for a device
	openStore func(uri string, options map[string]string) (object.Store, error)

	metrics   atomic.Pointer[metricsServer] // nil: nobody asked for them
	metricsMu sync.Mutex                    // held while metrics begin to be served

	calls   handles[*call]         // begun and not ended
	loaders handles[*loader]       // open
	records handles[*Records]      // opened and not taken
	batches handles[*reader.Batch] // given to Python and not released

	mu sync.Mutex
	// stores are those used last. One that is not kept any more is not closed: what was made of it is read on. Guarded
	// by mu.
	stores *lru.Cache[place, *openedStore]
	// snapshots are those used last. A snapshot never changes while it stands. Guarded by mu.
	snapshots *lru.Cache[snapshotKey, *storage.Snapshot]
	// layouts are those of the last plans. Guarded by mu.
	layouts *lru.Cache[layoutKey, keptLayout]
	// takers are kept for the next take of the same features. Guarded by mu.
	takers *lru.Cache[takerKey, *taker]
	// failed says why records ended too early, of those that did last, by their handle. Guarded by mu.
	failed *lru.Cache[int64, error]
	// evicted are takers that are kept no more, and not left yet. Guarded by mu.
	evicted []*taker
}

// A place is where a store is, and how it is reached: a bucket of the same name at another endpoint is another one, and
// what was refused with one key may be read with the next.
type place struct {
	uri     string
	options optionsDigest
}

// placeOf returns the place of the store at a URI, with the storage options of a method's request.
func placeOf(ctx context.Context, uri string) place {
	o, _ := ctx.Value(optionsKey{}).(digestedOptions)
	return place{uri, o.digest}
}

// An optionsDigest is equal for the same storage options; zero: there are none.
type optionsDigest [sha256.Size]byte

func digestOf(options map[string]string) optionsDigest {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(options)) {
		text = fmt.Appendf(text, "%q=%q\n", name, options[name])
	}
	return sha256.Sum256(text)
}

// An openedStore is a store, and what it keeps its objects in. The metrics show its requests while it is kept, and then
// as long as readers of it are open.
type openedStore struct {
	store   *storage.Store
	blobs   object.Store
	readers int  // open ones; guarded by Engine.mu
	evicted bool // guarded by Engine.mu
}

type snapshotKey struct {
	place
	table  string
	number uint64
}

// How many of each are kept.
const (
	maxStores    = 32
	maxSnapshots = 32
	maxLayouts   = 4
	maxTakers    = 2
	maxFailed    = 64
)

// New returns an Engine whose batches lie in memory of a, or of locked, which locks pages for a device.
func New(a, locked reader.Allocator) *Engine {
	e := &Engine{
		allocator: a, locked: locked, openStore: diskcache.OpenStore,
		snapshots: lru.New[snapshotKey, *storage.Snapshot](maxSnapshots, nil),
		layouts:   lru.New[layoutKey, keptLayout](maxLayouts, nil),
		failed:    lru.New[int64, error](maxFailed, nil),
	}
	e.stores = lru.New(maxStores, e.evictStore)
	e.takers = lru.New(maxTakers, func(_ takerKey, t *taker) { e.evicted = append(e.evicted, t) })
	return e
}

// cached returns what a cache of the Engine has under a key.
func cached[K comparable, V any](e *Engine, c *lru.Cache[K, V], key K) (V, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.Get(key)
}

// cache puts a value into a cache of the Engine.
func cache[K comparable, V any](e *Engine, c *lru.Cache[K, V], key K, value V) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.Remove(key)
	c.Put(key, value, 1)
}

// methods are the methods of requests.
var methods = map[string]method{
	"version":      withParams((*Engine).version),
	"tables":       withParams((*Engine).tables),
	"table":        withParams((*Engine).table),
	"rows":         withParams((*Engine).rows),
	"snapshots":    withParams((*Engine).listSnapshots),
	"features":     withParams((*Engine).features),
	"plan":         withParams((*Engine).plan),
	"ingest":       withParams((*Engine).ingest),
	"overlay":      withParams((*Engine).overlay),
	"progress":     withParams((*Engine).progress),
	"cancel":       withParams((*Engine).cancel),
	"loader_open":  withParams((*Engine).loaderOpen),
	"loader_stats": withParams((*Engine).loaderStats),
	"loader_close": withParams((*Engine).loaderClose),
	"take":         withParams((*Engine).take),
	"lookup":       withParams((*Engine).lookup),
	"delete":       withParams((*Engine).deleteRows),
	"held":         withParams((*Engine).heldBatches),
	"open_counts":  withParams((*Engine).openCounts),

	"records_open":  withParams((*Engine).recordsOpen),
	"records_error": withParams((*Engine).recordsError),

	"serve_metrics":     withParams((*Engine).serveMetrics),
	"exit":              withParams((*Engine).exit),
	"exit_of":           withParams((*Engine).exitOf),
	"usage_flush_epoch": withParams((*Engine).usageFlushEpoch),

	"credentials_wanted": withParams((*Engine).credentialsWanted),
	"credentials_give":   withParams((*Engine).credentialsGive),

	"samples_create": withParams((*Engine).samplesCreate),
	"samples_list":   withParams((*Engine).samplesList),
	"samples_drop":   withParams((*Engine).samplesDrop),
}

func (*Engine) version(context.Context, *none) (any, error) { return version.Python(), nil }

// store returns the store at uri, by the storage options of the request.
func (e *Engine) store(ctx context.Context, uri string) (*storage.Store, error) {
	key := placeOf(ctx, uri)
	if s, ok := cached(e, e.stores, key); ok {
		return s.store, nil
	}
	// The lock is not held: a store may be slow, and other calls must not wait for it. Of two that are opened at once
	// one is kept.
	blobs, err := e.openStore(uri, storageOptions(ctx))
	if err != nil {
		return nil, usageError{err}
	}
	m := e.measured()
	blobs = m.Blobs(blobs)
	s, err := storage.Open(ctx, blobs, storage.Options{})
	if err != nil {
		m.CloseStore(blobs, nil)
		return nil, err
	}
	m.AddStore(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	if first, ok := e.stores.Get(key); ok {
		err := s.Close()
		m.CloseStore(blobs, s)
		return first.store, err
	}
	e.stores.Put(key, &openedStore{store: s, blobs: blobs}, 1)
	return s, nil
}

// evictStore ends the keeping of a store, with mu held. What was made of it is not kept either: readers that are opened
// later have the store that is opened again.
func (e *Engine) evictStore(at place, s *openedStore) {
	for key := range maps.Collect(e.snapshots.All()) {
		if key.place == at {
			e.snapshots.Remove(key)
		}
	}
	for key := range maps.Collect(e.layouts.All()) {
		if key.place == at {
			e.layouts.Remove(key)
		}
	}
	s.evicted = true
	if s.readers == 0 {
		e.measured().CloseStore(s.blobs, s.store)
	}
}

// addReader shows a reader of the store at a place in the metrics, until closed is called.
func (e *Engine) addReader(at place, r metrics.Reader) (closed func()) {
	m := e.measured()
	forget := m.AddReader(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.stores.Get(at)
	if !ok { // it was evicted while the reader was opened
		return forget
	}
	s.readers++
	return sync.OnceFunc(func() {
		forget()
		e.mu.Lock()
		defer e.mu.Unlock()
		if s.readers--; s.readers == 0 && s.evicted {
			m.CloseStore(s.blobs, s.store)
		}
	})
}

// tableOf returns a table.
func (e *Engine) tableOf(ctx context.Context, uri, table string) (*storage.Table, error) {
	s, err := e.store(ctx, uri)
	if err != nil {
		return nil, err
	}
	return s.Table(ctx, table)
}

// snapshotAt returns the snapshot of a number.
func (e *Engine) snapshotAt(ctx context.Context, uri, table string, number uint64) (*storage.Snapshot, error) {
	if snap, ok := cached(e, e.snapshots, snapshotKey{placeOf(ctx, uri), table, number}); ok {
		if ok, err := snap.Exists(ctx); ok || err != nil {
			return snap, err
		}
	}
	s, err := e.store(ctx, uri)
	if err != nil {
		return nil, err
	}
	snap, err := s.At(ctx, table, number)
	if err == nil {
		e.keepSnapshot(ctx, uri, snap)
	}
	return snap, err
}

// keepSnapshot keeps a snapshot for requests that give its number.
func (e *Engine) keepSnapshot(ctx context.Context, uri string, snap *storage.Snapshot) {
	cache(e, e.snapshots, snapshotKey{placeOf(ctx, uri), snap.Table().Name(), snap.Info().Number}, snap)
}

// openNow says what is open: tests of leaks look at it.
type openNow struct {
	Batches    int `json:"batches"` // that Python holds
	Loaders    int `json:"loaders"`
	Records    int `json:"records"` // opened and not taken
	Calls      int `json:"calls"`   // this one among them, where it was begun
	Goroutines int `json:"goroutines"`
}

func (e *Engine) openCounts(context.Context, *none) (any, error) {
	return openNow{
		e.batches.count(), e.loaders.count(), e.records.count(), e.calls.count(), runtime.NumGoroutine(),
	}, nil
}

// heldBatches returns how many batches Python has: tests of leaks count them.
func (e *Engine) heldBatches(context.Context, *none) (any, error) { return e.batches.count(), nil }
