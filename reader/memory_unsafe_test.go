package reader

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// A view shows the bytes as encoding/binary reads them.
func TestViewEqualsBinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "bytes")
		b := alignedBytes(n)
		if len(b) != n || uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
			t.Fatalf("%d bytes at %p", len(b), &b[0])
		}
		for i := range b {
			b[i] = byte(i*37 + 5)
		}
		v64, v32 := viewOf[uint64](b), viewOf[int32](b)
		if len(v64) != n/8 || len(v32) != n/4 {
			t.Fatalf("%d and %d numbers of %d bytes", len(v64), len(v32), n)
		}
		for i, v := range v64 {
			if v != binary.NativeEndian.Uint64(b[i*8:]) {
				t.Fatalf("number %d is %x", i, v)
			}
		}
		for i, v := range v32 {
			if v != int32(binary.NativeEndian.Uint32(b[i*4:])) {
				t.Fatalf("number %d is %x", i, v)
			}
		}
	})
}

func TestBytePool(t *testing.T) {
	p := bytePool{max: 1 << 14}
	a := p.get(5000)
	if len(a) != 5000 || cap(a) != 5120 {
		t.Fatalf("%d of %d", len(a), cap(a))
	}
	p.put(a)
	if b := p.get(5120); &b[0] != &a[0] {
		t.Fatal("the buffer is not used again")
	}
	for range 4 {
		p.put(make([]byte, 0, 8192))
	}
	if p.idle != 1<<14 {
		t.Fatalf("keeps %d bytes", p.idle)
	}
}

func TestOrBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := make([]uint64, 4)
		for i := range src {
			src[i] = rapid.Uint64().Draw(t, "word")
		}
		lo := rapid.IntRange(0, 255).Draw(t, "lo")
		n := rapid.IntRange(0, 256-lo).Draw(t, "n")
		at := rapid.IntRange(0, 256-n).Draw(t, "at")
		dst := make([]uint64, 4)
		orBits(dst, at, src, lo, n)
		for i := range 256 {
			want := uint64(0)
			if i >= at && i < at+n {
				k := lo + i - at
				want = src[k/64] >> (k % 64) & 1
			}
			if dst[i/64]>>(i%64)&1 != want {
				t.Fatalf("bit %d", i)
			}
		}
	})
}
