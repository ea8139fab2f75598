package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// seen is what a server was asked, by what AWS's price list calls it.
type seen struct {
	mu   sync.Mutex
	n    map[string]uint64
	rule func(n uint64, r *http.Request) objectserver.Fault // of the n-th request; nil: none
}

func (s *seen) see(r *http.Request) objectserver.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	switch {
	case r.Method == "GET" && (q.Get("list-type") == "2" || q.Has("uploads")):
		s.n["list"]++
	case r.Method == "GET", r.Method == "HEAD":
		s.n["read"]++
	case r.Method == "DELETE", r.Method == "POST" && q.Has("delete"):
		s.n["delete"]++
	case r.Method == "PUT", r.Method == "POST":
		s.n["write"]++
	default:
		s.n[r.Method]++
	}
	s.n["all"]++
	if s.rule == nil {
		return objectserver.Fault{}
	}
	return s.rule(s.n["all"], r)
}

func (s *seen) traffic() object.Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return object.Traffic{Reads: s.n["read"], Lists: s.n["list"], Writes: s.n["write"], Deletes: s.n["delete"]}
}

// requests are the counts of requests alone.
func requests(t object.Traffic) object.Traffic {
	return object.Traffic{Reads: t.Reads, Lists: t.Lists, Writes: t.Writes, Deletes: t.Deletes}
}

func ofService() (t object.Traffic) {
	endpoint.EachService(func(name string, c *object.TrafficCounter) {
		if name == "s3" {
			t = c.Traffic()
		}
	})
	return t
}

// What is counted is what the server was sent: pages of lists, parts of uploads, and requests that are sent again after
// errors, broken connections and bodies, and because they were late.
func TestTraffic(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := open(t, server, proxy)
	at := &seen{n: map[string]uint64{}}
	proxy.Break(at.see)
	var c object.TrafficCounter
	ctx := object.CountTraffic(t.Context(), &c)
	before := ofService()
	check := func(step string) {
		t.Helper()
		// A request that is cancelled, as one of two reads is when the other answers, may reach the server a little
		// later, or never.
		got, want := requests(c.Traffic()), at.traffic()
		for end := time.Now().Add(5 * time.Second); got != want && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
			got, want = requests(c.Traffic()), at.traffic()
		}
		if lost := got.Reads - want.Reads; got.Reads > want.Reads && lost <= 3 {
			t.Logf("after %s: %d reads were cancelled before they reached the server", step, lost)
			got.Reads = want.Reads
		}
		if got != want || want.Requests() == 0 {
			t.Errorf("after %s: counted %+v, the server saw %+v", step, got, want)
		}
	}

	all := func(step string) {
		names := make([]string, 1030)
		for i := range names {
			names[i] = fmt.Sprintf("%s/%04d", step, i)
		}
		must(t, object.Parallel(ctx, 16, len(names), func(ctx context.Context, i int) error {
			return s.PutIfAbsent(ctx, names[i], []byte(names[i]))
		}))
		n := 0
		for _, err := range s.List(ctx, step+"/", "") {
			must(t, err)
			n++
		}
		if n != len(names) {
			t.Fatalf("%d names", n)
		}
		must(t, put(ctx, s, step+"-parts", large(20<<20))) // begins, 3 parts, completes
		must(t, object.Parallel(ctx, 16, 100, func(ctx context.Context, i int) error {
			return s.ReadAt(ctx, step+"-parts", make([]byte, 100_000), int64(i)*200_000)
		}))
		_, err := s.Stat(ctx, step+"-parts")
		must(t, err)
		if _, err := s.Stat(ctx, "none"); !errors.Is(err, object.ErrNotFound) {
			t.Fatal(err)
		}
		if err := s.PutIfAbsent(ctx, names[0], nil); !errors.Is(err, object.ErrExists) {
			t.Fatal(err)
		}
		must(t, s.Delete(ctx, step+"-parts"))
		must(t, object.DeleteAll(ctx, s, names))
		w, err := s.(interface {
			CreateInParts(context.Context, string) (object.Writer, error)
		}).CreateInParts(ctx, "aborted")
		must(t, err)
		w.Abort()
	}
	all("calm")
	check("calm")
	calm := c.Traffic()
	want := object.Traffic{Reads: 103, Lists: 2, Writes: 1030 + 5 + 1 + 1, Deletes: 4}
	got := requests(calm)
	if got.Reads < want.Reads || got.Reads > want.Reads+5 { // a slow machine makes reads late
		t.Errorf("%d reads, want %d", got.Reads, want.Reads)
	}
	if got.Reads = want.Reads; got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if calm.Unserved != 0 || calm.BytesDown < 100*100_000 || calm.BytesUp < 20<<20 {
		t.Errorf("counted %+v", calm)
	}

	at.mu.Lock()
	at.rule = func(n uint64, r *http.Request) (f objectserver.Fault) {
		switch {
		case n%13 == 0:
			f = objectserver.Fault{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
		case n%29 == 0 && r.Method == http.MethodGet:
			f = objectserver.Fault{Lost: true}
		case n%17 == 0 && r.Method == http.MethodGet:
			f = objectserver.Fault{Cut: 1000}
		}
		return f
	}
	at.mu.Unlock()
	all("broken")
	check("errors")
	if broken := c.Traffic(); broken.Requests() < calm.Requests()*2+100 || broken.Unserved < calm.Requests()/13 {
		t.Errorf("counted %+v after errors, %+v before", broken, calm)
	}

	must(t, s.PutIfAbsent(ctx, "late", large(1000)))
	at.mu.Lock()
	at.rule = func(n uint64, _ *http.Request) objectserver.Fault {
		if n%50 == 0 {
			return objectserver.Fault{Delay: 2 * time.Second}
		}
		return objectserver.Fault{Delay: time.Millisecond}
	}
	at.mu.Unlock()
	sent := c.Traffic().Reads
	for range 400 {
		must(t, s.ReadAt(ctx, "late", make([]byte, 1000), 0))
	}
	check("late reads")
	if again := c.Traffic().Reads - sent - 400; again == 0 {
		t.Error("no read was sent again")
	}
	if got := requests(ofService()); got != requests(before.Add(c.Traffic())) {
		t.Errorf("the process counts %+v, was at %+v before, and this is all of it: %+v", got, before, c.Traffic())
	}
}
