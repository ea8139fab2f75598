//go:build !unix

package main

// ignoreFileSizeSignal does nothing: the system has no such signal.
func ignoreFileSizeSignal() {}
