package metrics_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/tools/metrics"
)

// send sends some requests to a service of a name.
func send(t *testing.T, name string) {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/lost":
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, "12345")
		}
	}))
	defer service.Close()
	defer service.Client().CloseIdleConnections()
	c := endpoint.New(service.Client(), name, func(r *http.Request) object.Kind {
		if r.Method == http.MethodPut {
			return object.KindWrite
		}
		return object.KindRead
	})
	do := func(method, path, body string) {
		r, err := http.NewRequestWithContext(t.Context(), method, service.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	for _, path := range []string{"/a", "/a", "/missing", "/busy", "/broken"} {
		do(http.MethodGet, path, "")
	}
	do(http.MethodPut, "/a", "1234567")
	do(http.MethodPut, "/lost", "1")
}

// What a service is sent is shown by kind and outcome, with the bytes of bodies.
func TestServices(t *testing.T) {
	send(t, "test")
	server, err := metrics.Serve(":0", metrics.New())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	families := scrape(t, server.URL())
	for _, x := range []struct {
		kind, outcome string
		want          float64
	}{
		{"read", "ok", 2}, {"read", "refused", 1}, {"read", "throttled", 1}, {"read", "failed", 1},
		{"read", "lost", -1}, {"write", "ok", 1}, {"write", "lost", 1}, {"delete", "ok", -1},
	} {
		got := value(families, "dsi_store_requests_total", "store", "test", "kind", x.kind, "outcome", x.outcome)
		if got != x.want {
			t.Errorf("%s %s: %v, want %v", x.kind, x.outcome, got, x.want)
		}
	}
	if got := value(families, "dsi_store_bytes_total", "store", "test", "direction", "down"); got != 15 {
		t.Errorf("%v bytes down", got)
	}
	if got := value(families, "dsi_store_bytes_total", "store", "test", "direction", "up"); got != 8 {
		t.Errorf("%v bytes up", got)
	}
}
