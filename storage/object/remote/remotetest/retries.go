package remotetest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// Retries tests that a store behind a network sends a request again as package endpoint says. open returns a store of
// a service without TLS, anonymous.
func Retries(t *testing.T, open func(t *testing.T, url string) object.Store) {
	var mu sync.Mutex
	var answers []func(http.Header) int // guarded by mu: the last is that of all later requests
	var sent []time.Time                // guarded by mu
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		answer := answers[min(len(sent), len(answers)-1)]
		sent = append(sent, time.Now())
		w.WriteHeader(answer(w.Header()))
	}))
	t.Cleanup(server.Close)
	s := open(t, server.URL)
	read := func(ctx context.Context, next ...func(http.Header) int) error {
		mu.Lock()
		answers, sent = next, nil
		mu.Unlock()
		return s.ReadAt(ctx, "a", make([]byte, 1), 0)
	}
	status := func(status int) func(http.Header) int { return func(http.Header) int { return status } }

	// Seconds, a date, and what passes by itself.
	err := read(t.Context(), func(h http.Header) int {
		h.Set("Retry-After", "1")
		return http.StatusServiceUnavailable
	}, func(h http.Header) int {
		now := time.Now().Add(time.Hour) // by the service's clock
		h.Set("Date", now.UTC().Format(http.TimeFormat))
		h.Set("Retry-After", now.Add(time.Second).UTC().Format(http.TimeFormat))
		return http.StatusTooManyRequests
	}, status(http.StatusInternalServerError), status(http.StatusRequestTimeout), status(http.StatusNotFound))
	if !errors.Is(err, object.ErrNotFound) || len(sent) != 5 {
		t.Fatalf("%d requests, %v", len(sent), err)
	}
	for i, least := range []time.Duration{time.Second, time.Second, 0, 0} {
		if d := sent[i+1].Sub(sent[i]); d < least || d > least+5*time.Second {
			t.Errorf("request %d came after %s, want %s or somewhat more", i+1, d, least)
		}
	}

	// A service that goes on saying no.
	defer func(n int) { endpoint.Attempts = n }(endpoint.Attempts)
	endpoint.Attempts = 5
	err = read(t.Context(), status(http.StatusServiceUnavailable))
	if !errors.Is(err, object.ErrThrottled) || len(sent) != 5 {
		t.Errorf("%d requests, %v", len(sent), err)
	}
	// What another try does not change.
	for _, final := range []int{http.StatusForbidden, http.StatusBadRequest, http.StatusNotImplemented} {
		if err = read(t.Context(), status(final)); err == nil || len(sent) != 1 {
			t.Errorf("%d: %d requests, %v", final, len(sent), err)
		}
	}
	// The end of the context ends the waiting.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	err = read(ctx, func(h http.Header) int {
		h.Set("Retry-After", "20")
		return http.StatusServiceUnavailable
	})
	if !errors.Is(err, context.DeadlineExceeded) || len(sent) != 1 || time.Since(begin) > 10*time.Second {
		t.Errorf("%d requests in %s, %v", len(sent), time.Since(begin), err)
	}
}
