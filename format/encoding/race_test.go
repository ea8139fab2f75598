//go:build race

package encoding

// raceEnabled: pools drop what they hold at random, so that allocations cannot be asserted, and all is ten times
// slower.
const raceEnabled = true
