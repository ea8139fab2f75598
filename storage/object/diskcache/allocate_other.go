//go:build unix && !linux

package diskcache

import "os"

// allocate makes a file as long as n bytes. whole: the disk has set them aside.
func allocate(f *os.File, n int64) (whole bool, err error) { return false, f.Truncate(n) }
