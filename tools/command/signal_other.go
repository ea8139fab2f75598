//go:build !unix

package command

// ignoreFileSizeSignal does nothing: the system has no such signal.
func ignoreFileSizeSignal() {}
