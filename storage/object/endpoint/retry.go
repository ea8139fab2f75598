package endpoint

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Attempts is how often a request is sent at most before its error is told: with the delays between, some 30 s. How
// many are under way at once is bounded, so that the delays need not be long. Tests lower it.
var Attempts = 16

const (
	// longest is how long after the first sending of a request it is sent again at the latest.
	longest = 2 * time.Minute
	// surely is how often it is sent however long that takes: a part of an upload may take minutes.
	surely = 3

	firstDelay = 100 * time.Millisecond // at most
	mostDelay  = 5 * time.Second
	// mostAsked is how much longer than that a service may ask to wait.
	mostAsked = 30 * time.Second
)

// Temporary reports whether a request that was answered with a status may succeed when it is sent again.
func Temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// A Retry says whether and when one request is sent again. Not safe for concurrent use.
type Retry struct {
	Sent  int // so many times
	began time.Time
}

// NewRetry is called before the request is sent.
func NewRetry() *Retry { return &Retry{began: time.Now()} }

// Next is called after each sending that is to be repeated. It returns how long to wait before, and false where the
// request was sent often enough, or for long enough. header is that of the answer; nil: there was none. Delays are
// random up to a bound that doubles, and come after what the service asks for by Retry-After.
func (r *Retry) Next(header http.Header) (wait time.Duration, ok bool) {
	r.Sent++
	wait = asked(header) + rand.N(min(firstDelay<<min(r.Sent-1, 16), mostDelay))
	if r.Sent >= Attempts || r.Sent >= surely && time.Since(r.began)+wait > longest {
		return 0, false
	}
	return wait, true
}

// Wait waits as long as Next says. false: the request is not sent again, for which the end of ctx is a reason too.
func (r *Retry) Wait(ctx context.Context, header http.Header) bool {
	wait, ok := r.Next(header)
	return ok && Sleep(ctx, wait)
}

// Sleep waits, and returns false where ctx ends before.
func Sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// asked returns how long a service asks to wait: seconds, or until a date, by its own clock where the answer tells it.
func asked(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, mostAsked)
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(until.Sub(now), 0), mostAsked)
}
