//go:build !race

package corpus

const underRace = false
