package lsm

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
	"github.com/dsistore/dsistore/storage/wire"
)

// maxOpenRuns bounds how many runs are kept open.
const maxOpenRuns = 64

// A Store reads and writes trees, and keeps runs open. Safe for concurrent use.
type Store struct {
	Blobs object.Store
	// MemtableBytes is how large a tree's memtable gets before Put writes it as a run.
	MemtableBytes uint64
	hits, misses  atomic.Uint64 // of the open runs

	mu   sync.Mutex
	runs map[names.ID]*sst.Reader // open runs; guarded by mu
}

// NewStore returns a store of trees over blobs. memtableBytes of 0 is the default.
func NewStore(blobs object.Store, memtableBytes int) *Store {
	s := &Store{Blobs: blobs, MemtableBytes: DefaultMemtableBytes, runs: map[names.ID]*sst.Reader{}}
	if memtableBytes > 0 {
		s.MemtableBytes = uint64(memtableBytes)
	}
	return s
}

// CacheStats returns how often a run was needed that was open, and how often one that had to be opened.
func (s *Store) CacheStats() (hits, misses uint64) { return s.hits.Load(), s.misses.Load() }

// Close drops the open runs.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.runs)
}

const (
	// DefaultMemtableBytes is how large a memtable gets before it becomes a run. It bounds what each commit writes
	// again.
	DefaultMemtableBytes = 32 << 10
	// mergeRatio: Put merges a run into the new one if it is smaller than this many times what is merged so far.
	mergeRatio = 4
	maxRuns    = 64
	// RemoteRunBytes: from a store of high latency, runs of up to so many bytes are read whole. That takes about as
	// long as reading one block.
	RemoteRunBytes = 2 << 20
)

// Get returns the value of each key in t, nil where there is none.
func (s *Store) Get(ctx context.Context, t Tree, keys ...[]byte) ([][]byte, error) {
	out := make([][]byte, len(keys))
	var open []int // indexes of keys that are not in the memtable
	for k, key := range keys {
		i, ok := slices.BinarySearchFunc(t.Memtable, key, func(e Entry, key []byte) int {
			return bytes.Compare(e.Key,
				key)
		})
		if ok {
			out[k] = bytes.Clone(t.Memtable[i].Value)
		} else {
			open = append(open, k)
		}
	}
	if len(open) == 0 || len(t.Runs) == 0 {
		return out, nil
	}
	// If latency is low, a run is asked only for the keys that later runs do not have. Else all runs are asked at once.
	ahead := make([][][]byte, len(t.Runs))
	if object.HighLatency(s.Blobs) && len(t.Runs) > 1 {
		err := object.Parallel(ctx, object.RequestsAtOnce, len(t.Runs), func(ctx context.Context, r int) (err error) {
			ahead[r], err = s.getRun(ctx, t, r, keys, open)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	decided := make([]bool, len(keys))
	for r := len(t.Runs) - 1; r >= 0 && len(open) > 0; r-- {
		values, asked := ahead[r], open
		if values == nil {
			asked = slices.DeleteFunc(slices.Clone(open), func(k int) bool { return decided[k] })
			var err error
			if values, err = s.getRun(ctx, t, r, keys, asked); err != nil {
				return nil, err
			}
		}
		left := 0
		for i, k := range asked {
			if decided[k] {
				continue // a later run has it
			}
			if values[i] == nil {
				left++
				continue
			}
			var reason string
			if out[k], reason = ParseValue(values[i]); reason != "" {
				return nil, wire.Corrupt(t.Kind.ObjectName(t.Runs[r].ID), reason)
			}
			decided[k] = true
		}
		if left == 0 {
			break
		}
	}
	return out, nil
}

// getRun returns the stored values of run r of t for the keys whose indexes are in ask, nil where it has none.
func (s *Store) getRun(ctx context.Context, t Tree, r int, keys [][]byte, ask []int) ([][]byte, error) {
	run, err := s.run(ctx, t.Kind, t.Runs[r])
	if err != nil {
		return nil, err
	}
	some := make([][]byte, len(ask))
	for i, k := range ask {
		some[i] = keys[k]
	}
	return run.Get(ctx, some...)
}

// run returns an open run, and keeps it open.
func (s *Store) run(ctx context.Context, kind Kind, ref Run) (*sst.Reader, error) {
	s.mu.Lock()
	r := s.runs[ref.ID]
	s.mu.Unlock()
	if r != nil {
		s.hits.Add(1)
		return r, nil
	}
	s.misses.Add(1)
	r, err := s.OpenRun(ctx, kind, ref)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) >= maxOpenRuns {
		clear(s.runs)
	}
	s.runs[ref.ID] = r
	return r, nil
}

// OpenRun opens a run, and does not keep it open. If its table is read whole for that, it must be the run's. Where a
// block of it is damaged, reading that block is an error, and other blocks can be read.
func (s *Store) OpenRun(ctx context.Context, kind Kind, ref Run) (*sst.Reader, error) {
	fetch := sst.Fetch{}
	if object.HighLatency(s.Blobs) {
		fetch = RemoteFetch(ref.Size)
	}
	r, err := OpenTable(ctx, s.Blobs, kind.ObjectName(ref.ID), ref.Size, fetch)
	if err != nil {
		return nil, err
	}
	if b := r.Whole(); b != nil {
		if block, other := ref.hold(ctx, kind, r, xxhash.Sum64(b)); block == nil && other != nil {
			return nil, other
		}
	}
	return r, nil
}

// RemoteFetch returns what is read of a table of so many bytes in a store of high latency: with its end its index, as a
// rule, so that it takes a round trip to open, and one for each look-up.
func RemoteFetch(size uint64) sst.Fetch {
	return sst.Fetch{Whole: RemoteRunBytes, Tail: int(min(size/20, RemoteRunBytes)), Gap: 32 << 10}
}

// OpenRuns opens the runs of trees, at once, if latency is high. Else they are opened when they are needed.
func (s *Store) OpenRuns(ctx context.Context, trees ...Tree) error {
	if !object.HighLatency(s.Blobs) {
		return nil
	}
	var kinds []Kind
	var refs []Run
	for _, t := range trees {
		for _, r := range t.Runs {
			kinds, refs = append(kinds, t.Kind), append(refs, r)
		}
	}
	return object.Parallel(ctx, object.RequestsAtOnce, len(refs), func(ctx context.Context, i int) error {
		_, err := s.run(ctx, kinds[i], refs[i])
		return err
	})
}

// OpenTable opens a sorted table of the store.
func OpenTable(ctx context.Context, blobs object.Store, name string, size uint64,
	fetch sst.Fetch) (*sst.Reader, error) {
	return sst.Open(ctx, name, int64(size), fetch, func(ctx context.Context, ranges ...object.Range) error {
		return wire.Missing(name, object.ReadRanges(ctx, blobs, name, ranges...))
	})
}
