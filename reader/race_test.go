//go:build race

package reader

// raceDetector: allocations cannot be counted, pools drop what is put in them at random.
const raceDetector = true
