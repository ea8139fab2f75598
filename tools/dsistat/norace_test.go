//go:build !race

package dsistat

const raceEnabled = false
