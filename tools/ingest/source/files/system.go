package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/storage/object"
)

// ErrUnread is matched when an object is not what was listed, or its service does not give it.
var ErrUnread = errors.New("the object cannot be read")

// A System opens files by their paths. It remembers what it has listed: what lies in a bucket is for it what lay there
// then. Safe for concurrent use. Errors of what is not there match fs.ErrNotExist, and in a bucket object.ErrNotFound.
type System struct {
	options map[string]string
	dir     func() (string, error)

	mu      sync.Mutex         // guards what follows
	buckets map[string]*bucket // by scheme://name
}

// NewSystem returns a System. options say how services are reached, as object.OpenWith takes them. dir returns where
// temporary files are made, if there are some; nil: the system's directory for them.
func NewSystem(options map[string]string, dir func() (string, error)) *System {
	if dir == nil {
		dir = func() (string, error) { return "", nil }
	}
	return &System{options: options, dir: dir, buckets: map[string]*bucket{}}
}

// bucket returns what a URI lies in, and its key there; nil: the path is a local one.
func (s *System) bucket(path string) (*bucket, string, error) {
	if !IsURI(path) {
		return nil, "", nil
	}
	scheme, name, key := split(path)
	uri := scheme + "://" + name
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[uri]
	if b == nil {
		in, err := object.OpenBucket(scheme, name, object.OptionsFor(path, s.options))
		if err != nil {
			return nil, "", fmt.Errorf("source %s: %w", redact(path), err)
		}
		b = &bucket{in: in, uri: uri, objects: map[string]*described{}, trees: map[string]*node{}}
		s.buckets[uri] = b
	}
	return b, key, nil
}

// Stat describes what lies at a path: of a link, what it leads to.
func (s *System) Stat(ctx context.Context, path string) (fs.FileInfo, error) {
	b, key, err := s.bucket(path)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return os.Stat(path)
	}
	return b.stat(ctx, key)
}

// ReadDir returns the entries of a directory by name.
func (s *System) ReadDir(ctx context.Context, path string) ([]fs.DirEntry, error) {
	b, key, err := s.bucket(path)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return os.ReadDir(path)
	}
	return b.readDir(ctx, key)
}

// Has returns those of names that a directory has. A name that ends with a slash is that of a directory in it. What
// cannot be found out is not there.
func (s *System) Has(ctx context.Context, dir string, names ...string) []string {
	b, key, err := s.bucket(dir)
	if err != nil {
		return nil
	}
	found := make([]bool, len(names))
	if b == nil {
		for i, name := range names {
			_, err := os.Lstat(filepath.Join(dir, name))
			if strings.HasSuffix(name, "/") {
				var st fs.FileInfo
				if st, err = os.Stat(filepath.Join(dir, name)); err == nil && !st.IsDir() {
					err = fs.ErrNotExist
				}
			}
			found[i] = err == nil
		}
	} else {
		prefix := strings.TrimSuffix(key, "/") + "/"
		if prefix == "/" {
			prefix = ""
		}
		var wg sync.WaitGroup
		for i, name := range names {
			wg.Go(func() { found[i] = b.has(ctx, prefix+name) })
		}
		wg.Wait()
	}
	var out []string
	for i, name := range names {
		if found[i] {
			out = append(out, name)
		}
	}
	return out
}

// A File is open for reads at offsets, until its Close. It lives under the context of its Open. Reads may be made at
// once, by several goroutines, but for those during Fetch and Spool.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
	// Fetch says which ranges will be read next, instead of those of the Fetch before. Those of an object are then in
	// memory, or in a temporary file where that does not hold them.
	Fetch(ranges []Range, memory int64) error
	// Spool returns a local file, which is the File's, with all bytes of an object; nil: the file is a local one.
	Spool() (*os.File, error)
}

// A Range is bytes of a file.
type Range struct{ Off, Len int64 }

// Open opens a file.
func (s *System) Open(ctx context.Context, path string) (File, error) {
	b, key, err := s.bucket(path)
	if err != nil {
		return nil, err
	}
	if b != nil {
		d, err := b.describe(ctx, key)
		if err != nil {
			return nil, err
		}
		return &remote{ctx: ctx, at: b, of: d, dir: s.dir}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return local{f, st.Size()}, nil
}

// Read opens a file to be read from its beginning. What it returns lives under ctx.
func (s *System) Read(ctx context.Context, path string) (io.ReadCloser, error) {
	b, key, err := s.bucket(path)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return os.Open(path)
	}
	d, err := b.describe(ctx, key)
	if err != nil {
		return nil, err
	}
	return newAhead(ctx, b, d), nil
}

// Head returns the first bytes of a file, at most n.
func (s *System) Head(ctx context.Context, path string, n int) ([]byte, error) {
	f, err := s.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, min(int64(n), f.Size()))
	if k, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	} else if k < len(head) {
		head = head[:k]
	}
	return head, nil
}

// Fingerprint returns what tells an object from others, without reading it; "": the file is a local one. Objects of the
// same bytes have the same where their service says so, else only an object that was not replaced.
func (s *System) Fingerprint(ctx context.Context, path string) (string, error) {
	b, key, err := s.bucket(path)
	if err != nil || b == nil {
		return "", err
	}
	d, err := b.describe(ctx, key)
	if err != nil {
		return "", err
	}
	return b.fingerprint(d.Info), nil
}

// SameFile reports whether two paths are of one file.
func SameFile(a, b string) bool {
	if a == b || IsURI(a) || IsURI(b) {
		return a == b
	}
	x, err := os.Stat(a) // of "-", and of a file that went meanwhile, the path says all
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// local is a File on the local file system.
type local struct {
	*os.File
	size int64
}

func (l local) Size() int64 { return l.size }

func (l local) Fetch([]Range, int64) error { return nil }

func (l local) Spool() (*os.File, error) { return nil, nil }
