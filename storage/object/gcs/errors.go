package gcs

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// An answerError is an answer of the service that says no.
type answerError struct {
	status          int
	reason, message string // reason is a word, or empty
	header          http.Header
	oneName         bool // the object was written too often: see aboutOneName
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("%d %s", e.status, e.reason)
	if e.reason == "" {
		text = fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	}
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

const (
	maxError   = 64 << 10 // bytes of an answer that are read
	maxMessage = 300      // bytes of a message that are shown
)

// refusal reads an answer that says no.
func refusal(a *http.Response) *answerError {
	e := &answerError{status: a.StatusCode, header: a.Header}
	data, _ := io.ReadAll(io.LimitReader(a.Body, maxError)) // what is there is enough
	var told struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	if json.Unmarshal(data, &told) == nil {
		e.message = told.Error.Message
		if len(told.Error.Errors) > 0 {
			e.reason = told.Error.Errors[0].Reason
		}
	} else if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		// Answers to alt=media are a bare text, which the service calls text/html. What begins with "<" is a page.
		e.message = string(data)
	}
	e.message = strings.Join(strings.Fields(e.message), " ")
	e.oneName = e.status == http.StatusTooManyRequests && strings.Contains(e.message, "object mutation operations")
	if len(e.message) > maxMessage {
		e.message = e.message[:maxMessage] + "..."
	}
	return e
}

// aboutOneName reports whether an answer says that one object was written too often: the service takes about one write
// of a name per second, whether it has an effect or not. It leaves the body as it was.
func aboutOneName(a *http.Response) bool {
	data, _ := io.ReadAll(io.LimitReader(a.Body, maxError)) // who reads on gets the error
	read := *a
	read.Body = io.NopCloser(bytes.NewReader(data))
	a.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), a.Body), a.Body}
	return refusal(&read).oneName
}

// throttled reports whether the service has too many requests.
func (e *answerError) throttled() bool {
	return e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable ||
		e.status == http.StatusForbidden && strings.HasSuffix(strings.ToLower(e.reason), "ratelimitexceeded")
}

// temporary reports whether the same request may succeed when it is sent again.
func temporary(err error) bool {
	var answer *answerError
	if errors.As(err, &answer) {
		return endpoint.Temporary(answer.status) || answer.throttled()
	}
	var token *errToken
	if errors.As(err, &token) {
		return !token.denied
	}
	var certificate *tls.CertificateVerificationError
	return !errors.As(err, &certificate)
}

// status returns that of the answer which an error is about; 0: there was none.
func status(err error) int {
	var answer *answerError
	if errors.As(err, &answer) {
		return answer.status
	}
	return 0
}

// headerOf returns that of the answer which an error is about; nil: there was none.
func headerOf(err error) http.Header {
	var answer *answerError
	if errors.As(err, &answer) {
		return answer.header
	}
	return nil
}

// bare is an error without the URL of its request, which may be that of an upload.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// wrap returns an error of a request about an object, which matches what a Store's errors match.
func (s *Store) wrap(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	if end := ctx.Err(); end != nil {
		return fmt.Errorf("object %s: %w", name, end)
	}
	var token *errToken
	if errors.As(err, &token) && token.denied {
		return fmt.Errorf("object %s: %w: %w", name, object.ErrDenied, err)
	}
	var answer *answerError
	if !errors.As(err, &answer) {
		return fmt.Errorf("object %s: %w", name, remote.Lost(err))
	}
	switch {
	case answer.status == http.StatusNotFound && strings.Contains(answer.message, "bucket does not exist"):
		return s.noBucket(ctx, name, err)
	case answer.status == http.StatusNotFound:
		return fmt.Errorf("%w: %s", object.ErrNotFound, name)
	case answer.status == http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %s", object.ErrExists, name)
	case answer.throttled():
		return fmt.Errorf("object %s: %w: %w", name, object.ErrThrottled, err)
	case answer.status == http.StatusForbidden || answer.status == http.StatusUnauthorized:
		return fmt.Errorf("object %s: %w: %w", name, object.ErrDenied, err)
	}
	return fmt.Errorf("object %s: %w", name, err)
}

// noBucket is wrap for requests of which 404 says that there is no bucket.
func (s *Store) noBucket(ctx context.Context, name string, err error) error {
	if status(err) == http.StatusNotFound && ctx.Err() == nil {
		return fmt.Errorf("bucket %s %w: %w", s.at.Bucket, object.ErrNoBucket, err)
	}
	return s.wrap(ctx, name, err)
}
