package endpoint

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// A Doer sends a request: *http.Client, and what SDKs take in its place.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// A Client is a Doer that limits, repeats and counts the requests to the hosts they go to. Safe for concurrent use.
type Client struct {
	under  Doer
	kindOf func(*http.Request) object.Kind
	all    *object.TrafficCounter // of the service; nil: nothing is counted

	// AboutOneName reports whether an answer 429 says that one name is written too often, and not that the host has too
	// many requests. It may read the answer's body if it leaves it as it was. nil: no answer does. It is set before the
	// first request.
	AboutOneName func(*http.Response) bool
}

// New returns a Client that sends through under. Its requests are counted as those of a service, which is named as the
// scheme of its stores' URIs, and kindOf says what the service bills them as; an empty name: they are not counted,
// because they are for credentials.
func New(under Doer, service string, kindOf func(*http.Request) object.Kind) *Client {
	c := &Client{under: under, kindOf: kindOf}
	if service != "" {
		c.all = trafficOf(service)
	}
	return c
}

// Do sends a request, and perhaps sends it twice if it has no body and only reads. The caller closes the body of the
// answer. Errors are those of the Doer, or of the request's context while it waits for a place.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	h := hostOf(r.URL.Host)
	if err := h.places.acquire(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // it was not sent
		}
		return nil, err
	}
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.Body == nil || r.Body == http.NoBody) {
		return c.read(h, r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	return c.send(h, r.WithContext(ctx), cancel)
}

// send sends a request that has a place, and gives the place back: when the answer's body is closed, or at once where
// there is no answer. cancel, which ends the request's context, is called then, or when no byte moves: see Stall. The
// request must be the receiver's own.
func (c *Client) send(h *host, r *http.Request, cancel context.CancelFunc) (*http.Response, error) {
	sent := time.Now()
	r, ended, down := c.count(r)
	watch := watchRequest(r, cancel)
	answer, err := c.under.Do(r)
	watch.answered()
	err = watch.errorOf(err)
	ended(answer, err)
	if err != nil {
		h.places.release()
		cancel()
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, watch: watch, down: down, done: func() {
		h.places.release()
		cancel()
	}}
	switch {
	case answer.StatusCode == http.StatusTooManyRequests && c.AboutOneName != nil && c.AboutOneName(answer):
	case throttled(answer):
		h.places.cut(sent)
	case answer.StatusCode < http.StatusInternalServerError:
		h.places.raise()
	}
	return answer, nil
}

// throttled reports whether a service has too many requests.
func throttled(answer *http.Response) bool {
	return answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable
}

// good reports whether an answer need not be waited for again.
func good(answer *http.Response, err error) bool {
	return err == nil && answer.StatusCode < http.StatusInternalServerError && !throttled(answer)
}

// A body calls done once, when it is closed, and down for what is read of it.
type body struct {
	io.ReadCloser
	watch *watch
	once  sync.Once
	done  func()
	down  func(bytes int)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.watch.read(b.ReadCloser, p)
	b.down(n)
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.done)
	return err
}

// A repeat is the second sending of a read.
type repeat struct {
	cancel context.CancelFunc
	answer *http.Response
	err    error
	done   chan struct{} // closed when answer and err are set
}

// A race is a read that may be sent twice.
type race struct {
	mu     sync.Mutex
	over   bool    // the first sending has an answer: guarded by mu
	won    bool    // the second one had a good answer before: guarded by mu
	second *repeat // guarded by mu; nil: not sent
}

// read sends a request that has a place, and sends it again if its answer does not begin in time.
func (c *Client) read(h *host, r *http.Request) (*http.Response, error) {
	late, ok := h.times.late()
	ctx, cancel := context.WithCancel(r.Context())
	begin := time.Now()
	var x race
	var timer *time.Timer
	if ok {
		timer = time.AfterFunc(late, func() { c.again(h, r, &x, cancel) })
	}
	h.budget.earn()
	answer, err := c.send(h, r.WithContext(ctx), cancel)
	if timer != nil {
		timer.Stop()
	}
	h.times.add(time.Since(begin))

	x.mu.Lock()
	x.over = true
	second, won := x.second, x.won
	x.mu.Unlock()
	if second == nil {
		return answer, err
	}
	if !won && good(answer, err) {
		second.cancel()
		go second.drop()
		return answer, nil
	}
	<-second.done
	if good(second.answer, second.err) {
		if err == nil {
			_ = answer.Body.Close() // nobody reads it
		}
		return second.answer, nil
	}
	second.drop()
	return answer, err
}

// again sends the request of a race a second time, unless the first has an answer, and ends the first if this answer is
// good.
func (c *Client) again(h *host, r *http.Request, x *race, cancelFirst context.CancelFunc) {
	x.mu.Lock()
	if x.over || !h.budget.spend() {
		x.mu.Unlock()
		return
	}
	if !h.places.tryAcquire() {
		h.budget.give()
		x.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	second := &repeat{cancel: cancel, done: make(chan struct{})}
	x.second = second
	x.mu.Unlock()

	h.repeated.Add(1)
	second.answer, second.err = c.send(h, r.Clone(ctx), cancel)
	close(second.done)
	if !good(second.answer, second.err) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.won = true
		cancelFirst()
	}
}

// drop waits for the answer, and closes it: nobody wants it.
func (s *repeat) drop() {
	<-s.done
	if s.err == nil {
		_ = s.answer.Body.Close() // nobody reads it
	}
}
