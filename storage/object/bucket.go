package object

import (
	"context"
	"fmt"
	"iter"
	"strings"
)

// A Bucket reads what other programs have put into a bucket of an object store. Its objects have keys, which may be any
// text: no rule of ValidateName holds for them. All methods are safe for concurrent use; errors name the key.
type Bucket interface {
	// ReadAt fills p from off of the object that Stat or List has described: ErrChanged when its key has another
	// version meanwhile, ErrNotFound when it has none, io.ErrUnexpectedEOF when the object ends before. p is not empty.
	// Where the description has no version, it reads whatever the key has.
	ReadAt(ctx context.Context, of Info, p []byte, off int64) error
	// Stat describes the object of a key; ErrNotFound when there is none.
	Stat(ctx context.Context, key string) (Info, error)
	// List yields the objects whose key has the prefix, in any order. After an error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Names yields what lies directly below a prefix, which is empty or ends with a slash, in any order: of a key what
	// follows the prefix, up to the first slash and with it. After an error it ends.
	Names(ctx context.Context, prefix string) iter.Seq2[string, error]
	// Digest returns a text that only objects of the same bytes have, in any bucket, as far as the description of one
	// tells it; "": it does not.
	Digest(of Info) string
}

// A BucketOpener returns a bucket by its name. Options are those of an Opener.
type BucketOpener func(name string, options map[string]string) (Bucket, error)

var bucketOpeners = map[string]BucketOpener{} // by scheme; written by init functions alone

// RegisterBucket makes OpenBucket call open for buckets of a scheme. It is called by init functions, as Register is.
func RegisterBucket(scheme string, open BucketOpener) { bucketOpeners[scheme] = open }

// OpenBucket returns the bucket that scheme://name names. It makes no request of the service. Schemes that no package
// has registered are refused by name.
func OpenBucket(scheme, name string, options map[string]string) (Bucket, error) {
	open := bucketOpeners[scheme]
	if open == nil {
		return nil, fmt.Errorf("%s://: files are not read there; want %s", scheme,
			alternatives(scheme, []string{"a path"}, bucketOpeners))
	}
	account := strings.HasPrefix(scheme, "abfs") // what Hadoop has behind the container's name: container@account
	switch {
	// A secret may have a slash, and what follows it looks like a key.
	case strings.Contains(name, ":"), strings.Contains(name, "@") && !account:
		return nil, fmt.Errorf("credentials in a URI would be logged: give them by environment variables or options")
	case name == "":
		return nil, fmt.Errorf("no bucket: want %s://bucket/path", scheme)
	}
	return open(name, options)
}
