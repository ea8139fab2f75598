package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// An Engine holds what Python has open. Its methods are safe for concurrent use.
type Engine struct {
	allocator reader.Allocator
	open      func(uri string) (object.Store, error)

	metrics   atomic.Pointer[metricsServer] // nil: nobody asked for them
	metricsMu sync.Mutex                    // held by who begins to serve them

	mu      sync.Mutex
	last    int64              // handle given; guarded by mu
	loaders map[int64]*Loader  // guarded by mu
	records map[int64]*Records // opened and not yet taken; guarded by mu
	calls   map[int64]*pending // begun and not ended; guarded by mu
	batches map[int64]*held    // given to Python and not yet back; guarded by mu
	takers  []*taker           // kept for the next take, the last one used at the end; guarded by mu
	// stores are kept open for as long as the process lives: they hold no handle of the system's. By URI; guarded by mu.
	stores map[string]*storage.Store
	// known are snapshots that were asked for: while they stand they never change. Guarded by mu.
	known map[snapshotKey]*storage.Snapshot
	// layouts are those of the last plans, the last one at the end; guarded by mu.
	layouts []keptLayout
}

type snapshotKey struct {
	uri, table string
	number     uint64
}

// maxSnapshots bounds the snapshots kept: of more, all are forgotten.
const maxSnapshots = 32

// New returns an Engine whose batches lie in memory of a.
func New(a reader.Allocator) *Engine {
	return &Engine{
		allocator: a, open: object.Open,
		loaders: map[int64]*Loader{}, records: map[int64]*Records{}, calls: map[int64]*pending{},
		batches: map[int64]*held{}, stores: map[string]*storage.Store{}, known: map[snapshotKey]*storage.Snapshot{},
	}
}

// Version is the version of the Python package that a build is for; the build sets it.
var Version = "devel"

func (*Engine) version(context.Context, json.RawMessage) (any, error) { return Version, nil }

// methods are what Call knows.
var methods = map[string]func(*Engine, context.Context, json.RawMessage) (any, error){
	"version":      (*Engine).version,
	"tables":       (*Engine).tables,
	"table":        (*Engine).table,
	"rows":         (*Engine).rows,
	"snapshots":    (*Engine).snapshots,
	"features":     (*Engine).features,
	"plan":         (*Engine).plan,
	"ingest":       (*Engine).ingest,
	"overlay":      (*Engine).overlay,
	"progress":     (*Engine).progress,
	"cancel":       (*Engine).cancel,
	"loader_open":  (*Engine).loaderOpen,
	"loader_seek":  (*Engine).loaderSeek,
	"loader_stats": (*Engine).loaderStats,
	"loader_close": (*Engine).loaderClose,
	"records_open": (*Engine).recordsOpen,
	"take":         (*Engine).take,
	"lookup":       (*Engine).lookup,
	"delete":       (*Engine).deleteRows,
	"held":         (*Engine).heldBatches,
	"open_counts":  (*Engine).openCounts,

	"serve_metrics":    (*Engine).serveMetrics,
	"usage_flush":      (*Engine).usageFlush,
	"usage_flush_pass": (*Engine).usageFlushPass,

	"samples_create": (*Engine).samplesCreate,
	"samples_list":   (*Engine).samplesList,
	"samples_drop":   (*Engine).samplesDrop,
}

// answer is what Call returns: one of the two.
type answer struct {
	Result any        `json:"result,omitempty"`
	Error  *wireError `json:"error,omitempty"`
}

// Call runs {"method": name, "params": {...}} and returns {"result": ...} or {"error": ...}. It never panics. What some methods take many
// numbers of follows the object as they lie in memory, after a zero byte: text of them would be looked through several times.
func (e *Engine) Call(ctx context.Context, request []byte) []byte {
	text, _ := e.answer(ctx, func(ctx context.Context) (any, error) { return e.method(ctx, request) })
	return text
}

// method runs the method that a request names.
func (e *Engine) method(ctx context.Context, request []byte) (any, error) {
	var r struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	object, numbers, follows := bytes.Cut(request, []byte{0})
	if err := json.Unmarshal(object, &r); err != nil {
		return nil, err
	}
	m := methods[r.Method]
	if m == nil {
		return nil, fmt.Errorf("engine: no method %q", r.Method)
	}
	if follows {
		ctx = context.WithValue(ctx, followingKey{}, numbers)
	}
	return m(e, ctx, r.Params)
}

// followingKey is where the context of a method has the numbers that follow its request.
type followingKey struct{}

// following returns 64-bit integers, little endian, that follow a method's request. The error is the caller's mistake.
func following(ctx context.Context) ([]uint64, error) {
	b, _ := ctx.Value(followingKey{}).([]byte)
	if len(b)%8 != 0 {
		return nil, fmt.Errorf("engine: %d bytes follow a request: want whole integers of 8", len(b))
	}
	out := make([]uint64, len(b)/8)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out, nil
}

// answer runs f, which may panic, and returns its result or error as text, and what takes back what it opened.
func (e *Engine) answer(ctx context.Context, f func(context.Context) (any, error)) (text []byte, undo func()) {
	defer func() {
		if r := recover(); r != nil {
			text = panicked(r)
		}
	}()
	result, err := f(ctx)
	if err != nil {
		return Failure(err), nil
	}
	if o, ok := result.(opened); ok {
		undo = func() { o.undo(e) }
	}
	if w, ok := result.(written); ok {
		return append(w.appendJSON([]byte(`{"result":`)), '}'), undo
	}
	if text, err = json.Marshal(answer{Result: result}); err != nil {
		text = Failure(err)
	}
	return text, undo
}

// written is a result that is written by hand: see package jsontext.
type written interface{ appendJSON(b []byte) []byte }

// params reads a method's parameters, refusing unknown ones. They come from the arguments of a function of Python: one of a
// wrong type is the caller's mistake.
func params(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	var err error
	name := ""
	if b, ok := into.(bound); ok {
		name, err = bind(raw, b.fields())
	} else {
		err = strict(raw, into)
	}
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mistyped):
		if mistyped.Field != "" {
			name = mistyped.Field[strings.LastIndexByte(mistyped.Field, '.')+1:]
		}
		return usageError{fmt.Errorf("%s: %s: want %v", name, mistyped.Value, mistyped.Type)}
	}
	return fmt.Errorf("engine: parameters: %w", err)
}

// Bound parameters say where each goes. A method that opens a table is waited for in a process that has just begun, where what
// encoding/json learns of a struct's fields the first time takes as long as the rest of such a call.
type bound interface{ fields() map[string]any }

// bind reads an object's members into the places of their names; the error is that of a name.
func bind(raw json.RawMessage, into map[string]any) (name string, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return "parameters", err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		to := into[name]
		if to == nil {
			return name, fmt.Errorf("unknown field %q", name)
		}
		if err := strict(members[name], to); err != nil {
			return name, err
		}
	}
	return "", nil
}

// store returns the store at uri.
func (e *Engine) store(ctx context.Context, uri string) (*storage.Store, error) {
	e.mu.Lock()
	s := e.stores[uri]
	e.mu.Unlock()
	if s != nil {
		return s, nil
	}
	// The lock is not held: a store may be slow, and Release must not wait for it. Of two that are opened at once one is kept.
	blobs, err := e.open(uri)
	if err != nil {
		return nil, usageError{err}
	}
	m := e.measured()
	if s, err = storage.Open(ctx, m.Blobs(blobs), storage.Options{}); err != nil {
		return nil, err
	}
	m.AddStore(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	if first := e.stores[uri]; first != nil {
		return first, nil
	}
	e.stores[uri] = s
	return s, nil
}

// at returns the snapshot of a number.
func (e *Engine) at(ctx context.Context, uri, table string, number uint64) (*storage.Snapshot, error) {
	key := snapshotKey{uri, table, number}
	e.mu.Lock()
	snap := e.known[key]
	e.mu.Unlock()
	if snap != nil {
		if ok, err := snap.Exists(ctx); ok || err != nil {
			return snap, err
		}
	}
	s, err := e.store(ctx, uri)
	if err != nil {
		return nil, err
	}
	if snap, err = s.At(ctx, table, number); err == nil {
		e.keepSnapshot(uri, snap)
	}
	return snap, err
}

// keepSnapshot keeps a snapshot for who asks for it by its number.
func (e *Engine) keepSnapshot(uri string, snap *storage.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.known) >= maxSnapshots {
		clear(e.known)
	}
	e.known[snapshotKey{uri, snap.Table().Name(), snap.Info().Number}] = snap
}

// handle returns a number that was not given before.
func (e *Engine) handle() int64 {
	e.last++
	return e.last
}

var errNoHandle = errors.New("engine: it is closed")

// openNow says what is open: tests of leaks look at it.
type openNow struct {
	Batches    int `json:"batches"` // that Python holds
	Loaders    int `json:"loaders"`
	Records    int `json:"records"` // opened and not taken
	Calls      int `json:"calls"`   // this one among them, where it was begun
	Goroutines int `json:"goroutines"`
}

func (e *Engine) openCounts(context.Context, json.RawMessage) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return openNow{
		Batches: len(e.batches), Loaders: len(e.loaders), Records: len(e.records), Calls: len(e.calls),
		Goroutines: runtime.NumGoroutine(),
	}, nil
}
