package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A service answers requests after some time, and counts them. In a bubble of synctest its time costs none.
type service struct {
	took    func(n int64) time.Duration                     // of the n-th request
	status  func(n int64) int                               // nil: 200
	refuses func(underWay int64, now time.Time) (busy bool) // nil: never

	sent, underWay, most, cancelled, open atomic.Int64
}

func (s *service) Do(r *http.Request) (*http.Response, error) {
	n := s.sent.Add(1)
	now := s.underWay.Add(1)
	defer s.underWay.Add(-1)
	for m := s.most.Load(); now > m && !s.most.CompareAndSwap(m, now); m = s.most.Load() {
	}
	status := http.StatusOK
	if s.status != nil {
		status = s.status(n)
	}
	if s.refuses != nil && s.refuses(now, time.Now()) {
		status = http.StatusServiceUnavailable
	}
	select {
	case <-time.After(s.took(n)):
	case <-r.Context().Done():
		s.cancelled.Add(1)
		return nil, r.Context().Err()
	}
	s.open.Add(1)
	return &http.Response{
		StatusCode: status, Request: r,
		Body: &closing{strings.NewReader(fmt.Sprint(n)), sync.OnceFunc(func() { s.open.Add(-1) })},
	}, nil
}

// closing is a body that calls done when it is closed.
type closing struct {
	io.Reader
	done func()
}

func (c *closing) Close() error {
	c.done()
	return nil
}

func newClient(s *service) *Client { return New(s, "", nil) }

var bubbles atomic.Int64

// newHost returns a URL of a host that no other test has.
func newHost() (url, host string) {
	host = fmt.Sprintf("host%d.test", bubbles.Add(1))
	return "http://" + host + "/object", host
}

func request(t testing.TB, ctx context.Context, method, url string, payload io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, payload)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get makes a request, reads its body, and returns it.
func get(t testing.TB, c *Client, url string) (string, int) {
	t.Helper()
	answer, err := c.Do(request(t, t.Context(), http.MethodGet, url, nil))
	if err != nil {
		t.Error(err)
		return "", 0
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b), answer.StatusCode
}

// idle checks that every place is free and every body closed.
func idle(t *testing.T, s *service, host string) {
	t.Helper()
	synctest.Wait()
	if n := hostOf(host).places.taken; n != 0 {
		t.Errorf("%d places are taken", n)
	}
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d bodies are open", n)
	}
}

// One request of a hundred stalls for 2 s. Of 10,000 one after the other nearly none is waited for, and at most two of
// a hundred are sent again.
func TestLateReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 1))
		times := make([]time.Duration, 20_000)
		for i := range times {
			times[i] = 10*time.Millisecond + time.Duration(random.ExpFloat64()*float64(2*time.Millisecond))
			if random.Float64() < 0.01 {
				times[i] = 2 * time.Second
			}
		}
		s := &service{took: func(n int64) time.Duration { return times[n] }}
		url, host := newHost()
		const n = 10_000
		c, begin := newClient(s), time.Now()
		for range n {
			get(t, c, url)
		}
		took, repeated := time.Since(begin), CountsOf(host).Repeated
		if sent := s.sent.Load(); sent > n*102/100 || sent != n+repeated || repeated < n/200 {
			t.Errorf("%d requests were sent for %d, %d of them again", sent, n, repeated)
		}
		if calm := n * 12 * time.Millisecond; took > calm*11/10 {
			t.Errorf("took %s, without stalls %s", took, calm)
		}
		idle(t, s, host)
	})
}

// What is late because the whole service is slower is not sent again more often than the budget allows, and the bound
// follows.
func TestSlowerService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{took: func(n int64) time.Duration {
			if n > 1000 {
				return 500 * time.Millisecond
			}
			return 10 * time.Millisecond
		}}
		url, host := newHost()
		c := newClient(s)
		for range 3000 {
			get(t, c, url)
		}
		if n := CountsOf(host).Repeated; n == 0 || n > 60 {
			t.Errorf("%d of 3,000 requests were sent again", n)
		}
		if bound, ok := hostOf(host).times.late(); !ok || bound < 500*time.Millisecond {
			t.Errorf("late after %s", bound)
		}
		idle(t, s, host)
	})
}

// Of both sendings the first good answer is taken, whole, and an answer 500 is not while the other may be good.
func TestWhichAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took [2]time.Duration
		var status [2]int
		warm := int64(600)
		s := &service{
			took: func(n int64) time.Duration {
				if n <= warm {
					return 10 * time.Millisecond
				}
				return took[n-warm-1]
			},
			status: func(n int64) int {
				if n <= warm {
					return 200
				}
				return status[n-warm-1]
			},
		}
		url, host := newHost()
		c := newClient(s)
		for range warm {
			get(t, c, url)
		}
		const ms = time.Millisecond // late after 20
		for _, x := range []struct {
			took         [2]time.Duration
			status       [2]int
			answer, code int
			after        time.Duration
		}{
			{[2]time.Duration{500 * ms, 10 * ms}, [2]int{200, 200}, 2, 200, 30 * ms},
			{[2]time.Duration{40 * ms, 100 * ms}, [2]int{200, 200}, 1, 200, 40 * ms},
			{[2]time.Duration{40 * ms, 100 * ms}, [2]int{500, 200}, 2, 200, 120 * ms},
			{[2]time.Duration{40 * ms, 100 * ms}, [2]int{500, 503}, 1, 500, 120 * ms},
			{[2]time.Duration{100 * ms, 10 * ms}, [2]int{200, 500}, 1, 200, 100 * ms},
			{[2]time.Duration{100 * ms, 10 * ms}, [2]int{404, 404}, 2, 404, 30 * ms},
		} {
			took, status = x.took, x.status
			begin := time.Now()
			b, code := get(t, c, url)
			after := time.Since(begin)
			if b != fmt.Sprint(warm+int64(x.answer)) || code != x.code || after != x.after {
				t.Errorf("%v %v: answer %s of %d, status %d, after %s", x.took, x.status, b, warm, code, after)
			}
			time.Sleep(time.Second)
			warm = s.sent.Load()
			idle(t, s, host)
		}
	})
}

// Writes are never sent again, however late they are: a second one would meet the first.
func TestWritesAreSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{took: func(n int64) time.Duration {
			if n > 100 {
				return Stall - time.Second
			}
			return 10 * time.Millisecond
		}}
		url, host := newHost()
		c := newClient(s)
		for range 100 {
			get(t, c, url)
		}
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
			for _, payload := range []io.Reader{nil, bytes.NewReader([]byte("x"))} {
				answer, err := c.Do(request(t, t.Context(), method, url, payload))
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
			}
		}
		if s.sent.Load() != 106 {
			t.Errorf("%d requests were sent for 106", s.sent.Load())
		}
		idle(t, s, host)
	})
}

// Contexts that end give their places back: while they wait for one, and while a request is under way or sent again.
func TestContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{took: func(n int64) time.Duration {
			if n > 100 {
				return time.Hour
			}
			return 10 * time.Millisecond
		}}
		url, host := newHost()
		c := newClient(s)
		for range 100 {
			get(t, c, url)
		}
		h := hostOf(host)
		h.places.mu.Lock()
		h.places.limit = 3
		h.places.mu.Unlock()
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%7)*time.Second)
				defer cancel()
				_, err := c.Do(request(t, ctx, http.MethodGet, url, nil))
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		if s.most.Load() > 3 {
			t.Errorf("%d requests were under way at once", s.most.Load())
		}
		idle(t, s, host)
	})
}

// A service that takes 40 requests at once, and for a while none: how many are refused, and how soon the rate is back.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		burst := func(now time.Time) bool {
			d := now.Sub(begin)
			return d > 30*time.Second && d < 35*time.Second
		}
		var refused [100]atomic.Int64 // by second
		s := &service{
			took: func(int64) time.Duration { return 50 * time.Millisecond },
			refuses: func(underWay int64, now time.Time) bool {
				busy := underWay > 40 || burst(now)
				if busy {
					refused[int(now.Sub(begin).Seconds())].Add(1)
				}
				return busy
			},
		}
		url, host := newHost()
		c := newClient(s)
		var done [100]atomic.Int64 // by second
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for pause := 50 * time.Millisecond; time.Since(begin) < 60*time.Second; {
					if _, status := get(t, c, url); status == http.StatusOK {
						done[int(time.Since(begin).Seconds())].Add(1)
						pause = 50 * time.Millisecond
						continue
					}
					time.Sleep(pause)
					pause = min(2*pause, time.Second)
				}
			})
		}
		all.Wait()
		rate := func(from, to int) (n, no int64) {
			for i := from; i < to; i++ {
				n, no = n+done[i].Load(), no+refused[i].Load()
			}
			return n / int64(to-from), no / int64(to-from)
		}
		before, no := rate(10, 30)
		if before < 500 || no > before/10 { // 40 at once of 50 ms are 800 a second
			t.Errorf("%d requests a second, and %d refused", before, no)
		}
		if after, _ := rate(40, 45); after < before*8/10 {
			t.Errorf("%d requests a second before the burst, %d from 5 s after it on", before, after)
		}
		if CountsOf(host).Throttled == 0 {
			t.Error("nothing was counted")
		}
		idle(t, s, host)
	})
}

// slow is a service that takes a piece of a request's body, and gives one of its answer's, after each time so long.
type slow struct{ takes, gives time.Duration }

func (s slow) Do(r *http.Request) (*http.Response, error) {
	wait := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	for r.Body != nil {
		if err := wait(s.takes); err != nil {
			return nil, err
		}
		if _, err := r.Body.Read(make([]byte, 1)); err == io.EOF {
			break
		}
	}
	left := 5
	body := readerFunc(func(p []byte) (int, error) {
		if left--; left < 0 {
			return 0, io.EOF
		}
		return 1, wait(s.gives)
	})
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(body)}, nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A request of which no byte moves for a minute is ended, whatever part of it, and one that is slow is not: nor one
// whose answer nobody reads.
func TestStall(t *testing.T) {
	const fast, late = 40 * time.Second, 2 * time.Minute
	for _, c := range []struct {
		what   string
		s      slow
		method string
		stalls bool
	}{
		{"slow", slow{fast, fast}, http.MethodPut, false}, {"slow read", slow{0, fast}, http.MethodGet, false},
		{"request", slow{late, 0}, http.MethodPut, true}, {"answer to a write", slow{0, late}, http.MethodPost, true},
		{"answer to a read", slow{0, late}, http.MethodGet, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			url, host := newHost()
			client := New(c.s, "", nil)
			var payload io.Reader
			if c.method != http.MethodGet {
				payload = strings.NewReader("12345")
			}
			begin := time.Now()
			answer, err := client.Do(request(t, t.Context(), c.method, url, payload))
			if err == nil {
				time.Sleep(time.Hour)
				begin = begin.Add(time.Hour)
				_, err = io.ReadAll(answer.Body)
				_ = answer.Body.Close()
			}
			var stalled *StallError
			if errors.As(err, &stalled) != c.stalls || !c.stalls && err != nil || errors.Is(err, context.Canceled) ||
				c.stalls && (time.Since(begin) > Stall+time.Second || err.Error() != "no byte for 60 s") {
				t.Errorf("%s: %v after %s", c.what, err, time.Since(begin))
			}
			if n := hostOf(host).places.taken; n != 0 {
				t.Errorf("%s: %d places are taken", c.what, n)
			}
		})
	}
}
