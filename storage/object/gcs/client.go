package gcs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

const (
	// callTimeout bounds a request with its answer, but for reads, whose bodies may take their time. A body that is
	// sent may take longer by what a line of slowest bytes a second takes.
	callTimeout = 3 * time.Minute
	slowest     = 16 << 10
	// maxAnswer is how many bytes an answer with metadata may have.
	maxAnswer = 64 << 20
)

// newClient returns a client that follows no redirection: the service makes none, and a token must go nowhere else.
func newClient() *http.Client {
	return &http.Client{
		Transport:     endpoint.Transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// kindOf says what the service bills a request as, but for the chunks of a resumable upload, each of which is a write
// here.
func kindOf(r *http.Request) object.Kind {
	switch {
	case r.Method == http.MethodDelete || strings.HasPrefix(r.URL.Path, "/batch/"):
		return object.KindDelete
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		return object.KindWrite
	case strings.HasSuffix(r.URL.EscapedPath(), "/o") && !strings.HasSuffix(r.URL.EscapedPath(), "/o/o"): // an object's
		return object.KindList
	}
	return object.KindRead
}

// A request is sent as often as need be.
type request struct {
	method, url string
	header      http.Header
	body        [][]byte // its parts; borrowed
	unsigned    bool     // it carries no token: the URL is enough, and may lead elsewhere
}

// limit bounds a request with its answer.
func (r *request) limit() time.Duration {
	limit := callTimeout
	for _, part := range r.body {
		limit += time.Duration(len(part)) * time.Second / slowest
	}
	return limit
}

// once sends a request, and again where the service refuses its token and there may be another. The caller closes the
// answer's body. An answer that says no is an answerError.
func (s *Store) once(ctx context.Context, r *request) (*http.Response, error) {
	a, by, err := s.send(ctx, r)
	if status(err) == http.StatusUnauthorized && by != "" && s.tokens.drop(ctx, by) {
		a, _, err = s.send(ctx, r)
	}
	if cerr := ctx.Err(); err != nil && cerr != nil {
		return nil, cerr // not what was said of a token that is being replaced
	}
	return a, err
}

// send sends a request. by is the token that it carries, as its header has it; empty: none.
func (s *Store) send(ctx context.Context, r *request) (_ *http.Response, by string, _ error) {
	parts, size := make([]io.Reader, len(r.body)), int64(0)
	for i, p := range r.body {
		parts[i] = bytes.NewReader(p)
		size += int64(len(p))
	}
	var body io.Reader
	if size > 0 {
		body = io.MultiReader(parts...)
	}
	ask, err := http.NewRequestWithContext(ctx, r.method, r.url, body)
	if err != nil {
		return nil, by, bare(err)
	}
	ask.ContentLength = size
	for name, values := range r.header {
		ask.Header[name] = values
	}
	ask.Header.Set("User-Agent", "dsistore")
	if s.tokens != nil && !r.unsigned {
		if err := s.tokens.sign(ask); err != nil {
			return nil, "", err
		}
		by = ask.Header.Get("Authorization")
	}
	a, err := s.requests.Do(ask)
	if err != nil {
		return nil, by, bare(err)
	}
	goesOn := a.StatusCode == http.StatusPermanentRedirect && r.method == http.MethodPut // an upload
	if a.StatusCode < 300 || goesOn {
		return a, by, nil
	}
	defer a.Body.Close()
	return nil, by, refusal(a)
}

// again calls f until it succeeds, or its error says that it will not, or endpoint.Retry that it was enough.
func again(ctx context.Context, f func() error) error {
	retry := endpoint.NewRetry()
	for {
		err := f()
		if err == nil || !temporary(err) || ctx.Err() != nil {
			return err
		}
		if !retry.Wait(ctx, headerOf(err)) {
			return enough(ctx, retry, err)
		}
	}
}

// enough is the error of a request that is not sent again.
func enough(ctx context.Context, retry *endpoint.Retry, err error) error {
	if end := ctx.Err(); end != nil {
		return end
	}
	return fmt.Errorf("after %d attempts: %w", retry.Sent, err)
}

// call sends a request, and reads its answer.
func (s *Store) call(ctx context.Context, r *request) (header http.Header, body []byte, err error) {
	err = again(ctx, func() error {
		header, body, err = s.callOnce(ctx, r)
		return err
	})
	return header, body, err
}

// errSlow is the error of a request whose answer takes too long.
var errSlow = errors.New("no whole answer")

func (s *Store) callOnce(ctx context.Context, r *request) (http.Header, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.limit(), errSlow)
	defer cancel()
	a, err := s.once(ctx, r)
	if err == nil {
		defer a.Body.Close()
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(a.Body, maxAnswer)); err == nil {
			return a.Header, body, nil
		}
	}
	if context.Cause(ctx) == errSlow {
		err = fmt.Errorf("%w in %s", errSlow, r.limit())
	}
	return nil, nil, err
}

// callJSON sends a request, and reads its answer into out.
func (s *Store) callJSON(ctx context.Context, r *request, out any) error {
	_, body, err := s.call(ctx, r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the service's answer cannot be read: %w", err)
	}
	return nil
}
