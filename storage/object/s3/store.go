package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	for _, scheme := range []string{"s3", "s3a", "s3n"} { // Hadoop's names
		object.Register(scheme, open)
	}
}

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

// ReadAt asks for the range, and again for what is left of it where a body ends early or stalls.
func (s *Store) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	return s.fetch(name, key).ReadAt(ctx, s, name, p, off)
}

// ReadWhole asks for the beginning of an object: the answer says how long it is.
func (s *Store) ReadWhole(ctx context.Context, name string, most int64) ([]byte, int64, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, 0, err
	}
	return s.fetch(name, key).ReadWhole(ctx, s, name, most)
}

// fetch returns what asks for ranges of an object.
func (s *Store) fetch(name string, key *string) object.Fetch {
	return func(ctx context.Context, off int64, n int) (object.Part, error) {
		out, err := s.client.GetObject(ctx, &awss3.GetObjectInput{
			Bucket: &s.at.Bucket, Key: key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(n)-1)),
		})
		if status, _ := answer(err); status == http.StatusRequestedRangeNotSatisfiable {
			return object.Part{}, nil
		}
		if err != nil {
			return object.Part{}, s.wrap(ctx, name, err)
		}
		if part := aws.ToString(out.ContentRange); off > 0 && !strings.HasPrefix(part, fmt.Sprintf("bytes %d-", off)) {
			_ = out.Body.Close()
			return object.Part{}, fmt.Errorf("object %s: asked for bytes from %d on, the service answered with %q: "+
				"it keeps no ranges", name, off, part)
		}
		length := int64(-1)
		if out.ContentLength != nil {
			length = *out.ContentLength
		}
		return object.Part{Body: out.Body, Length: length, Size: sizeOf(out)}, nil
	}
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
	switch status, _ := answer(err); status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMovedPermanently:
		return s.wrap(ctx, name, err) // it had no effect
	}
	return object.Made(ctx, name, id, s.wrap(ctx, name, err), func() (string, error) {
		out, err := s.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &s.at.Bucket, Key: key})
		if err != nil {
			return "", s.wrap(ctx, name, err)
		}
		return out.Metadata[idKey], nil
	})
}

// List asks for pages of 1,000 names.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	return s.list(ctx, prefix, startAfter, 0)
}

// First asks for one name, and for a page where that is no object's.
func (s *Store) First(ctx context.Context, prefix, startAfter string) (object.Info, bool, error) {
	for info, err := range s.list(ctx, prefix, startAfter, 1) {
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
				name := strings.TrimPrefix(aws.ToString(o.Key), s.at.Prefix)
				if object.ValidateName(name) != nil { // a console's mark of a folder, for instance
					continue
				}
				info := object.Info{
					Name: name, Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified).UnixNano(),
					Version: aws.ToString(o.ETag),
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
