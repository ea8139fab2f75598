package lsm

import (
	"bytes"
	"context"
	"slices"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
	"github.com/dsistore/dsistore/storage/wire"
)

// An Iter iterates over the set entries of a tree, in key order. Not safe for concurrent use.
type Iter struct {
	s     *Store
	t     Tree
	upper []byte
	parts []source // the runs in order, then the memtable
	// keepRemoved: entries that remove are returned too, with a nil value.
	keepRemoved bool
	Key, Value  []byte
	last        []byte // the last key, copied
	Err         error
}

// A source is an iterator over one run, or over the memtable.
type source struct {
	it       *sst.Iter // nil: the memtable
	memtable []Entry
	at       int
	ok       bool
}

// Iter returns an iterator over the keys of t below upper (nil: all). It has no position before Seek.
func (s *Store) Iter(ctx context.Context, t Tree, upper []byte) *Iter {
	i := &Iter{s: s, t: t, upper: upper, parts: make([]source, len(t.Runs))}
	i.Err = object.Parallel(ctx, object.RequestsAtOnce, len(t.Runs), func(ctx context.Context, n int) error {
		r, err := s.run(ctx, t.Kind, t.Runs[n])
		if err == nil {
			i.parts[n] = source{it: r.Iter(upper)}
		}
		return err
	})
	if i.Err != nil {
		return i
	}
	i.parts = append(i.parts, source{memtable: t.Memtable})
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

func (p *source) bound(upper []byte) {
	p.ok = p.at < len(p.memtable) && (upper == nil || bytes.Compare(p.memtable[p.at].Key, upper) < 0)
}

func (p *source) key() []byte {
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

// skip moves every source past key.
func (i *Iter) skip(ctx context.Context, key []byte) {
	// key may be borrowed from a source that moves.
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

// findSmallest moves to the smallest key of all sources. The last source that has it gives the value.
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
