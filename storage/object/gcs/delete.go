package gcs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/storage/object/remote"
)

var _ object.Versioned = (*Store)(nil)

// batch is how many objects a request may delete.
const batch = 100

// A version is a generation of a key, or what it has; generation "".
type version struct{ key, generation string }

func (s *Store) deletePath(v version) string {
	path := s.objectPath(v.key)
	if v.generation != "" {
		path += "?generation=" + url.QueryEscape(v.generation)
	}
	return path
}

// Delete removes an object, if there is one.
func (s *Store) Delete(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	_, _, err = s.call(ctx, &request{method: http.MethodDelete, url: s.endpoint + s.deletePath(version{key, ""})})
	if status(err) == http.StatusNotFound {
		return nil
	}
	return s.wrap(ctx, name, err)
}

// DeleteAll removes 100 objects a request, and several requests at a time.
func (s *Store) DeleteAll(ctx context.Context, names []string) error {
	all := make([]version, len(names))
	for i, name := range names {
		key, err := s.key(name)
		if err != nil {
			return err
		}
		all[i].key = key
	}
	return s.deleteVersions(ctx, all)
}

// DeletesAtOnce says how many objects a request of DeleteAll deletes: object.Counted counts requests.
func (s *Store) DeletesAtOnce() int { return batch }

func (s *Store) deleteVersions(ctx context.Context, all []version) error {
	n := (len(all) + batch - 1) / batch
	return object.Parallel(ctx, object.RequestsAtOnce, n, func(ctx context.Context, i int) error {
		left := all[i*batch : min((i+1)*batch, len(all))]
		retry, refused := endpoint.NewRetry(), &remote.Refusals{}
		for {
			next, last, err := s.deleteBatch(ctx, left, refused)
			if err != nil {
				return err
			}
			if len(next) == 0 {
				return refused.Err()
			}
			if left = next; !retry.Wait(ctx, nil) {
				name := s.nameOf(left[0])
				refused.Add(name, s.wrap(ctx, name, enough(ctx, retry, last)))
				return refused.Err()
			}
		}
	})
}

func (s *Store) nameOf(v version) string { return strings.TrimPrefix(v.key, s.at.Prefix) }

// deleteBatch sends one request that deletes objects. It returns those that are to be deleted by another one, with the
// error of the last of them, and adds to what is refused.
func (s *Store) deleteBatch(ctx context.Context, all []version, refused *remote.Refusals) (left []version,
	last, _ error) {
	boundary := rand.Text()
	var body bytes.Buffer
	for i, v := range all {
		fmt.Fprintf(&body, "--%s\r\nContent-Type: application/http\r\nContent-ID: <dsi-%d>\r\n\r\n"+
			"DELETE %s HTTP/1.1\r\n\r\n\r\n", boundary, i, s.deletePath(v))
	}
	fmt.Fprintf(&body, "--%s--\r\n", boundary)
	header, data, err := s.call(ctx, &request{
		method: http.MethodPost, url: s.endpoint + "/batch/storage/v1",
		header: http.Header{"Content-Type": {"multipart/mixed; boundary=" + boundary}}, body: [][]byte{body.Bytes()},
	})
	if err != nil {
		return nil, nil, s.noBatch(ctx, all[0], err)
	}
	answered, err := readBatch(header.Get("Content-Type"), data, len(all))
	if err != nil {
		return nil, nil, fmt.Errorf("object %s: a batch: %w", s.nameOf(all[0]), err)
	}
	for i, v := range all {
		answer := answered[i]
		switch {
		case answer == nil:
			left, last = append(left, v), fmt.Errorf("the service says nothing about it")
		case answer.status < 300 || answer.status == http.StatusNotFound:
		case temporary(answer):
			left, last = append(left, v), answer
		default:
			refused.Add(s.nameOf(v), s.wrap(ctx, s.nameOf(v), answer))
		}
	}
	return left, last, nil
}

// noBatch is wrap for a batch: its 404 is about no object.
func (s *Store) noBatch(ctx context.Context, first version, err error) error {
	if status(err) == http.StatusNotFound && ctx.Err() == nil {
		return fmt.Errorf("object %s: the service takes no batches: %w", s.nameOf(first), err)
	}
	return s.wrap(ctx, s.nameOf(first), err)
}

// readBatch reads what a service has answered to each of n requests; nil: nothing. The order need not be theirs.
func readBatch(contentType string, data []byte, n int) ([]*answerError, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	out := make([]*answerError, n)
	parts := multipart.NewReader(bytes.NewReader(data), params["boundary"])
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the answer cannot be read: %w", err)
		}
		id := strings.TrimSuffix(strings.TrimPrefix(part.Header.Get("Content-ID"), "<response-dsi-"), ">")
		i, err := strconv.Atoi(id)
		if err != nil || i < 0 || i >= n {
			return nil, fmt.Errorf("the answer has a part %q", part.Header.Get("Content-ID"))
		}
		answer, err := http.ReadResponse(bufio.NewReader(part), nil)
		if err != nil {
			return nil, fmt.Errorf("the answer cannot be read: %w", err)
		}
		out[i] = refusal(answer)
		_ = answer.Body.Close() // it was read
	}
}

// KeepsVersions says that the bucket may keep versions: the service does not tell whether it did at some time. A bucket
// with a soft delete policy is an error that matches ErrDenied: it keeps everything that is deleted, for a time, and
// nothing removes that earlier.
func (s *Store) KeepsVersions(ctx context.Context) (bool, error) {
	var bucket struct {
		SoftDeletePolicy struct {
			RetentionDurationSeconds int64 `json:",string"`
		}
	}
	err := s.callJSON(ctx, &request{
		method: http.MethodGet, url: s.endpoint + s.bucketPath() + "?fields=softDeletePolicy",
	}, &bucket)
	if err != nil {
		return false, fmt.Errorf("whether bucket %s keeps what is deleted (storage.buckets.get): %w", s.at.Bucket,
			s.noBucket(ctx, s.at.Bucket, err))
	}
	if kept := bucket.SoftDeletePolicy.RetentionDurationSeconds; kept > 0 {
		return true, fmt.Errorf("bucket %s: %w: it keeps what is deleted for %s (soft delete), and nothing removes "+
			"that earlier; `gcloud storage buckets update gs://%[1]s --clear-soft-delete` ends it for what is deleted "+
			"later", s.at.Bucket, object.ErrDenied, time.Duration(kept)*time.Second)
	}
	return true, nil
}

// RemoveVersions deletes the generations that are not the latest. It fails, with an error that matches ErrDenied, where
// the bucket still has something that was deleted while it had a soft delete policy.
func (s *Store) RemoveVersions(ctx context.Context, prefix string, match func(string) bool) (n, bytes int64, _ error) {
	query := url.Values{"prefix": {s.at.Prefix + prefix}, "versions": {"true"}}
	for page, err := range s.pages(ctx, query, "name,size,generation,timeDeleted", 0) {
		if err != nil {
			return n, bytes, fmt.Errorf("versions: %w", s.noBucket(ctx, prefix, err))
		}
		var old []version
		size := int64(0)
		for _, o := range page.Items {
			v := version{o.Name, o.Generation}
			if o.TimeDeleted != "" && match(s.nameOf(v)) {
				old = append(old, v)
				size += o.Size
			}
		}
		if err := s.deleteVersions(ctx, old); err != nil {
			return n, bytes, err
		}
		n, bytes = n+int64(len(old)), bytes+size
	}
	return n, bytes, s.softDeleted(ctx, prefix, match)
}

// softDeleted returns an error if the bucket still has something that was deleted.
func (s *Store) softDeleted(ctx context.Context, prefix string, match func(string) bool) error {
	query := url.Values{"prefix": {s.at.Prefix + prefix}, "softDeleted": {"true"}}
	for page, err := range s.pages(ctx, query, "name,softDeleteTime,hardDeleteTime", 0) {
		if status(err) == http.StatusBadRequest { // a bucket that never had such a policy
			return nil
		}
		if err != nil {
			return fmt.Errorf("what was deleted: %w", s.noBucket(ctx, prefix, err))
		}
		for _, o := range page.Items {
			if name := s.nameOf(version{o.Name, ""}); o.SoftDeleteTime != "" && match(name) {
				return fmt.Errorf("object %s: %w: it is deleted, and the bucket keeps it until %s (soft delete)", name,
					object.ErrDenied, o.HardDeleteTime)
			}
		}
	}
	return nil
}
