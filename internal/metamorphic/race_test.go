//go:build race

package metamorphic

// Under the race detector all take ten times as long.
const fewSeeds, fewSteps = 2, 20

const raceEnabled = true
