//go:build race

package reader

// raceEnabled: allocations cannot be counted, pools drop what is put in them at random.
const raceEnabled = true
