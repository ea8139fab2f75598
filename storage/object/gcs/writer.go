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

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// An upload makes an object: see remote.UploadWriter. In parts it is a resumable one, whose chunks are sent in order.
type upload struct {
	s       *Store
	name    string
	key     string
	id      string // that the object carries: see Store.made
	session string // URL of the upload, as good as a credential
}

// Create starts an object. It makes no request. Write may return an error that matches ErrExists, too: the service
// looks when an upload begins.
func (s *Store) Create(ctx context.Context, name string) (object.Writer, error) {
	w, err := s.start(ctx, name)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (s *Store) start(ctx context.Context, name string) (*remote.UploadWriter, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	return remote.NewUploadWriter(ctx, name, &upload{s: s, name: name, key: key, id: rand.Text()})
}

// CreateInParts is Create with a resumable upload however small the object is: object.Probe tests a service by it.
func (s *Store) CreateInParts(ctx context.Context, name string) (object.Writer, error) {
	w, err := s.start(ctx, name)
	if err == nil {
		err = w.Begin()
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (u *upload) Put(ctx context.Context, data []byte) error {
	return u.s.create(ctx, u.name, u.key, data, u.id)
}

func (u *upload) Begin(ctx context.Context) error {
	about, err := json.Marshal(newMetadata(u.key, u.id))
	if err != nil {
		return err
	}
	header, _, err := u.s.call(ctx, &request{
		method: http.MethodPost,
		url:    u.s.uploads(url.Values{"uploadType": {"resumable"}, "ifGenerationMatch": {"0"}}),
		header: http.Header{
			"Content-Type": {"application/json; charset=UTF-8"}, "X-Upload-Content-Type": {contentType},
		},
		body: [][]byte{about},
	})
	if err != nil {
		return u.s.noBucket(ctx, u.name, err)
	}
	to, err := url.Parse(header.Get("Location"))
	if err != nil || to.Host == "" || to.Scheme != "https" && !strings.HasPrefix(u.s.endpoint, "http://") {
		return fmt.Errorf("object %s: the service does not say where to upload to", u.name)
	}
	u.session = to.String()
	return nil
}

func (u *upload) AtOnce() int { return 1 }

func (u *upload) Part(ctx context.Context, number int, data []byte) error {
	return u.s.wrap(ctx, u.name, u.resume(ctx, data, int64(number)*remote.PartBytes, -1))
}

func (u *upload) Complete(ctx context.Context, n int, last []byte) error {
	from := int64(n) * remote.PartBytes
	err := u.resume(ctx, last, from, from+int64(len(last)))
	return u.s.made(ctx, u.name, u.key, u.id, err)
}

// Abort cancels an upload, so that what it has takes no room.
func (u *upload) Abort(ctx context.Context) {
	ctx, cancel := object.Cleanup(ctx)
	defer cancel()
	// It answers 499, and where the upload is gone 404.
	if a, err := u.s.once(ctx, &request{method: http.MethodDelete, url: u.session, unsigned: true}); err == nil {
		_ = a.Body.Close()
	}
}

// resume sends a chunk of an upload, and what is left of it where the service has kept a part. total is the object's
// size, with its last chunk; else -1.
func (u *upload) resume(ctx context.Context, chunk []byte, from, total int64) error {
	size := "*"
	if total >= 0 {
		size = strconv.FormatInt(total, 10)
	}
	done, ask := 0, false // ask how much the service has, before anything is sent
	retry := endpoint.NewRetry()
	for {
		r := &request{method: http.MethodPut, url: u.session, unsigned: true, header: http.Header{}}
		if rest := chunk[done:]; ask || len(rest) == 0 { // of an object without bytes
			r.header.Set("Content-Range", "bytes */"+size)
		} else {
			at := from + int64(done)
			r.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%s", at, at+int64(len(rest))-1, size))
			r.body = [][]byte{rest}
		}
		kept, complete, err := u.s.resumeOnce(ctx, r)
		if total >= 0 {
			err = u.s.lostRace(ctx, u.key, err)
		}
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
	ctx, cancel := context.WithTimeoutCause(ctx, r.limit(), errSlow)
	defer cancel()
	a, err := s.once(ctx, r)
	if err != nil {
		if context.Cause(ctx) == errSlow {
			err = fmt.Errorf("%w in %s", errSlow, r.limit())
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
