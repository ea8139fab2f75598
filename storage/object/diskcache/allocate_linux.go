package diskcache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes a file as long as n bytes. whole: the disk has set them aside.
func allocate(f *os.File, n int64) (whole bool, err error) {
	err = unix.Fallocate(int(f.Fd()), 0, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return false, f.Truncate(n)
	}
	return err == nil, err
}
