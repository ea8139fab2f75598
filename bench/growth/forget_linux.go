package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget asks the system to drop what it caches of f.
func forget(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
