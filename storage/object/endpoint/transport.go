package endpoint

import (
	"net"
	"net/http"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// HeaderTimeout bounds the wait for the first byte of an answer. A server of S3 may work at the completion of an upload
// for minutes, but sends white space meanwhile.
const HeaderTimeout = 60 * time.Second

// Transport returns a transport that keeps as many idle connections as a reader has requests at once. Requests at once
// have a connection each: over HTTP/2 they would share one, and its bandwidth.
func Transport() *http.Transport {
	var one http.Protocols
	one.SetHTTP1(true)
	return &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,

		Protocols:             &one,
		MaxIdleConnsPerHost:   2 * object.RequestsAtOnce,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: HeaderTimeout,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        64 << 10,
		WriteBufferSize:       64 << 10,
		DisableCompression:    true,
	}
}
