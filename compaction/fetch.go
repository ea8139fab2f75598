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

// A fetcher reads ranges of objects. Short ones come out of blocks that are kept, within a bound on bytes, those used
// last: features lie in the packs in about the order in which they are asked for, so that an object is read in a few
// large requests and not in one for each stripe of a feature. Safe for concurrent use.
type fetcher struct {
	blobs object.Store
	max   int64
	size  uint64 // of a block

	mu     sync.Mutex
	blocks *lru.Cache[blockKey, *block] // guarded by mu
	read   int64                        // bytes, guarded by mu
}

// A blockKey names a block of an object, which is of the size that a segment says: another may lie.
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
	// blocksEach is how many blocks of each object there is room for: where the next features are, and where those of
	// their groups.
	blocksEach = 4
	// longRange: what is longer is read by itself. The object's size is looked at first, so that a damaged index
	// allocates nothing that no object has.
	longRange = object.LargeRead
)

// newFetcher returns a fetcher that keeps about so many bytes, of so many objects that are read side by side.
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

// get appends bytes [off, off+n) of an object of the given size to dst.
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

// block returns a block of an object. Borrowed: nobody writes to it.
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

// drop forgets a block that could not be read.
func (f *fetcher) drop(key blockKey, b *block) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kept, ok := f.blocks.Get(key); ok && kept == b {
		f.blocks.Remove(key)
	}
}

// missing says that an object is not what its segment says where that is so.
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
