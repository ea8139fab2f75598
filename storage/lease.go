package storage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage/object"
)

// A lease is an object of its own, so that readers commit nothing. Numbers are little-endian.
//
//	offset  size
//	     0     8  magic "DSILEAS" and the version, 1
//	     8     8  snapshot
//	    16     8  until, nanoseconds since 1970, signed
//	    24     1  length of the owner, at most 255
//	    25     n  owner
//	          8  xxhash64 of all before
const (
	leaseMagic   = "DSILEAS"
	leaseVersion = 1
	leaseHead    = 25
	maxLeaseName = 255 // bytes of an owner
	maxLeaseSize = leaseHead + maxLeaseName + 8

	// leaseIDBytes of the ids that a lease has, one after the other, are the same.
	leaseIDBytes = 8
	// maxLeasePasses bounds how often leases are listed and read until none that was listed is gone.
	maxLeasePasses = 100
)

// MaxLease is how long a lease lasts at most before it is renewed.
const MaxLease = 7 * 24 * time.Hour

// A LeaseInfo describes a lease.
type LeaseInfo struct {
	ID       string // 16 hexadecimal digits; it stays when the lease is renewed
	Snapshot uint64
	Until    time.Time
	Owner    string // for people
	// Renewed is when it was taken or renewed last, by the clock that dates the objects; zero where that is not known.
	Renewed time.Time
}

// String says who holds what, for messages.
func (l LeaseInfo) String() string {
	return fmt.Sprintf("lease %s of %s until %s", l.ID, l.Owner, l.Until.Format(time.RFC3339))
}

// A Lease keeps everything that a snapshot names, until a time or until it is released, whatever expires meanwhile. Whoever
// reads longer than that renews it. Safe for concurrent use.
type Lease struct {
	t      *Table
	mu     sync.Mutex // guards what follows, and is held while the lease is renewed or released
	id     id         // zero: released
	before id         // what it was renewed from; zero: it never was
	info   LeaseInfo
}

// Lease takes a lease on the snapshot for d, at most MaxLease. ErrNotFound: the snapshot has expired.
func (s *Snapshot) Lease(ctx context.Context, owner string, d time.Duration) (*Lease, error) {
	l := &Lease{t: s.t, info: LeaseInfo{Snapshot: s.m.info.Number, Owner: owner}}
	if err := l.put(ctx, d); err != nil {
		return nil, err
	}
	// gc reads which snapshots have expired first and the leases after. So a lease that gc has not seen finds here that the
	// snapshot has expired.
	if err := s.stays(ctx); err != nil {
		return nil, errors.Join(err, l.Release(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// stays returns an error when the snapshot has expired and no branch pins it.
func (s *Snapshot) stays(ctx context.Context) error {
	// A handle of its own: what was known before the lease counts for nothing.
	newest, err := (&Table{s: s.t.s, name: s.t.name}).Latest(ctx)
	if err != nil {
		return err
	}
	if s.m.info.Number >= newest.m.info.Oldest {
		return nil
	}
	branches, err := newest.Branches(ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		if slices.Contains(b.Pins(), s.m.info.Number) {
			return nil
		}
	}
	return fmt.Errorf("table %s: snapshot %d has expired: %w; there are %d to %d",
		s.t.name, s.m.info.Number, ErrNotFound, newest.m.info.Oldest, newest.m.info.Number)
}

// put writes the lease under a new id, keeps the one before, and takes the one before that away: who has listed leases and reads
// them then does not find one gone that was renewed meanwhile. The caller has the lock, or the lease alone.
func (l *Lease) put(ctx context.Context, d time.Duration) error {
	if d <= 0 || d > MaxLease {
		return fmt.Errorf("lease for %v: want more than 0 and at most %v", d, MaxLease)
	}
	if len(l.info.Owner) > maxLeaseName {
		return fmt.Errorf("lease: owner of %d bytes: want at most %d", len(l.info.Owner), maxLeaseName)
	}
	next := l.info
	next.Until = time.Unix(0, l.t.s.now().Add(d).UnixNano()).UTC()
	i := newID()
	if l.id != (id{}) {
		copy(i[:leaseIDBytes], l.id[:])
	}
	next.ID = leaseID(i)
	if err := l.t.s.blobs.PutIfAbsent(ctx, leaseName(l.t.name, i), appendLease(nil, next)); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	old := l.before
	l.id, l.before, l.info = i, l.id, next
	if old == (id{}) {
		return nil
	}
	return l.t.remove(ctx, leaseName(l.t.name, old))
}

// remove deletes an object that may be gone.
func (t *Table) remove(ctx context.Context, name string) error {
	if err := t.s.blobs.Delete(ctx, name); err != nil && !errors.Is(err, object.ErrNotFound) {
		return err
	}
	return nil
}

// Info describes the lease.
func (l *Lease) Info() LeaseInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info
}

// Renew makes the lease last for d from now on. One that ran out before may have come too late: what it kept may be gone. ErrNotFound:
// somebody has ended it, or it ran out and gc took it; it stays ended.
func (l *Lease) Renew(ctx context.Context, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == (id{}) {
		return errors.New("lease: renewed after its release")
	}
	if _, err := l.t.s.blobs.Stat(ctx, leaseName(l.t.name, l.id)); errors.Is(err, object.ErrNotFound) {
		return fmt.Errorf("lease %s was ended: %w", l.info.ID, ErrNotFound)
	} else if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	return l.put(ctx, d)
}

// Release ends the lease. Again it does nothing.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == (id{}) {
		return nil
	}
	for _, i := range [...]*id{&l.before, &l.id} {
		if *i == (id{}) {
			continue
		}
		if err := l.t.remove(ctx, leaseName(l.t.name, *i)); err != nil {
			return fmt.Errorf("lease: %w", err)
		}
		*i = id{}
	}
	return nil
}

func appendLease(dst []byte, l LeaseInfo) []byte {
	start := len(dst)
	dst = append(append(dst, leaseMagic...), leaseVersion)
	dst = binary.LittleEndian.AppendUint64(dst, l.Snapshot)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(l.Until.UnixNano()))
	dst = append(append(dst, byte(len(l.Owner))), l.Owner...)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

func decodeLease(b []byte) (l LeaseInfo, reason string) {
	d := decoder{b: b}
	head := d.take(8)
	if !bytes.Equal(head, append([]byte(leaseMagic), leaseVersion)) {
		return l, "no lease, or one of another version"
	}
	l.Snapshot = d.u64()
	l.Until = time.Unix(0, int64(d.u64())).UTC()
	l.Owner = string(d.take(uint64(d.byte())))
	sum := d.u64()
	d.end()
	if d.reason == "" && sum != xxhash.Sum64(b[:len(b)-8]) {
		d.reason = "checksum mismatch"
	}
	if d.reason == "" && l.Snapshot == 0 {
		d.reason = "of snapshot 0"
	}
	return l, d.reason
}

// Leases returns the table's leases that have not run out, by snapshot and then by time.
func (t *Table) Leases(ctx context.Context) ([]LeaseInfo, error) {
	all, err := t.leases(ctx)
	if err != nil {
		return nil, err
	}
	var out []LeaseInfo
	now := t.s.now()
	for _, l := range newestLeases(all) {
		if l.Until.After(now) {
			out = append(out, l.LeaseInfo)
		}
	}
	slices.SortFunc(out, func(a, b LeaseInfo) int {
		return cmp.Or(cmp.Compare(a.Snapshot, b.Snapshot), a.Until.Compare(b.Until), cmp.Compare(a.Owner, b.Owner))
	})
	return out, nil
}

// leaseID is what all the ids that a lease has, one after the other, begin with.
func leaseID(i id) string { return i.String()[:2*leaseIDBytes] }

// EndLease ends a lease, by its id, in place of its owner, who is killed, say. An owner who lives finds out when it renews the lease, or
// when what it reads is gone. ErrNotFound: there is no such lease.
func (t *Table) EndLease(ctx context.Context, lease string) (LeaseInfo, error) {
	all, err := t.Leases(ctx)
	if err != nil {
		return LeaseInfo{}, err
	}
	at := slices.IndexFunc(all, func(l LeaseInfo) bool { return l.ID == lease })
	if at < 0 {
		return LeaseInfo{}, fmt.Errorf("table %s: lease %.100q: %w", t.name, lease, ErrNotFound)
	}
	// It may be renewed meanwhile.
	for range maxLeasePasses {
		objects, err := t.leases(ctx)
		if err != nil {
			return all[at], err
		}
		ended := true
		for _, l := range objects {
			if leaseID(l.id) != lease {
				continue
			}
			ended = false
			if err := t.remove(ctx, l.object.Name); err != nil {
				return all[at], fmt.Errorf("lease: %w", err)
			}
		}
		if ended {
			return all[at], nil
		}
	}
	return all[at], fmt.Errorf("lease %s was renewed again and again while it was ended", lease)
}

// A storedLease is a lease and its object.
type storedLease struct {
	LeaseInfo
	id     id
	object object.Info
}

// newestLeases returns of each lease the object that lasts longest, in the order of ids.
func newestLeases(all []storedLease) []storedLease {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b storedLease) int {
		return cmp.Or(bytes.Compare(a.id[:leaseIDBytes], b.id[:leaseIDBytes]), b.Until.Compare(a.Until), bytes.Compare(a.id[:], b.id[:]))
	})
	return slices.CompactFunc(all, func(a, b storedLease) bool { return [leaseIDBytes]byte(a.id[:]) == [leaseIDBytes]byte(b.id[:]) })
}

// leases returns the leases that there are objects of, those that have run out too, and of one that was renewed also the one
// before. It misses none that lasts all the while: one that was listed and is gone when it is read may have been renewed, so that
// all is listed again.
func (t *Table) leases(ctx context.Context) ([]storedLease, error) {
	found := map[id]*storedLease{} // nil: it is gone
	for range maxLeasePasses {
		again, err := t.findLeases(ctx, found)
		if err != nil {
			return nil, err
		}
		if again {
			continue
		}
		var out []storedLease
		for _, l := range found {
			if l != nil {
				out = append(out, *l)
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s: some of the leases listed were gone when they were read, %d times", tableDir(t.name)+leasesDir, maxLeasePasses)
}

// findLeases lists the leases and reads those that are not in found yet; again: one that was listed was gone.
func (t *Table) findLeases(ctx context.Context, found map[id]*storedLease) (again bool, err error) {
	listed := map[id]object.Info{}
	prefix := tableDir(t.name) + leasesDir
	// Twice, for one that is renewed during the first listing may be in front of where it is and then no more behind.
	for range 2 {
		for info, err := range t.s.blobs.List(ctx, prefix, "") {
			if err != nil {
				return false, err
			}
			if i, err := parseID(info.Name[len(prefix):]); err == nil && info.Name == leaseName(t.name, i) {
				listed[i] = info
			}
		}
	}
	for i, o := range listed {
		if _, known := found[i]; known {
			continue
		}
		if o.Size > maxLeaseSize {
			return false, corrupt(o.Name, fmt.Sprintf("%d bytes are no lease", o.Size))
		}
		b := make([]byte, o.Size)
		err := t.s.blobs.ReadAt(ctx, o.Name, b, 0)
		if errors.Is(err, object.ErrNotFound) {
			found[i], again = nil, true // renewed, or released
			continue
		}
		if err != nil {
			return false, damaged(o.Name, err)
		}
		l, reason := decodeLease(b)
		if reason != "" {
			return false, corrupt(o.Name, reason)
		}
		if l.ID = leaseID(i); o.ModTime != 0 {
			l.Renewed = time.Unix(0, o.ModTime).UTC()
		}
		found[i] = &storedLease{l, i, o}
	}
	return again, nil
}
