package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/lease"
)

// Options say how a reader that is open keeps what it reads from gc. The zero value works.
//
// A snapshot that expires stays for gc's grace period, a day unless gc is told otherwise: so most readers need nothing.
// One that stays open takes a lease in the background on each snapshot that its plan is of, renews it, and gives it
// back when it is closed; readers of one process share it, and with reader.Options.Reuse it waits a minute for the
// next. What a branch reads may have expired long ago: leases on that are taken at once. A process that dies keeps the
// snapshots until its leases have run out, or somebody ends them (Table.EndLease). An error of a lease is none of the
// reader: it is tried again, but not after somebody ended it. Readers that are opened after that was found out take
// leases of their own.
type Options struct {
	// Off takes none: where the store may not be written to, or where somebody else has one.
	Off bool
	// Owner is told to those who list leases. Default: user@host and the process.
	Owner string
	// After is how long a reader is open before it takes one. Default 5 minutes.
	After time.Duration
	// For is how long a lease lasts; it is renewed after half of that. Default 2 hours.
	For time.Duration
}

// Validate names the first field that no reader can have.
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
	linger  *time.Timer // ends it, while it has no readers; guarded by renewers.mu

	mu    sync.Mutex   // guards what follows, and is held during requests
	timer *time.Timer  // for the next of them
	lease *lease.Lease // nil: none yet
	ended bool
}

type renewerKey struct {
	store  *storage.Store
	table  string
	number uint64
}

// renewers are the process's.
var renewers struct {
	mu         sync.Mutex
	bySnapshot map[renewerKey]*Renewer // guarded by mu
}

const (
	// releaseWithin bounds how long closing a reader waits for a lease to be given back. One that is not runs out.
	releaseWithin = 10 * time.Second
	// leasesLinger is how long the leases of a closed reader with reader.Options.Reuse stay for the next one, as that
	// of a job's next epoch: as long as its pools are kept. They are in the way of erasing rows.
	leasesLinger = time.Minute
)

// A Hold is the renewers of one open reader.
type Hold struct {
	Renewers []*Renewer
	reuse    bool
}

// New returns the hold of a reader that is opened now; nil: there is nothing to keep. It makes no request. atOnce:
// leases are taken whatever o.After says; reuse: they stay a while for the next reader.
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
	for _, s := range snapshots {
		key := renewerKey{s.Table().Store(), s.Table().Name(), s.Info().Number}
		k := renewers.bySnapshot[key]
		if k == nil {
			k = newRenewer(key, s, after, o)
			if renewers.bySnapshot == nil {
				renewers.bySnapshot = map[renewerKey]*Renewer{}
			}
			renewers.bySnapshot[key] = k
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

// Closed reports whether the last reader has gone.
func (k *Renewer) Closed() bool { return k.ctx.Err() != nil }

// Renew takes the lease, or renews it.
func (k *Renewer) Renew() {
	if k.renewed() {
		return
	}
	// The readers that there are go on without a lease. Those to come do not share that.
	renewers.mu.Lock()
	defer renewers.mu.Unlock()
	k.forget()
}

// renewed is Renew, and returns false where somebody ended the lease.
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
			if k.lease.Info().Until.After(time.Now()) {
				k.taken.Store(false)
				return false // to take away what it kept: it would only be in the way again
			}
			// It ran out, of a process that was stopped for long. Another is taken, unless that is too late.
			k.lease = nil
		}
	} else if k.lease, err = k.snapshot.Lease(k.ctx, cmp.Or(k.owner, thisReader()), k.lasts); err == nil {
		k.taken.Store(true)
	}
	if err != nil {
		k.timer.Reset(k.lasts / 8)
	} else {
		k.timer.Reset(k.lasts / 2)
	}
	return true
}

// End lets the renewers go. A nil Hold has none.
func (h *Hold) End() {
	if h == nil {
		return
	}
	for _, k := range h.Renewers {
		k.leave(h.reuse)
	}
	h.Renewers = nil
}

// leave says that a reader is closed. After the last the lease is given back: at once, or where another reader is to
// come, when none does.
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

// forget makes readers to come find no k. The caller holds renewers.mu.
func (k *Renewer) forget() {
	if renewers.bySnapshot[k.key] == k {
		delete(renewers.bySnapshot, k.key)
	}
}

// endUnused ends the renewer unless a reader has come.
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

// end gives the lease back, as far as that is done soon: else it runs out.
func (k *Renewer) end() {
	k.cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
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

// ReleaseKept ends the renewers that wait for another reader.
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

// thisReader returns user@host and the process, as far as they are known.
func thisReader() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return fmt.Sprintf("reader of %.200s, process %d", name, os.Getpid())
}
