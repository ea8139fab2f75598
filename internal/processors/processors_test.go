package processors

import (
	"runtime"
	"testing"
)

func TestReserveForCallers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer reserved.Store(0)
	for _, c := range []struct {
		processors  int
		environment string
		want, all   int
	}{{1, "", 1, 1}, {2, "", 2, 3}, {8, "", 8, 9}, {2, "2", 2, 2}} {
		t.Setenv("GOMAXPROCS", c.environment)
		runtime.GOMAXPROCS(c.processors)
		reserved.Store(0)
		ReserveForCallers()
		if Workers() != c.want || runtime.GOMAXPROCS(0) != c.all {
			t.Errorf("%+v: %d workers, %d processors", c, Workers(), runtime.GOMAXPROCS(0))
		}
	}
}
