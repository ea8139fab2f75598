//go:build race

package dsi

const raceEnabled = true
