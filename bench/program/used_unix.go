//go:build unix

package program

import (
	"time"

	"golang.org/x/sys/unix"
)

// Used returns what the process has used so far, its own code and the system's for it.
func Used() Usage {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return Usage{}
	}
	return Usage{CPUSeconds: time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(),
		PageFaults: float64(u.Minflt + u.Majflt)}
}
