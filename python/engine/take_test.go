package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
)

func encoded(rows ...int64) (b []byte) {
	for _, r := range rows {
		b = binary.LittleEndian.AppendUint64(b, uint64(r))
	}
	return b
}

// closeTakers closes what is kept for the next take.
func closeTakers(e *Engine) {
	e.takers.Clear()
	for _, x := range e.evicted {
		x.leave()
	}
	e.evicted = nil
}

// Rows taken are those of a scan, in the order asked for; takers are kept for two selections, and give all memory back.
func TestTake(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	defer closeTakers(e)
	name := must[[]featureInfo](t, e, "features", with(at, "features", []string{"@all"}))[0].Name
	for i, features := range [][]string{{name}, {"@all"}, {name, "@all"}, {name}} {
		r := e.TakeRecords(must[int64](t, e, "take", with(at, "features", features, "rows", encoded(7, 99, 7))))
		if !r.Next() {
			t.Fatal(r.Err())
		}
		got := r.RecordBatch()
		if c := got.Column(0); got.NumRows() != 3 || c.ValueStr(0) != c.ValueStr(2) {
			t.Errorf("take %d: %v", i, got)
		}
		if r.Next() || r.Err() != nil {
			t.Errorf("take %d: more than one record, or %v", i, r.Err())
		}
		r.Release()
		if e.takers.Size() != min(int64(i+1), maxTakers) {
			t.Errorf("take %d: %d takers are kept", i, e.takers.Size())
		}
	}
	// One that nothing has used for a while is forgotten, with its lease; one that is used is not.
	oldest, _ := e.takers.Oldest()
	idle, _ := e.takers.Get(oldest)
	idle.uses.Add(1)
	if e.forgetTaker(oldest, idle); !e.takers.Has(oldest) {
		t.Error("a taker that is used is forgotten")
	}
	idle.leave()
	if e.forgetTaker(oldest, idle); e.takers.Has(oldest) || idle.uses.Load() != 0 || len(e.evicted) > 0 {
		t.Errorf("a taker that nothing uses is kept: %d uses", idle.uses.Load())
	}
	// What nobody reads is given back too.
	e.TakeRecords(must[int64](t, e, "take", with(at, "features", []string{name}, "rows", encoded(1)))).Release()
	for _, rows := range [][]int64{{100}, {-1}} {
		request := requestOf(t, "take", with(at, "features", []string{name}, "rows", encoded(rows...)))
		if w := fails(t, e, string(request)); w.Kind != "usage" ||
			!strings.Contains(w.Message, fmt.Sprintf("rows: %d, at index 0: want 0 to 99", rows[0])) {
			t.Errorf("rows %v: %+v", rows, w)
		}
	}
	cut := requestOf(t, "take", with(at, "features", []string{name}, "rows", encoded(1)[:7]))
	if w := fails(t, e, string(cut)); !strings.Contains(w.Message, "7 bytes follow") {
		t.Errorf("a row position of 7 bytes: %+v", w)
	}
}

// A snapshot that was asked for is not looked for again by those who name its number.
func TestSnapshotsAreKept(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	var counted *object.Counted
	e = New(e.allocator, e.allocator)
	e.openStore = func(uri string, _ map[string]string) (object.Store, error) {
		s, err := object.Open(uri)
		counted = object.NewCounted(s)
		return counted, err
	}
	number := must[snapshotInfo](t, e, "table", at).Number
	before := counted.Counts()
	must[planAnswer](t, e, "plan", with(at, "snapshot", number, "features", []string{"@all"}))
	must[planAnswer](t, e, "plan", with(at, "snapshot", number, "features", []string{"@all"}))
	if c := counted.Counts().Sub(before); c.Stats+c.Lists != 0 {
		t.Errorf("%d stats and %d lists for plans of a snapshot that is known", c.Stats, c.Lists)
	}
}

// A table is not opened at a snapshot that has expired; who has opened it before reads it until gc removes it.
func TestExpiredSnapshot(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	at["snapshot"] = must[snapshotInfo](t, e, "table", at).Number
	wait(t, e, startOf(t, e, map[string]any{"uri": at["uri"], "table": at["table"]}, 50, false))
	must[snapshotInfo](t, e, "table", at)
	table, err := e.tableOf(t.Context(), at["uri"].(string), at["table"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Expire(t.Context(), gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	if w := fails(t, e, string(requestOf(t, "table", at))); w.Kind != "not_found" ||
		!strings.Contains(w.Message, "has expired") {
		t.Errorf("%+v", w)
	}
	if p := must[planAnswer](t, e, "plan", with(at, "features", []string{"@all"})); p.Rows != 100 {
		t.Errorf("%d rows", p.Rows)
	}
}

// A store that is made anew under a process has snapshots of the same numbers: what was kept of the old one serves
// nobody.
func TestWhatIsKeptOfARemovedStore(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	defer closeTakers(e)
	at["snapshot"], at["features"] = must[snapshotInfo](t, e, "table", at).Number, []string{"@all"}
	take := with(at, "rows", encoded(99))
	refused := func(method string, params map[string]any) wireError {
		t.Helper()
		return fails(t, e, string(requestOf(t, method, params)))
	}
	must[planAnswer](t, e, "plan", at)
	e.TakeRecords(must[int64](t, e, "take", take)).Release()
	if err := os.RemoveAll(at["uri"].(string)); err != nil {
		t.Fatal(err)
	}
	for method, params := range map[string]map[string]any{"plan": at, "take": take} {
		if w := refused(method, params); w.Kind != "not_found" {
			t.Errorf("%s of a removed store: %+v", method, w)
		}
	}
	wait(t, e, startOf(t, e, map[string]any{"uri": at["uri"], "table": at["table"]}, 50, false))
	if p := must[planAnswer](t, e, "plan", at); p.Rows != 50 {
		t.Errorf("plan of the store made anew: %d rows", p.Rows)
	}
	if w := refused("take", take); !strings.Contains(w.Message, "want 0 to 49") {
		t.Errorf("row 99 of the store made anew: %+v", w)
	}
}
