//go:build !unix

package terminal

// ignoreFileSizeSignal does nothing: the system has no such signal.
func ignoreFileSizeSignal() {}
