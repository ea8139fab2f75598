//go:build race

package storage

// raceEnabled: all is ten times slower; make test runs what does less because of it again, whole, without.
const raceEnabled = true
