package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// A pending is a call that Python waits for in steps, so that its signals are handled in between.
//
//	Begin ──> Wait ──> Wait ──> ... done, answer ──> End
//	                    |
//	                    interrupted ──────────────> End: the call is cancelled, and what it opened is closed
type pending struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once answer and undo are set
	answer []byte
	undo   func() // takes back what the call opened; nil: nothing
	taken  bool   // Wait has returned the answer; guarded by Engine.mu
}

// opened is a result that stays open until it is closed by its handle.
type opened interface{ undo(e *Engine) }

// Begin starts a request as Call runs it, and returns the number that Wait and End take.
func (e *Engine) Begin(request []byte) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pending{cancel: cancel, done: make(chan struct{})}
	e.mu.Lock()
	id := e.handle()
	e.calls[id] = p
	e.mu.Unlock()
	go func() {
		defer close(p.done)
		defer cancel()
		p.answer, p.undo = e.run(ctx, request)
	}()
	return id
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
		e.mu.Lock()
		p.taken = true
		e.mu.Unlock()
		return p.answer, true
	case <-timer.C:
		return nil, false
	}
}

// End forgets a call. One whose answer Wait has not returned is cancelled, without waiting for it.
func (e *Engine) End(call int64) {
	e.mu.Lock()
	p := e.calls[call]
	delete(e.calls, call)
	abandoned := p != nil && !p.taken
	e.mu.Unlock()
	if !abandoned {
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

// panicked is the answer of a call that panicked: an exception says more than a process that is gone.
func panicked(r any) []byte {
	return Failure(fmt.Errorf("the engine has a defect, please report it: panic: %v\n%s", r, debug.Stack()))
}
