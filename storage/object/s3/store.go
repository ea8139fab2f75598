package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/dsistore/dsistore/storage/object"
)

// Store is an object.Store in a bucket.
type Store struct {
	client *awss3.Client
	at     Location
}

var _ object.Store = (*Store)(nil)

func init() {
	open := func(uri string, options map[string]string) (object.Store, error) {
		o, err := ParseOptions(options)
		if err != nil {
			return nil, err
		}
		return Open(context.Background(), uri, o)
	}
	for _, scheme := range schemes {
		object.Register(scheme, open)
	}
}

// schemes are those of URIs. The last two are Hadoop's.
var schemes = []string{"s3", "s3a", "s3n"}

// Open returns the store at an s3:// URI. It makes no request of the service; where credentials come from a file or the
// machine, it may ask there.
func Open(ctx context.Context, uri string, o Options) (*Store, error) {
	at, err := ParseURI(uri)
	if err != nil {
		return nil, err
	}
	c, err := client(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", at.URI(), err)
	}
	return &Store{client: c, at: at}, nil
}

// URI returns s3://bucket/prefix.
func (s *Store) URI() string { return s.at.URI() }

// HighLatency says that requests go through a network: see object.HighLatency.
func (s *Store) HighLatency() bool { return true }

// Margin says that the service dates objects by whole seconds, and perhaps by when their requests came in.
func (s *Store) Margin() time.Duration { return time.Minute }

// key returns an object's key in the bucket, if it may have the name.
func (s *Store) key(name string) (*string, error) {
	if err := object.ValidateName(name); err != nil {
		return nil, err
	}
	return aws.String(s.at.Prefix + name), nil
}

const (
	// bodyAttempts is how often what is left of a range is asked for after a body ended early or stalled.
	bodyAttempts = 5
	// stall is how long a body may give no byte.
	stall = 20 * time.Second
)

// ReadAt asks for the range, and again for what is left of it where a body ends early or stalls.
func (s *Store) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	if off < 0 {
		return fmt.Errorf("object %s: read at negative offset %d", name, off)
	}
	if len(p) == 0 {
		info, err := s.Stat(ctx, name)
		if err == nil && off > info.Size {
			err = fmt.Errorf("object %s of %d bytes: read at %d: %w", name, info.Size, off, io.ErrUnexpectedEOF)
		}
		return err
	}
	return s.readAt(ctx, name, key, "", p, off)
}

// readAt is ReadAt of the object of a key, if it has the version; empty: whatever it has.
func (s *Store) readAt(ctx context.Context, name string, key *string, version string, p []byte, off int64) error {
	for attempt := 1; ; attempt++ {
		n, short, _, err := s.read(ctx, key, version, p, off)
		p, off = p[n:], off+int64(n)
		switch {
		case len(p) == 0:
			return nil
		case short:
			return fmt.Errorf("object %s: read of %d bytes at %d: %w", name, len(p), off, io.ErrUnexpectedEOF)
		case n == 0 && !errors.Is(err, errBody), attempt == bodyAttempts, ctx.Err() != nil:
			if status, _ := answer(err); status == http.StatusPreconditionFailed || errors.Is(err, object.ErrChanged) {
				return object.Changed(name)
			}
			return s.wrap(ctx, name, err)
		}
		if n > 0 {
			attempt = 0 // it goes on
		}
	}
}

// errBody is matched by an error of a body, after the service has answered.
var errBody = errors.New("the answer's body broke off")

// whole is how much of an object of unknown size is asked for at first.
const whole = 256 << 10

// ReadWhole asks for the beginning of an object: the answer says how long it is.
func (s *Store) ReadWhole(ctx context.Context, name string, most int64) ([]byte, int64, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, 0, err
	}
	begin := make([]byte, max(1, min(whole, most)))
	n, short, size, err := s.read(ctx, key, "", begin, 0)
	if short { // where it has no bytes too
		size, err = int64(n), nil
	}
	switch {
	case err != nil && !errors.Is(err, errBody), size < 0 && err != nil:
		return nil, 0, s.wrap(ctx, name, err)
	case size < int64(n):
		return nil, 0, fmt.Errorf("object %s: the service does not say how long it is", name)
	case size > most:
		return nil, size, nil
	}
	all := make([]byte, size)
	copy(all, begin[:n])
	if rest := all[n:]; len(rest) > 0 {
		err = s.ReadAt(ctx, name, rest, int64(n))
	} else {
		err = nil
	}
	return all, size, err
}

// read makes one request, and returns how many bytes of p it has filled. short: the object ends there. size is that of
// the object, -1 where the answer does not say it. version: that the object must have; empty: any.
func (s *Store) read(ctx context.Context, key *string, version string, p []byte, off int64) (n int, short bool,
	size int64, err error) {
	size = -1
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ask := &awss3.GetObjectInput{
		Bucket: &s.at.Bucket, Key: key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)),
	}
	if version != "" {
		ask.IfMatch = &version
	}
	out, err := s.client.GetObject(ctx, ask)
	if status, _ := answer(err); status == http.StatusRequestedRangeNotSatisfiable {
		return 0, true, size, nil
	}
	if err != nil {
		return 0, false, size, err
	}
	defer out.Body.Close()
	if etag := aws.ToString(out.ETag); version != "" && etag != version { // a service that takes no notice of If-Match
		return 0, false, size, object.Changed(*key)
	}
	if part := aws.ToString(out.ContentRange); off > 0 && !strings.HasPrefix(part, fmt.Sprintf("bytes %d-", off)) {
		return 0, false, size, fmt.Errorf("asked for bytes from %d on, the service answered with %q: it keeps no "+
			"ranges", off, part)
	}
	size = sizeOf(out)
	timer := time.AfterFunc(stall, func() { cancel(fmt.Errorf("no byte for %s", stall)) })
	defer timer.Stop()
	for n < len(p) && err == nil {
		var k int
		k, err = out.Body.Read(p[n:])
		n += k
		timer.Reset(stall)
	}
	if n == len(p) {
		return n, false, size, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == io.EOF && aws.ToInt64(out.ContentLength) == int64(n) {
		return n, true, size, nil
	}
	return n, false, size, fmt.Errorf("%w after %d of %d bytes: %w", errBody, n, len(p), err)
}

// sizeOf returns the size of the object that an answer has a part of, or all; -1: it does not say it.
func sizeOf(out *awss3.GetObjectOutput) int64 {
	part := aws.ToString(out.ContentRange)
	if part == "" && out.ContentLength != nil {
		return *out.ContentLength
	}
	_, total, _ := strings.Cut(part, "/")
	if size, err := strconv.ParseInt(total, 10, 64); err == nil && size >= 0 {
		return size
	}
	return -1
}

// Stat asks for an object's head.
func (s *Store) Stat(ctx context.Context, name string) (object.Info, error) {
	key, err := s.key(name)
	if err != nil {
		return object.Info{}, err
	}
	return s.head(ctx, name, key)
}

// head describes the object of a key.
func (s *Store) head(ctx context.Context, name string, key *string) (object.Info, error) {
	out, err := s.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &s.at.Bucket, Key: key})
	if err != nil {
		return object.Info{}, s.wrap(ctx, name, err)
	}
	return object.Info{
		Name: name, Size: aws.ToInt64(out.ContentLength), ModTime: aws.ToTime(out.LastModified).UnixNano(),
		Version: aws.ToString(out.ETag),
	}, nil
}

// PutIfAbsent creates an object by one request, unless its answer is lost.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	return s.put(ctx, name, key, data, rand.Text())
}

// put creates an object that carries an id.
func (s *Store) put(ctx context.Context, name string, key *string, data []byte, id string) error {
	_, err := s.client.PutObject(ctx, &awss3.PutObjectInput{
		Bucket: &s.at.Bucket, Key: key, Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		IfNoneMatch: aws.String("*"), Metadata: map[string]string{idKey: id},
	})
	return s.made(ctx, name, key, id, err)
}

// idKey is the name in an object's metadata of the id of the call that made it.
const idKey = "dsi-write"

// made returns nil if a creation made its object, whatever error it ended with, and ErrExists if another one did.
func (s *Store) made(ctx context.Context, name string, key *string, id string, err error) error {
	if err == nil {
		return nil
	}
	status, _ := answer(err)
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMovedPermanently:
		return s.wrap(ctx, name, err) // it had no effect
	}
	if ctx.Err() != nil {
		return s.wrap(ctx, name, err)
	}
	out, herr := s.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &s.at.Bucket, Key: key})
	switch {
	case herr == nil && out.Metadata[idKey] == id:
		return nil
	case herr == nil:
		return fmt.Errorf("%w: %s", object.ErrExists, name)
	}
	found, _ := answer(herr)
	switch {
	case status != http.StatusPreconditionFailed:
		return s.wrap(ctx, name, err)
	case found == http.StatusNotFound:
		return fmt.Errorf("object %s: it existed, and was deleted meanwhile", name)
	}
	// It must not match ErrExists: the object may be this call's.
	return fmt.Errorf("object %s: it exists, and whether this call has made it cannot be found out: %w", name,
		short(herr))
}

// List asks for pages of 1,000 names.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	return valid(s.list(ctx, prefix, startAfter, 0))
}

// valid leaves out what is no object of a store: a console's mark of a folder, for instance.
func valid(all iter.Seq2[object.Info, error]) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		for info, err := range all {
			if (err != nil || object.ValidateName(info.Name) == nil) && !yield(info, err) {
				return
			}
		}
	}
}

// First asks for one name, and for a page where that is no object's.
func (s *Store) First(ctx context.Context, prefix, startAfter string) (object.Info, bool, error) {
	for info, err := range valid(s.list(ctx, prefix, startAfter, 1)) {
		return info, err == nil, err
	}
	return object.Info{}, false, nil
}

// list asks for pages of as many names as page says; 0: as many as the service gives.
func (s *Store) list(ctx context.Context, prefix, startAfter string, page int32) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		ask := &awss3.ListObjectsV2Input{Bucket: &s.at.Bucket, Prefix: aws.String(s.at.Prefix + prefix)}
		if startAfter != "" {
			ask.StartAfter = aws.String(s.at.Prefix + startAfter)
		}
		if page > 0 {
			ask.MaxKeys = &page
		}
		for {
			out, err := s.client.ListObjectsV2(ctx, ask)
			if err != nil {
				yield(object.Info{}, s.wrap(ctx, prefix, err))
				return
			}
			for _, o := range out.Contents {
				info := object.Info{
					Name: strings.TrimPrefix(aws.ToString(o.Key), s.at.Prefix), Size: aws.ToInt64(o.Size),
					ModTime: aws.ToTime(o.LastModified).UnixNano(), Version: aws.ToString(o.ETag),
				}
				if !yield(info, nil) {
					return
				}
			}
			if !aws.ToBool(out.IsTruncated) {
				return
			}
			ask.ContinuationToken, ask.MaxKeys = out.NextContinuationToken, nil
		}
	}
}

// Truncate puts an object without bytes in the place of the one of a version (If-Match). A request that comes late
// finds another one there, or none, and has no effect. The version is a digest of the bytes: one of the same bytes is
// taken for the same object.
func (s *Store) Truncate(ctx context.Context, of object.Info) error {
	key, err := s.key(of.Name)
	if err != nil {
		return err
	}
	ask := &awss3.PutObjectInput{
		Bucket: &s.at.Bucket, Key: key, Body: bytes.NewReader(nil), ContentLength: aws.Int64(0),
	}
	if of.Version != "" {
		ask.IfMatch = &of.Version
	}
	_, err = s.client.PutObject(ctx, ask)
	if status, _ := answer(err); status == http.StatusPreconditionFailed || status == http.StatusNotFound {
		if info, serr := s.Stat(ctx, of.Name); serr == nil && info.Size == 0 { // by an earlier try, or another gc
			return nil
		} else if serr != nil && !errors.Is(serr, object.ErrNotFound) {
			return serr
		}
		return object.Changed(of.Name)
	}
	return s.wrap(ctx, of.Name, err)
}
