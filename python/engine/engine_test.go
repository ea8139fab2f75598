package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A counted Allocator knows what is out, and gives memory with something in it.
type counted struct {
	mu  sync.Mutex
	out map[*byte]int
	bad error
}

func (c *counted) Allocate(n int) []byte {
	words := make([]uint64, (n+7)/8+8)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
	skip := int(-uintptr(unsafe.Pointer(&raw[0])) & 63)
	b := raw[skip : skip+n : skip+n]
	for i := range b {
		b[i] = 0xA5
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out[&b[0]] = n
	return b
}

func (c *counted) Free(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out[&b[0]] != len(b) {
		c.bad = fmt.Errorf("%d bytes are freed that are not out", len(b))
	}
	delete(c.out, &b[0])
}

// left returns how many allocations are out.
func (c *counted) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out)
}

func (c *counted) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bad != nil || len(c.out) != 0 {
		t.Errorf("%v; %d allocations are out", c.bad, len(c.out))
	}
}

func newEngine(t *testing.T) *Engine {
	c := &counted{out: map[*byte]int{}}
	t.Cleanup(func() {
		// What a call opened that nobody kept may still be closing, when it is no longer counted as open.
		for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
			if reader.ReleaseReused(); c.left() == 0 {
				break
			}
		}
		c.check(t)
	})
	return New(c, c)
}

// requestOf returns the request of a method; what "rows" are among the parameters follows it, and "storage_options"
// among them are the request's.
func requestOf(t *testing.T, method string, params any) []byte {
	t.Helper()
	var rows []byte
	if m, ok := params.(map[string]any); ok && m["rows"] != nil {
		rows = append([]byte{0}, m["rows"].([]byte)...)
		m = maps.Clone(m)
		delete(m, "rows")
		params = m
	}
	request := map[string]any{"method": method, "params": params}
	if m, ok := params.(map[string]any); ok && m["storage_options"] != nil {
		m = maps.Clone(m)
		request["storage_options"] = m["storage_options"]
		delete(m, "storage_options")
		request["params"] = m
	}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return append(text, rows...)
}

// called returns the answer of a request.
func called(e *Engine, request []byte) []byte {
	id := e.Begin(request)
	defer e.End(id, true)
	answer, _ := e.Wait(id, time.Minute)
	return answer
}

// must runs a call that works and reads its result.
func must[T any](t *testing.T, e *Engine, method string, params any) T {
	t.Helper()
	var out struct {
		Result T
		Error  *wireError
	}
	answer := called(e, requestOf(t, method, params))
	if err := json.Unmarshal(answer, &out); err != nil || out.Error != nil {
		t.Fatalf("%s: %s", method, answer)
	}
	return out.Result
}

// fails runs a call that goes wrong and returns why.
func fails(t *testing.T, e *Engine, request string) wireError {
	t.Helper()
	var out answer
	if err := json.Unmarshal(called(e, []byte(request)), &out); err != nil || out.Error == nil {
		t.Fatalf("%s: %+v, %v", request, out, err)
	}
	return *out.Error
}

// rows is a table of n rows, two a session, with a list and a number.
func rows(n int) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "session_id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "small", Type: arrow.PrimitiveTypes.Int8},
		{Name: "click", Type: arrow.PrimitiveTypes.Int32},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	list := b.Field(1).(*array.ListBuilder)
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i / 2))
		if i/2%5 == 4 {
			list.AppendNull()
		} else {
			list.Append(true)
			for k := range i / 2 % 4 {
				list.ValueBuilder().(*array.Int64Builder).Append(int64(i/2*10 + k))
			}
		}
		b.Field(2).(*array.Int8Builder).Append(int8(i % 100))
		b.Field(3).(*array.Int32Builder).Append(int32(i % 2))
	}
	return b.NewRecordBatch()
}

// A failing RecordReader ends badly after its first record.
type failing struct {
	array.RecordReader
	given bool
}

func (f *failing) Next() bool {
	if f.given {
		return false
	}
	f.given = true
	return f.RecordReader.Next()
}

func (f *failing) Err() error { return errors.New("the source broke") }

// ingested ingests rows(n) into a new store and returns how requests name the table.
func ingested(t *testing.T, e *Engine, n int) map[string]any {
	t.Helper()
	at := map[string]any{"uri": t.TempDir(), "table": "ads"}
	report := wait(t, e, startOf(t, e, at, n, false))
	if report["rows"] != float64(n) {
		t.Fatalf("report %v", report)
	}
	return at
}

func startOf(t *testing.T, e *Engine, at map[string]any, n int, fail bool) int64 {
	t.Helper()
	record := rows(n)
	defer record.Release()
	reader, err := array.NewRecordReader(record.Schema(), []arrow.RecordBatch{record})
	if err != nil {
		t.Fatal(err)
	}
	var from source.RecordReader = reader
	if fail {
		from = &failing{RecordReader: reader}
	}
	request := requestOf(t, "ingest", with(at, "session_key", "session_id"))
	return e.BeginStream(request, func() (source.RecordReader, error) { return from, nil })
}

func with(m map[string]any, pairs ...any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// wait returns the report of an ingest that was begun.
func wait(t *testing.T, e *Engine, call int64) map[string]any {
	t.Helper()
	var out struct {
		Result map[string]any
		Error  *wireError
	}
	if err := json.Unmarshal(ended(t, e, call), &out); err != nil || out.Error != nil {
		t.Fatalf("%v, %+v", err, out.Error)
	}
	return out.Result
}

// ended waits for a call, ends it and returns its answer.
func ended(t *testing.T, e *Engine, call int64) []byte {
	t.Helper()
	answer, done := e.Wait(call, time.Minute)
	if !done {
		t.Fatal("no answer within a minute")
	}
	e.End(call, true)
	return answer
}

func TestErrorsSayTheirKind(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 20)
	place, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	of := func(method string) string { // a request about the table, to be ended
		return fmt.Sprintf(`{"method":%q,"params":%s`, method, strings.TrimSuffix(string(place), "}"))
	}
	for request, want := range map[string][2]string{
		`{`:                                     {"error", "unexpected end"},
		`{"method":"nil"}`:                      {"error", `no method "nil"`},
		`{"method":"table","params":{"nil":1}}`: {"error", `unknown field "nil"`},
		of("table") + `,"snapshot":7}}`:         {"not_found", "snapshot 7"},
		of("table") + `,"snapshot":1,"time":"x"}}`:                             {"usage", "want one"},
		of("table") + `,"time":"soon"}}`:                                       {"usage", "RFC 3339"},
		of("features") + `,"features":["clikc"]}}`:                             {"not_found", `did you mean "click"`},
		of("plan") + `,"features":["list"],"output":"x"}}`:                     {"usage", "columns or tensors"},
		of("plan") + `,"features":["list"],"labels":["click"]}}`:               {"usage", "not among the features"},
		of("plan") + `,"features":["list"],"labels":["list"]}}`:                {"usage", "want a dense feature"},
		of("plan") + `,"features":["list"],"transforms":{"list":"frist(1)"}}}`: {"usage", "first"},
		`{"method":"progress","params":{"call":99}}`:                           {"error", "closed"},
		`{"method":"cancel","params":{"call":99}}`:                             {"error", "closed"},
		`{"method":"loader_stats","params":{"handle":99}}`:                     {"error", "closed"},
		`{"method":"loader_close","params":{"handle":99}}`:                     {"error", "closed"},
	} {
		got := fails(t, e, request)
		if got.Kind != want[0] || !strings.Contains(got.Message, want[1]) {
			t.Errorf("%s: %s: %s; want %s with %q", request, got.Kind, got.Message, want[0], want[1])
		}
	}
}

// A loader gives each rank its batches as blocks, which are C's until they are released, once.
func TestLoader(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 200)
	p := must[planAnswer](t, e, "plan", with(at, "features", []string{"list", "small", "click", "@keys"}, "labels",
		[]string{"click"},
		"output", "tensors", "dedup", "ikjt", "batch_size", 30, "shuffle", map[string]any{"unit": "session",
			"buffer_stripes": 2, "seed": 3}))
	if p.Rows != 200 || p.Batches != 7 {
		t.Fatalf("plan %+v", p)
	}
	seen := map[uint64]bool{}
	var held []int64
	for rank := range 2 {
		opened := must[loaderAnswer](t, e, "loader_open", map[string]any{
			"uri": at["uri"], "plan": p.Plan, "rank": rank, "world": 2, "shards": 2,
		})
		for {
			given, status, text := e.Next(opened.Handle, time.Minute)
			if status == StatusEnd {
				break
			}
			if status != StatusBatch {
				t.Fatalf("status %d: %s", status, text)
			}
			if string(given.Block[:8]) != "DSIBATCH" || seen[given.Index] || given.Index%2 != uint64(rank) {
				t.Fatalf("rank %d: batch %d, block %q", rank, given.Index, given.Block[:64])
			}
			seen[given.Index] = true
			held = append(held, given.ID)
		}
		must[map[string]any](t, e, "loader_close", map[string]any{"handle": opened.Handle})
	}
	if len(seen) != 7 || must[int](t, e, "held", nil) != 7 {
		t.Fatalf("%d batches", len(seen))
	}
	for _, id := range held {
		if err := e.Release(id); err != nil {
			t.Fatal(err)
		}
		if e.Release(id) == nil {
			t.Error("a batch is released twice")
		}
	}
}

// Records hold the rows of the plan in the Engine's memory, and outlive their reader.
func TestRecords(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	p := must[planAnswer](t, e, "plan", with(at, "features", []string{"session_id", "list", "small", "click"},
		"batch_size", 30))
	r := e.TakeRecords(must[int64](t, e, "records_open", map[string]any{"uri": at["uri"], "plan": p.Plan}))
	var got []arrow.RecordBatch
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		got = append(got, b)
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	r.Release()
	want := rows(100)
	defer want.Release()
	row := 0
	memory := e.allocator.(*counted)
	for _, b := range got {
		for i, c := range b.Columns() {
			w := want.Column(i)
			for k := range int(b.NumRows()) {
				if c.ValueStr(k) != w.ValueStr(row+k) {
					t.Errorf("row %d of %s: %s, want %s", row+k, b.ColumnName(i), c.ValueStr(k), w.ValueStr(row+k))
				}
			}
			memory.holds(t, c.Data())
		}
		row += int(b.NumRows())
		b.Release()
	}
	if row != 100 {
		t.Errorf("%d rows", row)
	}
}

// holds checks that every buffer lies in memory that is out.
func (c *counted) holds(t *testing.T, d arrow.ArrayData) {
	t.Helper()
	c.mu.Lock()
	for _, b := range d.Buffers() {
		if b == nil || b.Len() == 0 {
			continue
		}
		from := uintptr(unsafe.Pointer(&b.Bytes()[0]))
		found := false
		for p, n := range c.out {
			start := uintptr(unsafe.Pointer(p))
			found = found || from >= start && from+uintptr(b.Len()) <= start+uintptr(n)
		}
		if !found {
			t.Errorf("%d bytes of %v are the collector's", b.Len(), d.DataType())
		}
	}
	c.mu.Unlock()
	for _, child := range d.Children() {
		c.holds(t, child)
	}
}

// A source that breaks, and an ingest that is cancelled, leave nothing.
func TestIngestThatFails(t *testing.T) {
	e := newEngine(t)
	at := map[string]any{"uri": t.TempDir(), "table": "ads"}
	got := failed(t, e, startOf(t, e, at, 50, true))
	if !strings.Contains(got.Message, "the source broke") {
		t.Errorf("%+v", got)
	}
	paths, err := json.Marshal(map[string]any{"method": "ingest", "params": with(at, "paths",
		[]string{"/no-such-file.parquet"})})
	if err != nil {
		t.Fatal(err)
	}
	if got := failed(t, e, e.Begin(paths)); !strings.Contains(got.Message, "no-such-file") {
		t.Errorf("%+v", got)
	}
	no := errors.New("no stream")
	broken := e.BeginStream(nil, func() (source.RecordReader, error) { return nil, no })
	if got := failed(t, e, broken); got.Message != no.Error() {
		t.Errorf("%+v", got)
	}
	panics := e.BeginStream(nil, func() (source.RecordReader, error) { panic("no schema") })
	if got := failed(t, e, panics); !strings.Contains(got.Message, "cannot be imported (does it keep the rules of "+
		"Arrow's C interface?): panic: no schema") {
		t.Errorf("%+v", got)
	}
	call := startOf(t, e, at, 100_000, false)
	must[bool](t, e, "cancel", map[string]any{"call": call})
	if got := failed(t, e, call); got.Kind != "canceled" {
		t.Errorf("%+v", got)
	}
	if w := fails(t, e, string(requestOf(t, "tables", map[string]any{"uri": at["uri"]}))); w.Kind != "not_found" ||
		!strings.Contains(w.Message, "no dsistore store") {
		t.Errorf("%+v", w)
	}
}

// failed waits for a call that fails.
func failed(t *testing.T, e *Engine, call int64) wireError {
	t.Helper()
	var out answer
	if err := json.Unmarshal(ended(t, e, call), &out); err != nil || out.Error == nil {
		t.Fatalf("%v; it worked: %v", err, out.Result)
	}
	return *out.Error
}

// An ingest that goes on says how far it is.
func TestProgress(t *testing.T) {
	e := newEngine(t)
	at := map[string]any{"uri": t.TempDir(), "table": "ads"}
	record := rows(50_000)
	defer record.Release()
	from := &gated{record: record, asked: make(chan struct{}), goOn: make(chan struct{})}
	call := e.BeginStream(requestOf(t, "ingest", at), func() (source.RecordReader, error) { return from, nil })
	<-from.asked
	progress := func() progressAnswer { return must[progressAnswer](t, e, "progress", map[string]any{"call": call}) }
	for start := time.Now(); progress().Rows == 0; time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("%+v: the first rows are not told of", progress())
		}
	}
	if got := progress(); got.Phase == "" || got.Rows > 50_000 {
		t.Errorf("%+v", got)
	}
	close(from.goOn)
	if report := wait(t, e, call); report["rows"] != 100_000.0 {
		t.Errorf("report %v", report)
	}
}

// A gated RecordReader gives a record twice, the second time when it may.
type gated struct {
	record      arrow.RecordBatch
	given       int
	asked, goOn chan struct{} // asked is closed when the second is asked for
}

func (g *gated) Schema() *arrow.Schema          { return g.record.Schema() }
func (g *gated) RecordBatch() arrow.RecordBatch { return g.record }
func (g *gated) Err() error                     { return nil }
func (g *gated) Release()                       {}
func (g *gated) Next() bool {
	g.given++
	if g.given == 2 {
		close(g.asked)
		<-g.goOn
	}
	return g.given <= 2
}

func TestTableAndFeatures(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 20)
	if info := must[snapshotInfo](t, e, "table", at); info.Rows != 20 || info.Number != 1 || info.Features != 4 {
		t.Errorf("%+v", info)
	}
	if all := must[[]snapshotInfo](t, e, "snapshots", at); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	var names []string
	for _, f := range must[[]featureInfo](t, e, "features", with(at, "features", []string{"@all"})) {
		names = append(names, f.Name+" "+f.Kind+" "+f.Elem+" "+f.Role)
	}
	slices.Sort(names)
	want := []string{"click dense int32 feature", "list sparse int64 feature", "session_id dense int64 session key",
		"small dense int8 feature"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// While a store is opened, which may take long, batches can be given back. Of several that are opened at once one is
// kept.
func TestStoresOpenWithoutTheLock(t *testing.T) {
	e := newEngine(t)
	opened := 0
	e.openStore = func(uri string, _ map[string]string) (object.Store, error) {
		opened++
		must[openNow](t, e, "open_counts", nil)
		if err := e.Release(99); err == nil {
			t.Error("a batch that was never given is released")
		}
		if opened == 1 { // another call is faster
			if _, err := e.store(t.Context(), uri); err != nil {
				t.Error(err)
			}
		}
		return object.NewMemory(), nil
	}
	first, err := e.store(t.Context(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.store(t.Context(), "slow"); err != nil || again != first || opened != 2 || e.stores.Size() != 1 {
		t.Fatalf("opened %d times, %d stores, the same: %v, %v", opened, e.stores.Size(), again == first, err)
	}
}

// The same URI with other storage options is another store, in all that is kept: the buckets of two services have the
// same name. A store that is kept no more is read on by what was made of it.
func TestOptionsTellStoresApart(t *testing.T) {
	e := newEngine(t)
	defer closeTakers(e)
	dirs := map[string]string{}
	open := func(_ string, options map[string]string) (object.Store, error) {
		dir := dirs[options["endpoint"]]
		if dir == "" {
			return nil, errors.New("no such endpoint")
		}
		return object.NewLocal(dir)
	}
	e.openStore = open
	of := func(endpoint string) map[string]any {
		return map[string]any{"uri": "s3://tables/a", "table": "ads",
			"storage_options": map[string]string{"endpoint": endpoint}}
	}
	for endpoint, n := range map[string]int{"staging": 100, "production": 300} {
		dirs[endpoint] = t.TempDir()
		wait(t, e, startOf(t, e, of(endpoint), n, false))
	}
	nowhere := fails(t, e, string(requestOf(t, "table", of("nowhere"))))
	if !strings.Contains(nowhere.Message, "no such endpoint") {
		t.Errorf("%+v", nowhere)
	}
	for range 2 {
		for endpoint, n := range map[string]uint64{"staging": 100, "production": 300} {
			at := with(of(endpoint), "features", []string{"@all"})
			info := must[snapshotInfo](t, e, "table", of(endpoint))
			at["snapshot"] = info.Number
			plan := must[planAnswer](t, e, "plan", with(at, "batch_size", 100))
			if info.Number != 1 || info.Rows != n || plan.Rows != n {
				t.Errorf("%s: %+v, a plan of %d rows", endpoint, info, plan.Rows)
			}
			l := must[loaderAnswer](t, e, "loader_open", map[string]any{
				"uri": at["uri"], "plan": plan.Plan, "storage_options": at["storage_options"],
			})
			if l.End != n/100 {
				t.Errorf("%s: a loader of %d batches", endpoint, l.End)
			}
			must[any](t, e, "loader_close", map[string]any{"handle": l.Handle})
			e.TakeRecords(must[int64](t, e, "take", with(at, "rows", encoded(int64(n)-1)))).Release()
		}
	}
	staging := withStorageOptions(t.Context(), of("staging")["storage_options"].(map[string]string))
	kept, err := e.tableOf(staging, "s3://tables/a", "ads")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxStores {
		other := fmt.Sprintf("other %d", i)
		dirs[other] = dirs["production"]
		must[snapshotInfo](t, e, "table", of(other))
	}
	if n := e.stores.Size(); n != maxStores {
		t.Errorf("%d stores are kept, want %d", n, maxStores)
	}
	if snap, err := kept.Latest(t.Context()); err != nil || snap.Info().LiveRows() != 100 {
		t.Errorf("a table of a store that is kept no more: %v", err)
	}
}
