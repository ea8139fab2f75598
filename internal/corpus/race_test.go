//go:build race

package corpus

// underRace: the race detector makes comparing tens of millions of cells minutes long, so tests compare fewer.
const underRace = true
