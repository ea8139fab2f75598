//go:build !race

package reader

const raceDetector = false
