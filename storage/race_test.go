//go:build race

package storage

// raceDetector: see short.
const raceDetector = true
