package dsi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// counting is a rule of a proxy that counts reads and lists.
type counting struct {
	mu    sync.Mutex
	seen  object.Traffic // requests alone
	every uint64         // so many-th request is refused once; 0: none
}

func (c *counting) see(r *http.Request) (f objectserver.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
		c.seen.Lists++
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		c.seen.Reads++
	default:
		c.seen.Writes++
	}
	if c.every > 0 && c.seen.Requests()%c.every == 0 {
		f = objectserver.Fault{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
	}
	return f
}

// take returns what was seen since the last call.
func (c *counting) take() object.Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.seen
	c.seen = object.Traffic{}
	return out
}

func sentOnly(t object.Traffic) object.Traffic {
	return object.Traffic{Reads: t.Reads, Lists: t.Lists, Writes: t.Writes + t.Deletes}
}

// scanned is what scan says of requests.
type scanned struct {
	Requests uint64
	Sent     struct{ Open, Epochs object.Traffic }
	Cost     *struct {
		Prices, Currency string
		Open, Epoch      float64
	}
}

// What dsi scan says that it sent is what the server saw, with requests that it refused, and without those that the
// cache answered; what it costs follows from that.
func TestScanCost(t *testing.T) {
	if race.Enabled {
		t.Skip("not under the race detector: TestReadersCountTheirOwn is")
	}
	server := objectserver.StartS3(t, "tables")
	proxy := objectserver.StartProxy(t, server.Endpoint)
	at := &counting{}
	proxy.Break(at.see)
	for name, value := range server.Environment() {
		t.Setenv(name, value)
	}
	t.Setenv("AWS_ENDPOINT_URL", proxy.URL)
	t.Setenv("DSISTORE_PRICES", "")
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Run(t.Context(), args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("dsi %q: %d, %s", args, code, errs.String())
		}
		return out.String()
	}
	dir := t.TempDir()
	run("generate", filepath.Join(dir, "dump"), "--rows", "3000")
	const store = "s3://tables/cost"
	run("ingest", store, "ads", filepath.Join(dir, "dump"), "--session-key", "session_id")
	scan := func(args ...string) (s scanned, seen object.Traffic) {
		t.Helper()
		at.take()
		text := run(append([]string{"--json", "scan", store, "ads", "--features", "user_*", "--no-usage"}, args...)...)
		seen = at.take()
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err, text)
		}
		if got := sentOnly(s.Sent.Open.Add(s.Sent.Epochs)); got != seen {
			t.Errorf("scan %q sent %+v, and the server saw %+v", args, s.Sent, seen)
		}
		return s, seen
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }

	one, _ := scan()
	if s := one.Sent; s.Epochs.Reads == 0 || s.Epochs.BytesDown == 0 || s.Open.BytesDown == 0 || s.Epochs.Writes != 0 {
		t.Errorf("%+v", s)
	}
	if c := one.Cost; c == nil || !strings.Contains(c.Prices, "Amazon S3 Standard, us-east-1") || c.Currency != "USD" ||
		!near(c.Epoch, float64(one.Sent.Epochs.Reads)*0.0004/1000+float64(one.Sent.Epochs.Lists)*0.005/1000) {
		t.Errorf("%+v of %+v", c, one.Sent)
	}
	three, _ := scan("--epochs", "3")
	// A listing that takes long is asked for twice, so that there may be one more.
	if three.Sent.Epochs.Reads < 2*one.Sent.Epochs.Reads || three.Sent.Open.Lists > one.Sent.Open.Lists+1 {
		t.Errorf("three epochs %+v, one %+v", three.Sent, one.Sent)
	}
	at.every = 5
	refused, seen := scan()
	at.every = 0
	if got := refused.Sent.Open.Unserved + refused.Sent.Epochs.Unserved; got != seen.Requests()/5 || got == 0 {
		t.Errorf("%d without an answer, of %+v", got, seen)
	}
	filtered, _ := scan("--where", "click = 1", "--downsample", "click = 0 AND sample(0.5, key=session_id, seed=7)")
	if filtered.Sent.Open.Reads <= one.Sent.Open.Reads {
		t.Errorf("a filter read nothing: %+v, without %+v", filtered.Sent, one.Sent)
	}

	prices := filepath.Join(dir, "prices.json")
	text := `{"name": "ours", "currency": "EUR", "reads_per_1000": 1, "lists_per_1000": 10, "writes_per_1000": 0,
		"down_per_gb": 1024}`
	if err := os.WriteFile(prices, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	ours, _ := scan("--prices", prices)
	if s := ours.Sent.Epochs; ours.Cost.Prices != "ours" || ours.Cost.Currency != "EUR" || !near(ours.Cost.Epoch,
		float64(s.Reads)/1000+float64(s.Lists)/100+float64(s.BytesDown)/(1<<30)*1024) {
		t.Errorf("%+v of %+v", ours.Cost, s)
	}
	text = run("scan", store, "ads", "--features", "user_*", "--prices", prices)
	if !strings.Contains(text, "EUR an epoch") || !strings.Contains(text, "(ours)") {
		t.Error(text)
	}

	t.Setenv("DSISTORE_CACHE", filepath.Join(dir, "cache"))
	t.Setenv("DSISTORE_CACHE_SIZE", "64MiB")
	cold, _ := scan()
	warm, _ := scan()
	if warm.Sent.Epochs.Reads >= cold.Sent.Epochs.Reads || warm.Sent.Epochs.BytesCached == 0 ||
		warm.Requests != cold.Requests || warm.Cost.Epoch >= cold.Cost.Epoch {
		t.Errorf("with a cache: first %+v, then %+v", cold, warm)
	}
}

// Readers of one store that read at once count each for itself.
func TestReadersCountTheirOwn(t *testing.T) {
	server := objectserver.StartS3(t, "tables")
	proxy := objectserver.StartProxy(t, server.Endpoint)
	at := &counting{}
	proxy.Break(at.see)
	options := server.Options()
	dir := t.TempDir()
	for name, value := range server.Environment() {
		t.Setenv(name, value)
	}
	for _, args := range [][]string{
		{"generate", filepath.Join(dir, "dump"), "--rows", "3000"},
		{"ingest", "s3://tables/readers", "ads", filepath.Join(dir, "dump"), "--session-key", "session_id"},
	} {
		if code := Run(t.Context(), args, strings.NewReader(""), io.Discard, os.Stderr); code != 0 {
			t.Fatal(args)
		}
	}
	options["aws_endpoint"] = proxy.URL
	blobs, err := object.OpenWith("s3://tables/readers", options)
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Open(t.Context(), blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, snap, err := store.Newest(t.Context(), "ads")
	if err != nil {
		t.Fatal(err)
	}
	features := [...]string{"user_*", "click"}
	var scanners [len(features)]*reader.Scanner
	for i, f := range features {
		plan, err := reader.NewPlan(t.Context(), snap, reader.PlanOptions{
			Features: []string{f}, BatchSize: 100, Output: reader.OutputTensors,
		})
		if err != nil {
			t.Fatal(err)
		}
		scanners[i], err = reader.Open(t.Context(), snap, plan, reader.Options{
			RoundIntegers: true, Usage: reader.UsageOptions{Off: true}, Lease: reader.LeaseOptions{Off: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer scanners[i].Close()
	}
	at.take()
	var all sync.WaitGroup
	for _, s := range scanners {
		all.Go(func() {
			for {
				b, err := s.Next(context.Background())
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				b.Release()
			}
		})
	}
	all.Wait()
	a, b := scanners[0].Stats().Traffic, scanners[1].Stats().Traffic
	if seen := at.take(); sentOnly(a.Add(b)) != seen || a.Reads == 0 || b.Reads == 0 || a.BytesDown <= b.BytesDown {
		t.Errorf("%+v and %+v, and the server saw %+v", a, b, seen)
	}
}
