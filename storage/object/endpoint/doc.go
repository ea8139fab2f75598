// Package endpoint sends HTTP requests to a service. It adapts the number of concurrent requests to the service, sends
// a late read a second time, and counts requests.
//
//	Do --> limit: wait for a place --> request -----------------> answer
//	                                      \                      /
//	                                       late --> the same again: the first good answer is the answer
//
// The rules and their numbers are in docs/internals/protocols.md, "Requests to an object store". How they are kept:
//
// Limit (adaptive concurrency). A request has its place until the body of its answer is closed. Answers 429
// and 503 halve the number of places, good ones raise it again as TCP's CUBIC does. All clients of a process share the
// limit of a host.
//
// Late reads (hedged requests). A GET or HEAD whose answer does not begin in time is sent again, and the slower of both
// is cancelled ("The Tail at Scale", Dean and Barroso, 2013).
//
// Stall. If no byte of a request's body, or of its answer's body, moves for too long, the request ends with a
// StallError. The transport limits the wait between the two bodies.
//
// Retry. The stores send a request again after a temporary error, and sign it anew each time. Retry says how often and
// when.
//
// Count. Each sending of a request is counted (object.Traffic), for the service and for the counters of its context
// (object.CountTraffic).
package endpoint
