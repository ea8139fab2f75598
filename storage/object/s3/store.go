package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// Store is an object.Store in a bucket.
type Store struct {
	remote.Reader
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
	return newStore(c, at), nil
}

func newStore(c *awss3.Client, at Location) *Store {
	s := &Store{client: c, at: at}
	s.Reader = remote.Reader{Get: s.get, Head: s.Stat}
	return s
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

// get asks for a range of an object.
func (s *Store) get(ctx context.Context, name, version string, off, n int64) (remote.Answer, error) {
	ask := &awss3.GetObjectInput{
		Bucket: &s.at.Bucket, Key: aws.String(s.at.Prefix + name),
		Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+n-1)),
	}
	if version != "" {
		ask.IfMatch = &version
	}
	out, err := s.client.GetObject(ctx, ask)
	switch status, _ := answer(err); {
	case status == http.StatusRequestedRangeNotSatisfiable:
		return remote.Answer{}, io.EOF
	case status == http.StatusPreconditionFailed:
		return remote.Answer{}, object.Changed(name)
	case err != nil:
		return remote.Answer{}, s.wrap(ctx, name, err)
	}
	length := int64(-1)
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	return remote.NewAnswer(out.Body, length, aws.ToString(out.ContentRange), aws.ToString(out.ETag)), nil
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
		Name: name, Size: aws.ToInt64(out.ContentLength), ModTime: seconds(out.LastModified),
		Version: aws.ToString(out.ETag),
	}, nil
}

// seconds is a time of the service in nanoseconds: whole seconds, which are what the head of an object has, while some
// services have more digits in listings.
func seconds(t *time.Time) int64 { return aws.ToTime(t).Truncate(time.Second).UnixNano() }

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
		IfNoneMatch: aws.String("*"), Metadata: map[string]string{remote.IDKey: id},
	})
	return s.made(ctx, name, key, id, err)
}

// made returns nil if a creation made its object, whatever error it ended with, and ErrExists if another one did.
func (s *Store) made(ctx context.Context, name string, key *string, id string, err error) error {
	if err == nil {
		return nil
	}
	status, code := answer(err)
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return s.wrap(ctx, name, err) // it had no effect
	}
	if redirected(status) || ctx.Err() != nil {
		return s.wrap(ctx, name, err)
	}
	exists := status == http.StatusPreconditionFailed
	retry := endpoint.NewRetry()
	return remote.Made(name, id, s.wrap(ctx, name, err), exists, func() (string, error) {
		for {
			out, herr := s.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &s.at.Bucket, Key: key})
			if herr == nil {
				return out.Metadata[remote.IDKey], nil
			}
			herr = s.wrap(ctx, name, herr)
			// An upload that has lost a race may be gone before the winner's object is there, and a name be taken
			// while the object is still being written.
			if !exists && code != noUpload || !errors.Is(herr, object.ErrNotFound) || retry.Sent == lookedFor {
				return "", herr
			}
			if !retry.Wait(ctx, nil) {
				return "", cmp.Or(ctx.Err(), herr)
			}
		}
	})
}

// noUpload is the error code of an upload that there is no more.
const noUpload = "NoSuchUpload"

// lookedFor is how often it is asked again who made an object that is not there yet: for some 3 s.
const lookedFor = 6

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
		ask := &awss3.ListObjectsV2Input{
			Bucket: &s.at.Bucket, Prefix: aws.String(s.at.Prefix + prefix),
		}
		if startAfter != "" {
			ask.StartAfter = aws.String(s.at.Prefix + startAfter)
		}
		if page > 0 {
			ask.MaxKeys = &page
		}
		for page, err := range s.pages(ctx, prefix, ask) {
			if err != nil {
				yield(object.Info{}, err)
				return
			}
			for _, o := range page.Contents {
				info := object.Info{
					Name: strings.TrimPrefix(aws.ToString(o.Key), s.at.Prefix), Size: aws.ToInt64(o.Size),
					ModTime: seconds(o.LastModified), Version: aws.ToString(o.ETag),
				}
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

// pages asks for the pages of a listing, whose keys it unescapes. After the first they are as large as the service
// makes them.
func (s *Store) pages(ctx context.Context, what string,
	ask *awss3.ListObjectsV2Input) iter.Seq2[*awss3.ListObjectsV2Output, error] {
	return func(yield func(*awss3.ListObjectsV2Output, error) bool) {
		ask.EncodingType = escaped
		for {
			page, err := s.client.ListObjectsV2(ctx, ask)
			if err != nil {
				err = s.wrap(ctx, what, err)
			} else {
				err = unescape(page.EncodingType, keysOf(page))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) || !aws.ToBool(page.IsTruncated) {
				return
			}
			if aws.ToString(page.NextContinuationToken) == "" { // it knows the first version of ListObjects alone
				yield(nil, noNextPage(what))
				return
			}
			ask.ContinuationToken, ask.MaxKeys = page.NextContinuationToken, nil
		}
	}
}

// noNextPage is the error of a page that is not the last and has no mark of the next: it would be asked for for ever.
func noNextPage(what string) error {
	return fmt.Errorf("listing of %s: the service does not say where the next page begins", what)
}

// keysOf returns the keys of a page, and the prefixes of others.
func keysOf(page *awss3.ListObjectsV2Output) (keys []*string) {
	for _, below := range page.CommonPrefixes {
		keys = append(keys, below.Prefix)
	}
	for _, o := range page.Contents {
		keys = append(keys, o.Key)
	}
	return keys
}

// escaped asks for listings whose keys are escaped as in URLs: XML has no control characters, and one key with such a
// character would make a whole listing unreadable.
const escaped = types.EncodingTypeUrl

// unescape replaces the keys of a listing, if its answer says that they are escaped: not all services do it.
func unescape(how types.EncodingType, keys []*string) error {
	if how != escaped {
		return nil
	}
	for _, key := range keys {
		if key == nil {
			continue
		}
		plain, err := url.QueryUnescape(*key)
		if err != nil {
			return fmt.Errorf("the service's listing has a key %q that is not escaped: %w", *key, err)
		}
		*key = plain
	}
	return nil
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
