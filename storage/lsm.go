package storage

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

// A treeKind tells the two trees of a snapshot apart.
type treeKind uint8

const (
	listingTree treeKind = 1
	schemaTree  treeKind = 2
)

// objectName names the object of a sorted run.
func (k treeKind) objectName(run names.ID) string {
	if k == listingTree {
		return run.ListingName()
	}
	return run.SchemaName()
}

// A tree is a sorted map kept as runs and a tail: see doc.go. It is a value; nothing in it is written after it is made.
//
//	runs[0]  runs[1] ... runs[n-1]   tail        a key's entry in a later part replaces those before
//	largest, oldest      smallest    in the snapshot
type lsmTree struct {
	kind     treeKind
	runs     []sortedRun
	memtable []entry // in key order, each key once
}

// A runRef names a run: a sorted table of its own.
type sortedRun struct {
	id   names.ID
	size uint64 // bytes
}

// maxOpenRuns bounds how many runs are kept open.
const maxOpenRuns = 64

// A treeStore reads and writes trees, and keeps runs open. Safe for concurrent use.
type treeStore struct {
	blobs object.Store
	// memtableBytes is how large a tree's memtable gets.
	memtableBytes uint64
	hits, misses  atomic.Uint64 // of the open runs

	mu   sync.Mutex
	runs map[names.ID]*sst.Reader // open runs; guarded by mu
}

// newTreeStore returns a store of trees over blobs. memtableBytes of 0 is the default.
func newTreeStore(blobs object.Store, memtableBytes int) *treeStore {
	s := &treeStore{blobs: blobs, memtableBytes: defaultMemtableBytes, runs: map[names.ID]*sst.Reader{}}
	if memtableBytes > 0 {
		s.memtableBytes = uint64(memtableBytes)
	}
	return s
}

// cacheStats returns how often a run was asked for that was open, and how often one that had to be opened.
func (s *treeStore) cacheStats() (hits, misses uint64) { return s.hits.Load(), s.misses.Load() }

// closeRuns drops the open runs.
func (s *treeStore) closeRuns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.runs)
}

// A treeEntry sets a key, or removes it when value is nil.
type entry struct {
	key, value []byte
}

// The first byte of a stored value.
const (
	removedMark = 0
	setMark     = 1
)

const (
	// defaultMemtableBytes is how large the tail gets before it becomes a run, a bound on what each commit writes again.
	defaultMemtableBytes = 32 << 10
	// mergeRatio: a run is merged into the one that is made when it is smaller than this many times what is merged so far.
	mergeRatio = 4
	maxRuns    = 64
	// remoteRunBytes: where requests take long, runs of up to so many bytes are read whole. Over a network that takes about as long as one block.
	remoteRunBytes = 1 << 20
)

// appendTree appends the form that a snapshot holds:
//
//	number of runs | (id (16) | size)... | number of tail entries | (shared | key suffix | value mark and value)...
//
// shared is how many bytes the key has in common with the one before; suffix and value follow their lengths.
func appendTree(dst []byte, t lsmTree) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t.runs)))
	for _, r := range t.runs {
		dst = append(dst, r.id[:]...)
		dst = binary.AppendUvarint(dst, r.size)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.memtable)))
	var prev []byte
	for _, e := range t.memtable {
		n := 0
		for n < min(len(prev), len(e.key)) && prev[n] == e.key[n] {
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(n))
		dst = wire.AppendString(dst, e.key[n:])
		dst = wire.AppendString(dst, storedValue(e))
		prev = e.key
	}
	return dst
}

// storedValue returns the value as runs and tails hold it.
func storedValue(e entry) []byte {
	if e.value == nil {
		return []byte{removedMark}
	}
	return append([]byte{setMark}, e.value...)
}

// parseValue returns the value of an entry, nil when it removes, borrowed from b.
func parseValue(b []byte) (value []byte, reason string) {
	switch {
	case len(b) == 1 && b[0] == removedMark:
		return nil, ""
	case len(b) >= 1 && b[0] == setMark:
		return b[1:len(b):len(b)], ""
	}
	return nil, "tree entry with an unknown mark"
}

// decodeTree decodes what appendTree wrote off the front of d. The entries borrow d's bytes.
func decodeTree(d *wire.Decoder, kind treeKind) lsmTree {
	t := lsmTree{kind: kind}
	for range d.Max(maxRuns, "runs") {
		var r sortedRun
		copy(r.id[:], d.Take(16))
		r.size = d.Max(1<<62, "run size")
		t.runs = append(t.runs, r)
	}
	var prev []byte
	keys := 0 // bytes of all keys, each whole
	// Each entry takes at least four bytes, so the count sizes nothing that the bytes do not.
	for range d.Max(uint64(len(d.Rest)), "tail entries") {
		shared := d.Max(uint64(len(prev)), "shared bytes")
		suffix := d.Bytes()
		value, reason := parseValue(d.Bytes())
		if d.Reason == "" && reason != "" {
			d.Fail(reason)
		}
		if d.Reason != "" {
			break
		}
		key := append(bytes.Clone(prev[:shared]), suffix...)
		if len(key) > maxKey || len(t.memtable) > 0 && bytes.Compare(prev, key) >= 0 {
			d.Fail("tail keys out of order")
			break
		}
		if keys += len(key); keys > maxMemtableKeys {
			d.Fail("tail keys are too long")
			break
		}
		t.memtable = append(t.memtable, entry{key, value})
		prev = key
	}
	return t
}

// maxMemtableKeys bounds the keys of a tail together. Each shares bytes with the one before, so that few bytes could stand for
// many: a writer's tail holds some 32 KiB.
const maxMemtableKeys = 16 << 20

// maxKey bounds a key of a tree. The longest is a partition's.
const maxKey = catalog.MaxPartition + 64

// mergeEntries returns base with the entries of over put in; both in key order, over wins.
func mergeEntries(base, over []entry) []entry {
	out := make([]entry, 0, len(base)+len(over))
	for len(base) > 0 || len(over) > 0 {
		switch {
		case len(base) == 0:
			return append(out, over...)
		case len(over) == 0:
			return append(out, base...)
		}
		c := bytes.Compare(base[0].key, over[0].key)
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

// sortEntries orders entries by key; of several with one key the last stays.
func sortEntries(entries []entry) []entry {
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	out := entries[:0]
	for i, e := range entries {
		if i+1 < len(entries) && bytes.Equal(e.key, entries[i+1].key) {
			continue
		}
		out = append(out, e)
	}
	return out
}

func sizeOf(entries []entry) uint64 {
	n := 0
	for _, e := range entries {
		n += len(e.key) + len(e.value) + 4
	}
	return uint64(n)
}

// get returns the value of each key in t, nil where there is none.
func (s *treeStore) get(ctx context.Context, t lsmTree, keys ...[]byte) ([][]byte, error) {
	out := make([][]byte, len(keys))
	var open []int // places in keys not yet decided
	for k, key := range keys {
		i, ok := slices.BinarySearchFunc(t.memtable, key, func(e entry, key []byte) int { return bytes.Compare(e.key, key) })
		if ok {
			out[k] = bytes.Clone(t.memtable[i].value)
		} else {
			open = append(open, k)
		}
	}
	if len(open) == 0 || len(t.runs) == 0 {
		return out, nil
	}
	// Near by, a run is asked for what those after it do not have. Where requests take long, all are asked at once.
	ahead := make([][][]byte, len(t.runs))
	if object.HighLatency(s.blobs) && len(t.runs) > 1 {
		err := object.Parallel(ctx, object.RequestsAtOnce, len(t.runs), func(ctx context.Context, r int) (err error) {
			ahead[r], err = s.getRun(ctx, t, r, keys, open)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	decided := make([]bool, len(keys))
	for r := len(t.runs) - 1; r >= 0 && len(open) > 0; r-- {
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
			if out[k], reason = parseValue(values[i]); reason != "" {
				return nil, wire.Corrupt(t.kind.objectName(t.runs[r].id), reason)
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
func (s *treeStore) getRun(ctx context.Context, t lsmTree, r int, keys [][]byte, ask []int) ([][]byte, error) {
	run, err := s.run(ctx, t.kind, t.runs[r])
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
func (s *treeStore) run(ctx context.Context, kind treeKind, ref sortedRun) (*sst.Reader, error) {
	s.mu.Lock()
	r := s.runs[ref.id]
	s.mu.Unlock()
	if r != nil {
		s.hits.Add(1)
		return r, nil
	}
	s.misses.Add(1)
	r, err := s.openRun(ctx, kind, ref)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) >= maxOpenRuns {
		clear(s.runs)
	}
	s.runs[ref.id] = r
	return r, nil
}

// openRun opens a run and does not keep it.
func (s *treeStore) openRun(ctx context.Context, kind treeKind, ref sortedRun) (*sst.Reader, error) {
	var fetch sst.Fetch
	if object.HighLatency(s.blobs) {
		fetch.Whole = remoteRunBytes
	}
	return openTable(ctx, s.blobs, kind.objectName(ref.id), ref.size, fetch)
}

// openRuns opens the runs of trees, at once where requests take long.
func (s *treeStore) openRuns(ctx context.Context, trees ...lsmTree) error {
	if !object.HighLatency(s.blobs) {
		return nil
	}
	var kinds []treeKind
	var refs []sortedRun
	for _, t := range trees {
		for _, r := range t.runs {
			kinds, refs = append(kinds, t.kind), append(refs, r)
		}
	}
	return object.Parallel(ctx, object.RequestsAtOnce, len(refs), func(ctx context.Context, i int) error {
		_, err := s.run(ctx, kinds[i], refs[i])
		return err
	})
}

// openTable opens a sorted table of the store.
func openTable(ctx context.Context, blobs object.Store, name string, size uint64, fetch sst.Fetch) (*sst.Reader, error) {
	return sst.Open(ctx, name, int64(size), fetch, func(ctx context.Context, ranges ...object.Range) error {
		return wire.Missing(name, object.ReadRanges(ctx, blobs, name, ranges...))
	})
}

// A treeIter walks the entries of a tree that are set, in key order. Not safe for concurrent use.
type lsmIter struct {
	s     *treeStore
	t     lsmTree
	upper []byte
	parts []lsmSource // the runs in order, then the tail
	// keepRemoved: entries that remove are yielded too, with a nil value.
	keepRemoved bool
	key, value  []byte
	last        []byte // owned copy of the key yielded last
	err         error
}

// A treePart is one run, or the tail, standing at an entry or at its end.
type lsmSource struct {
	it       *sst.Iter // nil: the tail
	memtable []entry
	at       int
	ok       bool
}

// iter returns an iterator over the keys of t below upper (nil: all). It stands nowhere.
func (s *treeStore) iter(ctx context.Context, t lsmTree, upper []byte) *lsmIter {
	i := &lsmIter{s: s, t: t, upper: upper, parts: make([]lsmSource, len(t.runs))}
	i.err = object.Parallel(ctx, object.RequestsAtOnce, len(t.runs), func(ctx context.Context, n int) error {
		r, err := s.run(ctx, t.kind, t.runs[n])
		if err == nil {
			i.parts[n] = lsmSource{it: r.Iter(upper)}
		}
		return err
	})
	if i.err != nil {
		return i
	}
	i.parts = append(i.parts, lsmSource{memtable: t.memtable})
	return i
}

// seek moves to the first key that is not below key. Key and value are borrowed until the next move.
func (i *lsmIter) seek(ctx context.Context, key []byte) bool {
	if i.err != nil {
		return false
	}
	for n := range i.parts {
		p := &i.parts[n]
		if p.it != nil {
			p.ok = p.it.SeekGE(ctx, key)
			continue
		}
		p.at, _ = slices.BinarySearchFunc(p.memtable, key, func(e entry, key []byte) int { return bytes.Compare(e.key, key) })
		p.bound(i.upper)
	}
	return i.findSmallest(ctx)
}

func (p *lsmSource) bound(upper []byte) {
	p.ok = p.at < len(p.memtable) && (upper == nil || bytes.Compare(p.memtable[p.at].key, upper) < 0)
}

func (p *lsmSource) key() []byte {
	if p.it != nil {
		return p.it.Key()
	}
	return p.memtable[p.at].key
}

// next moves to the next key.
func (i *lsmIter) next(ctx context.Context) bool {
	if i.err != nil {
		return false
	}
	i.skip(ctx, i.key)
	return i.findSmallest(ctx)
}

// skip moves every part that stands at key on.
func (i *lsmIter) skip(ctx context.Context, key []byte) {
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

// settle stands at the smallest key of all parts; the last part that has it gives the value.
func (i *lsmIter) findSmallest(ctx context.Context) bool {
	for {
		best := -1
		for n := range i.parts {
			p := &i.parts[n]
			if p.it != nil && p.it.Err() != nil {
				i.err = p.it.Err()
				return false
			}
			if p.ok && (best < 0 || bytes.Compare(p.key(), i.parts[best].key()) <= 0) {
				best = n
			}
		}
		if best < 0 {
			i.key, i.value = nil, nil
			return false
		}
		p := &i.parts[best]
		i.key = p.key()
		if p.it == nil {
			i.value = p.memtable[p.at].value
		} else {
			var reason string
			if i.value, reason = parseValue(p.it.Value()); reason != "" {
				i.err = wire.Corrupt(i.t.kind.objectName(i.t.runs[best].id), reason)
				return false
			}
		}
		if i.value != nil || i.keepRemoved {
			return true
		}
		i.skip(ctx, i.key)
	}
}

// put returns t with the changes, in key order, put in. When the tail grows too large it becomes a run, which is
// written, durably, before put returns; its id, which is one of the table's, is then made, else nil.
func (s *treeStore) put(ctx context.Context, table names.TableID, t lsmTree, changes []entry) (_ lsmTree, made []names.ID, err error) {
	out := lsmTree{kind: t.kind, runs: t.runs, memtable: mergeEntries(t.memtable, changes)}
	n := sizeOf(out.memtable)
	if n <= s.memtableBytes {
		return out, nil, nil
	}
	keep := len(t.runs)
	for keep > 0 && (t.runs[keep-1].size < mergeRatio*n || keep >= maxRuns) {
		keep--
		n += t.runs[keep].size
	}
	merged := lsmTree{kind: t.kind, runs: t.runs[keep:], memtable: out.memtable}
	ref, err := s.writeRun(ctx, table, merged, keep > 0)
	if err != nil {
		return lsmTree{}, nil, err
	}
	out.runs = append(slices.Clone(t.runs[:keep]), ref)
	out.memtable = nil
	return out, []names.ID{ref.id}, nil
}

// writeRun writes all of t as one run. Entries that remove are kept when older runs lie below.
func (s *treeStore) writeRun(ctx context.Context, of names.TableID, t lsmTree, keepRemoved bool) (ref sortedRun, err error) {
	ref.id = names.NewID(of)
	name := t.kind.objectName(ref.id)
	w, err := s.blobs.Create(ctx, name)
	if err != nil {
		return sortedRun{}, err
	}
	defer w.Abort()
	table := sst.NewWriter(w)
	it := s.iter(ctx, t, nil)
	it.keepRemoved = keepRemoved
	var buf []byte
	for ok := it.seek(ctx, nil); ok && err == nil; ok = it.next(ctx) {
		if it.value == nil {
			buf = append(buf[:0], removedMark)
		} else {
			buf = append(append(buf[:0], setMark), it.value...)
		}
		err = table.Add(it.key, buf)
	}
	n, ferr := table.Finish()
	for _, e := range [...]error{it.err, err, ferr} {
		if e != nil {
			return sortedRun{}, fmt.Errorf("write %s: %w", name, e)
		}
	}
	ref.size = uint64(n)
	return ref, w.Commit(ctx)
}
