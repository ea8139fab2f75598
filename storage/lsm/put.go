package lsm

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/sst"
)

// Put returns t with the changes, which are in key order. They go into the memtable. A memtable that is too large is
// written as a run, durably, before Put returns, and made has its id, an id of the table. With forget all runs are
// merged, and a memtable without runs drops what it removes: the tree has nothing that earlier entries said.
func (s *Store) Put(ctx context.Context, table names.TableID, t Tree, changes []Entry,
	forget bool) (_ Tree, made []names.ID, err error) {
	out := Tree{Kind: t.Kind, Runs: t.Runs, Memtable: MergeEntries(t.Memtable, changes)}
	n := sizeOf(out.Memtable)
	forget = forget && out.Remembers()
	if forget && len(t.Runs) == 0 {
		out.Memtable = slices.DeleteFunc(slices.Clone(out.Memtable), func(e Entry) bool { return e.Value == nil })
		forget = false
	}
	if n <= s.MemtableBytes && !forget {
		return out, nil, nil
	}
	keep := len(t.Runs)
	for keep > 0 && (forget || t.Runs[keep-1].Size < mergeRatio*n || keep >= maxRuns) {
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

// writeRun writes all of t as one run. keepRemoved: entries that remove are kept, since older runs may have their keys.
func (s *Store) writeRun(ctx context.Context, of names.TableID, t Tree, keepRemoved bool) (ref Run, err error) {
	if err := s.Check(ctx, t.Kind, t.Runs...); err != nil {
		return Run{}, err
	}
	ref.ID = names.NewID(of)
	name := t.Kind.ObjectName(ref.ID)
	w, err := s.Blobs.Create(ctx, name)
	if err != nil {
		return Run{}, err
	}
	defer w.Abort()
	hash := xxhash.New()
	table := sst.NewWriter(io.MultiWriter(hash, w)) // a file may change the bytes that it was given
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
	ref.Size, ref.Hash = uint64(n), hash.Sum64()
	return ref, w.Commit(ctx)
}
