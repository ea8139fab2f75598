//go:build linux && amd64 && !purego

package encoding

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Packed bits that end where the process's memory does are unpacked: nothing behind them is read.
func TestUnpackReadsNothingBeyond(t *testing.T) {
	page := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	}()
	if err := unix.Mprotect(memory[2*page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for width := range 65 {
		for _, n := range []int{blockLen, blockLen + 1, blockLen + 100, 2*blockLen - 1} {
			size := packedLen(n, width)
			unpack(make([]int64, n), memory[2*page-size:2*page], width, 1)
		}
	}
}
