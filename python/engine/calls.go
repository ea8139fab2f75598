package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/tools/ingest"
)

// A pending is a call that Python waits for in steps, so that its signals are handled in between.
//
//	Begin ──> Wait ──> Wait ──> ... done, answer ──> End, keep
//	           |        |                  |
//	           |        interrupted ───────┴───────> End: the call is cancelled, and what it opened is closed
//	           "progress" and "cancel" of the call, from calls of their own
type pending struct {
	cancel   context.CancelFunc
	progress atomic.Pointer[ingest.Progress] // the newest; nil: none was told
	done     chan struct{}                   // closed once answer and undo are set
	answer   []byte
	undo     func() // takes back what the call opened; nil: nothing
}

// opened is a result that stays open until it is closed by its handle.
type opened interface{ undo(e *Engine) }

// Begin starts a request as Call runs it, and returns the number that Wait and End take.
func (e *Engine) Begin(request []byte) int64 {
	return e.begin(func(ctx context.Context) (any, error) { return e.method(ctx, request) })
}

// Run is Begin and Wait in one, and End where nothing is open: call is then 0. Else it is the number that Wait, while done is false, and End
// take. It is there before anything is waited for: who is interrupted ends the call.
func (e *Engine) Run(request []byte, wait time.Duration, call *int64) (answer []byte, done bool) {
	id := e.Begin(request)
	*call = id
	answer, done = e.Wait(id, wait)
	if done && e.endIfClosed(id) {
		*call = 0
	}
	return answer, done
}

// endIfClosed ends a call whose answer is there, and which opened nothing.
func (e *Engine) endIfClosed(call int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.calls[call]; p != nil && p.undo != nil {
		return false
	}
	delete(e.calls, call)
	return true
}

// begin starts f as a call.
func (e *Engine) begin(f func(context.Context) (any, error)) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pending{cancel: cancel, done: make(chan struct{})}
	ctx = context.WithValue(ctx, pendingKey{}, p)
	e.mu.Lock()
	id := e.handle()
	e.calls[id] = p
	e.mu.Unlock()
	go func() {
		defer close(p.done)
		defer cancel()
		growStack(0)
		p.answer, p.undo = e.answer(ctx, f)
	}()
	return id
}

// growStack makes room on the stack of a goroutine that has just begun: where it grows by and by, each time it is copied, and all
// that is on it is looked through for pointers, which was a twentieth of the time of short calls.
//
//go:noinline
func growStack(i int) byte {
	var room [12 << 10]byte
	return room[i]
}

// pendingKey is where the context of a call that was begun has its pending.
type pendingKey struct{}

// tell makes p the progress of the call that ctx is of.
func tell(ctx context.Context, progress ingest.Progress) {
	if p, ok := ctx.Value(pendingKey{}).(*pending); ok {
		p.progress.Store(&progress)
	}
}

// Wait waits at most so long for a call, and reports whether its answer is there.
func (e *Engine) Wait(call int64, wait time.Duration) (answer []byte, done bool) {
	e.mu.Lock()
	p := e.calls[call]
	e.mu.Unlock()
	if p == nil {
		return Failure(errNoHandle), true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.answer, true
	case <-timer.C:
		return nil, false
	}
}

// End forgets a call. keep: the caller has the answer, and what it opened. Else the call is cancelled, without waiting for it, and what it
// opened is closed.
func (e *Engine) End(call int64, keep bool) {
	e.mu.Lock()
	p := e.calls[call]
	delete(e.calls, call)
	e.mu.Unlock()
	if p == nil || keep {
		return
	}
	p.cancel()
	go func() {
		<-p.done
		if p.undo != nil {
			p.undo()
		}
	}()
}

// pendingOf returns the call that the parameters of "progress" and "cancel" name.
func (e *Engine) pendingOf(raw json.RawMessage) (*pending, error) {
	var p struct {
		Call int64 `json:"call"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.calls[p.Call]; c != nil {
		return c, nil
	}
	return nil, errNoHandle
}

// progressAnswer is how far a call is. An empty phase: nothing is known.
type progressAnswer struct {
	Phase      string `json:"phase"`
	Rows       int64  `json:"rows"`
	Bytes      int64  `json:"bytes"`
	TotalBytes int64  `json:"total_bytes"`
}

// progress returns how far a call is.
func (e *Engine) progress(_ context.Context, raw json.RawMessage) (any, error) {
	c, err := e.pendingOf(raw)
	if err != nil {
		return nil, err
	}
	now := c.progress.Load()
	if now == nil {
		return progressAnswer{}, nil
	}
	return progressAnswer{Phase: string(now.Phase), Rows: now.Rows, Bytes: now.Bytes, TotalBytes: now.TotalBytes}, nil
}

// cancel asks a call to end: it is there until End, and its answer says that it was cancelled, unless it was through before.
func (e *Engine) cancel(_ context.Context, raw json.RawMessage) (any, error) {
	c, err := e.pendingOf(raw)
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
