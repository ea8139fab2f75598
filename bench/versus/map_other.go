//go:build !unix

package versus

import "os"

// mapFile reads a file: this system maps none for us.
func mapFile(path string) (data []byte, unmap func() error, err error) {
	data, err = os.ReadFile(path)
	return data, func() error { return nil }, err
}
