//go:build unix

package result

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUSeconds returns what the process has used of all processors, its own code and the system's for it, or 0 where the
// system does not say.
func CPUSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
