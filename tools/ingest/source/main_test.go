package source

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if raceEnabled { // where each takes ten times as long; make test runs all of them without as well
		if err := flag.Set("rapid.checks", "30"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
