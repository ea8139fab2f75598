//go:build unix

package main

import "golang.org/x/sys/unix"

// A usage is what the process has used so far.
type usage struct{ cpu, faults float64 }

func used() usage {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return usage{}
	}
	seconds := func(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return usage{cpu: seconds(r.Utime) + seconds(r.Stime), faults: float64(r.Minflt + r.Majflt)}
}
