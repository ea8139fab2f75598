package gcs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

const (
	chunkBytes = 8 << 20 // the service wants a multiple of 256 KiB
	// abortTimeout bounds what Abort waits for the service, which forgets uploads that are left after a week.
	abortTimeout = 30 * time.Second
)

// errEnded is the error of a writer that was committed or aborted.
var errEnded = errors.New("the writer has ended")

// A writer is a resumable upload: none before there is more than a chunk. It holds two chunks at most: one is on its
// way, and one is being filled. Its owner's goroutine uses it.
type writer struct {
	s    *Store
	ctx  context.Context // of Create
	name string
	key  string
	id   string // that the object carries: see Store.made

	chunk, spare []byte
	session      string     // URL of the upload, as good as a credential; "": it was not begun
	sent         int64      // bytes before chunk
	sending      chan error // gets the error of the chunk that is on its way; nil: none is
	cancel       func()     // of that one
	err          error      // of a chunk: the upload is lost
	ended        bool
}

// Create starts an object. It makes no request.
func (s *Store) Create(ctx context.Context, name string) (object.Writer, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("object %s: %w", name, err)
	}
	return &writer{s: s, ctx: ctx, name: name, key: key, id: rand.Text()}, nil
}

// CreateInParts is Create with a resumable upload however small the object is: object.Probe tests a service by it.
func (s *Store) CreateInParts(ctx context.Context, name string) (object.Writer, error) {
	w, err := s.Create(ctx, name)
	if err == nil {
		err = w.(*writer).begin()
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// usable returns an error if the writer or the context of its Create has ended.
func (w *writer) usable() error {
	if w.ended {
		return fmt.Errorf("object %s: %w", w.name, errEnded)
	}
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("object %s: the context that it was created under has ended: %w", w.name, err)
	}
	return w.err
}

// Write copies p into chunks, and sends those that are full. The error of a chunk is that of a later Write or of
// Commit. It may match ErrExists before Commit: the service looks when an upload begins, too.
func (w *writer) Write(p []byte) (int, error) {
	n := len(p)
	if err := w.usable(); err != nil {
		return 0, err
	}
	for len(p) > 0 {
		if len(w.chunk) == chunkBytes {
			if err := w.send(); err != nil {
				return 0, err
			}
		}
		k := min(len(p), chunkBytes-len(w.chunk))
		w.chunk = append(w.chunk, p[:k]...)
		p = p[k:]
	}
	return n, nil
}

// send starts sending the chunk, which is full and not the last. It begins the upload if need be, and waits for the
// chunk before.
func (w *writer) send() error {
	if w.session == "" {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if err := w.wait(w.ctx); err != nil {
		return err
	}
	chunk, from, done := w.chunk, w.sent, make(chan error, 1)
	w.sent += int64(len(chunk))
	if w.spare == nil {
		w.spare = make([]byte, 0, chunkBytes)
	}
	w.chunk, w.spare = w.spare[:0], chunk
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(w.ctx)
	w.sending = done
	go func() { done <- w.s.resume(ctx, w.session, chunk, from, -1) }()
	return nil
}

// wait waits for the chunk that is on its way, which ends with ctx.
func (w *writer) wait(ctx context.Context) error {
	if w.sending != nil {
		defer context.AfterFunc(ctx, w.cancel)()
		w.err = w.s.wrap(ctx, w.name, <-w.sending)
		w.cancel()
		w.sending = nil
	}
	return w.err
}

// begin begins the upload.
func (w *writer) begin() error {
	about, err := json.Marshal(newMetadata(w.key, w.id))
	if err != nil {
		return err
	}
	header, _, err := w.s.call(w.ctx, &request{
		method: http.MethodPost,
		url:    w.s.uploads(url.Values{"uploadType": {"resumable"}, "ifGenerationMatch": {"0"}}),
		header: http.Header{
			"Content-Type": {"application/json; charset=UTF-8"}, "X-Upload-Content-Type": {contentType},
		},
		body: [][]byte{about},
	})
	if err != nil {
		return w.s.noBucket(w.ctx, w.name, err)
	}
	u, err := url.Parse(header.Get("Location"))
	if err != nil || u.Host == "" || u.Scheme != "https" && !strings.HasPrefix(w.s.endpoint, "http://") {
		return fmt.Errorf("object %s: the service does not say where to upload to", w.name)
	}
	w.session = u.String()
	return nil
}

// resume sends a chunk of an upload, and what is left of it where the service has kept a part. total is the object's
// size, with its last chunk; else -1.
func (s *Store) resume(ctx context.Context, session string, chunk []byte, from, total int64) error {
	size := "*"
	if total >= 0 {
		size = strconv.FormatInt(total, 10)
	}
	done, ask := 0, false // ask how much the service has, before anything is sent
	retry := endpoint.NewRetry()
	for {
		r := &request{method: http.MethodPut, url: session, unsigned: true, header: http.Header{}}
		if rest := chunk[done:]; ask || len(rest) == 0 { // of an object without bytes
			r.header.Set("Content-Range", "bytes */"+size)
		} else {
			at := from + int64(done)
			r.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%s", at, at+int64(len(rest))-1, size))
			r.body = [][]byte{rest}
		}
		kept, complete, err := s.resumeOnce(ctx, r)
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !temporary(err):
			return gone(err)
		case err != nil:
			ask = true
		case complete && total >= 0:
			return nil
		case complete:
			return errors.New("the service has ended the upload before its end")
		case kept < from+int64(done) || kept > from+int64(len(chunk)):
			return fmt.Errorf("the service has %d bytes of the upload, and was sent those from %d to %d", kept, from,
				from+int64(len(chunk)))
		default:
			more := kept > from+int64(done)
			done = int(kept - from)
			if done == len(chunk) && total < 0 {
				return nil
			}
			if ask = false; more {
				retry = endpoint.NewRetry() // it goes on
				continue
			}
		}
		if !retry.Wait(ctx, headerOf(err)) {
			if err == nil {
				err = errors.New("the service keeps nothing of what is sent")
			}
			return enough(ctx, retry, err)
		}
	}
}

// resumeOnce sends a request of an upload. complete: the object is made; else the service has as many bytes as kept.
func (s *Store) resumeOnce(ctx context.Context, r *request) (kept int64, complete bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errSlow)
	defer cancel()
	a, err := s.once(ctx, r)
	if err != nil {
		if context.Cause(ctx) == errSlow {
			err = fmt.Errorf("%w in %s", errSlow, callTimeout)
		}
		return 0, false, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusPermanentRedirect {
		return 0, true, nil
	}
	had := a.Header.Get("Range")
	if had == "" {
		return 0, false, nil
	}
	last, ok := strings.CutPrefix(had, "bytes=0-")
	end, err := strconv.ParseInt(last, 10, 64)
	if !ok || err != nil {
		return 0, false, fmt.Errorf("the service says that it has %q of the upload", had)
	}
	return end + 1, false, nil
}

// gone is the error of a session that there is no more: it says nothing about an object.
func gone(err error) error {
	if s := status(err); s == http.StatusNotFound || s == http.StatusGone {
		return fmt.Errorf("the upload is gone (%d)", s)
	}
	return err
}

// Commit makes the object: by one request where it is no more than a chunk.
func (w *writer) Commit(ctx context.Context) error {
	if err := w.usable(); err != nil {
		w.Abort()
		return err
	}
	if err := ctx.Err(); err != nil {
		w.Abort()
		return fmt.Errorf("object %s: %w", w.name, err)
	}
	// It ends with the context of Create, too.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if w.session == "" {
		w.ended = true
		return w.s.create(ctx, w.name, w.key, w.chunk, w.id)
	}
	if err := w.wait(ctx); err != nil {
		w.Abort()
		return err
	}
	err := w.s.resume(ctx, w.session, w.chunk, w.sent, w.sent+int64(len(w.chunk)))
	if err = w.s.made(ctx, w.name, w.key, w.id, err); err != nil {
		w.Abort()
	}
	w.ended = true
	return err
}

// Abort cancels an upload, so that what it has takes no room.
func (w *writer) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	if w.session == "" {
		return
	}
	if w.sending != nil {
		w.cancel()
		_ = w.wait(w.ctx) // of an upload that is dropped
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), abortTimeout)
	defer cancel()
	// It answers 499, and where the upload is gone 404.
	if a, err := w.s.once(ctx, &request{method: http.MethodDelete, url: w.session, unsigned: true}); err == nil {
		_ = a.Body.Close()
	}
}
