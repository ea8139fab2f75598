package lsm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
	"github.com/dsistore/dsistore/storage/wire"
)

// A Kind tells the two trees of a snapshot apart.
type Kind uint8

const (
	Listing Kind = 1
	Schema  Kind = 2
)

// ObjectName names the object of a sorted run.
func (k Kind) ObjectName(run names.ID) string {
	if k == Listing {
		return run.ListingName()
	}
	return run.SchemaName()
}

// A Tree is a sorted map kept as runs and a memtable. It is a value; nothing in it is written after it is made.
//
//	runs[0]  runs[1] ... runs[n-1]   tail        a key's entry in a later part replaces those before
//	largest, oldest      smallest    in the snapshot
type Tree struct {
	Kind     Kind
	Runs     []Run
	Memtable []Entry // in key order, each key once
}

// A Run names a run: a sorted table of its own.
type Run struct {
	ID   names.ID
	Size uint64 // bytes
}

// maxOpenRuns bounds how many runs are kept open.
const maxOpenRuns = 64

// A Store reads and writes trees, and keeps runs open. Safe for concurrent use.
type Store struct {
	Blobs object.Store
	// MemtableBytes is how large a tree's memtable gets.
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

// CacheStats returns how often a run was asked for that was open, and how often one that had to be opened.
func (s *Store) CacheStats() (hits, misses uint64) { return s.hits.Load(), s.misses.Load() }

// Close drops the open runs.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.runs)
}

// An Entry sets a key, or removes it when value is nil.
type Entry struct {
	Key, Value []byte
}

// The first byte of a stored value.
const (
	RemovedMark = 0
	setMark     = 1
)

const (
	// DefaultMemtableBytes is how large the tail gets before it becomes a run, a bound on what each commit writes
	// again.
	DefaultMemtableBytes = 32 << 10
	// mergeRatio: a run is merged into the one that is made when it is smaller than this many times what is merged so
	// far.
	mergeRatio = 4
	maxRuns    = 64
	// RemoteRunBytes: where requests take long, runs of up to so many bytes are read whole. Over a network that takes
	// about as long as one block.
	RemoteRunBytes = 1 << 20
)

// AppendTree appends the form that a snapshot holds:
//
//	number of runs | (id (16) | size)... | number of tail entries | (shared | key suffix | value mark and value)...
//
// shared is how many bytes the key has in common with the one before; suffix and value follow their lengths.
func AppendTree(dst []byte, t Tree) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t.Runs)))
	for _, r := range t.Runs {
		dst = append(dst, r.ID[:]...)
		dst = binary.AppendUvarint(dst, r.Size)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.Memtable)))
	var prev []byte
	for _, e := range t.Memtable {
		n := 0
		for n < min(len(prev), len(e.Key)) && prev[n] == e.Key[n] {
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(n))
		dst = wire.AppendString(dst, e.Key[n:])
		dst = wire.AppendString(dst, storedValue(e))
		prev = e.Key
	}
	return dst
}

// storedValue returns the value as runs and tails hold it.
func storedValue(e Entry) []byte {
	if e.Value == nil {
		return []byte{RemovedMark}
	}
	return append([]byte{setMark}, e.Value...)
}

// ParseValue returns the value of an entry, nil when it removes, borrowed from b.
func ParseValue(b []byte) (value []byte, reason string) {
	switch {
	case len(b) == 1 && b[0] == RemovedMark:
		return nil, ""
	case len(b) >= 1 && b[0] == setMark:
		return b[1:len(b):len(b)], ""
	}
	return nil, "tree entry with an unknown mark"
}

// DecodeTree decodes what AppendTree wrote off the front of d. The entries borrow d's bytes.
func DecodeTree(d *wire.Decoder, kind Kind) Tree {
	t := Tree{Kind: kind}
	for range d.Max(maxRuns, "runs") {
		var r Run
		copy(r.ID[:], d.Take(16))
		r.Size = d.Max(1<<62, "run size")
		t.Runs = append(t.Runs, r)
	}
	var prev []byte
	keys := 0 // bytes of all keys, each whole
	// Each entry takes at least four bytes, so the count sizes nothing that the bytes do not.
	for range d.Max(uint64(len(d.Rest)), "tail entries") {
		shared := d.Max(uint64(len(prev)), "shared bytes")
		suffix := d.Bytes()
		value, reason := ParseValue(d.Bytes())
		if d.Reason == "" && reason != "" {
			d.Fail(reason)
		}
		if d.Reason != "" {
			break
		}
		key := append(bytes.Clone(prev[:shared]), suffix...)
		if len(key) > MaxKey || len(t.Memtable) > 0 && bytes.Compare(prev, key) >= 0 {
			d.Fail("tail keys out of order")
			break
		}
		if keys += len(key); keys > maxMemtableKeys {
			d.Fail("tail keys are too long")
			break
		}
		t.Memtable = append(t.Memtable, Entry{key, value})
		prev = key
	}
	return t
}

// maxMemtableKeys bounds the keys of a tail together. Each shares bytes with the one before, so that few bytes could
// stand for many: a writer's tail holds some 32 KiB.
const maxMemtableKeys = 16 << 20

// MaxKey bounds a key of a tree. The longest is a partition's.
const MaxKey = catalog.MaxPartition + 64

// MergeEntries returns base with the entries of over put in; both in key order, over wins.
func MergeEntries(base, over []Entry) []Entry {
	out := make([]Entry, 0, len(base)+len(over))
	for len(base) > 0 || len(over) > 0 {
		switch {
		case len(base) == 0:
			return append(out, over...)
		case len(over) == 0:
			return append(out, base...)
		}
		c := bytes.Compare(base[0].Key, over[0].Key)
		if c < 0 {
			out, base = append(out, base[0]), base[1:]
			continue
		}
		if c == 0 {
			base = base[1:]
		}
		out, over = append(out, over[0]), over[1:]
	}
	return out
}

// SortEntries orders entries by key; of several with one key the last stays.
func SortEntries(entries []Entry) []Entry {
	slices.SortStableFunc(entries, func(a, b Entry) int { return bytes.Compare(a.Key, b.Key) })
	out := entries[:0]
	for i, e := range entries {
		if i+1 < len(entries) && bytes.Equal(e.Key, entries[i+1].Key) {
			continue
		}
		out = append(out, e)
	}
	return out
}

func sizeOf(entries []Entry) uint64 {
	n := 0
	for _, e := range entries {
		n += len(e.Key) + len(e.Value) + 4
	}
	return uint64(n)
}

// Get returns the value of each key in t, nil where there is none.
func (s *Store) Get(ctx context.Context, t Tree, keys ...[]byte) ([][]byte, error) {
	out := make([][]byte, len(keys))
	var open []int // places in keys not yet decided
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
	// Near by, a run is asked for what those after it do not have. Where requests take long, all are asked at once.
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

// getRun returns what run r of t has under the keys whose places are in ask, nil where it has nothing.
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

// run opens a run; open ones are kept.
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

// OpenRun opens a run and does not keep it.
func (s *Store) OpenRun(ctx context.Context, kind Kind, ref Run) (*sst.Reader, error) {
	var fetch sst.Fetch
	if object.HighLatency(s.Blobs) {
		fetch.Whole = RemoteRunBytes
	}
	return OpenTable(ctx, s.Blobs, kind.ObjectName(ref.ID), ref.Size, fetch)
}

// OpenRuns opens the runs of trees, at once where requests take long.
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

// An Iter walks the entries of a tree that are set, in key order. Not safe for concurrent use.
type Iter struct {
	s     *Store
	t     Tree
	upper []byte
	parts []lsmSource // the runs in order, then the tail
	// keepRemoved: entries that remove are yielded too, with a nil value.
	keepRemoved bool
	Key, Value  []byte
	last        []byte // owned copy of the key yielded last
	Err         error
}

// An lsmSource is one run, or the tail, standing at an entry or at its end.
type lsmSource struct {
	it       *sst.Iter // nil: the tail
	memtable []Entry
	at       int
	ok       bool
}

// Iter returns an iterator over the keys of t below upper (nil: all). It stands nowhere.
func (s *Store) Iter(ctx context.Context, t Tree, upper []byte) *Iter {
	i := &Iter{s: s, t: t, upper: upper, parts: make([]lsmSource, len(t.Runs))}
	i.Err = object.Parallel(ctx, object.RequestsAtOnce, len(t.Runs), func(ctx context.Context, n int) error {
		r, err := s.run(ctx, t.Kind, t.Runs[n])
		if err == nil {
			i.parts[n] = lsmSource{it: r.Iter(upper)}
		}
		return err
	})
	if i.Err != nil {
		return i
	}
	i.parts = append(i.parts, lsmSource{memtable: t.Memtable})
	return i
}

// Seek moves to the first key that is not below key. Key and value are borrowed until the next move.
func (i *Iter) Seek(ctx context.Context, key []byte) bool {
	if i.Err != nil {
		return false
	}
	for n := range i.parts {
		p := &i.parts[n]
		if p.it != nil {
			p.ok = p.it.SeekGE(ctx, key)
			continue
		}
		p.at, _ = slices.BinarySearchFunc(p.memtable, key, func(e Entry, key []byte) int {
			return bytes.Compare(e.Key,
				key)
		})
		p.bound(i.upper)
	}
	return i.findSmallest(ctx)
}

func (p *lsmSource) bound(upper []byte) {
	p.ok = p.at < len(p.memtable) && (upper == nil || bytes.Compare(p.memtable[p.at].Key, upper) < 0)
}

func (p *lsmSource) key() []byte {
	if p.it != nil {
		return p.it.Key()
	}
	return p.memtable[p.at].Key
}

// Next moves to the next key.
func (i *Iter) Next(ctx context.Context) bool {
	if i.Err != nil {
		return false
	}
	i.skip(ctx, i.Key)
	return i.findSmallest(ctx)
}

// skip moves every part that stands at key on.
func (i *Iter) skip(ctx context.Context, key []byte) {
	// The key may be borrowed from a part that is about to move.
	i.last = append(i.last[:0], key...)
	for n := range i.parts {
		p := &i.parts[n]
		if !p.ok || !bytes.Equal(p.key(), i.last) {
			continue
		}
		if p.it != nil {
			p.ok = p.it.Next(ctx)
		} else {
			p.at++
			p.bound(i.upper)
		}
	}
}

// findSmallest moves to the smallest key of all parts; the last part that has it gives the value.
func (i *Iter) findSmallest(ctx context.Context) bool {
	for {
		best := -1
		for n := range i.parts {
			p := &i.parts[n]
			if p.it != nil && p.it.Err() != nil {
				i.Err = p.it.Err()
				return false
			}
			if p.ok && (best < 0 || bytes.Compare(p.key(), i.parts[best].key()) <= 0) {
				best = n
			}
		}
		if best < 0 {
			i.Key, i.Value = nil, nil
			return false
		}
		p := &i.parts[best]
		i.Key = p.key()
		if p.it == nil {
			i.Value = p.memtable[p.at].Value
		} else {
			var reason string
			if i.Value, reason = ParseValue(p.it.Value()); reason != "" {
				i.Err = wire.Corrupt(i.t.Kind.ObjectName(i.t.Runs[best].ID), reason)
				return false
			}
		}
		if i.Value != nil || i.keepRemoved {
			return true
		}
		i.skip(ctx, i.Key)
	}
}

// Put returns t with the changes, in key order, put in. When the tail grows too large it becomes a run, which is
// written, durably, before put returns; its id, which is one of the table's, is then made, else nil.
func (s *Store) Put(ctx context.Context, table names.TableID, t Tree,
	changes []Entry) (_ Tree, made []names.ID, err error) {
	out := Tree{Kind: t.Kind, Runs: t.Runs, Memtable: MergeEntries(t.Memtable, changes)}
	n := sizeOf(out.Memtable)
	if n <= s.MemtableBytes {
		return out, nil, nil
	}
	keep := len(t.Runs)
	for keep > 0 && (t.Runs[keep-1].Size < mergeRatio*n || keep >= maxRuns) {
		keep--
		n += t.Runs[keep].Size
	}
	merged := Tree{Kind: t.Kind, Runs: t.Runs[keep:], Memtable: out.Memtable}
	ref, err := s.writeRun(ctx, table, merged, keep > 0)
	if err != nil {
		return Tree{}, nil, err
	}
	out.Runs = append(slices.Clone(t.Runs[:keep]), ref)
	out.Memtable = nil
	return out, []names.ID{ref.ID}, nil
}

// writeRun writes all of t as one run. Entries that remove are kept when older runs lie below.
func (s *Store) writeRun(ctx context.Context, of names.TableID, t Tree, keepRemoved bool) (ref Run, err error) {
	ref.ID = names.NewID(of)
	name := t.Kind.ObjectName(ref.ID)
	w, err := s.Blobs.Create(ctx, name)
	if err != nil {
		return Run{}, err
	}
	defer w.Abort()
	table := sst.NewWriter(w)
	it := s.Iter(ctx, t, nil)
	it.keepRemoved = keepRemoved
	var buf []byte
	for ok := it.Seek(ctx, nil); ok && err == nil; ok = it.Next(ctx) {
		if it.Value == nil {
			buf = append(buf[:0], RemovedMark)
		} else {
			buf = append(append(buf[:0], setMark), it.Value...)
		}
		err = table.Add(it.Key, buf)
	}
	n, ferr := table.Finish()
	for _, e := range [...]error{it.Err, err, ferr} {
		if e != nil {
			return Run{}, fmt.Errorf("write %s: %w", name, e)
		}
	}
	ref.Size = uint64(n)
	return ref, w.Commit(ctx)
}
