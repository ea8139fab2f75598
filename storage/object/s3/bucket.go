package s3

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

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
		return OpenBucket(context.Background(), name, o)
	}
	for _, scheme := range schemes {
		object.RegisterBucket(scheme, open)
	}
}

// OpenBucket returns the bucket of a name. It makes no request of the service; where credentials come from a file or
// the machine, it may ask there.
func OpenBucket(ctx context.Context, name string, o Options) (*Bucket, error) {
	c, err := client(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	return &Bucket{store: newStore(c, Location{Bucket: name})}, nil
}

// ReadAt asks for the range of the version (If-Match), and again for what is left of it where a body ends early or
// stalls.
func (b *Bucket) ReadAt(ctx context.Context, of object.Info, p []byte, off int64) error {
	return b.store.ReadVersion(ctx, of, p, off)
}

// Stat asks for an object's head.
func (b *Bucket) Stat(ctx context.Context, key string) (object.Info, error) {
	return b.store.head(ctx, key, &key)
}

// List asks for pages of 1,000 keys.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[object.Info, error] {
	return b.store.list(ctx, prefix, "", 0)
}

// Names asks for pages of 1,000 names.
func (b *Bucket) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for out, err := range b.store.pages(ctx, prefix, &awss3.ListObjectsV2Input{
			Bucket: &b.store.at.Bucket, Prefix: &prefix, Delimiter: aws.String("/"),
		}) {
			if err != nil {
				yield("", err)
				return
			}
			for _, below := range out.CommonPrefixes {
				if !yield(strings.TrimPrefix(aws.ToString(below.Prefix), prefix), nil) {
					return
				}
			}
			for _, o := range out.Contents {
				if !yield(strings.TrimPrefix(aws.ToString(o.Key), prefix), nil) {
					return
				}
			}
		}
	}
}

// digest is how S3's ETags look: the MD5 of the bytes, or of its parts' and their number, or, of what the service
// encrypts with a key of the owner's, a text that no other object has. Those of services that speak S3 may be numbers
// of versions, which other objects have too.
var digest = regexp.MustCompile(`^"[0-9a-f]{32}(-[0-9]{1,5})?"$`)

// Digest returns the ETag where it looks like S3's, with the size.
func (b *Bucket) Digest(of object.Info) string {
	if !digest.MatchString(of.Version) {
		return ""
	}
	return fmt.Sprintf("etag-%s-%d", strings.Trim(of.Version, `"`), of.Size)
}
