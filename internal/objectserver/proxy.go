package objectserver

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Fault is what happens to one request.
type Fault struct {
	Status  int           // answered instead of the server, which gets nothing unless Lost; 0: it is asked
	Code    string        // S3's error code, with Status
	Lost    bool          // the server does it, and its answer is not passed on: Status is, or the connection ends
	Dropped bool          // the server gets nothing, and the connection ends
	Then    func()        // called, with Lost, when the server has done it
	Cut     int64         // > 0: the body of the answer ends after so many bytes, and the connection
	Stall   time.Duration // before the body of the answer, after its header
	Delay   time.Duration // before the server is asked
}

// body is that of an answer with Status.
func (f Fault) body() string {
	return "<Error><Code>" + f.Code + "</Code><Message>injected</Message></Error>"
}

// A Proxy passes requests on to a server, as its rule says.
type Proxy struct {
	URL string

	requests, bytes atomic.Int64

	mu   sync.Mutex
	rule func(*http.Request) Fault // guarded by mu
}

// Counts returns how many requests there were so far, and how many bytes the bodies of the server's answers had.
func (p *Proxy) Counts() (requests, bytes int64) { return p.requests.Load(), p.bytes.Load() }

// StartProxy starts a proxy to an endpoint. It ends with the test.
func StartProxy(t testing.TB, endpoint string) *Proxy {
	t.Helper()
	p, stop, err := RunProxy(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return p
}

// RunProxy starts a proxy to an endpoint, which stop ends.
func RunProxy(endpoint string) (_ *Proxy, stop func(), err error) {
	address, err := url.Parse(endpoint)
	if err != nil {
		return nil, nil, err
	}
	p := &Proxy{}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(address)
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(r *http.Response) error {
			f, _ := r.Request.Context().Value(faultKey{}).(Fault)
			r.Body = &counted{r.Body, &p.bytes}
			if f.Lost {
				_, _ = io.Copy(io.Discard, r.Body)
				if f.Then != nil {
					f.Then()
				}
				if f.Status == 0 {
					panic(http.ErrAbortHandler)
				}
				body := f.body()
				r.Header = http.Header{
					"Content-Type": {"application/xml"}, "Content-Length": {strconv.Itoa(len(body))},
				}
				r.StatusCode, r.Body = f.Status, io.NopCloser(strings.NewReader(body))
			}
			if f.Stall > 0 || f.Cut > 0 {
				r.Body = &broken{ReadCloser: r.Body, f: f}
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     quiet,
	}
	// What is to end or stall within a body: the client gets what comes before.
	within := *pass
	within.FlushInterval = -1
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		p.mu.Lock()
		rule := p.rule
		p.mu.Unlock()
		var f Fault
		if rule != nil {
			f = rule(r)
		}
		time.Sleep(f.Delay)
		if f.Dropped {
			panic(http.ErrAbortHandler)
		}
		if f.Status != 0 && !f.Lost {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(f.Status)
			_, _ = io.WriteString(w, f.body())
			return
		}
		to := pass
		if f.Stall > 0 || f.Cut > 0 {
			to = &within
		}
		to.ServeHTTP(w, r.WithContext(withFault(r.Context(), f)))
	}))
	s.Config.ErrorLog = quiet
	s.Start()
	p.URL = s.URL
	return p, s.Close, nil
}

// Break sets what happens to each request from now on; nil: nothing. rule is called by many goroutines.
func (p *Proxy) Break(rule func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// counted is a body whose bytes are counted.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// broken is a body that stalls or ends early.
type broken struct {
	io.ReadCloser
	f    Fault
	read int64
}

func (b *broken) Read(p []byte) (int, error) {
	if b.f.Stall > 0 {
		time.Sleep(b.f.Stall)
		b.f.Stall = 0
	}
	if b.f.Cut > 0 {
		if b.read >= b.f.Cut {
			panic(http.ErrAbortHandler) // the connection ends, and not the answer
		}
		p = p[:min(int64(len(p)), b.f.Cut-b.read)]
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err
}

type faultKey struct{}

func withFault(ctx context.Context, f Fault) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}

var quiet = log.New(io.Discard, "", 0)
