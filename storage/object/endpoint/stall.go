package endpoint

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Stall is how long a request may take no byte of its body, and the body of an answer give none to who reads it. Tests
// lower it.
var Stall = time.Minute

// A StallError is that of a request which was ended because no byte moved for a time. It may be sent again.
type StallError struct{ After time.Duration }

func (e *StallError) Error() string { return fmt.Sprintf("no byte for %g s", e.After.Seconds()) }

// A watch ends a request of which no byte moves: of its body, while it is sent, and of the answer's body, while
// somebody reads it. A transport bounds only what is between. Safe for concurrent use: a transport may read the body of
// a request that was answered already.
type watch struct {
	after time.Duration
	end   context.CancelFunc // of the request

	mu      sync.Mutex
	timer   *time.Timer // guarded by mu; nil: it was not needed yet
	sending bool        // guarded by mu
	stalled bool        // guarded by mu
}

// watchRequest returns a watch over a request, whose body it replaces.
func watchRequest(r *http.Request, end context.CancelFunc) *watch {
	w := &watch{after: Stall, end: end}
	if r.Body == nil || r.Body == http.NoBody {
		return w
	}
	r.Body = &sentBody{r.Body, w}
	if again := r.GetBody; again != nil { // on another connection, where the first had ended
		r.GetBody = func() (io.ReadCloser, error) {
			b, err := again()
			if err != nil {
				return nil, err
			}
			return &sentBody{b, w}, nil
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending = true
	w.start()
	return w
}

// start starts the time, or starts it anew; w.mu is held.
func (w *watch) start() {
	if w.timer != nil {
		w.timer.Reset(w.after)
		return
	}
	w.timer = time.AfterFunc(w.after, func() {
		w.mu.Lock()
		w.stalled = true
		w.mu.Unlock()
		w.end()
	})
}

// sent is called for each piece that is taken of the request's body.
func (w *watch) sent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sending {
		w.start()
	}
}

// answered is called when there is an answer, or none will come.
func (w *watch) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sending = false; w.timer != nil {
		w.timer.Stop()
	}
}

// read reads from an answer's body.
func (w *watch) read(body io.Reader, p []byte) (int, error) {
	w.mu.Lock()
	w.start()
	w.mu.Unlock()
	n, err := body.Read(p)
	w.mu.Lock()
	w.timer.Stop()
	w.mu.Unlock()
	return n, w.errorOf(err)
}

// errorOf returns a StallError in the place of the error of a request that was ended.
func (w *watch) errorOf(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && err != io.EOF && w.stalled {
		return &StallError{w.after}
	}
	return err
}

// sentBody is the body of a request under a watch.
type sentBody struct {
	io.ReadCloser
	watch *watch
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.sent()
	}
	return n, err
}
