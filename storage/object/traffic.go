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
	Reads, Lists, Writes, Deletes uint64 // requests that were sent
	Unserved                      uint64 // of these, those that were throttled, failed or lost
	BytesDown, BytesUp            uint64 // of bodies
	BytesCached                   uint64 // that a cache on the local disk gave instead
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

// A TrafficCounter counts Traffic. The zero value is ready, and a nil one counts nothing. Safe for concurrent use.
type TrafficCounter struct {
	sent             [kindCount]atomic.Uint64
	ended            [kindCount][outcomeCount]atomic.Uint64
	down, up, cached atomic.Uint64
}

type trafficKey struct{}

// CountTraffic returns a context whose requests c counts, and no counter of ctx does: so counters of a program's parts
// add up.
func CountTraffic(ctx context.Context, c *TrafficCounter) context.Context {
	return context.WithValue(ctx, trafficKey{}, c)
}

// TrafficOf returns the counter of a context, or nil.
func TrafficOf(ctx context.Context) *TrafficCounter {
	c, _ := ctx.Value(trafficKey{}).(*TrafficCounter)
	return c
}

// Sent counts a request that was sent, with a body of so many bytes; less than 0: nobody knows how many.
func (c *TrafficCounter) Sent(k Kind, bytes int64) {
	if c != nil {
		c.sent[k].Add(1)
		c.up.Add(uint64(max(bytes, 0)))
	}
}

// Ended counts how a request ended.
func (c *TrafficCounter) Ended(k Kind, o Outcome) {
	if c != nil {
		c.ended[k][o].Add(1)
	}
}

// Down counts bytes of an answer's body.
func (c *TrafficCounter) Down(bytes int) {
	if c != nil {
		c.down.Add(uint64(bytes))
	}
}

// Cached counts bytes that a cache gave.
func (c *TrafficCounter) Cached(bytes int) {
	if c != nil {
		c.cached.Add(uint64(bytes))
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
