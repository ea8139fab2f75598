//go:build !linux

package main

// useHugePages does nothing: the system decides itself.
func useHugePages([]byte) {}
