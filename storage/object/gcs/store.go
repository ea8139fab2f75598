package gcs

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// Store is an object.Store in a bucket.
type Store struct {
	remote.Reader
	client   *http.Client
	requests *endpoint.Client // through client
	tokens   *tokens          // nil: requests are anonymous
	endpoint string           // without a slash at its end
	at       Location
}

var _ object.Store = (*Store)(nil)

func init() {
	open := func(uri string, options map[string]string) (object.Store, error) {
		o, err := ParseOptions(options)
		if err != nil {
			return nil, err
		}
		return Open(uri, o)
	}
	for _, scheme := range schemes {
		object.Register(scheme, open)
	}
}

// schemes are those of URIs: gcs is fsspec's name.
var schemes = []string{"gs", "gcs"}

// Open returns the store at a gs:// URI. It makes no request.
func Open(uri string, o Options) (*Store, error) {
	at, err := ParseURI(uri)
	if err != nil {
		return nil, err
	}
	address, signed, err := o.endpoint()
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", at.URI(), err)
	}
	client := newClient()
	s := &Store{
		client: client, requests: endpoint.New(client, schemes[0], kindOf),
		endpoint: strings.TrimSuffix(address.String(), "/"), at: at,
	}
	s.requests.AboutOneName = aboutOneName
	s.Reader = remote.Reader{Get: s.get, Head: s.Stat}
	if signed {
		if s.tokens, err = newTokens(client, o); err != nil {
			return nil, fmt.Errorf("store %s: %w", at.URI(), err)
		}
	}
	return s, nil
}

// URI returns gs://bucket/prefix.
func (s *Store) URI() string { return s.at.URI() }

// HighLatency says that requests go through a network: see object.HighLatency.
func (s *Store) HighLatency() bool { return true }

// Margin says that the service may date objects by when their requests came in.
func (s *Store) Margin() time.Duration { return time.Minute }

// key returns an object's name in the bucket, if it may have the name.
func (s *Store) key(name string) (string, error) {
	if err := object.ValidateName(name); err != nil {
		return "", err
	}
	return s.at.Prefix + name, nil
}

// bucketPath is that of the bucket in the API.
func (s *Store) bucketPath() string { return "/storage/v1/b/" + url.PathEscape(s.at.Bucket) }

// objectPath is that of an object.
func (s *Store) objectPath(key string) string { return s.bucketPath() + "/o/" + url.PathEscape(key) }

// uploads is where objects are created.
func (s *Store) uploads(query url.Values) string {
	return s.endpoint + "/upload" + s.bucketPath() + "/o?" + query.Encode()
}

// get asks for a range of an object, of a generation if there is one.
func (s *Store) get(ctx context.Context, name, generation string, off, n int64) (remote.Answer, error) {
	query := url.Values{"alt": {"media"}}
	if generation != "" {
		query.Set("ifGenerationMatch", generation)
	}
	r := &request{
		method: http.MethodGet, url: s.endpoint + s.objectPath(s.at.Prefix+name) + "?" + query.Encode(),
		header: http.Header{
			"Range": {fmt.Sprintf("bytes=%d-%d", off, off+n-1)},
			// The bytes as they are stored: without it the service decompresses objects of Content-Encoding gzip.
			"Accept-Encoding": {"gzip"},
		},
	}
	var a *http.Response
	err := again(ctx, func() (err error) {
		a, err = s.once(ctx, r)
		return err
	})
	switch status(err) {
	case http.StatusRequestedRangeNotSatisfiable:
		return remote.Answer{}, io.EOF
	case http.StatusPreconditionFailed:
		return remote.Answer{}, object.Changed(name)
	}
	if err != nil {
		return remote.Answer{}, s.wrap(ctx, name, err)
	}
	return remote.NewAnswer(a.Body, a.ContentLength, a.Header.Get("Content-Range"),
		a.Header.Get("X-Goog-Generation")), nil
}

// A resource is an object's metadata.
type resource struct {
	Name           string
	Size           int64 `json:",string"`
	Generation     string
	TimeCreated    time.Time
	TimeDeleted    string // of one that is not the latest
	SoftDeleteTime string // of one that was deleted, and that the bucket still has
	HardDeleteTime string
	Metadata       map[string]string
}

func (o *resource) info(name string) object.Info {
	return object.Info{Name: name, Size: o.Size, ModTime: o.TimeCreated.UnixNano(), Version: o.Generation}
}

// describe asks for an object's metadata.
func (s *Store) describe(ctx context.Context, name, key string) (*resource, error) {
	var o resource
	err := s.callJSON(ctx, &request{
		method: http.MethodGet,
		url:    s.endpoint + s.objectPath(key) + "?fields=name,size,generation,timeCreated,metadata",
	}, &o)
	return &o, s.wrap(ctx, name, err)
}

// Stat asks for an object's metadata.
func (s *Store) Stat(ctx context.Context, name string) (object.Info, error) {
	key, err := s.key(name)
	if err != nil {
		return object.Info{}, err
	}
	o, err := s.describe(ctx, name, key)
	if err != nil {
		return object.Info{}, err
	}
	return o.info(name), nil
}

// PutIfAbsent creates an object by one request, unless its answer is lost.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	return s.create(ctx, name, key, data, rand.Text())
}

// create creates an object that carries an id.
func (s *Store) create(ctx context.Context, name, key string, data []byte, id string) error {
	return s.made(ctx, name, key, id, s.put(ctx, key, data, id, "0"))
}

// metadata is what an object is made with. Caches between the service and its readers must keep none: one that is
// truncated would be read as it was.
type metadata struct {
	Name         string            `json:"name"`
	ContentType  string            `json:"contentType"`
	CacheControl string            `json:"cacheControl"`
	CRC32C       string            `json:"crc32c,omitempty"` // the service compares it
	Metadata     map[string]string `json:"metadata,omitempty"`
}

const contentType = "application/octet-stream"

func newMetadata(key, id string) metadata {
	m := metadata{Name: key, ContentType: contentType, CacheControl: "no-store"}
	if id != "" {
		m.Metadata = map[string]string{remote.IDKey: id}
	}
	return m
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// put makes an object by one request, if the name has a generation, "0" being none; "": whatever it has.
func (s *Store) put(ctx context.Context, key string, data []byte, id, generation string) error {
	m := newMetadata(key, id)
	m.CRC32C = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli)))
	about, err := json.Marshal(m)
	if err != nil {
		return err
	}
	query := url.Values{"uploadType": {"multipart"}, "fields": {"generation"}}
	if generation != "" {
		query.Set("ifGenerationMatch", generation)
	}
	boundary := rand.Text()
	r := &request{
		method: http.MethodPost, url: s.uploads(query),
		header: http.Header{"Content-Type": {"multipart/related; boundary=" + boundary}},
		body: [][]byte{
			fmt.Appendf(nil, "--%[1]s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%[2]s\r\n"+
				"--%[1]s\r\nContent-Type: %[3]s\r\n\r\n", boundary, about, contentType),
			data, fmt.Appendf(nil, "\r\n--%s--\r\n", boundary),
		},
	}
	return again(ctx, func() error {
		_, _, err := s.callOnce(ctx, r)
		if generation == "0" {
			err = s.lostRace(ctx, key, err)
		}
		return err
	})
}

// lostRace returns the error of a creation as that of a condition, where the service has refused it because the name
// was written too often and there is an object: to send it again until the service looks would take seconds.
func (s *Store) lostRace(ctx context.Context, key string, err error) error {
	var refused *answerError
	if !errors.As(err, &refused) || !refused.oneName {
		return err
	}
	if _, derr := s.describe(ctx, key, key); derr != nil {
		return err
	}
	return &answerError{status: http.StatusPreconditionFailed, header: refused.header}
}

// made returns nil if a creation made its object, whatever error it ended with, and ErrExists if another one did.
func (s *Store) made(ctx context.Context, name, key, id string, err error) error {
	switch status(err) {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return s.noBucket(ctx, name, err) // it had no effect
	}
	if ctx.Err() != nil {
		return s.wrap(ctx, name, err)
	}
	exists := status(err) == http.StatusPreconditionFailed
	return remote.Made(name, id, s.wrap(ctx, name, err), exists, func() (string, error) {
		o, err := s.describe(ctx, name, key)
		return o.Metadata[remote.IDKey], err
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

// list asks for a page of as many names as first says, and for pages of as many as the service gives.
func (s *Store) list(ctx context.Context, prefix, startAfter string, first int) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		query := url.Values{"prefix": {s.at.Prefix + prefix}}
		if startAfter != "" {
			// The offset itself would be listed. No name has a byte below "%".
			query.Set("startOffset", s.at.Prefix+startAfter+"!")
		}
		for page, err := range s.pages(ctx, query, listed, first) {
			if err != nil {
				yield(object.Info{}, s.noBucket(ctx, prefix, err))
				return
			}
			for _, o := range page.Items {
				name := strings.TrimPrefix(o.Name, s.at.Prefix)
				if object.ValidateName(name) != nil { // a console's mark of a folder, for instance
					continue
				}
				if !yield(o.info(name), nil) {
					return
				}
			}
		}
	}
}

// listed are the fields that an object.Info needs.
const listed = "name,size,generation,timeCreated"

// A page is a part of a listing.
type page struct {
	NextPageToken string
	Items         []resource
	Prefixes      []string // with a delimiter
}

// pages yields what a listing has, by pages: fields are those of each object.
func (s *Store) pages(ctx context.Context, query url.Values, fields string, first int) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		query.Set("fields", "nextPageToken,prefixes,items("+fields+")")
		query.Set("maxResults", "1000")
		if first > 0 {
			query.Set("maxResults", strconv.Itoa(first))
		}
		for {
			var p page
			err := s.callJSON(ctx, &request{
				method: http.MethodGet, url: s.endpoint + s.bucketPath() + "/o?" + query.Encode(),
			}, &p)
			if !yield(p, err) || err != nil || p.NextPageToken == "" {
				return
			}
			query.Set("pageToken", p.NextPageToken)
			query.Set("maxResults", "1000")
		}
	}
}

// Truncate puts an object without bytes in the place of the one of a generation. A request that comes late finds
// another one there, or none, and has no effect.
func (s *Store) Truncate(ctx context.Context, of object.Info) error {
	key, err := s.key(of.Name)
	if err != nil {
		return err
	}
	err = s.put(ctx, key, nil, "", of.Version)
	if status(err) != http.StatusPreconditionFailed {
		return s.noBucket(ctx, of.Name, err)
	}
	if info, serr := s.Stat(ctx, of.Name); serr == nil && info.Size == 0 { // by an earlier try, or another gc
		return nil
	} else if serr != nil && !errors.Is(serr, object.ErrNotFound) {
		return serr
	}
	return object.Changed(of.Name)
}
