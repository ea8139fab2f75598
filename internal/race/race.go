// Package race says whether a program is built with the race detector, as Go's own internal/race does. Under it all
// takes ten times as long, allocations cannot be counted, and pools drop what is put into them at random. Tests that do
// less there run again, whole, without it: again.sh finds them by the import of this package.
package race

import (
	"flag"
	"testing"
)

// Short reports whether a test of one goroutine does less: under the race detector, which finds nothing in it, and with
// -short.
func Short() bool { return Enabled || testing.Short() }

// Rapid has rapid make fewer checks of each property under the race detector. TestMain calls it, in packages that use
// rapid.
func Rapid() {
	if !Enabled {
		return
	}
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
}
