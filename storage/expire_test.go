package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// replaceAll commits n overwrites, each of which takes the rows of the one before away, and returns the segments.
func replaceAll(t testing.TB, tab *Table, n int) (segs []catalog.SegmentDescriptor) {
	t.Helper()
	base := uint64(0)
	if s, err := tab.Latest(t.Context()); err == nil {
		base = s.Info().Number
	}
	for i := range n {
		d := writeSegment(t, tab, nil, []uint32{10}, int64(i), segment.Options{}, "x")
		s := mustCommit(t, tab, commit.Change{Base: base, Ops: []commit.Operation{commit.AddFeatures(features("x")),
			commit.AddSegments{d}, commit.OverwritePartitions{nil}}})
		base = s.Info().Number
		segs = append(segs, d)
	}
	return segs
}

func segmentThere(t testing.TB, s *Store, d catalog.SegmentDescriptor) bool {
	t.Helper()
	size := uint64(0)
	for info, err := range s.core.Blobs.List(t.Context(), d.ID[:2]+"/"+d.ID+"/", "") {
		if err != nil {
			t.Fatal(err)
		}
		size += uint64(info.Size)
	}
	if size != 0 && size != d.Bytes {
		t.Fatalf("segment %s has %d of %d bytes", d.ID, size, d.Bytes)
	}
	return size > 0
}

func TestExpire(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	segs := replaceAll(t, tab, 9)
	// 10
	s := mustCommit(t, tab, commit.Change{Base: 9, Ops: []commit.Operation{commit.SetBranches{{Name: "exp",
		Snapshot: 3}}}})
	stale, asleep := newTable(t, mem), newTable(t, mem)
	for _, h := range []*Table{stale, asleep} {
		if _, err := h.Latest(ctx); err != nil {
			t.Fatal(err)
		}
	}
	five, err := tab.At(ctx, 5)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := five.Lease(ctx, "job 7", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	replaceAll(t, tab, 3) // 11 to 13
	dry, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 2, DryRun: true})
	if err != nil || dry.Oldest != 12 || len(dry.Expired) != 11 || dry.Snapshot != 0 {
		t.Fatal(dry, err)
	}
	r, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 2})
	if err != nil || r.Oldest != 12 || len(r.Expired) != 11 || r.Snapshot != 14 ||
		fmt.Sprint(r.Held) != fmt.Sprint(dry.Held) {
		t.Fatal(r, err)
	}
	if len(r.Held) != 2 || r.Held[0] != (gc.Hold{Table: "ads", Snapshot: 3, By: "branch exp"}) ||
		r.Held[1].Snapshot != 5 ||
		!strings.Contains(r.Held[1].By, "job 7") {
		t.Fatal(r.Held)
	}
	// An expired snapshot that nobody holds may go at any moment: no branch is made of it, though it is there yet.
	if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Base: 14,
		Ops: []commit.Operation{commit.SetBranches{{Name: "late", Snapshot: 4}}}}); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	// Within the grace period everything stays. 3 and 5 do not wait for its end: they stay after it too.
	if r, err := tab.s.GC(ctx, gc.Options{}); err != nil || len(r.Removed) > 0 || r.Snapshots != 14 ||
		r.Waiting != 9 {
		t.Fatal(r, err)
	}
	would, err := tab.s.GC(ctx, gc.Options{NoWait: true, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if !segmentThere(t, tab.s, segs[0]) {
		t.Fatal("a dry run removed something")
	}
	did, err := tab.s.GC(ctx, gc.Options{NoWait: true})
	if err != nil || did.Expired != 11 || did.Waiting != 0 || len(did.Removed) != len(would.Removed) ||
		did.Bytes != would.Bytes || fmt.Sprint(did.Held) != fmt.Sprint(would.Held) {
		t.Fatalf("%+v, and before, dry, %+v: %v", did, would, err)
	}
	for i, d := range segs {
		// Snapshots 3 and 5 are held; 10, whose rows are those of 9, is not.
		if want := i == 2 || i == 4; segmentThere(t, tab.s, d) != want {
			t.Errorf("segment of snapshot %d: there %v, want %v", i+1, !want, want)
		}
	}
	verifyClean(t, tab.s)
	// Every handle finds the newest, whatever it knew, and with no hint left.
	check := func(h *Table, what string) {
		t.Helper()
		s, err := h.Latest(ctx)
		if err != nil || s.Info().Number != 15 || s.Info().Operation != gc.Operation || s.Info().Oldest != 12 {
			t.Errorf("%s: %+v %v", what, s.Info(), err)
		}
	}
	check(stale, "a handle from before")
	check(newTable(t, mem), "a new handle")
	if h, err := tab.s.Table(ctx, "ads"); err != nil {
		t.Error(err)
	} else {
		check(h, "by name")
	}
	if names, err := tab.s.Tables(ctx); err != nil || fmt.Sprint(names) != "[ads]" {
		t.Error(names, err)
	}
	fresh := newTable(t, mem)
	infos, err := fresh.Snapshots(ctx)
	if err != nil || len(infos) != 4 || infos[0].Number != 12 {
		t.Error(infos, err)
	}
	if _, err := fresh.At(ctx, 7); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "expired") ||
		!strings.Contains(err.Error(), "12 to 15") {
		t.Error(err)
	}
	if _, err := fresh.AsOf(ctx, s.Info().Time.Add(-time.Hour)); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	v, err := fresh.OpenBranch(ctx, "exp")
	if err != nil || v.Snapshot.Info().Number != 3 {
		t.Fatal(v, err)
	}
	if got, err := v.Snapshot.Segments(ctx, nil); err != nil || len(got) != 1 || got[0].ID != segs[2].ID {
		t.Error(got, err)
	}
	// A handle that slept through it all commits behind the newest, not into the gap.
	if s, err := asleep.Commit(ctx, commit.Change{Operation: "wake"}); err != nil || s.Info().Number != 16 {
		t.Fatal(s, err)
	}
	// What is no longer held goes.
	if err := lease.Renew(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	if all, err := tab.Leases(ctx); err != nil || len(all) != 1 || all[0].Owner != "job 7" || all[0].Snapshot != 5 {
		t.Fatal(all, err)
	}
	if err := errors.Join(lease.Release(ctx), lease.Release(ctx)); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, tab, commit.Change{Base: 16, Ops: []commit.Operation{commit.DropBranches{"exp"}}})
	if _, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	if segmentThere(t, tab.s, segs[2]) || segmentThere(t, tab.s, segs[4]) {
		t.Error("what nobody holds is still there")
	}
	for info, err := range mem.List(ctx, names.TableDir("ads")+names.PinnedDir, "") {
		t.Error(info, err)
	}
	verifyClean(t, tab.s)
}

// TestExpireDaily: what expires every day keeps as many snapshots as it was told, and makes none about its own.
func TestExpireDaily(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	mem := object.NewMemory()
	mem.Now = func() time.Time { return now }
	s, err := Create(ctx, mem, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := s.NewTable(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	replaceAll(t, tab, 5)
	expire := func(opts gc.ExpireOptions, oldest uint64, made uint64) {
		t.Helper()
		now = now.Add(24 * time.Hour)
		would, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: opts.KeepLast, YoungerThan: opts.YoungerThan,
			DryRun: true})
		if err != nil || would.Oldest != oldest || (len(would.Expired) > 0) != (made > 0) {
			t.Errorf("dry: %+v %v, want %d the oldest", would, err, oldest)
		}
		r, err := tab.Expire(ctx, opts)
		if err != nil || r.Oldest != oldest || r.Snapshot != made || (len(r.Expired) > 0) != (made > 0) {
			t.Errorf("%+v %v, want %d the oldest, and snapshot %d", r, err, oldest, made)
		}
	}
	expire(gc.ExpireOptions{KeepLast: 3}, 3, 6)
	for range 3 {
		expire(gc.ExpireOptions{KeepLast: 3}, 3, 0)
	}
	replaceAll(t, tab, 1) // 7
	expire(gc.ExpireOptions{KeepLast: 3}, 4, 8)
	expire(gc.ExpireOptions{KeepLast: 3}, 4, 0)
	expire(gc.ExpireOptions{KeepLast: 2}, 5, 9)
	expire(gc.ExpireOptions{KeepLast: 1}, 7, 10)
	// Days later only snapshots that Expire made would go: once snapshot 7 has, none.
	expire(gc.ExpireOptions{YoungerThan: time.Hour}, 10, 11)
	for range 3 {
		expire(gc.ExpireOptions{YoungerThan: time.Hour}, 10, 0)
	}
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1, YoungerThan: -time.Hour}); err == nil {
		t.Error("snapshots younger than a negative time are kept")
	}
	verifyClean(t, s)
}

// TestExpireGrace: an expired snapshot stays for the grace period after it expired, and not for ever where snapshots
// expire every day.
func TestExpireGrace(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	now := time.Now()
	mem.Now = func() time.Time { return now }
	s, err := Create(ctx, mem, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := s.NewTable(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	var segs []catalog.SegmentDescriptor
	for day := range 6 {
		segs = append(segs, replaceAll(t, tab, 1)...)
		now = now.Add(20 * time.Hour)
		r, err := tab.Expire(ctx, gc.ExpireOptions{YoungerThan: 30 * time.Hour})
		if err != nil {
			t.Fatal(day, err)
		}
		if _, err := s.GC(ctx, gc.Options{}); err != nil {
			t.Fatal(day, err)
		}
		for _, n := range r.Expired {
			if _, err := tab.At(ctx, n); err != nil {
				t.Errorf("day %d: snapshot %d went as soon as it had expired: %v", day, n, err)
			}
		}
	}
	if segmentThere(t, s, segs[0]) || segmentThere(t, s, segs[1]) {
		t.Error("what expired days ago is still there")
	}
	if !segmentThere(t, s, segs[4]) || !segmentThere(t, s, segs[5]) {
		t.Error("what is young is gone")
	}
	verifyClean(t, s)
}

// TestLeaseOfExpired: no lease is given on a snapshot that gc may be about to take, whenever it expired.
func TestLeaseOfExpired(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	mem := object.NewMemory()
	mem.Now = func() time.Time { return now }
	meanwhile := &hookedStore{Store: mem}
	tab := newTable(t, meanwhile)
	replaceAll(t, tab, 4)
	two, err := tab.At(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	// It expires, and gc looks for leases, just before the lease is there.
	meanwhile.before = func(name string) {
		if !strings.Contains(name, names.LeasesDir) {
			return
		}
		meanwhile.before = nil
		if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
			t.Error(err)
		}
		if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || r.Expired != 3 {
			t.Error(r, err)
		}
	}
	if l, err := two.Lease(ctx, "late", time.Hour); !errors.Is(err, ErrNotFound) {
		t.Fatal(l, err)
	}
	if all, err := tab.Leases(ctx); err != nil || len(all) > 0 {
		t.Fatal("a lease that was refused is there", all, err)
	}
	for _, d := range []time.Duration{0, -1, lease.Max + 1} {
		if _, err := two.Lease(ctx, "x", d); err == nil {
			t.Error(d)
		}
	}
	// A lease that nobody renewed ends.
	s, err := tab.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lease(ctx, "forgotten", time.Minute); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if _, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	for info, err := range meanwhile.List(ctx, names.TableDir("ads")+names.LeasesDir, "") {
		t.Error(info, err)
	}
	// A damaged lease holds all the same: its name says what. Whose it is, only its bytes do.
	damaged := lease.Name{Snapshot: 1, ID: "00000000000000aa", Lasts: time.Hour}
	if err := meanwhile.PutIfAbsent(ctx, damaged.ObjectName("ads"), []byte("DSILEAS\x01 and more")); err != nil {
		t.Fatal(err)
	}
	if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Error(r, err)
	}
	if _, err := tab.Leases(ctx); !errors.Is(err, format.ErrCorrupt) {
		t.Error(err)
	}
	if info, err := tab.EndLease(ctx, "00000000000000aa"); err != nil || info.Snapshot != 1 {
		t.Error(info, err)
	}
}

// TestNumbersAfterExpiry: to list the snapshots takes no request for each that has gone.
func TestNumbersAfterExpiry(t *testing.T) {
	ctx := t.Context()
	counted := object.NewCounted(object.NewMemory())
	tab := newTable(t, counted)
	for range 100 {
		mustCommit(t, tab, commit.Change{})
	}
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || r.Expired != 99 {
		t.Fatal(r, err)
	}
	start := counted.Counts()
	there, err := newTable(t, counted).log.List(ctx)
	if err != nil || len(there) != 2 || there[0].Number != 100 || there[1].Number != 101 {
		t.Fatal(there, err)
	}
	if n := counted.Counts().Sub(start).Requests(); n != 2 { // the marker, and a listing
		t.Errorf("%d requests", n)
	}
}

// TestReadOfMoved: a held snapshot is found also when gc moves it while it is opened.
func TestReadOfMoved(t *testing.T) {
	ctx := t.Context()
	meanwhile := &hookedStore{Store: object.NewMemory()}
	tab := newTable(t, meanwhile)
	replaceAll(t, tab, 4)
	mustCommit(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.SetBranches{{Name: "exp", Snapshot: 2}}}})
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	meanwhile.reads = func(name string) {
		if name != names.SnapshotName("ads", 2) {
			return
		}
		meanwhile.reads = nil
		if r, err := newTable(t, meanwhile).s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(r.Held) != 1 {
			t.Error(r, err)
		}
	}
	if s, err := newTable(t, meanwhile).At(ctx, 2); err != nil || meanwhile.reads != nil {
		t.Fatal(s, err)
	}
}

// TestGCBehindGC: one gc does not take for damage what another removes while it lists the snapshots.
func TestGCBehindGC(t *testing.T) {
	ctx := t.Context()
	for _, opts := range []gc.Options{{NoWait: true}, {}} {
		for _, after := range []int{1, 3, 9, 11} {
			mem := object.NewMemory()
			replaceAll(t, newTable(t, mem), 12)
			if _, err := newTable(t, mem).Expire(ctx, gc.ExpireOptions{KeepLast: 3}); err != nil { // 10 is the oldest
				t.Fatal(err)
			}
			other := func() {
				if r, err := newTable(t, mem).s.GC(ctx, gc.Options{NoWait: true}); err != nil || r.Expired != 9 {
					t.Error(r, err)
				}
			}
			paged := &pagedStore{Store: mem, prefix: names.TableDir("ads") + names.SnapshotsDir, after: after,
				between: other}
			if r, err := newTable(t, paged).s.GC(ctx, opts); err != nil {
				t.Errorf("%+v, after %d of a listing: %+v %v", opts, after, r, err)
			}
			if infos, err := newTable(t, mem).Snapshots(ctx); err != nil || len(infos) < 4 || infos[0].Number != 10 {
				t.Errorf("%+v, after %d of a listing: %+v %v", opts, after, infos, err)
			}
			verifyClean(t, newTable(t, mem).s)
		}
	}
}

// A pagedStore lists what is under prefix in two pages, of which the first has after names, and calls between between
// them, once.
type pagedStore struct {
	object.Store
	prefix  string
	after   int
	between func()
}

func (p *pagedStore) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	if prefix != p.prefix || p.between == nil {
		return p.Store.List(ctx, prefix, startAfter)
	}
	return func(yield func(object.Info, error) bool) {
		n := 0
		for info, err := range p.Store.List(ctx, prefix, startAfter) {
			if !yield(info, err) {
				return
			}
			startAfter = info.Name
			if n++; n == p.after {
				break
			}
		}
		if p.between != nil {
			p.between()
			p.between = nil
		}
		for info, err := range p.Store.List(ctx, prefix, startAfter) {
			if !yield(info, err) {
				return
			}
		}
	}
}

// leasedAndExpired replaces the segment of a table four times, takes a lease of snapshot 2, and lets all but the newest
// expire.
func leasedAndExpired(t *testing.T, tab *Table) ([]catalog.SegmentDescriptor, *lease.Lease) {
	t.Helper()
	segs := replaceAll(t, tab, 4)
	two, err := tab.At(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := two.Lease(t.Context(), "busy", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Expire(t.Context(), gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	return segs, lease
}

// TestGCAndRenewal: gc misses no lease that is renewed between its listing and its reading, however often, or ends.
func TestGCAndRenewal(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct{ times, each int }{{1, 1}, {1, 2}, {1, 3}, {20, 2}, {1 << 30, 1}, {1 << 30, 2}} {
		meanwhile := &hookedStore{Store: object.NewMemory()}
		tab := newTable(t, meanwhile)
		segs, lease := leasedAndExpired(t, tab)
		left := c.times
		meanwhile.reads = func(name string) {
			if left == 0 || !strings.Contains(name, names.LeasesDir) {
				return
			}
			left--
			for range c.each {
				if err := lease.Renew(ctx, time.Hour); err != nil {
					t.Error(err)
				}
			}
		}
		r, err := tab.s.GC(ctx, gc.Options{NoWait: true})
		meanwhile.reads = nil
		if err != nil || len(r.Held) != 1 || r.Expired != 3 {
			t.Errorf("%+v: %+v %v", c, r, err)
		}
		if _, err := newTable(t, meanwhile).At(ctx, 2); err != nil || !segmentThere(t, tab.s, segs[1]) {
			t.Errorf("%+v: what is leased is gone: %v", c, err)
		}
		if all, err := tab.Leases(ctx); err != nil || len(all) != 1 {
			t.Errorf("%+v: %v %v", c, all, err)
		}
		// Nothing of it stays.
		if err := lease.Release(ctx); err != nil {
			t.Fatal(err)
		}
		for info, err := range meanwhile.List(ctx, names.TableDir("ads")+names.LeasesDir, "") {
			t.Error(info, err)
		}
	}
}

// A hookedStore calls before ahead of every put, reads ahead of every read and lists ahead of every listing.
type hookedStore struct {
	object.Store
	before, reads, lists func(name string)
}

func (h *hookedStore) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	if h.reads != nil {
		h.reads(name)
	}
	return h.Store.ReadAt(ctx, name, p, off)
}

func (h *hookedStore) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	if h.lists != nil {
		h.lists(prefix)
	}
	return h.Store.List(ctx, prefix, startAfter)
}

func (h *hookedStore) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if h.before != nil {
		h.before(name)
	}
	return h.Store.PutIfAbsent(ctx, name, data)
}

// TestTwoGCs: one gc leaves the copies alone that another makes of what expires and is held while it is under way.
func TestTwoGCs(t *testing.T) {
	ctx := t.Context()
	meanwhile := &hookedStore{Store: object.NewMemory()}
	tab := newTable(t, meanwhile)
	segs := replaceAll(t, tab, 9)
	// 10
	mustCommit(t, tab, commit.Change{Base: 9, Ops: []commit.Operation{commit.SetBranches{{Name: "exp", Snapshot: 5}}}})
	// 3 is the oldest
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 8}); err != nil {
		t.Fatal(err)
	}
	other := false
	meanwhile.lists = func(prefix string) {
		if prefix != names.TableDir("ads")+names.PinnedDir {
			return
		}
		meanwhile.lists = nil
		if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
			t.Error(err)
		}
		r, err := newTable(t, meanwhile).s.GC(ctx, gc.Options{NoWait: true})
		if err != nil || len(r.Held) != 1 {
			t.Error(r, err)
		}
		_, err = meanwhile.Stat(ctx, names.PinnedName("ads", 5))
		other = err == nil
	}
	if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || r.Expired != 2 {
		t.Fatal(r, err)
	}
	if !other {
		t.Fatal("the other gc made no copy")
	}
	v, err := newTable(t, meanwhile).OpenBranch(ctx, "exp")
	if err != nil || v.Snapshot.Info().Number != 5 || !segmentThere(t, tab.s, segs[4]) {
		t.Fatal(v, err)
	}
	// A later one takes them when nobody holds them.
	mustCommit(t, tab, commit.Change{Base: 12, Ops: []commit.Operation{commit.DropBranches{"exp"}}})
	if _, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := meanwhile.Stat(ctx, names.PinnedName("ads", 5)); !errors.Is(err, object.ErrNotFound) ||
		segmentThere(t, tab.s, segs[4]) {
		t.Error("what nobody holds is still there", err)
	}
	verifyClean(t, tab.s)
}

// TestGCUnderReaders: readers that hold leases read on while their snapshots expire, and gc takes all that nobody holds
// at once.
func TestGCUnderReaders(t *testing.T) {
	ctx := t.Context()
	l := object.NewMemory() // a local store's temporary files would not survive a gc without grace
	const n = 30
	replaceAll(t, newTable(t, l), n)
	var wg sync.WaitGroup
	held := make(chan int, 1000) // a number for each lease that was given
	wg.Go(func() {
		for keep := uint64(n); keep > 0; keep-- {
			if _, err := newTable(t, l).Expire(ctx, gc.ExpireOptions{KeepLast: keep}); err != nil {
				t.Error(err)
				return
			}
			if _, err := newTable(t, l).s.GC(ctx, gc.Options{NoWait: true}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for who := range 3 {
		wg.Go(func() {
			tab := newTable(t, l)
			for k := range 40 {
				s, err := tab.At(ctx, uint64((k*7+who*11)%n+1))
				if errors.Is(err, ErrNotFound) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				lease, err := s.Lease(ctx, "reader", time.Hour)
				if errors.Is(err, ErrNotFound) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					if err := readWhole(ctx, s); err != nil {
						t.Errorf("snapshot %d, leased: %v", s.Info().Number, err)
					}
				}
				if err := errors.Join(lease.Renew(ctx, time.Minute), readWhole(ctx, s),
					lease.Release(ctx)); err != nil {
					t.Errorf("snapshot %d, leased: %v", s.Info().Number, err)
				}
				held <- k
			}
		})
	}
	wg.Wait()
	if len(held) == 0 {
		t.Error("no reader got a lease")
	}
	t.Log(len(held), "leases")
	verifyClean(t, newTable(t, l).s)
}

// readWhole reads everything that a snapshot names.
func readWhole(ctx context.Context, s *Snapshot) error {
	segs, err := s.Segments(ctx, nil)
	if err != nil {
		return err
	}
	for _, d := range segs {
		g, err := s.OpenSegment(ctx, d)
		if err != nil {
			return err
		}
		objects, err := g.Objects(ctx)
		if err != nil {
			return err
		}
		for _, o := range objects {
			b := make([]byte, o.Size)
			if err := s.t.s.core.Blobs.ReadAt(ctx, o.Name, b, 0); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	_, err = s.Features(ctx)
	return err
}
