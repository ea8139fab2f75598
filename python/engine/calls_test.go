package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/version"
	"github.com/dsistore/dsistore/storage/object"
)

// A call gives its answer to the caller that waits, and what it opened stays open.
func TestCalls(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	p := must[planAnswer](t, e, "plan", with(at, "features", []string{"list"}, "batch_size", 30, "output", "tensors"))
	request := func(method string, params map[string]any) []byte {
		text, err := json.Marshal(map[string]any{"method": method, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	counts := func() openNow {
		n := must[openNow](t, e, "open_counts", nil)
		n.Calls-- // this one
		n.Goroutines = 0
		return n
	}
	open := map[string]any{"uri": at["uri"], "plan": p.Plan}

	id := e.Begin(request("loader_open", open))
	answer, done := e.Wait(id, time.Minute)
	if !done || !strings.Contains(string(answer), `"handle":`) {
		t.Fatalf("%s, %v", answer, done)
	}
	e.End(id, true)
	if got := counts(); got != (openNow{Loaders: 1}) {
		t.Errorf("%+v: want the loader alone", got)
	}
	var a struct{ Result handle }
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatal(err)
	}
	if err := e.CloseLoader(a.Result.Handle); err != nil {
		t.Error(err)
	}
	if err := e.CloseLoader(a.Result.Handle); !errors.Is(err, errNoHandle) {
		t.Errorf("closed twice: %v", err)
	}

	// Calls that nobody keeps leave nothing, whether they had an answer, which somebody waited for, or not.
	for i := range 20 {
		for _, method := range []string{"loader_open", "records_open"} {
			id := e.Begin(request(method, open))
			if i%2 == 0 {
				c, err := e.calls.get(id)
				if err != nil {
					t.Fatal(err)
				}
				<-c.done
				if i%4 == 0 {
					e.Wait(id, time.Minute)
				}
			}
			e.End(id, false)
		}
	}
	for start := time.Now(); counts() != (openNow{}); time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("abandoned calls leave %+v", counts())
		}
	}
	if answer, done := e.Wait(id, time.Minute); !done || !strings.Contains(string(answer), "closed") {
		t.Errorf("a call that has ended: %s, %v", answer, done)
	}
	e.End(id, true)
}

// A panic is an answer, not the end of the process.
// Added before any test, for calls that a test has left behind may still look their methods up.
func init() {
	methods["panic"] = func(*Engine, context.Context, json.RawMessage) (any, error) { panic("for the test") }
}

func TestPanicIsAnAnswer(t *testing.T) {
	answer := called(newEngine(t), []byte(`{"method": "panic"}`))
	if !strings.Contains(string(answer), "defect") || !strings.Contains(string(answer), "for the test") {
		t.Errorf("%s", answer)
	}
}

// Run answers at once what is done in time, and nothing is left of it; what takes longer is waited for by its number,
// which is known before.
func TestRun(t *testing.T) {
	e := newEngine(t)
	var call int64
	answer, done := e.Run([]byte(`{"method": "version", "params": {}}`), time.Minute, &call)
	if !done || call != 0 || string(answer) != `{"result":"`+version.Python()+`"}` || e.calls.count() != 0 {
		t.Fatalf("%s, call %d; %d calls are open", answer, call, e.calls.count())
	}
	goOn := make(chan struct{})
	e.openStore = func(string, map[string]string) (object.Store, error) {
		<-goOn
		return nil, errNoHandle
	}
	answer, done = e.Run([]byte(`{"method": "tables", "params": {"uri": "x"}}`), time.Nanosecond, &call)
	if done || call == 0 || answer != nil || e.calls.count() != 1 {
		t.Fatalf("%s, call %d; %d calls are open", answer, call, e.calls.count())
	}
	close(goOn)
	if answer, done := e.Wait(call, time.Minute); !done || !strings.Contains(string(answer), "error") {
		t.Fatalf("%s", answer)
	}
	e.End(call, true)
}

// What a Run opened in time is the caller's to keep or not: it may be interrupted before it has the answer.
func TestRunThatOpens(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	p := must[planAnswer](t, e, "plan", with(at, "features", []string{"list"}, "batch_size", 30, "output", "tensors"))
	request, err := json.Marshal(map[string]any{"method": "loader_open", "params": map[string]any{"uri": at["uri"],
		"plan": p.Plan}})
	if err != nil {
		t.Fatal(err)
	}
	loaders := func() int { return must[openNow](t, e, "open_counts", nil).Loaders }
	for _, keep := range []bool{true, false} {
		var call int64
		answer, done := e.Run(request, time.Minute, &call)
		if !done || call == 0 || loaders() != 1 {
			t.Fatalf("%s, call %d, %d loaders", answer, call, loaders())
		}
		e.End(call, keep)
		if keep {
			time.Sleep(10 * time.Millisecond) // for it to be closed, if it were
			var a struct{ Result handle }
			if err := json.Unmarshal(answer, &a); err != nil || loaders() != 1 {
				t.Fatalf("%s: %d loaders", answer, loaders())
			}
			if err := e.CloseLoader(a.Result.Handle); err != nil {
				t.Error(err)
			}
		}
		for start := time.Now(); loaders() > 0; time.Sleep(time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatal("what nobody keeps stays open")
			}
		}
	}
	if e.calls.count() != 0 {
		t.Errorf("%d calls are open", e.calls.count())
	}
}
