//go:build unix

package terminal

import (
	"os/signal"
	"syscall"
)

// ignoreFileSizeSignal makes a write beyond the file size limit (ulimit -f) an error like a full disk's, instead of the
// end of the process.
func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
