// Package endpoint sends HTTP requests to a service. It adapts the number of concurrent requests to the service, sends
// a late read a second time, and counts requests.
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
// Stall. If no byte of a request's body, or of its answer's body, moves for a minute, the request ends with a
// StallError. The transport limits the wait between the two bodies.
//
// Retry. The stores send a request again after a temporary error, and sign it anew each time. Retry says how often and
// when.
//
// Count. Each sending of a request is counted (object.Traffic), for the service and for the counters of its context
// (object.CountTraffic).
package endpoint
