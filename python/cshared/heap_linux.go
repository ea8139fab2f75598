package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// useHugePages asks for huge pages, where the system gives them to who asks: from the first touch on, for whole ones.
func useHugePages(b []byte) {
	const huge = 2 << 20
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & (huge - 1))
	if whole := (len(b) - skip) &^ (huge - 1); whole > 0 {
		_ = unix.Madvise(b[skip:skip+whole], unix.MADV_HUGEPAGE) // advice only
	}
}
