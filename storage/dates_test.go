package storage

import (
	"errors"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
)

// coarseDates is a store as an object store is one: it dates objects by whole seconds, and by when their requests came
// in, which may be before what the requests made is seen.
type coarseDates struct {
	*object.Memory
	margin time.Duration
}

func (c coarseDates) Margin() time.Duration { return c.margin }

// TestCoarseDates: a lease is not over before its time, an expired snapshot stays for the grace period, and what is
// young stays, however coarse the dates of objects are. Without a margin each of them goes too early.
func TestCoarseDates(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 7, 900e6, time.UTC)
	const slow, age = 20 * time.Second, 10 * time.Second
	for _, margin := range []time.Duration{time.Minute, 0} {
		now, takes := start, time.Duration(0)
		open := func() *Table {
			now = start
			mem := object.NewMemory()
			mem.Now = func() time.Time { return now.Add(-takes).Truncate(time.Second) }
			return newTable(t, coarseDates{mem, margin})
		}
		slowly := func(f func()) {
			takes = slow
			f()
			takes = 0
		}
		check := func(what string, stays bool) {
			t.Helper()
			if stays != (margin > 0) {
				t.Errorf("margin %v: %s stays: %v", margin, what, stays)
			}
		}
		there := func(tab *Table, n uint64) bool {
			_, err := tab.At(t.Context(), n)
			if err != nil && !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			return err == nil
		}
		collect := func(tab *Table, grace time.Duration) {
			if _, err := tab.Store().GC(t.Context(), gc.Options{Grace: grace}); err != nil {
				t.Fatal(err)
			}
		}
		expire := func(tab *Table, opts gc.ExpireOptions) {
			if _, err := tab.Expire(t.Context(), opts); err != nil {
				t.Fatal(err)
			}
		}

		tab := open()
		replaceAll(t, tab, 3)
		one, err := tab.At(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		slowly(func() {
			if _, err := one.Lease(t.Context(), "reader", age); err != nil {
				t.Fatal(err)
			}
		})
		expire(tab, gc.ExpireOptions{KeepLast: 1})
		now = now.Add(age - time.Second)
		leases, err := tab.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check("a lease in the listing", len(leases) == 1)
		collect(tab, time.Nanosecond)
		check("what is leased", there(tab, 1))
		now = now.Add(2 * time.Hour)
		collect(tab, time.Nanosecond)
		if there(tab, 1) {
			t.Errorf("margin %v: a lease that is over keeps it", margin)
		}

		tab = open()
		replaceAll(t, tab, 3)
		now = now.Add(time.Hour)
		slowly(func() { expire(tab, gc.ExpireOptions{KeepLast: 1}) })
		now = now.Add(age - time.Second)
		collect(tab, age)
		check("what a reader has open", there(tab, 1))
		now = now.Add(2 * time.Hour)
		collect(tab, age)
		if there(tab, 1) {
			t.Errorf("margin %v: what expired hours ago is there", margin)
		}

		tab = open()
		replaceAll(t, tab, 1)
		now = now.Add(time.Hour)
		slowly(func() { replaceAll(t, tab, 1) })
		slowly(func() { replaceAll(t, tab, 1) })
		now = now.Add(age - time.Second)
		expire(tab, gc.ExpireOptions{YoungerThan: age})
		newest, err := tab.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check("what was the table a moment ago", newest.Info().Oldest <= 1)
	}
}
