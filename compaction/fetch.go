package compaction

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
)

// A fetcher reads ranges of objects. Short ones come out of blocks that are kept, within a bound on bytes, those used last: features lie in the
// packs in about the order in which they are asked for, so that an object is read in a few large requests and not in one for each
// stripe of a feature. Safe for concurrent use.
type fetcher struct {
	blobs object.Store
	max   int64

	mu     sync.Mutex
	held   int64                      // guarded by mu
	blocks map[blockKey]*list.Element // guarded by mu
	used   *list.List                 // of *block, the last one used in front; guarded by mu
	read   int64                      // bytes, guarded by mu
}

type blockKey struct {
	object string
	number uint64
}

type block struct {
	key  blockKey
	once sync.Once
	data []byte
	err  error
}

const (
	blockBytes = 1 << 20
	// longRange: what is longer is read by itself. The object's size is looked at first, so that a damaged index allocates nothing that no object has.
	longRange = blockBytes / 2
)

func newFetcher(blobs object.Store, max int64) *fetcher {
	return &fetcher{blobs: blobs, max: max, blocks: map[blockKey]*list.Element{}, used: list.New()}
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
		return dst, &format.CorruptError{Object: name, Stripe: -1, Offset: int64(off), Reason: fmt.Sprintf("%d bytes lie past its end, %d", n, size)}
	}
	if n >= longRange {
		return f.long(ctx, dst, name, off, n)
	}
	for n > 0 {
		b, err := f.block(ctx, name, size, off/blockBytes)
		if err != nil {
			return dst, err
		}
		part := b[off%blockBytes:]
		part = part[:min(n, uint64(len(part)))]
		dst = append(dst, part...)
		off, n = off+uint64(len(part)), n-uint64(len(part))
	}
	return dst, nil
}

func (f *fetcher) long(ctx context.Context, dst []byte, name string, off, n uint64) ([]byte, error) {
	info, err := f.blobs.Stat(ctx, name)
	if err == nil && off+n > uint64(info.Size) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
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
	key := blockKey{name, number}
	f.mu.Lock()
	e := f.blocks[key]
	if e == nil {
		e = f.used.PushFront(&block{key: key})
		f.blocks[key] = e
		f.held += blockBytes
		for f.held > f.max && f.used.Len() > 1 {
			last := f.used.Back()
			delete(f.blocks, f.used.Remove(last).(*block).key)
			f.held -= blockBytes
		}
	} else {
		f.used.MoveToFront(e)
	}
	b := e.Value.(*block)
	f.mu.Unlock()
	b.once.Do(func() {
		b.data = make([]byte, min(blockBytes, size-number*blockBytes))
		b.err = f.blobs.ReadAt(ctx, name, b.data, int64(number*blockBytes))
		f.count(int64(len(b.data)))
	})
	if b.err != nil {
		f.drop(e, b)
		return nil, missing(name, number*blockBytes, b.err)
	}
	return b.data, nil
}

// drop forgets a block that could not be read.
func (f *fetcher) drop(e *list.Element, b *block) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocks[b.key] == e {
		delete(f.blocks, b.key)
		f.used.Remove(e)
		f.held -= blockBytes
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
