//go:build unix

package diskcache

import (
	"math"

	"golang.org/x/sys/unix"
)

// freeBytes returns how much of a directory's disk this user may still take.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return math.MaxInt64 // what does not fit, the disk will say
	}
	return int64(st.Bavail) * int64(st.Bsize)
}
