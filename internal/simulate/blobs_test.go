package simulate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// blobs are the objects of the one store that all machines of a world share. They are an object.Store that answers at
// once, for the scheduler and the checks, whose code may ask for several things at a time; machines reach them through
// a client each.
type blobs struct {
	mu      sync.Mutex // guards what follows; what runs in a bubble never waits while it holds it
	objects map[string]blob
	names   []string // of objects, sorted
	made    int      // objects that were made
	now     func() time.Time

	// touched, when set, notes the names of objects that are read or asked for and found.
	touched map[string]bool
}

type blob struct {
	data    []byte // never written again
	modTime int64
	version int // how many objects were made before
}

func (o blob) info(name string) object.Info {
	return object.Info{Name: name, Size: int64(len(o.data)), ModTime: o.modTime, Version: strconv.Itoa(o.version)}
}

func newBlobs(now func() time.Time) *blobs {
	return &blobs{objects: map[string]blob{}, now: now}
}

func (b *blobs) URI() string { return "simulated" }

func notFound(name string) error { return fmt.Errorf("%w: %s", object.ErrNotFound, name) }
func exists(name string) error   { return fmt.Errorf("%w: %s", object.ErrExists, name) }

func (b *blobs) get(name string) (blob, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[name]
	if !ok {
		return blob{}, notFound(name)
	}
	if b.touched != nil {
		b.touched[name] = true
	}
	return o, nil
}

// has reports whether there is an object of a name.
func (b *blobs) has(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.objects[name]
	return ok
}

func (b *blobs) ReadAt(_ context.Context, name string, p []byte, off int64) error {
	o, err := b.get(name)
	if err != nil {
		return err
	}
	if off < 0 || off > int64(len(o.data)) || int64(len(p)) > int64(len(o.data))-off {
		return fmt.Errorf("object %s of %d bytes: read of %d at %d: %w", name, len(o.data), len(p), off,
			io.ErrUnexpectedEOF)
	}
	copy(p, o.data[off:])
	return nil
}

func (b *blobs) Stat(_ context.Context, name string) (object.Info, error) {
	o, err := b.get(name)
	if err != nil {
		return object.Info{}, err
	}
	return o.info(name), nil
}

func (b *blobs) PutIfAbsent(_ context.Context, name string, data []byte) error {
	if err := object.ValidateName(name); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.objects[name]; ok {
		return exists(name)
	}
	i, _ := slices.BinarySearch(b.names, name)
	b.names = slices.Insert(b.names, i, name)
	b.set(name, data)
	return nil
}

func (b *blobs) Delete(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := slices.BinarySearch(b.names, name)
	if !ok {
		return nil
	}
	b.names = slices.Delete(b.names, i, i+1)
	delete(b.objects, name)
	return nil
}

func (b *blobs) Truncate(_ context.Context, of object.Info) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o, ok := b.objects[of.Name]; {
	case ok && o.info(of.Name).Version == of.Version:
		b.set(of.Name, nil)
	case !ok || len(o.data) > 0:
		return object.Changed(of.Name)
	}
	return nil
}

// set makes or replaces an object. The caller holds mu.
func (b *blobs) set(name string, data []byte) {
	b.objects[name] = blob{data: data, modTime: b.now().UnixNano(), version: b.made}
	b.made++
}

// removeAll takes all objects with the prefix away at once.
func (b *blobs) removeAll(prefix string) (some bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names = slices.DeleteFunc(b.names, func(name string) bool {
		gone := strings.HasPrefix(name, prefix)
		if gone {
			delete(b.objects, name)
			some = true
		}
		return gone
	})
	return some
}

// page returns the first objects with the prefix whose names sort after, at most n, and whether there may be more.
func (b *blobs) page(prefix, after string, n int) (page []object.Info, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from, found := slices.BinarySearch(b.names, max(prefix, after))
	if found && after >= prefix {
		from++
	}
	for _, name := range b.names[from:] {
		if !strings.HasPrefix(name, prefix) {
			break
		}
		if len(page) == n {
			return page, true
		}
		page = append(page, b.objects[name].info(name))
	}
	return page, false
}

func (b *blobs) List(_ context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		page, _ := b.page(prefix, startAfter, math.MaxInt)
		for _, info := range page {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (b *blobs) Create(ctx context.Context, name string) (object.Writer, error) {
	return &blobWriter{put: func(data []byte) error { return b.PutIfAbsent(ctx, name, data) }}, nil
}

// touch begins to note the names of objects that are read or asked for and found, until the one that is returned is
// given back.
func (b *blobs) touch(in map[string]bool) (before map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.touched = b.touched, in
	return before
}

// A blobWriter collects an object, and puts it when it is whole.
type blobWriter struct {
	bytes.Buffer
	put   func([]byte) error
	ended bool
}

func (w *blobWriter) Commit(context.Context) error {
	if w.ended {
		return fmt.Errorf("object writer: committed after its end")
	}
	w.ended = true
	return w.put(w.Bytes())
}

func (w *blobWriter) Abort() { w.ended = true }
