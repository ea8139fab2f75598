package object

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// readPlain fills ranges of the plain file of an object by system calls of its own, and reports whether the file is one
// and could be opened. If not, the caller reads otherwise and learns why. Where a table is opened most of the time is
// spent in small reads, and os.File takes seven calls more for each, to learn whether the file is one to poll, as none
// is.
func (l *Local) readPlain(ctx context.Context, name string, ranges []Range) (tried bool, err error) {
	if l.fs != vfs.Default {
		return false, nil
	}
	if err := ValidateName(name); err != nil {
		return true, err
	}
	var fd int
	if again(func() (err error) {
		// Without waiting for the writer of a named pipe.
		fd, err = syscall.Open(l.path(name), syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		return err
	}) != nil {
		return false, nil
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if again(func() error { return syscall.Fstat(fd, &st) }) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return false, nil
	}
	if len(ranges) > 1 {
		for _, r := range ranges {
			// Advice only: what comes of it, the reads show.
			_ = unix.Fadvise(fd, r.Off, int64(len(r.P)), unix.FADV_WILLNEED)
		}
	}
	for _, r := range ranges {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		if n := int64(len(r.P)); n > 0 && (r.Off > st.Size || n > st.Size-r.Off) {
			return true, shortRead(name, len(r.P), r.Off, st.Size)
		}
		for done := 0; done < len(r.P); {
			var n int
			err := again(func() (err error) {
				n, err = syscall.Pread(fd, r.P[done:], r.Off+int64(done))
				return err
			})
			switch {
			case err != nil:
				return true, fmt.Errorf("object %s: %w", name, err)
			case n == 0: // it was longer a moment ago
				return true, shortRead(name, len(r.P), r.Off, r.Off+int64(done))
			}
			done += n
		}
	}
	return true, nil
}

// again calls f until no signal interrupts it.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
