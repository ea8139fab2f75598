package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/object"
)

// A bucket is what a System has seen of a bucket.
type bucket struct {
	in  object.Bucket
	uri string // scheme://name

	mu      sync.Mutex            // guards what follows
	objects map[string]*described // by key
	trees   map[string]*node      // of prefixes that were listed, by those: all that is below them
}

// A described is an object as it was when it was listed.
type described struct {
	object.Info

	mu  sync.Mutex
	err error // that a read ended with; guarded by mu
}

// failed keeps an error of a read. A later read returns it: what read the object before may go by a part of it.
func (d *described) failed(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = cmp.Or(d.err, err)
	return err
}

// A node is a folder of a bucket, which is there when some key is below it.
type node struct {
	files   []*described
	folders map[string]*node
}

// entry is a file or a folder of a bucket, as a directory has them.
type entry struct {
	name string
	of   *described // nil: a folder
}

func (e entry) Name() string { return e.name }
func (e entry) Size() int64 {
	if e.of == nil {
		return 0
	}
	return e.of.Size
}

func (e entry) Mode() fs.FileMode {
	if e.of == nil {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

func (e entry) ModTime() time.Time {
	if e.of == nil {
		return time.Time{}
	}
	return time.Unix(0, e.of.ModTime)
}

func (e entry) IsDir() bool                { return e.of == nil }
func (e entry) Sys() any                   { return nil }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }

// path returns the URI of a key.
func (b *bucket) path(key string) string { return b.uri + "/" + key }

// unread says of which object, or prefix, an error is.
func (b *bucket) unread(key string, err error) error {
	return fmt.Errorf("%s: %w: %w", b.path(key), ErrUnread, err)
}

// folder returns the node of a folder that is below a prefix that was listed, nil where nothing is there. known: it is
// below such a prefix. key has no slash at its end.
func (b *bucket) folder(key string) (n *node, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	prefix := key + "/"
	if key == "" {
		prefix = ""
	}
	for p, root := range b.trees {
		below, ok := strings.CutPrefix(prefix, p)
		if !ok {
			continue
		}
		n = root
		for name := range strings.SplitSeq(strings.TrimSuffix(below, "/"), "/") {
			if n != nil && below != "" {
				n = n.folders[name]
			}
		}
		return n, true
	}
	return nil, false
}

// load returns the node of a folder, which it lists where it is not known.
func (b *bucket) load(ctx context.Context, key string) (*node, error) {
	if n, known := b.folder(key); known {
		return n, nil
	}
	prefix := key + "/"
	if key == "" {
		prefix = ""
	}
	root := &node{}
	for info, err := range b.in.List(ctx, prefix) {
		if err != nil {
			return nil, b.unread(prefix, err)
		}
		b.add(root, strings.TrimPrefix(info.Name, prefix), info)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trees[prefix] = root
	if len(root.files) == 0 && len(root.folders) == 0 {
		return nil, nil
	}
	return root, nil
}

// add puts an object into a tree. A key that ends with a slash and has no bytes is a console's mark of a folder.
func (b *bucket) add(root *node, below string, info object.Info) {
	if info.Size == 0 && (below == "" || strings.HasSuffix(below, "/")) {
		return
	}
	n := root
	for name, rest, ok := strings.Cut(below, "/"); ok; name, rest, ok = strings.Cut(rest, "/") {
		if n.folders == nil {
			n.folders = map[string]*node{}
		}
		if n.folders[name] == nil {
			n.folders[name] = &node{}
		}
		n = n.folders[name]
	}
	n.files = append(n.files, b.remember(info))
}

// remember returns the object of a description: the first one of its key.
func (b *bucket) remember(info object.Info) *described {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.objects[info.Name]
	if d == nil {
		d = &described{Info: info}
		b.objects[info.Name] = d
	}
	return d
}

// find returns the object of a key as it was when it was first seen, and the error that a read of it ended with. nil:
// there is none.
func (b *bucket) find(ctx context.Context, key string) (*described, error) {
	b.mu.Lock()
	d := b.objects[key]
	b.mu.Unlock()
	if d == nil {
		info, err := b.in.Stat(ctx, key)
		if errors.Is(err, object.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, b.unread(key, err)
		}
		d = b.remember(info)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d, d.err
}

// describe returns the object that find does, and an error where there is none.
func (b *bucket) describe(ctx context.Context, key string) (*described, error) {
	d, err := b.find(ctx, key)
	if err == nil && d == nil {
		err = b.missing(ctx, key)
	}
	return d, err
}

// stat describes an object, or a folder.
func (b *bucket) stat(ctx context.Context, key string) (fs.FileInfo, error) {
	folder := strings.TrimSuffix(key, "/")
	var object *described
	if folder == key && key != "" {
		var err error
		if object, err = b.find(ctx, key); err != nil {
			return nil, err
		}
	}
	if object != nil && object.Size > 0 {
		return entry{Base(b.path(key)), object}, nil
	}
	n, err := b.load(ctx, folder)
	switch {
	case err != nil:
		return nil, err
	case n != nil: // an object without bytes marks a folder, as some programs do
		return entry{name: Base(b.path(folder))}, nil
	case object != nil:
		return entry{Base(b.path(key)), object}, nil
	}
	return nil, b.missing(ctx, key)
}

// readDir returns what is in a folder by name: a file before a folder of the same name.
func (b *bucket) readDir(ctx context.Context, key string) ([]fs.DirEntry, error) {
	n, err := b.load(ctx, strings.TrimSuffix(key, "/"))
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, b.missing(ctx, key)
	}
	var out []fs.DirEntry
	for _, d := range n.files {
		out = append(out, entry{Base(b.path(d.Name)), d})
	}
	for name := range n.folders {
		out = append(out, entry{name: name})
	}
	slices.SortFunc(out, func(x, y fs.DirEntry) int {
		return cmp.Or(strings.Compare(x.Name(), y.Name()), strings.Compare(kind(x), kind(y)))
	})
	return out, nil
}

func kind(e fs.DirEntry) string {
	if e.IsDir() {
		return "folder"
	}
	return "file"
}

// mostNames is how many names are looked through for those that were meant.
const mostNames = 1000

// missing returns the error of a key that neither an object nor a folder has, with names beside it that were meant.
func (b *bucket) missing(ctx context.Context, key string) error {
	key = strings.TrimSuffix(key, "/")
	dir := key[:strings.LastIndexByte(key, '/')+1]
	var names []string
	for name, err := range b.in.Names(ctx, dir) {
		if err != nil || len(names) == mostNames {
			break // the error that the key is missing says more
		}
		names = append(names, strings.TrimSuffix(name, "/"))
	}
	err := fmt.Errorf("%s: neither an object nor objects below it%s: %w", b.path(key),
		suggest.Hint(key[len(dir):], names), object.ErrNotFound)
	if strings.ContainsAny(key, "*?[") {
		err = fmt.Errorf("%w (patterns are not expanded here: name the folder)", err)
	}
	return err
}

// has reports whether an object has a key, or where that ends with a slash, whether some object's begins with it. What
// cannot be found out is not there.
func (b *bucket) has(ctx context.Context, key string) bool {
	dir, name := "", key
	if i := strings.LastIndexByte(strings.TrimSuffix(key, "/"), '/'); i >= 0 {
		dir, name = key[:i], key[i+1:]
	}
	if n, known := b.folder(dir); known {
		if folder, ok := strings.CutSuffix(name, "/"); ok {
			return n != nil && n.folders[folder] != nil
		}
		return n != nil && slices.ContainsFunc(n.files, func(d *described) bool { return d.Name == key })
	}
	if !strings.HasSuffix(key, "/") {
		_, err := b.in.Stat(ctx, key)
		return err == nil
	}
	for _, err := range b.in.List(ctx, key) {
		return err == nil
	}
	return false
}

// fingerprint is System.Fingerprint's.
func (b *bucket) fingerprint(of object.Info) string {
	if digest := b.in.Digest(of); digest != "" {
		return digest
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", b.path(of.Name), of.Version, of.Size, of.ModTime))
	return "object-" + hex.EncodeToString(sum[:])
}

// redact returns a URI without what comes before the bucket's name, which may be a secret.
func redact(uri string) string {
	scheme, bucket, key := split(uri)
	return scheme + "://" + bucket[strings.LastIndexByte(bucket, '@')+1:] + "/" + key
}
