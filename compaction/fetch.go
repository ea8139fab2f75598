package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/lru"
	"github.com/dsistore/dsistore/storage/object"
)

// A fetcher reads ranges of objects. It reads short ranges in blocks, which an LRU cache keeps. Features are asked for
// in about the order in which they lie in packs, so this takes a few large requests per object instead of one for each
// stripe of each feature. It is safe for concurrent use.
type fetcher struct {
	blobs object.Store
	max   int64
	size  uint64 // of a block

	mu     sync.Mutex
	blocks *lru.Cache[blockKey, *block] // guarded by mu
	read   int64                        // bytes, guarded by mu
}

// A blockKey identifies a block of an object. size is the object's size as the segment's index has it: a damaged index
// may have another size, and its blocks must not be mixed up with others.
type blockKey struct {
	object       string
	size, number uint64
}

type block struct {
	once sync.Once
	data []byte
	err  error
}

const (
	minBlock, maxBlock = 64 << 10, 4 << 20
	// blocksEach is how many blocks of each object the cache has space for: the next features, and the inverses of
	// their groups.
	blocksEach = 4
	// longRange: a range of so many bytes or more is read by one request of its own. The object's size is checked
	// first, so that a damaged index cannot cause a large allocation.
	longRange = object.LargeRead
)

// newFetcher returns a fetcher whose cache holds about so many bytes, divided among so many objects read concurrently.
func newFetcher(blobs object.Store, bytes int64, objects int) *fetcher {
	size := uint64(min(max(bytes/int64(blocksEach*max(objects, 1)), minBlock), maxBlock))
	return &fetcher{blobs: blobs, max: bytes, size: size, blocks: lru.New[blockKey, *block](bytes, nil)}
}

// bytesRead returns how many bytes were read from the store.
func (f *fetcher) bytesRead() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read
}

// get appends bytes [off, off+n) of an object of the given size to dst. A range that ends beyond size is ErrCorrupt.
func (f *fetcher) get(ctx context.Context, dst []byte, name string, size, off, n uint64) ([]byte, error) {
	if off > size || n > size-off {
		return dst, &format.CorruptError{Object: name, Stripe: -1, Offset: int64(off),
			Reason: fmt.Sprintf("%d bytes lie past its end, %d", n, size)}
	}
	if n >= longRange {
		return f.long(ctx, dst, name, off, n)
	}
	for n > 0 {
		b, err := f.block(ctx, name, size, off/f.size)
		if err != nil {
			return dst, err
		}
		part := b[off%f.size:]
		part = part[:min(n, uint64(len(part)))]
		dst = append(dst, part...)
		off, n = off+uint64(len(part)), n-uint64(len(part))
	}
	return dst, nil
}

func (f *fetcher) long(ctx context.Context, dst []byte, name string, off, n uint64) ([]byte, error) {
	if err := object.CheckEnd(ctx, f.blobs, name, off+n); err != nil {
		return dst, missing(name, off, err)
	}
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	if err := f.blobs.ReadAt(ctx, name, dst[at:], int64(off)); err != nil {
		return dst, missing(name, off, err)
	}
	f.count(int64(n))
	return dst, nil
}

func (f *fetcher) count(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read += n
}

// block returns a block of an object. It is shared: the caller must not change it.
func (f *fetcher) block(ctx context.Context, name string, size, number uint64) ([]byte, error) {
	key := blockKey{name, size, number}
	n := min(f.size, size-number*f.size)
	f.mu.Lock()
	b, ok := f.blocks.Get(key)
	if !ok {
		b = new(block)
		f.blocks.Put(key, b, int64(n))
	}
	f.mu.Unlock()
	b.once.Do(func() {
		b.data = make([]byte, n)
		b.err = f.blobs.ReadAt(ctx, name, b.data, int64(number*f.size))
		f.count(int64(len(b.data)))
	})
	if b.err != nil {
		f.drop(key, b)
		return nil, missing(name, number*f.size, b.err)
	}
	return b.data, nil
}

// drop removes a block that could not be read from the cache.
func (f *fetcher) drop(key blockKey, b *block) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kept, ok := f.blocks.Get(key); ok && kept == b {
		f.blocks.Remove(key)
	}
}

// missing turns a read error into a CorruptError if it means that the object is missing or shorter than its segment
// says.
func missing(name string, off uint64, err error) error {
	reason := ""
	switch {
	case errors.Is(err, object.ErrNotFound):
		reason = "object is missing"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		reason = "the object ends before its segment says"
	default:
		return fmt.Errorf("read of %s at %d: %w", name, off, err)
	}
	return &format.CorruptError{Object: name, Stripe: -1, Offset: int64(off), Reason: reason}
}
