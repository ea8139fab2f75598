//go:build race

package dsistat

const raceEnabled = true
