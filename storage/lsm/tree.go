package lsm

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
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

// A Tree is a sorted map: runs and a memtable. It is an immutable value.
//
//	runs[0]  runs[1] ... runs[n-1]   memtable    a key's entry in a later part replaces those before
//	largest, oldest      smallest    in the snapshot
type Tree struct {
	Kind     Kind
	Runs     []Run
	Memtable []Entry // in key order, each key once
}

// Remembers reports whether the tree may have what later changes have removed or replaced. A single run has nothing of
// that: it was made of all that there was.
func (t *Tree) Remembers() bool {
	switch len(t.Runs) {
	case 0:
		return slices.ContainsFunc(t.Memtable, func(e Entry) bool { return e.Value == nil })
	case 1:
		return len(t.Memtable) > 0
	}
	return true
}

// A Run names a run: a sorted table, which is an object.
type Run struct {
	ID   names.ID
	Size uint64 // bytes
	Hash uint64 // xxhash64 of the bytes
}

// An Entry sets a key, or removes it if Value is nil.
type Entry struct {
	Key, Value []byte
}

// The first byte of a stored value.
const (
	RemovedMark = 0
	setMark     = 1
)

// AppendTree appends the stored form of a tree, which is part of a snapshot object:
//
//	number of runs | (id (16) | size | hash (8 LE))... |
//	number of memtable entries | (shared | key suffix | value mark and value)...
//
// shared is how many bytes the key shares with the key before. suffix and value follow their lengths.
func AppendTree(dst []byte, t Tree) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t.Runs)))
	for _, r := range t.Runs {
		dst = append(dst, r.ID[:]...)
		dst = binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, r.Size), r.Hash)
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

// storedValue returns the stored form of the value of an entry.
func storedValue(e Entry) []byte {
	if e.Value == nil {
		return []byte{RemovedMark}
	}
	return append([]byte{setMark}, e.Value...)
}

// ParseValue returns the value that storedValue stored; nil if the entry removes its key. The value is borrowed from b.
func ParseValue(b []byte) (value []byte, reason string) {
	switch {
	case len(b) == 1 && b[0] == RemovedMark:
		return nil, ""
	case len(b) >= 1 && b[0] == setMark:
		return b[1:len(b):len(b)], ""
	}
	return nil, "tree entry with an unknown mark"
}

// DecodeTree takes a tree off the front of d. The entries borrow d's bytes.
func DecodeTree(d *wire.Decoder, kind Kind) Tree {
	t := Tree{Kind: kind}
	for range d.Max(maxRuns, "runs") {
		var r Run
		copy(r.ID[:], d.Take(16))
		r.Size = d.Max(1<<62, "run size")
		if b := d.Take(8); d.Reason == "" {
			r.Hash = binary.LittleEndian.Uint64(b)
		}
		t.Runs = append(t.Runs, r)
	}
	var prev []byte
	keys := 0 // bytes of all keys, without sharing
	for range d.Max(uint64(len(d.Rest)), "memtable entries") {
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
			d.Fail("memtable keys out of order")
			break
		}
		if keys += len(key); keys > maxMemtableKeys {
			d.Fail("memtable keys are too long")
			break
		}
		t.Memtable = append(t.Memtable, Entry{key, value})
		prev = key
	}
	return t
}

// maxMemtableKeys bounds the total size of the keys of a memtable. Keys share bytes, so a few stored bytes could claim
// many. A writer's memtable has about 32 KiB.
const maxMemtableKeys = 16 << 20

// MaxKey bounds a key of a tree. The longest is a partition's.
const MaxKey = catalog.MaxPartition + 64

// MergeEntries merges two lists of entries in key order. For a key in both, the entry of over is kept.
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

// SortEntries sorts entries by key. Of several with the same key, the last is kept.
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
