package gcs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sessions holds resumable uploads as Google's documentation says, which fake-gcs-server does not: a chunk must begin
// where the last one ended, "bytes */*" asks how much there is, and DELETE ends an upload with 499. An upload that is
// whole is given to the server behind it by one request, with the condition. So is everything else.
type sessions struct {
	*httptest.Server
	t     *testing.T
	to    *url.URL
	keeps int // > 0: at most so many bytes of a request are kept

	mu  sync.Mutex
	all map[string]*session // guarded by mu
}

type session struct {
	mu     sync.Mutex
	name   string
	about  json.RawMessage
	data   []byte
	status int // of the end; 0: it goes on
	answer []byte
}

func startSessions(t *testing.T, endpoint string) *sessions {
	t.Helper()
	to, err := url.Parse(endpoint)
	must(t, err)
	s := &sessions{t: t, to: to, all: map[string]*session{}}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("uploadType") == "resumable" {
			s.serve(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// open returns how many uploads have neither ended nor been cancelled.
func (s *sessions) open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.status == 0 {
			n++
		}
	}
	return n
}

// forget forgets all uploads.
func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.all)
}

func (s *sessions) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id := r.URL.Query().Get("upload_id")
	s.mu.Lock()
	one := s.all[id]
	if r.Method == http.MethodPost && id == "" {
		var about struct{ Name string }
		if err := json.Unmarshal(body, &about); err != nil || r.URL.Query().Get("ifGenerationMatch") != "0" {
			s.t.Errorf("%s: %v", r.URL, err)
		}
		bucket := strings.Split(r.URL.Path, "/")[5]
		if a, err := http.Get(s.to.String() + "/storage/v1/b/" + bucket); err != nil || a.StatusCode != http.StatusOK {
			s.mu.Unlock()
			w.WriteHeader(http.StatusNotFound)
			return
		}
		id = strconv.Itoa(len(s.all) + 1)
		s.all[id] = &session{name: about.Name, about: body}
		s.mu.Unlock()
		w.Header().Set("Location", fmt.Sprintf("http://%s%s?uploadType=resumable&upload_id=%s", r.Host, r.URL.Path, id))
		return
	}
	s.mu.Unlock()
	if one == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	switch {
	case r.Method == http.MethodDelete:
		one.status = 499
		w.WriteHeader(499)
	case one.status != 0:
		w.WriteHeader(one.status)
		_, _ = w.Write(one.answer)
	default:
		s.chunk(w, r, one, body)
	}
}

func (s *sessions) chunk(w http.ResponseWriter, r *http.Request, one *session, body []byte) {
	span, size, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
	if span != "*" {
		var first, last int
		if _, err := fmt.Sscanf(span, "%d-%d", &first, &last); err != nil || last-first+1 != len(body) {
			s.t.Errorf("Content-Range %q of %d bytes", r.Header.Get("Content-Range"), len(body))
		}
		if first != len(one.data) || size == "*" && len(body)%(256<<10) != 0 {
			w.WriteHeader(http.StatusServiceUnavailable) // as the service: ask how much there is
			return
		}
		if s.keeps > 0 && len(body) > s.keeps {
			body = body[:s.keeps]
		}
		one.data = append(one.data, body...)
	}
	if size == "*" || size != strconv.Itoa(len(one.data)) {
		if len(one.data) > 0 {
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(one.data)-1))
		}
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	const boundary = "a-boundary-that-no-test-writes"
	var whole bytes.Buffer
	fmt.Fprintf(&whole, "--%[1]s\r\nContent-Type: application/json\r\n\r\n%[2]s\r\n"+
		"--%[1]s\r\nContent-Type: a/b\r\n\r\n%[3]s\r\n--%[1]s--\r\n", boundary, one.about, one.data)
	a, err := http.Post(s.to.String()+r.URL.Path+"?uploadType=multipart&ifGenerationMatch=0",
		"multipart/related; boundary="+boundary, &whole)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer a.Body.Close()
	answer, _ := io.ReadAll(a.Body)
	if a.StatusCode != http.StatusTooManyRequests {
		one.answer, one.status = answer, a.StatusCode
	}
	w.WriteHeader(a.StatusCode)
	_, _ = w.Write(answer)
}

var written = regexp.MustCompile(`"name":"([^"]*)"`)

// startLimited starts what passes one write of a name per second on to a server, and refuses others as the service
// does: whether they would have an effect or not. refused says how many.
func startLimited(t *testing.T, endpoint string) (at string, refused *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(endpoint)
	must(t, err)
	refused = &atomic.Int64{}
	var mu sync.Mutex
	last := map[string]time.Time{} // by name; guarded by mu
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("uploadType") == "multipart" {
			body, err := io.ReadAll(r.Body)
			name := written.FindSubmatch(body)
			if err != nil || name == nil {
				t.Errorf("%s: %v", r.URL, err)
				return
			}
			mu.Lock()
			now := time.Now()
			late := now.Sub(last[string(name[1])]) >= time.Second
			if late {
				last[string(name[1])] = now
			}
			mu.Unlock()
			if !late {
				refused.Add(1)
				w.Header().Set("Content-Type", "application/json; charset=UTF-8")
				w.WriteHeader(http.StatusTooManyRequests)
				text := fmt.Sprintf("The object tables/%s exceeded the rate limit for object mutation operations "+
					"(create, update, and delete). Please reduce your request rate.", name[1])
				fmt.Fprintf(w, `{"error": {"code": 429, "message": %q, "errors": [{"message": %[1]q, "domain": `+
					`"usageLimits", "reason": "rateLimitExceeded"}]}}`, text)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, refused
}
