package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// A call is a request that Python waits for in steps, so that its signals are handled in between.
//
//	Begin ──> Wait ──> Wait ──> ... done, answer ──> End, keep
//	           |        |                  |
//	           |        interrupted ───────┴───────> End: the call is cancelled, and what it opened is closed
//	           "progress" and "cancel" of the call, from calls of their own
type call struct {
	cancel   context.CancelFunc
	numbers  []byte                          // that follow the request
	records  source.RecordReader             // that came with the request; nil: none, or a method took them over
	progress atomic.Pointer[ingest.Progress] // the newest; nil: none was reported
	done     chan struct{}                   // closed once answer and undo are set
	answer   []byte
	undo     func() // takes back what the call opened; nil: nothing
}

// opened is a result that stays open until it is closed by its handle.
type opened interface{ undo(e *Engine) }

// written is a result that is written by hand: see package jsontext.
type written interface{ appendJSON(b []byte) []byte }

// answer is what a call gives: one of the two.
type answer struct {
	Result any        `json:"result,omitempty"`
	Error  *wireError `json:"error,omitempty"`
}

// Begin starts the request {"method": name, "params": {...}, "storage_options": {...}}, and returns the number that
// Wait and End take. The answer is {"result": ...} or {"error": ...}; it never panics. A method that takes many numbers
// has them after the object and a zero byte, as they lie in memory: as text they would be read several times.
func (e *Engine) Begin(request []byte) int64 { return e.begin(request, nil, nil) }

// BeginStream is Begin for a method that reads records. It takes over what open returns, before it returns.
func (e *Engine) BeginStream(request []byte, open func() (source.RecordReader, error)) int64 {
	records, err := guarded(open)
	return e.begin(request, records, err)
}

// guarded calls open and makes its panic an error: Arrow's importer panics at some streams that break the rules of the
// C interface.
func guarded(open func() (source.RecordReader, error)) (records source.RecordReader, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the stream of records cannot be imported (does it keep the rules of Arrow's C "+
				"interface?): panic: %v\n%s", r, debug.Stack())
		}
	}()
	return open()
}

// Run is Begin and Wait in one, and End where nothing is open: number is then 0. Else it is the number that Wait, while
// done is false, and End take. It is set before anything is waited for: a caller that is interrupted ends the call.
func (e *Engine) Run(request []byte, wait time.Duration, number *int64) (answer []byte, done bool) {
	id := e.Begin(request)
	*number = id
	answer, done = e.Wait(id, wait)
	if c, err := e.calls.get(id); done && err == nil && c.undo == nil {
		e.End(id, true)
		*number = 0
	}
	return answer, done
}

// begin starts a request with records. err, unless nil, is its answer.
func (e *Engine) begin(request []byte, records source.RecordReader, err error) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{cancel: cancel, records: records, done: make(chan struct{})}
	id := e.calls.add(c)
	go func() {
		defer close(c.done)
		defer cancel()
		growStack(0)
		if err != nil {
			c.answer = Failure(err)
			return
		}
		c.answer, c.undo = e.answer(context.WithValue(ctx, callKey{}, c), c, request)
		if c.records != nil { // no method took them
			c.records.Release()
		}
	}()
	return id
}

// growStack makes room on the stack of a goroutine that has just begun. A stack that grows step by step is copied and
// scanned for pointers each time, which took a twentieth of the time of short calls.
//
//go:noinline
func growStack(i int) byte {
	var room [12 << 10]byte
	return room[i]
}

// answer runs the method of a request, which may panic, and returns its answer, and what takes back what it opened.
func (e *Engine) answer(ctx context.Context, c *call, request []byte) (text []byte, undo func()) {
	defer func() {
		if r := recover(); r != nil {
			text = panicked(r)
		}
	}()
	result, err := e.run(ctx, c, request)
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

func (e *Engine) run(ctx context.Context, c *call, request []byte) (any, error) {
	var r struct {
		Method  string            `json:"method"`
		Params  json.RawMessage   `json:"params"`
		Options map[string]string `json:"storage_options"` // of the store that the request is about
		Sources map[string]string `json:"source_options"`  // of what it reads besides
	}
	request, c.numbers, _ = bytes.Cut(request, []byte{0})
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, err
	}
	m := methods[r.Method]
	if m == nil {
		return nil, fmt.Errorf("engine: no method %q", r.Method)
	}
	if len(r.Options) > 0 {
		ctx = withStorageOptions(ctx, r.Options)
	}
	if len(r.Sources) > 0 {
		ctx = context.WithValue(ctx, sourcesKey{}, r.Sources)
	}
	return m(e, ctx, r.Params)
}

// optionsKey is where the context of a method has the storage options of its request: a digestedOptions.
type optionsKey struct{}

// digestedOptions are storage options with their digest, which a request needs for several caches.
type digestedOptions struct {
	options map[string]string
	digest  optionsDigest
}

// withStorageOptions returns a context whose request has storage options.
func withStorageOptions(ctx context.Context, options map[string]string) context.Context {
	return context.WithValue(ctx, optionsKey{}, digestedOptions{options, digestOf(options)})
}

// storageOptions returns those of a method's request.
func storageOptions(ctx context.Context) map[string]string {
	o, _ := ctx.Value(optionsKey{}).(digestedOptions)
	return o.options
}

// sourcesKey is where the context of a method has the storage options of its sources.
type sourcesKey struct{}

// sourceOptions returns those of a method's request.
func sourceOptions(ctx context.Context) map[string]string {
	options, _ := ctx.Value(sourcesKey{}).(map[string]string)
	return options
}

// callKey is where the context of a method has its call.
type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// following returns the 64-bit integers, little endian, that follow the request. The error is the caller's mistake.
func (c *call) following() ([]uint64, error) {
	if len(c.numbers)%8 != 0 {
		return nil, fmt.Errorf("engine: %d bytes follow a request: want whole integers of 8", len(c.numbers))
	}
	out := make([]uint64, len(c.numbers)/8)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(c.numbers[8*i:])
	}
	return out, nil
}

// Wait waits at most so long for a call, and reports whether its answer is there.
func (e *Engine) Wait(number int64, wait time.Duration) (answer []byte, done bool) {
	c, err := e.calls.get(number)
	if err != nil {
		return Failure(err), true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.answer, true
	case <-timer.C:
		return nil, false
	}
}

// End forgets a call. keep: the caller has the answer, and what it opened. Else the call is cancelled, without waiting
// for it, and what it opened is closed.
func (e *Engine) End(number int64, keep bool) {
	c, err := e.calls.take(number)
	if err != nil || keep {
		return
	}
	c.cancel()
	go func() {
		<-c.done
		if c.undo != nil {
			c.undo()
		}
	}()
}

// callParams are those of "progress" and "cancel".
type callParams struct {
	Call int64 `json:"call"`
}

// progressAnswer is how far a call is. An empty phase: nothing is known.
type progressAnswer struct {
	Phase      string `json:"phase"`
	Rows       int64  `json:"rows"`
	Bytes      int64  `json:"bytes"`
	TotalBytes int64  `json:"total_bytes"`
}

func (e *Engine) progress(_ context.Context, p *callParams) (any, error) {
	c, err := e.calls.get(p.Call)
	if err != nil {
		return nil, err
	}
	now := c.progress.Load()
	if now == nil {
		return progressAnswer{}, nil
	}
	return progressAnswer{Phase: string(now.Phase), Rows: now.Rows, Bytes: now.Bytes, TotalBytes: now.TotalBytes}, nil
}

// cancel asks a call to end. The call is there until End, and its answer says that it was cancelled, unless it was done
// before.
func (e *Engine) cancel(_ context.Context, p *callParams) (any, error) {
	c, err := e.calls.get(p.Call)
	if err != nil {
		return nil, err
	}
	c.cancel()
	return true, nil
}

// panicked is the answer of a call that panicked: an exception says more than a process that is gone.
func panicked(r any) []byte {
	return Failure(fmt.Errorf("the engine has a defect, please report it: panic: %v\n%s", r, debug.Stack()))
}
