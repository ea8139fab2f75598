//go:build !unix

package program

// Used returns nothing: this system does not say what the process has used.
func Used() Usage { return Usage{} }
