//go:build race

package format_test

// raceDetector: allocations cannot be counted, pools drop what is put in them at random.
const raceDetector = true
