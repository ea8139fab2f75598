package gcs

import (
	"context"
	"iter"
	"net/url"
	"strings"

	"github.com/dsistore/dsistore/storage/object"
)

// Bucket is an object.Bucket of the service.
type Bucket struct {
	store *Store // at the bucket's root
}

var _ object.Bucket = (*Bucket)(nil)

func init() {
	open := func(name string, options map[string]string) (object.Bucket, error) {
		o, err := ParseOptions(options)
		if err != nil {
			return nil, err
		}
		return OpenBucket(name, o)
	}
	for _, scheme := range schemes {
		object.RegisterBucket(scheme, open)
	}
}

// OpenBucket returns the bucket of a name. It makes no request.
func OpenBucket(name string, o Options) (*Bucket, error) {
	s, err := Open("gs://"+name, o)
	if err != nil {
		return nil, err
	}
	return &Bucket{store: s}, nil
}

// ReadAt asks for the range of the generation (ifGenerationMatch), and again for what is left of it where a body ends
// early or stalls.
func (b *Bucket) ReadAt(ctx context.Context, of object.Info, p []byte, off int64) error {
	return b.store.ReadVersion(ctx, of, p, off)
}

// Stat asks for an object's metadata.
func (b *Bucket) Stat(ctx context.Context, key string) (object.Info, error) {
	o, err := b.store.describe(ctx, key, key)
	if err != nil {
		return object.Info{}, err
	}
	return o.info(key), nil
}

// List asks for pages of 1,000 keys.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		for page, err := range b.store.pages(ctx, url.Values{"prefix": {prefix}}, listed, 0) {
			if err != nil {
				yield(object.Info{}, b.store.noBucket(ctx, prefix, err))
				return
			}
			for _, o := range page.Items {
				if !yield(o.info(o.Name), nil) {
					return
				}
			}
		}
	}
}

// Names asks for pages of 1,000 names.
func (b *Bucket) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for page, err := range b.store.pages(ctx, url.Values{"prefix": {prefix}, "delimiter": {"/"}}, "name", 0) {
			if err != nil {
				yield("", b.store.noBucket(ctx, prefix, err))
				return
			}
			for _, below := range page.Prefixes {
				if !yield(strings.TrimPrefix(below, prefix), nil) {
					return
				}
			}
			for _, o := range page.Items {
				if !yield(strings.TrimPrefix(o.Name, prefix), nil) {
					return
				}
			}
		}
	}
}

// Digest returns "": a generation says nothing of the bytes.
func (b *Bucket) Digest(object.Info) string { return "" }
