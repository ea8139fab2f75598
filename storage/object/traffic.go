package object

import (
	"context"
	"sync/atomic"
)

// A Kind is what a service of stores bills a request as.
type Kind int

const (
	KindRead   Kind = iota // bytes of an object, or what describes it or the bucket
	KindList               // a page of names
	KindWrite              // makes or replaces an object, or begins, continues or ends an upload
	KindDelete             // of one object or many, or of an upload
	kindCount
)

var kindNames = [kindCount]string{"read", "list", "write", "delete"}

// An Outcome is how a service answered a request.
type Outcome int

const (
	OutcomeOK        Outcome = iota // 2xx and 3xx
	OutcomeRefused                  // 4xx: there is no such object, there is one already, it may not be read
	OutcomeThrottled                // 429 and 503
	OutcomeFailed                   // 408 and other 5xx
	OutcomeLost                     // the connection gave no answer
	OutcomeCanceled                 // nobody waits any more: another sending of it was faster, or the caller gave up
	outcomeCount
)

var outcomeNames = [outcomeCount]string{"ok", "refused", "throttled", "failed", "lost", "canceled"}

// Traffic is what a service of stores was sent and what it gave, as it bills them: a request counts as often as it was
// sent, so that retries and hedged requests count again, and what a cache on the local disk answered is no request.
// Stores on the local disk have none.
type Traffic struct {
	// Requests that were sent.
	Reads   uint64 `json:"reads"`
	Lists   uint64 `json:"lists"`
	Writes  uint64 `json:"writes"`
	Deletes uint64 `json:"deletes"`
	// Unserved are those of them that were throttled, failed or lost.
	Unserved uint64 `json:"unserved"`
	// Bytes of bodies, and those that a cache on the local disk gave instead.
	BytesDown   uint64 `json:"bytes_down"`
	BytesUp     uint64 `json:"bytes_up"`
	BytesCached uint64 `json:"bytes_cached"`
}

// Requests returns the number of requests of all kinds.
func (t Traffic) Requests() uint64 { return t.Reads + t.Lists + t.Writes + t.Deletes }

// Add returns the sum.
func (t Traffic) Add(o Traffic) Traffic {
	return Traffic{
		Reads: t.Reads + o.Reads, Lists: t.Lists + o.Lists, Writes: t.Writes + o.Writes, Deletes: t.Deletes + o.Deletes,
		Unserved: t.Unserved + o.Unserved, BytesDown: t.BytesDown + o.BytesDown, BytesUp: t.BytesUp + o.BytesUp,
		BytesCached: t.BytesCached + o.BytesCached,
	}
}

// A TrafficCounter counts Traffic. The zero value is ready. Safe for concurrent use.
type TrafficCounter struct {
	sent             [kindCount]atomic.Uint64
	ended            [kindCount][outcomeCount]atomic.Uint64
	down, up, cached atomic.Uint64
}

// A TrafficScope is where traffic is counted: by a counter, and by those of the scopes around it. nil: nowhere.
type TrafficScope struct {
	counter *TrafficCounter
	outer   *TrafficScope
}

// Within returns the scope of another counter within s.
func (s *TrafficScope) Within(c *TrafficCounter) *TrafficScope {
	return &TrafficScope{counter: c, outer: s}
}

type trafficKey struct{}

// CountTraffic returns a context whose traffic c counts, beside the counters of ctx.
func CountTraffic(ctx context.Context, c *TrafficCounter) context.Context {
	return context.WithValue(ctx, trafficKey{}, TrafficOf(ctx).Within(c))
}

// TrafficOf returns the scope of a context.
func TrafficOf(ctx context.Context) *TrafficScope {
	s, _ := ctx.Value(trafficKey{}).(*TrafficScope)
	return s
}

// Sent counts a request that was sent, with a body of so many bytes; less than 0: nobody knows how many.
func (s *TrafficScope) Sent(k Kind, bytes int64) {
	for ; s != nil; s = s.outer {
		s.counter.sent[k].Add(1)
		s.counter.up.Add(uint64(max(bytes, 0)))
	}
}

// Ended counts how a request ended.
func (s *TrafficScope) Ended(k Kind, o Outcome) {
	for ; s != nil; s = s.outer {
		s.counter.ended[k][o].Add(1)
	}
}

// Down counts bytes of an answer's body.
func (s *TrafficScope) Down(bytes int) {
	for ; s != nil; s = s.outer {
		s.counter.down.Add(uint64(bytes))
	}
}

// Cached counts bytes that a cache gave.
func (s *TrafficScope) Cached(bytes int) {
	for ; s != nil; s = s.outer {
		s.counter.cached.Add(uint64(bytes))
	}
}

// Traffic returns what was counted so far. Requests that are under way are among those that were sent.
func (c *TrafficCounter) Traffic() Traffic {
	t := Traffic{
		Reads: c.sent[KindRead].Load(), Lists: c.sent[KindList].Load(), Writes: c.sent[KindWrite].Load(),
		Deletes: c.sent[KindDelete].Load(), BytesDown: c.down.Load(), BytesUp: c.up.Load(),
		BytesCached: c.cached.Load(),
	}
	for k := range c.ended {
		for _, o := range [...]Outcome{OutcomeThrottled, OutcomeFailed, OutcomeLost} {
			t.Unserved += c.ended[k][o].Load()
		}
	}
	return t
}

// EachEnded calls f with how many requests have ended, by kind and outcome, those that there were none of left out.
func (c *TrafficCounter) EachEnded(f func(kind, outcome string, n uint64)) {
	for k := range c.ended {
		for o := range c.ended[k] {
			if n := c.ended[k][o].Load(); n > 0 {
				f(kindNames[k], outcomeNames[o], n)
			}
		}
	}
}
