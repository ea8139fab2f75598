package endpoint

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/storage/object"
)

var services sync.Map // *object.TrafficCounter by name

func trafficOf(service string) *object.TrafficCounter {
	c, _ := services.LoadOrStore(service, new(object.TrafficCounter))
	return c.(*object.TrafficCounter)
}

// EachService calls f with what this process has sent to each service, all its stores together.
func EachService(f func(service string, c *object.TrafficCounter)) {
	services.Range(func(name, c any) bool {
		f(name.(string), c.(*object.TrafficCounter))
		return true
	})
}

// count returns a request that is counted when it is written to a connection: a transport writes one again whose
// connection the service had closed, and none that is cancelled before. ended and down count what comes back.
func (c *Client) count(r *http.Request) (_ *http.Request, ended func(*http.Response, error), down func(bytes int)) {
	if c.all == nil {
		return r, func(*http.Response, error) {}, func(int) {}
	}
	kind, scope := c.kindOf(r), object.TrafficOf(r.Context()).Within(c.all)
	ctx, up := r.Context(), r.ContentLength
	var sent atomic.Int64
	wrote := func() {
		sent.Add(1)
		scope.Sent(kind, up)
	}
	trace := httptrace.ClientTrace{WroteHeaders: wrote} // of a body the service may see a part
	if r.Body == nil || r.Body == http.NoBody {
		up = 0
		trace = httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				wrote()
			}
		}}
	}
	traced := r.WithContext(httptrace.WithClientTrace(ctx, &trace))
	ended = func(answer *http.Response, err error) {
		o := outcomeOf(answer, err)
		var stalled *StallError
		if err != nil && ctx.Err() != nil && !errors.As(err, &stalled) {
			o = object.OutcomeCanceled
		}
		for n := sent.Load(); n > 0; n-- {
			scope.Ended(kind, o)
			o = object.OutcomeLost // of those that the transport sent before
		}
	}
	return traced, ended, scope.Down
}

func outcomeOf(answer *http.Response, err error) object.Outcome {
	switch {
	case err != nil:
		return object.OutcomeLost
	case throttled(answer):
		return object.OutcomeThrottled
	case answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusRequestTimeout:
		return object.OutcomeFailed
	case answer.StatusCode >= http.StatusBadRequest:
		return object.OutcomeRefused
	}
	return object.OutcomeOK
}
