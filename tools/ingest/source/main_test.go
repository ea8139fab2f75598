package source

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/internal/race"
)

func TestMain(m *testing.M) {
	race.Rapid()
	goleak.VerifyTestMain(m)
}
