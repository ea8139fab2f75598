package storage

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// TestEndLease: a lease is ended by its id, however often it was renewed and while it is; its owner learns it at the
// next renewal, and takes it not back.
func TestEndLease(t *testing.T) {
	ctx := t.Context()
	meanwhile := &hookedStore{Store: object.NewMemory()}
	tab := newTable(t, meanwhile)
	segs := replaceAll(t, tab, 3)
	two, err := tab.At(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	killed, err := two.Lease(ctx, "killed", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other, err := two.Lease(ctx, "other", 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	all, err := tab.Leases(ctx)
	if err != nil || len(all) != 2 || all[0].Owner != "killed" || all[0].ID == all[1].ID || len(all[0].ID) != 16 {
		t.Fatal(all, err)
	}
	if all[0].ID != killed.Info().ID || all[0].Renewed.Before(before.Add(-time.Minute)) ||
		all[0].Renewed.After(time.Now().Add(time.Minute)) {
		t.Errorf("%#v", all[0])
	}
	for range 3 {
		if err := killed.Renew(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := tab.Leases(ctx); err != nil || len(again) != 2 || again[0].ID != all[0].ID ||
		again[0].Renewed.Before(all[0].Renewed) {
		t.Errorf("renewed: %v %v", again, err)
	}
	for _, wrong := range []string{"", "x", all[0].ID[:15], all[0].ID + "0"} {
		if _, err := tab.EndLease(ctx, wrong); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	// Its owner lives, and renews it after it was listed.
	left := 2
	meanwhile.lists = func(prefix string) {
		if left > 0 && strings.Contains(prefix, names.LeasesDir) {
			left--
			if err := killed.Renew(ctx, time.Hour); err != nil && (left > 0 || !errors.Is(err, ErrNotFound)) {
				t.Error(err)
			}
		}
	}
	info, err := tab.EndLease(ctx, all[0].ID)
	meanwhile.lists = nil
	if err != nil || info.Owner != "killed" || left > 0 {
		t.Fatal(info, err, left)
	}
	if err := killed.Renew(ctx, time.Hour); err == nil {
		t.Error("renewed after its end")
	}
	if err := killed.Release(ctx); err != nil {
		t.Error(err)
	}
	if left, err := tab.Leases(ctx); err != nil || len(left) != 1 || left[0].Owner != "other" {
		t.Fatal(left, err)
	}
	if _, err := tab.EndLease(ctx, all[0].ID); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	// Nobody holds the snapshot then.
	if _, err := tab.EndLease(ctx, other.Info().ID); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(r.Held) != 0 ||
		segmentThere(t, tab.s, segs[1]) {
		t.Errorf("%+v %v", r, err)
	}
}

// TestLeaseOfRemovedTable: a lease that a reader puts while somebody removes the table by hand makes no table of it:
// not a damaged one, which gc would skip, and with it all that is of no table. One that is made of the name is its own.
func TestLeaseOfRemovedTable(t *testing.T) {
	ctx := t.Context()
	blobs := object.NewMemory()
	tab := newTable(t, blobs)
	replaceAll(t, tab, 3)
	s, err := tab.At(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lease(ctx, "reader", time.Hour); err != nil {
		t.Fatal(err)
	}
	for info, err := range blobs.List(ctx, names.TableDir(tab.log.Table), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info.Name, names.LeasesDir) {
			continue
		}
		if err := blobs.Delete(ctx, info.Name); err != nil {
			t.Fatal(err)
		}
	}
	store, err := Open(ctx, blobs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if names, err := store.Tables(ctx); err != nil || len(names) > 0 {
		t.Errorf("tables %v, %v", names, err)
	}
	if _, err := store.Table(ctx, tab.log.Table); !errors.Is(err, ErrNotFound) || errors.Is(err, format.ErrCorrupt) {
		t.Error(err)
	}
	other, err := store.NewTable(ctx, "other")
	if err != nil {
		t.Fatal(err)
	}
	replaceAll(t, other, 1)
	r, err := store.GC(ctx, gc.Options{NoWait: true})
	if err != nil || len(r.Skipped) > 0 || r.Tables != 1 || len(r.Removed) == 0 {
		t.Errorf("gc: %+v, %v", r, err)
	}
	again, err := store.NewTable(ctx, tab.log.Table)
	if err != nil {
		t.Fatal(err)
	}
	replaceAll(t, again, 2)
	if r, err := store.GC(ctx, gc.Options{NoWait: true}); err != nil || len(r.Skipped) > 0 || r.Tables != 2 {
		t.Errorf("gc: %+v, %v", r, err)
	}
}
