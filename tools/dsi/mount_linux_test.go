package dsi

import (
	"os"
	"syscall"
	"testing"
)

// mountSmall makes a directory that is a disk of 8 KiB until the test ends, where this process may do so.
func mountSmall(t *testing.T, dir string) bool {
	if os.Mkdir(dir, 0o777) != nil || syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8k") != nil {
		return false
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	return true
}
