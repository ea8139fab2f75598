package endpoint

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A request is sent as often as the attempts and the time allow, and no less than a few times.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		what        string
		took        time.Duration // each sending
		after       string
		sent        int
		least, most time.Duration // in all
	}{
		{"answered at once", 0, "", 16, time.Second, 60 * time.Second},
		{"slow", 30 * time.Second, "", 4, 90 * time.Second, 135 * time.Second},
		{"slower than the budget", 10 * time.Minute, "", 3, 30 * time.Minute, 31 * time.Minute},
		{"seconds", 0, "2", 16, 30 * time.Second, 90 * time.Second},
		{"too many seconds", 0, "3600", 4, 90 * time.Second, 95 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, begin := NewRetry(), time.Now()
			for {
				time.Sleep(c.took)
				if !r.Wait(t.Context(), http.Header{"Retry-After": {c.after}}) {
					break
				}
			}
			if took := time.Since(begin); r.Sent != c.sent || took < c.least || took > c.most {
				t.Errorf("%s: sent %d times in %s", c.what, r.Sent, took)
			}
		})
	}
}

// Delays grow, and differ by chance.
func TestDelays(t *testing.T) {
	var first, last, same time.Duration
	const n = 200
	for range n {
		r := &Retry{began: time.Now()}
		d, _ := r.Next(nil)
		if d == same {
			t.Error("the same delay twice")
		}
		same, first = d, first+d
		r.Sent = 10
		d, _ = r.Next(nil)
		last += d
	}
	if first/n > firstDelay || last/n < mostDelay/4 || last/n > mostDelay {
		t.Errorf("%s at first, %s at last", first/n, last/n)
	}
}

func TestRetryAfter(t *testing.T) {
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		after, date string
		least, most time.Duration
	}{
		{"", "", 0, 0}, {"7", "", 7 * time.Second, 7 * time.Second}, {"0", "", 0, 0}, {"-1", "", 0, 0},
		{"99999999999999999999", "", 0, 0}, {"4000000000", "", mostAsked, mostAsked}, {"soon", "", 0, 0},
		{date(10 * time.Second), "", 8 * time.Second, 10 * time.Second}, {date(-time.Hour), "", 0, 0},
		{date(time.Hour), "", mostAsked, mostAsked},
		// The clock of the service is an hour ahead.
		{date(time.Hour + 5*time.Second), date(time.Hour), 4 * time.Second, 6 * time.Second},
	} {
		header := http.Header{}
		if c.after != "" {
			header.Set("Retry-After", c.after)
		}
		header.Set("Date", c.date)
		if d := asked(header); d < c.least || d > c.most {
			t.Errorf("%+v: %s", c, d)
		}
	}
	if asked(nil) != 0 {
		t.Error("no answer")
	}
}

// The end of a context ends the waiting.
func TestRetryEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	if NewRetry().Wait(ctx, http.Header{"Retry-After": {"20"}}) || time.Since(begin) > 10*time.Second {
		t.Errorf("after %s", time.Since(begin))
	}
}
