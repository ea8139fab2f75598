package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/s3"
)

// TestFaultyService is TestMetamorphic with the table in a server of S3 of which one request of 15 goes wrong. Which
// ones is drawn anew each time: a seed does not say it.
func TestFaultyService(t *testing.T) {
	if race.Enabled {
		t.Skip("not under the race detector: requests would time out")
	}
	const bucket = "tables"
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	var requests, broken atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		requests.Add(1)
		if rand.IntN(15) > 0 {
			return objectserver.Fault{}
		}
		broken.Add(1)
		return drawFault(r)
	})
	options := server.Options()
	options["aws_endpoint"] = proxy.URL
	n := runSeeds(t, 2, 15, func(seed uint64) Options {
		uri := fmt.Sprintf("s3://%s/%d", bucket, seed)
		return Options{Open: func() (object.Store, error) { return object.OpenWith(uri, options) }}
	})
	t.Logf("%d seeds: %d of %d requests went wrong", n, broken.Load(), requests.Load())
}

// drawFault draws what may happen to a request between a service and its client, and what a service may answer.
func drawFault(r *http.Request) objectserver.Fault {
	if *hours > 0 && rand.IntN(50) == 0 {
		return objectserver.Fault{Stall: 21 * time.Second} // longer than a client waits for a byte
	}
	faults := []objectserver.Fault{
		{Lost: true}, {Dropped: true}, {Cut: 1 + rand.Int64N(2000)}, {Stall: 200 * time.Millisecond},
		{Delay: time.Duration(rand.Int64N(int64(300 * time.Millisecond)))},
		{Status: http.StatusConflict, Code: "OperationAborted"},
		{Status: http.StatusTooManyRequests, Code: "TooManyRequests"},
		{Status: http.StatusInternalServerError, Code: "InternalError"},
		{Status: http.StatusServiceUnavailable, Code: "SlowDown"},
		{Status: http.StatusServiceUnavailable, Code: "SlowDown", Lost: true}, // a gateway's, whose server did it
	}
	if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Match") != "" && r.Method != http.MethodGet {
		// It was done, and done again by somebody between: the answer is the second one's.
		again := objectserver.Fault{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Lost: true}
		faults = append(faults, again, again, again)
	}
	return faults[rand.IntN(len(faults))]
}
