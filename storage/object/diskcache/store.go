//go:build unix

package diskcache

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// A Store is a store whose reads of segments' objects go through a Cache. Everything else goes to the store under it.
type Store struct {
	object.Store
	cache *Cache
}

// NewStore returns a Store over s.
func NewStore(s object.Store, c *Cache) *Store { return &Store{Store: s, cache: c} }

// Unwrap returns the store under it.
func (s *Store) Unwrap() object.Store { return s.Store }

// Gap is that of a disk: what is missing is fetched in whole blocks anyway. See object.Gap.
func (s *Store) Gap() int64 { return 64 << 10 }

func (s *Store) First(ctx context.Context, prefix, startAfter string) (object.Info, bool, error) {
	return object.First(ctx, s.Store, prefix, startAfter)
}

func (s *Store) DeleteAll(ctx context.Context, names []string) error {
	return object.DeleteAll(ctx, s.Store, names)
}

// ReadWhole reads a segment's object that fits a block through the cache.
func (s *Store) ReadWhole(ctx context.Context, name string, most int64) ([]byte, int64, error) {
	if !names.IsSegmentObject(name) {
		return object.ReadWhole(ctx, s.Store, name, most)
	}
	buffer := blockBuffers.Get().(*[]byte)
	defer blockBuffers.Put(buffer)
	p := *buffer
	n, err := s.readUpTo(ctx, name, p, 0)
	switch {
	case err != nil:
		return nil, 0, err
	case n == blockBytes: // how long it is, the block does not say
		return object.ReadWhole(ctx, s.Store, name, most)
	case int64(n) > most:
		return nil, int64(n), nil
	}
	return append(make([]byte, 0, n), p[:n]...), int64(n), nil
}

// ReadAt reads from the cache what it has, and the rest from the store.
func (s *Store) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	if len(p) == 0 || off < 0 || !names.IsSegmentObject(name) {
		return s.Store.ReadAt(ctx, name, p, off)
	}
	n, err := s.readUpTo(ctx, name, p, off)
	if err == nil && n < len(p) {
		err = fmt.Errorf("object %s: read of %d bytes at %d: %w", name, len(p), off, io.ErrUnexpectedEOF)
	}
	return err
}

const (
	// fetched bounds the bytes of a request.
	fetched = 8 << 20
	// tries is how often a block is looked for again that others were to fetch, before the cache is let alone.
	tries = 3
)

// What requests return is held in memory of a block, or of the largest request.
var (
	blockBuffers = sync.Pool{New: func() any { b := make([]byte, blockBytes); return &b }}
	largeBuffers = sync.Pool{New: func() any { b := make([]byte, fetched); return &b }}
)

// buffersFor returns the pool of buffers that hold n bytes.
func buffersFor(n int) *sync.Pool {
	if n <= blockBytes {
		return &blockBuffers
	}
	return &largeBuffers
}

// A piece is a part of a read within one block.
type piece struct {
	key   key
	block int64 // of the object
	p     []byte
	off   int // in the block
}

// readUpTo fills p from off on, or as much of it as the object has: n bytes.
func (s *Store) readUpTo(ctx context.Context, name string, p []byte, off int64) (n int, err error) {
	h, traffic := s.cache.x.h, object.TrafficOf(ctx)
	var missing []piece
	end := len(p) // of what the object has of p
	for at := 0; at < len(p); {
		block := (off + int64(at)) / blockBytes
		x := piece{block: block, key: keyOf(name, block), off: int(off + int64(at) - block*blockBytes)}
		x.p = p[at:min(at+blockBytes-x.off, len(p))]
		n, got := s.cache.get(x.key, x.p, x.off)
		switch got {
		case found:
			h.hits.Add(1)
			h.bytesHit.Add(uint64(n))
			traffic.Cached(n)
			if n < len(x.p) {
				end = min(end, at+n)
			}
		case damaged:
			h.damaged.Add(1)
			s.cache.forget(x.key, func(state int) bool { return state != stateClaimed })
			fallthrough
		default:
			h.misses.Add(1)
			missing = append(missing, x)
		}
		at += len(x.p)
	}
	for try := 0; len(missing) > 0; try++ {
		short, left, err := s.fetch(ctx, name, missing, try < tries)
		if err != nil {
			return 0, err
		}
		if short >= 0 {
			end = min(end, max(0, int(short-off)))
		}
		missing = left
	}
	return end, nil
}

// fetch reads pieces that the cache lacks, and keeps their blocks if keep is set. Pieces whose blocks another read
// fetches it waits for, and returns those that did not come. short is the object's size if the object ends in one of
// the pieces, else -1.
func (s *Store) fetch(ctx context.Context, name string, missing []piece, keep bool) (short int64, left []piece,
	err error) {
	short = -1
	keys := make([]key, len(missing))
	for i := range missing {
		keys[i] = missing[i].key
	}
	var claimed []claim
	if keep {
		claimed, err = s.cache.claims(keys)
	}
	if !keep || err != nil { // or the cache does not work
		claimed = make([]claim, len(missing))
		for i := range claimed {
			claimed[i].block = -1
		}
	}
	done := 0 // pieces before it are fetched, or not ours
	defer s.cache.renew(keys, claimed)()
	defer func() {
		for i := done; i < len(missing); i++ { // after an error
			if claimed[i].block >= 0 {
				s.cache.forget(keys[i], func(state int) bool { return state == stateClaimed })
			}
		}
		for i, c := range claimed {
			if c.flight != nil {
				s.cache.flights.CompareAndDelete(keys[i], c.flight)
				close(c.flight)
			}
		}
	}()
	var wait []piece
	for done < len(missing) {
		if claimed[done].wait {
			wait = append(wait, missing[done])
			done++
			continue
		}
		to := done + 1
		for to < len(missing) && !claimed[to].wait && missing[to].block == missing[to-1].block+1 &&
			to-done < fetched/blockBytes {
			to++
		}
		end, err := s.fetchRun(ctx, name, missing[done:to], claimed[done:to])
		if err != nil {
			return short, nil, err
		}
		if end >= 0 {
			short = end
		}
		done = to
	}
	for _, x := range wait {
		s.cache.x.h.waited.Add(1)
		n, ok, err := s.await(ctx, x)
		switch {
		case err != nil:
			return short, nil, err
		case !ok:
			left = append(left, x)
		default: // another read's request was for it
			object.TrafficOf(ctx).Cached(n)
			if n < len(x.p) {
				short = x.block*blockBytes + int64(x.off+n)
			}
		}
	}
	return short, left, nil
}

// fetchRun reads consecutive blocks by one request, fills their pieces, and keeps the blocks that are claimed. It
// returns the size of the object if it ends in them, else -1.
func (s *Store) fetchRun(ctx context.Context, name string, run []piece, claimed []claim) (short int64, err error) {
	pool := buffersFor(len(run) * blockBytes)
	buffer := pool.Get().(*[]byte)
	defer pool.Put(buffer)
	begin := run[0].block * blockBytes
	b := (*buffer)[:len(run)*blockBytes]
	n, err := object.ReadUpTo(ctx, s.Store, name, b, begin)
	if err != nil {
		return -1, err
	}
	for i, x := range run {
		data := b[min(n, i*blockBytes):min(n, (i+1)*blockBytes)]
		if x.off < len(data) {
			copy(x.p, data[x.off:])
		}
		if claimed[i].block < 0 {
			continue
		}
		if len(data) == 0 { // beyond the end: nobody asks for it again
			s.cache.forget(x.key, func(state int) bool { return state == stateClaimed })
			continue
		}
		s.cache.put(x.key, claimed[i].block, data)
	}
	if n < len(b) {
		return begin + int64(n), nil
	}
	return -1, nil
}

// await waits until a piece that another read fetches is there, and fills it: n bytes. ok is false when the other gave
// up, or what it left cannot be read.
func (s *Store) await(ctx context.Context, x piece) (n int, ok bool, err error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		fetching := s.cache.fetching(x.key)
		n, got := s.cache.get(x.key, x.p, x.off)
		if got == found {
			return n, true, nil
		}
		if !fetching {
			if got == damaged {
				s.cache.forget(x.key, func(state int) bool { return state != stateClaimed })
			}
			return 0, false, nil
		}
		flight, _ := s.cache.flights.Load(x.key)
		done, _ := flight.(chan struct{}) // nil: another process fetches it
		timer := time.NewTimer(pause)
		select {
		case <-done:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, false, ctx.Err()
		}
		timer.Stop()
	}
}

// fetching reports whether somebody fetches the block of a key.
func (c *Cache) fetching(k key) (yes bool) {
	_ = c.change(func(x *index) { // where the lock does not work nobody is waited for
		if block := x.find(k); block >= 0 {
			e := &x.entries[block]
			yes = e.state() == stateClaimed && c.owned(k, e)
		}
	})
	return yes
}
