package overlay

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// inverse returns the factor that undoes a multiplication by an odd one.
func inverse(odd uint64) uint64 {
	out := odd
	for range 6 {
		out *= 2 - odd*out
	}
	return out
}

// hashedTo returns the eight bytes whose xxHash64 is sum.
func hashedTo(sum uint64) []byte {
	const (
		p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
		p4, p5     = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
	)
	h := sum
	h ^= h >> 32
	h *= inverse(p3)
	h ^= h>>29 ^ h>>58
	h *= inverse(p2)
	h ^= h >> 33
	h = bits.RotateLeft64((h-p4)*inverse(p1), -27)
	k := h ^ (p5 + 8)
	k = bits.RotateLeft64(k*inverse(p1), -31) * inverse(p2)
	return binary.LittleEndian.AppendUint64(nil, k)
}

// TestChosenKeys: keys of a file that were chosen for a hash that is known find their place as soon as others.
func TestChosenKeys(t *testing.T) {
	const n = 8192
	typ := vector.Type{Kind: vector.Bytes}
	c := vector.NewColumn(typ)
	for i := range uint64(n) {
		key := hashedTo(i << 32)
		if xxhash.Sum64(key) != i<<32 {
			t.Fatalf("%x", key)
		}
		c.Data = append(c.Data, key...)
		c.AddSlot()
	}
	opts := Options{}.withDefaults()
	h := &held{files: &files{opts: &opts, key: []keyPart{{catalog.Feature{Name: "k", Type: typ}, bytesKey}}}}
	if err := h.add(&filePart{rows: n, keys: []*vector.Column{c}}); err != nil {
		t.Fatal(err)
	}
	mask := uint64(len(h.table) - 1)
	all, most := uint64(0), uint64(0)
	for at, e := range h.table {
		if e != 0 {
			probes := (uint64(at)-opts.hash(h.key(e&0xffffffff-1)))&mask + 1
			all, most = all+probes, max(most, probes)
		}
	}
	if all > 3*n || most > 200 {
		t.Errorf("%d probes for %d keys, up to %d for one", all, n, most)
	}
}
