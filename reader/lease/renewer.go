package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"os/user"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/lease"
)

// Options say how an open reader protects what it reads from gc. The zero value works.
//
// gc keeps an expired snapshot for its grace period, by default a day, so most readers need no lease. A reader that
// stays open takes a lease in the background on each snapshot that its plan reads, renews it, and releases it when it
// is closed. Readers of one process share leases. With reader.Options.Reuse a lease is kept for a minute for the next
// reader: a process with such readers calls EndAll before it ends. A branch may read snapshots that expired long ago,
// so its leases are taken at once.
//
// If a process dies, its leases protect the snapshots until they end by themselves, or somebody ends them
// (Table.EndLease). An error of a lease is not an error of the reader. It is tried again, except after somebody ended
// it. Readers that are opened later take leases of their own.
type Options struct {
	// Off takes no leases, for a store that cannot be written to, or if another process has a lease.
	Off bool
	// Owner is shown in the list of leases. Default: user@host and the process id.
	Owner string
	// After is how long a reader is open before it takes a lease. Default 5 minutes.
	After time.Duration
	// For is how long a lease lasts. It is renewed after half of that. Default 2 hours.
	For time.Duration
}

// Validate returns an error naming the first field that cannot be used.
func (o *Options) Validate() error {
	switch {
	case o.After < 0:
		return fmt.Errorf("lease after %v: want 0 (default) or more", o.After)
	case o.For < 0 || o.For > lease.Max:
		return fmt.Errorf("lease for %v: want 0 (default) to %v", o.For, lease.Max)
	}
	return nil
}

// A Renewer holds the lease on one snapshot for all readers of the process that have it open.
type Renewer struct {
	key      renewerKey
	snapshot *storage.Snapshot
	owner    string
	lasts    time.Duration
	ctx      context.Context // of the requests; it ends with the renewer
	cancel   context.CancelFunc
	taken    atomic.Bool // there is a lease

	readers int         // guarded by renewers.mu
	linger  *time.Timer // while it has no readers: ends it; guarded by renewers.mu

	mu    sync.Mutex   // guards the fields below, and is held during requests
	timer *time.Timer  // of the next request
	lease *lease.Lease // nil: none yet
	ended bool
}

type renewerKey struct {
	store  *storage.Store
	table  string
	number uint64
}

// renewers are those of the process.
var renewers struct {
	mu         sync.Mutex
	bySnapshot map[renewerKey]*Renewer // guarded by mu
	all        map[*Renewer]bool       // those that have not ended; guarded by mu
	over       bool                    // EndAll was called; guarded by mu
}

const (
	// releaseWithin is how long closing a reader waits for the release of a lease. After that the lease ends by itself.
	releaseWithin = 10 * time.Second
	// leasesLinger is how long the leases of a closed reader with reader.Options.Reuse are kept for the next one: as
	// long as its pools. Meanwhile they prevent erasing rows.
	leasesLinger = time.Minute
)

// A Hold is the set of renewers of one open reader.
type Hold struct {
	Renewers []*Renewer
	reuse    bool
}

// New returns the Hold of a reader that is being opened; nil: there is nothing to protect. It makes no request. atOnce:
// leases are taken at once, not after o.After. reuse: leases are kept for the next reader. The caller calls End.
func New(snapshots []*storage.Snapshot, o *Options, atOnce, reuse bool) *Hold {
	if o.Off || len(snapshots) == 0 {
		return nil
	}
	after := o.After
	switch {
	case atOnce:
		after = 0
	case after == 0:
		after = 5 * time.Minute
	}
	h := &Hold{reuse: reuse}
	renewers.mu.Lock()
	defer renewers.mu.Unlock()
	if renewers.over {
		return nil
	}
	for _, s := range snapshots {
		key := renewerKey{s.Table().Store(), s.Table().Name(), s.Info().Number}
		k := renewers.bySnapshot[key]
		if k == nil {
			k = newRenewer(key, s, after, o)
			if renewers.bySnapshot == nil {
				renewers.bySnapshot, renewers.all = map[renewerKey]*Renewer{}, map[*Renewer]bool{}
			}
			renewers.bySnapshot[key], renewers.all[k] = k, true
		} else if after == 0 && !k.taken.Load() {
			k.timer.Reset(0)
		}
		if k.linger != nil {
			k.linger.Stop()
			k.linger = nil
		}
		k.readers++
		h.Renewers = append(h.Renewers, k)
	}
	return h
}

func newRenewer(key renewerKey, s *storage.Snapshot, after time.Duration, o *Options) *Renewer {
	k := &Renewer{key: key, snapshot: s, owner: o.Owner, lasts: cmp.Or(o.For, 2*time.Hour)}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(after, k.Renew)
	return k
}

// HasLease reports whether there is a lease.
func (k *Renewer) HasLease() bool { return k.taken.Load() }

// Closed reports whether the last reader was closed.
func (k *Renewer) Closed() bool { return k.ctx.Err() != nil }

// Renew takes the lease, or renews it.
func (k *Renewer) Renew() {
	if k.renewed() {
		return
	}
	// Readers that share k continue without a lease. Later readers get a new Renewer.
	renewers.mu.Lock()
	defer renewers.mu.Unlock()
	k.forget()
}

// renewed is Renew. It returns false if somebody ended the lease.
func (k *Renewer) renewed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return true
	}
	var err error
	if k.lease != nil {
		err = k.lease.Renew(k.ctx, k.lasts)
		if errors.Is(err, storage.ErrNotFound) {
			k.taken.Store(false)
			// By the wall clock: the monotonic one stands still while the machine is suspended.
			if k.lease.Info().Until.Round(0).After(time.Now().Round(0)) {
				return false // ended on purpose: do not take another one
			}
			// It ended by itself, because the process was suspended. Take another one, unless it is too late.
			k.lease, err = nil, nil
		}
	}
	if k.lease == nil {
		k.lease, err = k.snapshot.Lease(k.ctx, cmp.Or(k.owner, readerOf(os.Getpid())), k.lasts)
		k.taken.Store(err == nil)
	}
	if err != nil {
		k.timer.Reset(k.lasts / 8)
	} else {
		k.timer.Reset(k.lasts / 2)
	}
	return true
}

// End releases the renewers. h may be nil.
func (h *Hold) End() {
	if h == nil {
		return
	}
	for _, k := range h.Renewers {
		k.leave(h.reuse)
	}
	h.Renewers = nil
}

// leave says that a reader was closed. After the last one the lease is released: at once or, with reuse, after
// leasesLinger if no other reader was opened.
func (k *Renewer) leave(reuse bool) {
	renewers.mu.Lock()
	k.readers--
	switch {
	case k.readers > 0:
		renewers.mu.Unlock()
		return
	case reuse && k.taken.Load():
		k.linger = time.AfterFunc(leasesLinger, k.endUnused)
		renewers.mu.Unlock()
		return
	}
	k.forget()
	renewers.mu.Unlock()
	k.end()
}

// forget removes k from renewers, so that later readers do not share it. The caller holds renewers.mu.
func (k *Renewer) forget() {
	if renewers.bySnapshot[k.key] == k {
		delete(renewers.bySnapshot, k.key)
	}
}

// endUnused ends the renewer unless it has readers again.
func (k *Renewer) endUnused() {
	renewers.mu.Lock()
	if k.readers > 0 {
		renewers.mu.Unlock()
		return
	}
	k.forget()
	renewers.mu.Unlock()
	k.end()
}

// end ends the renewer and releases its lease.
func (k *Renewer) end() {
	k.release()
	renewers.mu.Lock()
	defer renewers.mu.Unlock()
	delete(renewers.all, k)
}

// release releases the lease. After an error, or releaseWithin, it ends by itself. release waits for a request that is
// under way: if that were cancelled, it might take effect later, and the lease would stay.
func (k *Renewer) release() {
	late := time.AfterFunc(releaseWithin, k.cancel)
	k.mu.Lock()
	defer k.mu.Unlock()
	late.Stop()
	k.cancel()
	if k.ended {
		return
	}
	k.ended = true
	k.timer.Stop()
	if k.lease != nil {
		ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
		defer cancel()
		_ = k.lease.Release(ctx)
	}
}

// ReleaseKept ends the renewers that have no reader and wait for another one.
func ReleaseKept() {
	renewers.mu.Lock()
	var unused []*Renewer
	for _, k := range renewers.bySnapshot {
		if k.linger != nil {
			k.linger.Stop()
			unused = append(unused, k)
		}
	}
	renewers.mu.Unlock()
	for _, k := range unused {
		k.endUnused()
	}
}

// EndAll releases the leases of all readers of this process, which ends: also of readers that are still open. Readers
// that are opened later take none, as nobody would release it.
func EndAll() {
	renewers.mu.Lock()
	renewers.over = true
	all := slices.Collect(maps.Keys(renewers.all))
	renewers.mu.Unlock()
	var wg sync.WaitGroup
	for _, k := range all {
		wg.Go(k.end)
	}
	wg.Wait()
}

// EndOf ends the leases that readers of processes, which were killed, have on snapshots of a table. The processes are
// numbered as this one is. Leases with an Options.Owner are not found, and none where the system does not tell machines
// apart.
func EndOf(ctx context.Context, t *storage.Table, processes []int) error {
	if numbering() == "" {
		return nil
	}
	all, err := t.Leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range all {
		if !slices.ContainsFunc(processes, func(p int) bool { return l.Owner == readerOf(p) }) {
			continue
		}
		if _, err := t.EndLease(ctx, l.ID); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return nil
}

// readerOf returns the default of Options.Owner in a process.
func readerOf(process int) string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	if n := numbering(); n != "" {
		name = fmt.Sprintf("%.200s (%s)", name, n)
	}
	return fmt.Sprintf("reader of %.220s, process %d", name, process)
}

// numbering tells apart the machines and containers that number their processes by themselves: containers may share the
// name of a host, and often have the same numbers. It is empty where the system is not Linux.
func numbering() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, nsErr := os.Readlink("/proc/self/ns/pid")
	if err != nil || nsErr != nil {
		return ""
	}
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE(append(boot, namespace...)))
}
