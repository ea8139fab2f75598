package diskcache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes a file as long as n bytes, and has the disk set them aside.
func allocate(f *os.File, off, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, off, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(off + n)
	}
	return err
}
