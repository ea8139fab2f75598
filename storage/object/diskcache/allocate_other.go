//go:build unix && !linux

package diskcache

import "os"

// allocate makes a file as long as n bytes.
func allocate(f *os.File, n int64) error { return f.Truncate(n) }
