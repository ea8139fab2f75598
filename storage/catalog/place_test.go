package catalog

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestPlaceBytes: the bytes of the listing's keys, and what is no key.
func TestPlaceBytes(t *testing.T) {
	for _, c := range []struct {
		p    Place
		want string
	}{
		{Place{Number: 5, Index: 2, Added: 5}, "pds=1\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x02"},
		{Place{Number: 5, Index: 2, Slot: 0, Added: 6},
			"pds=1\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x02" + strings.Repeat("\x00", 15) + "\x06"},
		{Place{Number: 5, Index: 2, Slot: 1 << 63, Added: 7},
			"pds=1\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x02\x80" + strings.Repeat("\x00", 14) + "\x07"},
	} {
		k := SegmentKey("ds=1", c.p)
		if string(k) != c.want {
			t.Errorf("%+v: %q, want %q", c.p, k, c.want)
		}
		if canonical, p, ok := ParseSegmentKey(k); !ok || canonical != "ds=1" || p != c.p {
			t.Errorf("%q: %q %+v %v", k, canonical, p, ok)
		}
		for n := range len(k) {
			if _, p, ok := ParseSegmentKey(k[:n]); ok && p.Added == c.p.Added {
				t.Errorf("%q is a key", k[:n])
			}
		}
	}
	// A segment does not replace one of a later snapshot, nor of its own.
	for _, added := range []byte{4, 5} {
		k := append(SegmentKey("", Place{Number: 5, Index: 2, Added: 6}), added)
		if _, _, ok := ParseSegmentKey(slices.Delete(k, len(k)-2, len(k)-1)); ok {
			t.Errorf("%q is a key", k)
		}
	}
}

// TestForeignPlace: keys that no commit makes are damage.
func TestForeignPlace(t *testing.T) {
	d := SegmentDescriptor{ID: strings.Repeat("ab", 16), Partition: Partition{{Key: "ds", Value: "1"}},
		Rows: 1, Index: "x"}
	value := AppendDescriptor(nil, d)
	good := SegmentKey("ds=1", Place{Number: 5, Index: 1, Slot: 9, Added: 6})
	for _, k := range [][]byte{nil, []byte("p"), []byte("pds=1"), good[:len(good)-1], append(bytes.Clone(good), 0),
		SegmentKey("ds=2", Place{Number: 5, Added: 5})} {
		if _, _, reason := ParseSegment(k, value); reason == "" {
			t.Errorf("%q is a key", k)
		}
	}
}
