package memory

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
