package diskcache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes a file as long as n bytes, and has the disk set them aside.
func allocate(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(n)
	}
	return err
}
