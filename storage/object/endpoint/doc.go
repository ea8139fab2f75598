// Package endpoint sends HTTP requests to a service: as many at once as it takes, and a read that is late twice. It
// counts them.
//
//	Do --> limit: wait for a place --> request -----------------> answer
//	                                      \                      /
//	                                       late --> the same again: the first good answer is the answer
//
// Limit (adaptive concurrency). A service that has too many requests answers 429 or 503. Such answers halve how many
// requests are under way at once, good ones raise it again: the faster, the longer none was refused, as TCP's CUBIC
// does. So after a burst the old rate is reached within seconds, and a service that goes on refusing is not asked much
// too often. A request has its place until the body of its answer is closed. All clients of a process share the limit
// of a host.
//
// Late reads (hedged requests). A few requests of a hundred take ten times as long as the others. A GET or HEAD whose
// answer does not begin within the time of 95 of 100, or twice the median if that is longer, is sent again, and the
// slower of both is cancelled ("The Tail at Scale", Dean and Barroso, 2013). At most two of 100 requests are sent
// again, so that a service that is slow as a whole does not get more work.
//
// Stall. A request of which no byte moves for a minute is ended with a StallError: of its body while it is sent, or of
// the answer's while that is read. Between the two a transport bounds the wait.
//
// Retry. What failed for now is sent again by the stores, which sign each sending: how often and when, says Retry to
// all of them.
//
// Count. Every request that is written to a connection is counted (object.Traffic), as often as it is: for the service,
// and for the counters of its context (object.CountTraffic).
package endpoint
