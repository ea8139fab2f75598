package objecttest

import (
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// A Cost is how many requests something makes, and in how many round trips.
type Cost struct{ Requests, Trips int64 }

// A Meter counts what the users of a far store ask of it. It is for a bubble of testing/synctest, where nothing but
// requests takes time.
type Meter struct{ *object.Counted }

// NewMeter returns a Meter over s, whose requests take a second each.
func NewMeter(s object.Store) Meter {
	return Meter{object.NewCounted(object.NewDelayed(s, time.Second))}
}

// Measure returns what f costs.
func (m Meter) Measure(t testing.TB, what string, f func() error) Cost {
	t.Helper()
	before, start := m.Counts(), time.Now()
	if err := f(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	c := m.Counts().Sub(before)
	return Cost{c.Requests() + c.Writes + c.Deletes, int64(time.Since(start) / time.Second)}
}

// Check holds what something costs to the most that it may.
func (c Cost) Check(t testing.TB, what string, requests, trips int64) {
	t.Helper()
	t.Logf("%s: %d requests in %d round trips", what, c.Requests, c.Trips)
	if c.Requests > requests || c.Trips > trips {
		t.Errorf("%s: want at most %d in %d", what, requests, trips)
	}
}
