package remotetest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// Stalls tests that a request is sent again of which no byte moves for a time: of its own body, which the service does
// not take, and of the answer's. open returns a store of a service without TLS, anonymous.
func Stalls(t *testing.T, open func(t *testing.T, url string) object.Store) {
	defer func(n int, d time.Duration) { endpoint.Attempts, endpoint.Stall = n, d }(endpoint.Attempts, endpoint.Stall)
	endpoint.Attempts, endpoint.Stall = 2, 300*time.Millisecond
	var sent atomic.Int64
	check := func(what string, err error) {
		t.Helper()
		if n := sent.Swap(0); n != 2 || err == nil || errors.Is(err, context.Canceled) ||
			!strings.Contains(err.Error(), "no byte for 0.3 s") {
			t.Errorf("%s: %d requests, %v", what, n, err)
		}
	}
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		_, _ = w.Write([]byte("<"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(answers.Close)
	for _, err := range open(t, answers.URL).List(t.Context(), "a", "") {
		check("an answer", err)
	}

	over := make(chan struct{})
	takes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead { // who made it?
			w.WriteHeader(http.StatusNotFound)
			return
		}
		sent.Add(1)
		<-over // of a body that is not read, the end of its connection is not seen
	}))
	t.Cleanup(takes.Close)
	defer close(over)
	check("a request", open(t, takes.URL).PutIfAbsent(t.Context(), "a", make([]byte, 16<<20)))
}
