package azure

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/dsistore/dsistore/storage/object"
)

// Bucket is an object.Bucket of the service: a container, of an account with a hierarchical namespace too.
type Bucket struct {
	store *Store // at the container's root
}

var _ object.Bucket = (*Bucket)(nil)

func init() {
	for _, scheme := range schemes {
		object.RegisterBucket(scheme, func(name string, options map[string]string) (object.Bucket, error) {
			o, err := ParseOptions(options)
			if err != nil {
				return nil, err
			}
			return OpenBucket(scheme+"://"+name, o)
		})
	}
}

// OpenBucket returns the container that az://container or abfss://container@account.dfs.core.windows.net names. It
// makes no request.
func OpenBucket(uri string, o Options) (*Bucket, error) {
	s, err := Open(uri, o)
	if err != nil {
		return nil, err
	}
	s.Reader.Get = s.get // blobs of other programs have any name
	return &Bucket{store: s}, nil
}

// ReadAt asks for the range of the version (If-Match), and again for what is left of it where a body ends early or
// stalls.
func (b *Bucket) ReadAt(ctx context.Context, of object.Info, p []byte, off int64) error {
	return b.store.ReadVersion(ctx, of, p, off)
}

// Stat asks for an object's head.
func (b *Bucket) Stat(ctx context.Context, key string) (object.Info, error) {
	out, err := b.store.client.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return object.Info{}, b.store.wrap(ctx, key, err)
	}
	if marksFolder(out.Metadata) {
		return object.Info{}, fmt.Errorf("%w: %s is a folder", object.ErrNotFound, key)
	}
	return info(key, out.ContentLength, out.LastModified, out.ETag), nil
}

// marksFolder reports whether a blob stands for a folder: those of a hierarchical namespace are listed as blobs, and
// Hadoop makes blobs that say the same.
func marksFolder(metadata map[string]*string) bool {
	for key, value := range metadata {
		if strings.EqualFold(key, "hdi_isfolder") && value != nil && strings.EqualFold(*value, "true") {
			return true
		}
	}
	return false
}

// List asks for pages of 5,000 keys.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		ask := container.ListBlobsFlatOptions{Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true}}
		err := b.store.pages(ctx, ask, prefix, func(item *container.BlobItem) (bool, error) {
			p := item.Properties
			if marksFolder(item.Metadata) || p.ResourceType != nil && *p.ResourceType == "directory" {
				return true, nil
			}
			return yield(info(*item.Name, p.ContentLength, p.LastModified, p.ETag), nil), nil
		})
		if err != nil {
			yield(object.Info{}, err)
		}
	}
}

// Names asks for pages of 5,000 names.
func (b *Bucket) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		pages := b.store.client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix})
		for pages.More() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield("", b.store.wrap(ctx, prefix, err))
				return
			}
			for _, below := range page.Segment.BlobPrefixes {
				if !yield(strings.TrimPrefix(*below.Name, prefix), nil) {
					return
				}
			}
			for _, item := range page.Segment.BlobItems {
				if !yield(strings.TrimPrefix(*item.Name, prefix), nil) {
					return
				}
			}
		}
	}
}

// Digest returns "": an ETag says nothing of the bytes.
func (b *Bucket) Digest(object.Info) string { return "" }
