//go:build !race

package metamorphic

const fewSeeds, fewSteps = 12, 40

const raceEnabled = false
