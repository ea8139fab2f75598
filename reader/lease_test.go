package reader

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/reader/lease"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	storagelease "github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/object"
)

// leaseBlobs tells of leases that are put, and of those that fail.
type leaseBlobs struct {
	object.Store
	put  chan string
	fail atomic.Int64 // how many are to fail
}

func (b *leaseBlobs) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if !strings.Contains(name, "/leases/") {
		return b.Store.PutIfAbsent(ctx, name, data)
	}
	if b.fail.Add(-1) >= 0 {
		b.put <- "failed"
		return errors.New("not now")
	}
	err := b.Store.PutIfAbsent(ctx, name, data)
	select {
	case b.put <- name:
	case <-ctx.Done():
	}
	return err
}

// drain receives what is told of leases until it is called again.
func (b *leaseBlobs) drain() (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-b.put:
			case <-end:
				return
			}
		}
	}()
	return func() { close(end); <-done }
}

func leasedStore(t *testing.T) (*leaseBlobs, *storage.Snapshot) {
	t.Helper()
	_, snap := realStore(t)
	blobs := &leaseBlobs{Store: snap.Table().Store().Blobs(), put: make(chan string)}
	store, err := storage.Create(t.Context(), blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	table, err := store.Table(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if snap, err = table.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	return blobs, snap
}

// leasedLayout is leasedStore, and a layout of its table.
func leasedLayout(t *testing.T) (*leaseBlobs, *storage.Snapshot, *Layout) {
	t.Helper()
	blobs, snap := leasedStore(t)
	plan, err := NewPlan(t.Context(), snap, PlanOptions{Features: []string{"n"}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLayout(t.Context(), snap, plan)
	if err != nil {
		t.Fatal(err)
	}
	return blobs, snap, l
}

func leased(t *testing.T, table *storage.Table) []storagelease.Info {
	t.Helper()
	all, err := table.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// leaseOf waits until a reader has the lease that it takes, the only one, and returns what renews it.
func leaseOf(t *testing.T, snap *storage.Snapshot, s *Scanner) (*lease.Renewer, storagelease.Info) {
	t.Helper()
	k := s.hold.Renewers[0]
	for !k.HasLease() {
		runtime.Gosched()
	}
	all := leased(t, snap.Table())
	if len(all) != 1 {
		t.Fatal(all)
	}
	return k, all[0]
}

// A reader that stays open takes a lease, tries again where that fails, renews it, and gives it back.
func TestReadersHoldLeases(t *testing.T) {
	blobs, snap, l := leasedLayout(t)
	opts := Options{Lease: LeaseOptions{Owner: "me", After: 1, For: 80 * time.Millisecond}}
	for what, open := range map[string]func() (interface{ Close() error }, error){
		"a scanner": func() (interface{ Close() error }, error) { return l.Open(opts) },
		"a rank": func() (interface{ Close() error }, error) {
			return l.OpenRank(opts, Ranks{World: 1, Workers: 1, Shards: 1})
		},
		"a taker": func() (interface{ Close() error }, error) { return l.Taker(opts) },
	} {
		blobs.fail.Store(1)
		r, err := open()
		if err != nil {
			t.Fatal(what, err)
		}
		if name := <-blobs.put; name != "failed" {
			t.Fatalf("%s: %s", what, name)
		}
		first := <-blobs.put
		if renewed := <-blobs.put; renewed == first {
			t.Errorf("%s: renewed as it was: %s", what, first)
		}
		stop := blobs.drain()
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		stop()
		if all := leased(t, snap.Table()); len(all) > 0 {
			t.Errorf("%s: closed, there is still %+v", what, all)
		}
	}
}

// A slowPut is a Store whose leases are put some time after they are asked for, even if who asks does not wait.
type slowPut struct {
	object.Store
	begun, goOn, done chan struct{}
}

func (s *slowPut) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if !strings.Contains(name, "/leases/") {
		return s.Store.PutIfAbsent(ctx, name, data)
	}
	close(s.begun)
	put := make(chan error, 1)
	go func() {
		<-s.goOn
		put <- s.Store.PutIfAbsent(context.WithoutCancel(ctx), name, data)
		close(s.done)
	}()
	select {
	case err := <-put:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A reader that is closed while its lease is on the way leaves none.
func TestClosedWhileALeaseIsTaken(t *testing.T) {
	_, snap := realStore(t)
	blobs := &slowPut{snap.Table().Store().Blobs(), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	store, err := storage.Create(t.Context(), blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table, err := store.Table(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if snap, err = table.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(t.Context(), snap, PlanOptions{Features: []string{"n"}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLayout(t.Context(), snap, plan)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, l, Options{Lease: LeaseOptions{After: 1}})
	<-blobs.begun
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	time.Sleep(20 * time.Millisecond) // Close is under way, or is done too early
	close(blobs.goOn)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	<-blobs.done
	if all := leased(t, table); len(all) > 0 {
		t.Errorf("closed, there is still %+v", all)
	}
}

// Readers of one snapshot share a lease, which with Options.Reuse waits for the next.
func TestReadersShareLeases(t *testing.T) {
	blobs, snap, l := leasedLayout(t)
	opts := Options{Reuse: true, Lease: LeaseOptions{Owner: "me", After: 1, For: time.Hour}}
	var readers []*Scanner
	for range 2 {
		s, err := l.Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, s)
	}
	name := <-blobs.put
	again := func(what string) {
		t.Helper()
		if all := leased(t, snap.Table()); len(all) != 1 || all[0].Owner != "me" {
			t.Errorf("%s there is %+v, want the lease %s", what, all, name)
		}
	}
	for !readers[0].hold.Renewers[0].HasLease() { // it is looked at once more after it was put
		runtime.Gosched()
	}
	readers[0].Close()
	again("one of two closed,")
	readers[1].Close()
	again("both closed,")
	s, err := l.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	ReleaseReused()
	again("the next opened,")
	s.Close()
	ReleaseReused()
	if all := leased(t, snap.Table()); len(all) > 0 {
		t.Errorf("released, there is still %+v", all)
	}
}

// A lease that somebody ended is neither renewed nor taken anew: what it kept is to go.
func TestEndedLeasesStayEnded(t *testing.T) {
	blobs, snap, l := leasedLayout(t)
	s, err := l.Open(Options{Lease: LeaseOptions{After: 1, For: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	<-blobs.put
	k, held := leaseOf(t, snap, s)
	if _, err := snap.Table().EndLease(t.Context(), held.ID); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	defer close(closed)
	go func() {
		select {
		case <-blobs.put: // else who takes a lease waits for ever
		case <-closed:
		}
	}()
	for range 2 {
		k.Renew() // as its timer does
		if all := leased(t, snap.Table()); len(all) > 0 {
			t.Errorf("there is %v again", all)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A process that was suspended until its lease had run out and gc had removed it takes another one.
func TestLeaseAfterASuspension(t *testing.T) {
	blobs, snap, l := leasedLayout(t)
	s, err := l.Open(Options{Lease: LeaseOptions{After: 1, For: 400 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	<-blobs.put
	blobs.fail.Store(1) // the renewal after half of the time, which is suspended until it is received
	k, held := leaseOf(t, snap, s)
	time.Sleep(time.Until(held.Until) + 10*time.Millisecond)
	for info, err := range blobs.List(t.Context(), "", "") {
		if err == nil && strings.Contains(info.Name, "/leases/") {
			err = blobs.Delete(t.Context(), info.Name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if what := <-blobs.put; what != "failed" {
		t.Fatal(what)
	}
	stop := blobs.drain()
	defer stop()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		all := leased(t, snap.Table())
		if len(all) == 1 && all[0].Until.After(time.Now()) && k.HasLease() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no lease again: %v", all)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A reader that comes after a lease was ended takes one, though the others go on without, and gives it back.
func TestLeasesAfterAnEndedOne(t *testing.T) {
	blobs, snap, l := leasedLayout(t)
	opts := Options{Reuse: true, Lease: LeaseOptions{After: 1, For: time.Hour}}
	var readers []*Scanner
	open := func() *lease.Renewer {
		t.Helper()
		s, err := l.Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, s)
		k := s.hold.Renewers[0]
		if k == readers[0].hold.Renewers[0] && len(readers) > 1 {
			t.Fatal("a renewer without a lease is shared")
		}
		<-blobs.put
		for !k.HasLease() {
			runtime.Gosched()
		}
		return k
	}
	first := open()
	if _, err := snap.Table().EndLease(t.Context(), leased(t, snap.Table())[0].ID); err != nil {
		t.Fatal(err)
	}
	renewed := make(chan struct{})
	// as its timer does; it finds that the lease was ended when the new one is there
	go func() { first.Renew(); close(renewed) }()
	<-blobs.put
	<-renewed
	second := open()
	if all := leased(t, snap.Table()); len(all) != 1 {
		t.Errorf("there is %+v, want one lease", all)
	}
	readers[0].Close()
	if all := leased(t, snap.Table()); len(all) != 1 {
		t.Errorf("the first closed, there is %+v, want the second's lease", all)
	}
	readers[1].Close()
	ReleaseReused()
	if all := leased(t, snap.Table()); len(all) > 0 {
		t.Errorf("both closed, there is still %+v", all)
	}
	if !first.Closed() || !second.Closed() {
		t.Error("a renewer goes on")
	}
}

// What a branch reads is leased at once: it may have expired.
func TestBranchesAreLeasedAtOnce(t *testing.T) {
	ctx := t.Context()
	blobs, snap := leasedStore(t)
	if _, err := snap.Table().Commit(ctx, commit.Change{Operation: "branch", Base: snap.Info().Number,
		Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: 2}}}}); err != nil {
		t.Fatal(err)
	}
	v, err := snap.Table().Store().Open(ctx, "t@b")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := NewViewPlan(ctx, v, PlanOptions{Features: []string{"n"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenView(ctx, v, plan, Options{Lease: LeaseOptions{For: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	<-blobs.put
	if all := leased(t, snap.Table()); len(all) != 1 || all[0].Snapshot != 2 ||
		!strings.HasPrefix(all[0].Owner, "reader of ") {
		t.Errorf("leases %+v", all)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if all := leased(t, snap.Table()); len(all) > 0 {
		t.Errorf("closed, there is still %+v", all)
	}
}

// Opening a reader asks the store for nothing more than without leases, and without them nothing is kept.
func TestLeasesTakeNothingToOpen(t *testing.T) {
	_, _, l := leasedLayout(t) // who takes a lease waits for ever
	for _, o := range []LeaseOptions{{}, {Off: true, After: 1}} {
		s, err := l.Open(Options{Lease: o})
		if err != nil {
			t.Fatal(err)
		}
		if (s.hold == nil) != o.Off {
			t.Errorf("%+v: %+v", o, s.hold)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Open(Options{Lease: LeaseOptions{For: storagelease.Max + 1}}); err == nil {
		t.Error("a lease that lasts too long is taken")
	}
}
