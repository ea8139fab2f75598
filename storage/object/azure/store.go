package azure

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// Store is an object.Store in a container.
type Store struct {
	remote.Reader
	client *container.Client
	at     Location
	clock  *clock
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

// schemes are those of URIs. The last two are Hadoop's.
var schemes = []string{"az", "abfs", "abfss"}

// Open returns the store at an az:// or abfss:// URI. It makes no request of the service.
func Open(uri string, o Options) (*Store, error) {
	at, err := ParseURI(uri)
	if err != nil {
		return nil, err
	}
	s := &Store{at: at, clock: &clock{}}
	s.Reader = remote.Reader{Get: s.getObject, Head: s.Stat}
	if s.client, err = client(at, o, s.clock); err != nil {
		return nil, fmt.Errorf("store %s: %w", at.URI(), err)
	}
	return s, nil
}

// URI returns az://container/prefix, or with the account where the URI had it.
func (s *Store) URI() string { return s.at.URI() }

// HighLatency says that requests go through a network: see object.HighLatency.
func (s *Store) HighLatency() bool { return true }

// Margin says that the service dates objects by whole seconds, and perhaps by when their requests came in.
func (s *Store) Margin() time.Duration { return time.Minute }

// validateName returns an error if no object of a store may have the name.
func validateName(name string) error {
	if err := object.ValidateName(name); err != nil {
		return err
	}
	if dotted(name) {
		return fmt.Errorf("object name %q: Azure drops a dot at the end of a component", name)
	}
	return nil
}

// dotted reports whether a component of a path ends with a dot, which the service drops: "a./b" would be the blob
// "a/b", and two names the same object.
func dotted(path string) bool { return strings.HasSuffix(path, ".") || strings.Contains(path, "./") }

// blob returns a client of an object, if it may have the name.
func (s *Store) blob(name string) (*blockblob.Client, error) {
	if err := validateName(name); err != nil {
		return nil, err
	}
	return s.client.NewBlockBlobClient(s.at.Prefix + name), nil
}

// getObject is get for an object of a store.
func (s *Store) getObject(ctx context.Context, name, version string, off, n int64) (remote.Answer, error) {
	if err := validateName(name); err != nil {
		return remote.Answer{}, err
	}
	return s.get(ctx, name, version, off, n)
}

// get asks for a range of an object, of any name.
func (s *Store) get(ctx context.Context, name, version string, off, n int64) (remote.Answer, error) {
	ask := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: off, Count: n}}
	if version != "" {
		ask.AccessConditions = ifMatch(version)
	}
	out, err := s.client.NewBlobClient(s.at.Prefix+name).DownloadStream(ctx, ask)
	switch status, _ := answer(err); {
	case status == http.StatusRequestedRangeNotSatisfiable:
		return remote.Answer{}, io.EOF
	case status == http.StatusPreconditionFailed:
		return remote.Answer{}, object.Changed(name)
	case err != nil:
		return remote.Answer{}, s.wrap(ctx, name, err)
	}
	length, part := int64(-1), ""
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	if out.ContentRange != nil {
		part = *out.ContentRange
	}
	return remote.NewAnswer(out.Body, length, part, tagOf(out.ETag)), nil
}

// tagOf returns an ETag as headers and listings both tell it.
func tagOf(tag *azcore.ETag) string {
	if tag == nil {
		return ""
	}
	return strings.Trim(string(*tag), `"`)
}

// Stat asks for an object's head.
func (s *Store) Stat(ctx context.Context, name string) (object.Info, error) {
	b, err := s.blob(name)
	if err != nil {
		return object.Info{}, err
	}
	out, err := b.GetProperties(ctx, nil)
	if err != nil {
		return object.Info{}, s.wrap(ctx, name, err)
	}
	return info(name, out.ContentLength, out.LastModified, out.ETag), nil
}

func info(name string, size *int64, modified *time.Time, tag *azcore.ETag) object.Info {
	i := object.Info{Name: name, Version: tagOf(tag)}
	if size != nil {
		i.Size = *size
	}
	if modified != nil {
		i.ModTime = modified.UnixNano()
	}
	return i
}

// PutIfAbsent creates an object by one request, unless its answer is lost.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	b, err := s.blob(name)
	if err != nil {
		return err
	}
	return s.put(ctx, name, b, data, rand.Text())
}

// Truncate puts an object without bytes in the place of the one of a version (If-Match). A request that comes late
// finds another one there, or none, and has no effect. No two writes have the same version.
func (s *Store) Truncate(ctx context.Context, of object.Info) error {
	b, err := s.blob(of.Name)
	if err != nil {
		return err
	}
	ask := &blockblob.UploadOptions{}
	if of.Version != "" {
		ask.AccessConditions = ifMatch(of.Version)
	}
	_, err = b.Upload(ctx, streaming.NopCloser(bytes.NewReader(nil)), ask)
	if status, _ := answer(err); status == http.StatusPreconditionFailed || status == http.StatusNotFound {
		err = s.wrap(ctx, of.Name, err)
		if !errors.Is(err, object.ErrExists) && !errors.Is(err, object.ErrNotFound) { // of the container
			return err
		}
		if info, serr := s.Stat(ctx, of.Name); serr == nil && info.Size == 0 { // by an earlier try, or another gc
			return nil
		} else if serr != nil && !errors.Is(serr, object.ErrNotFound) {
			return serr
		}
		return object.Changed(of.Name)
	}
	return s.wrap(ctx, of.Name, err)
}

func ifMatch(version string) *blob.AccessConditions {
	tag := azcore.ETag(`"` + version + `"`)
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}}
}

// List asks for pages of 5,000 names.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	return s.list(ctx, prefix, startAfter, 0)
}

// First asks for two names, of which one may be startAfter, and for a page where neither is an object's.
func (s *Store) First(ctx context.Context, prefix, startAfter string) (object.Info, bool, error) {
	for info, err := range s.list(ctx, prefix, startAfter, 2) {
		return info, err == nil, err
	}
	return object.Info{}, false, nil
}

// list asks for pages, the first of as many names as page says; 0: as many as the service gives. The service begins at
// a name and not after it, so that the name is passed over.
func (s *Store) list(ctx context.Context, prefix, startAfter string, page int32) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		ask := container.ListBlobsFlatOptions{Prefix: ptr(s.at.Prefix + prefix)}
		if startAfter != "" {
			ask.StartFrom = ptr(s.at.Prefix + startAfter)
		}
		if page > 0 {
			ask.MaxResults = &page
		}
		last := ""
		err := s.pages(ctx, ask, prefix, func(item *container.BlobItem) (bool, error) {
			name := strings.TrimPrefix(*item.Name, s.at.Prefix)
			if name <= last || item.Properties.ResourceType != nil {
				return false, fmt.Errorf("container %s lists names in another order than a store needs, as accounts "+
					"with a hierarchical namespace do; use an account without", s.at.Container)
			}
			last = name
			if name <= startAfter || object.ValidateName(name) != nil { // a tool's mark of a folder, for instance
				return true, nil
			}
			p := item.Properties
			return yield(info(name, p.ContentLength, p.LastModified, p.ETag), nil), nil
		})
		if err != nil {
			yield(object.Info{}, err)
		}
	}
}

// pages calls f for what a listing has, until it returns false or an error. Only the first page has as many names as
// ask says.
func (s *Store) pages(ctx context.Context, ask container.ListBlobsFlatOptions, prefix string,
	f func(*container.BlobItem) (more bool, _ error)) error {
	for {
		page, err := s.client.NewListBlobsFlatPager(&ask).NextPage(ctx)
		if err != nil {
			return s.wrap(ctx, prefix, err)
		}
		for _, item := range page.Segment.BlobItems {
			if item.Name == nil || item.Properties == nil {
				return fmt.Errorf("listing of %s: the service leaves out names", prefix)
			}
			if more, err := f(item); err != nil || !more {
				return err
			}
		}
		if page.NextMarker == nil || *page.NextMarker == "" {
			return nil
		}
		ask.Marker, ask.MaxResults = page.NextMarker, nil
	}
}

func ptr[T any](v T) *T { return &v }
