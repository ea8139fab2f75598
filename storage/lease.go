package storage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// A lease is an object of its own, so that readers commit nothing. All that gc needs stands in its name, and its age is told by the clock that
// dates objects: it is in force until that time after it was made. A renewed one is another object, whose number is one higher, so that
// the objects of a lease lie side by side, in order. Numbers in the bytes are little-endian.
//
//	tables/<table>/leases/<snapshot>-<lease, 16 hex>-<number, 8 digits>-<milliseconds>
//
//	offset  size
//	     0     8  magic "DSILEAS" and the version, 1
//	     8     1  length of the owner, at most 255
//	     9     n  owner
//	           8  xxhash64 of all before
const (
	leaseMagic   = "DSILEAS"
	leaseVersion = 1
	leaseHead    = 9
	maxLeaseName = 255 // bytes of an owner
	maxLeaseSize = leaseHead + maxLeaseName + 8

	maxRenewals = 99_999_999
	// maxLeasePasses bounds how often EndLease looks anew at a lease that is renewed meanwhile.
	maxLeasePasses = 100
)

// MaxLease is how long a lease lasts at most before it is renewed.
const MaxLease = 7 * 24 * time.Hour

// A LeaseInfo describes a lease. Its times are those of the clock that dates the objects.
type LeaseInfo struct {
	ID       string // 16 hexadecimal digits; it stays when the lease is renewed
	Snapshot uint64
	Until    time.Time
	Owner    string    // for people
	Renewed  time.Time // when it was taken or renewed last
}

// String says who holds what, for messages.
func (l LeaseInfo) String() string {
	return fmt.Sprintf("lease %s of %s until %s", l.ID, l.Owner, l.Until.Format(time.RFC3339))
}

// A leaseName is what the name of a lease's object says.
type leaseName struct {
	snapshot uint64
	lease    string // 16 hexadecimal digits
	number   uint64 // 0 for the one that was taken, 1 more each time it is renewed
	lasts    time.Duration
}

// object returns the name of the object, which parseLease takes apart.
func (l leaseName) object(table string) string {
	return fmt.Sprintf("%s%s%d-%s-%08d-%d", names.TableDir(table), names.LeasesDir, l.snapshot, l.lease, l.number, l.lasts.Milliseconds())
}

func parseLease(table, name string) (l leaseName, ok bool) {
	parts := strings.Split(strings.TrimPrefix(name, names.TableDir(table)+names.LeasesDir), "-")
	if len(parts) != 4 {
		return l, false
	}
	var errs [3]error
	var lasts uint64
	l.snapshot, errs[0] = strconv.ParseUint(parts[0], 10, 64)
	l.lease = parts[1]
	l.number, errs[1] = strconv.ParseUint(parts[2], 10, 64)
	lasts, errs[2] = strconv.ParseUint(parts[3], 10, 43) // nanoseconds fit 63 bits
	l.lasts = time.Duration(lasts) * time.Millisecond
	lease, err := hex.DecodeString(l.lease)
	return l, errors.Join(append(errs[:], err)...) == nil && len(lease) == 8 && l.snapshot > 0 && l.object(table) == name
}

// A Lease keeps everything that a snapshot names, until a time or until it is released, whatever expires meanwhile. Whoever
// reads longer than that renews it. Safe for concurrent use.
type Lease struct {
	t        *tableLog
	snapshot *coreSnapshot
	owner    string

	mu     sync.Mutex // guards what follows, and is held while the lease is renewed or released
	name   leaseName  // the object that is in force
	next   uint64     // the number of the next object: each try to make one has its own
	until  time.Time  // about, by this machine's clock
	ended  bool
	before string // the object that this one was renewed from; empty: it never was, or it is gone
}

// takeLease takes a lease on the snapshot for d, at most MaxLease. ErrNotFound: the snapshot has expired.
func takeLease(ctx context.Context, s *coreSnapshot, owner string, d time.Duration) (*Lease, error) {
	var random [8]byte
	rand.Read(random[:])
	l := &Lease{t: s.log, snapshot: s, owner: owner, name: leaseName{snapshot: s.m.info.Number, lease: hex.EncodeToString(random[:])}}
	if err := l.put(ctx, d); err != nil {
		return nil, err
	}
	// gc reads which snapshots have expired first and the leases after. So a lease that gc has not seen finds here that the
	// snapshot has expired.
	if err := stays(ctx, s); err != nil {
		return nil, errors.Join(err, l.Release(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// stays returns an error when the snapshot has expired and no branch pins it.
func stays(ctx context.Context, s *coreSnapshot) error {
	newest, err := s.log.Latest(ctx)
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
		s.log.name, s.m.info.Number, ErrNotFound, newest.m.info.Oldest, newest.m.info.Number)
}

// put makes the next object of the lease, and makes it the one in force. The caller has the lock, or the lease alone.
func (l *Lease) put(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond || d > MaxLease {
		return fmt.Errorf("lease for %v: want at least a millisecond and at most %v", d, MaxLease)
	}
	if len(l.owner) > maxLeaseName {
		return fmt.Errorf("lease: owner of %d bytes: want at most %d", len(l.owner), maxLeaseName)
	}
	if l.next > maxRenewals {
		return fmt.Errorf("lease: renewed %d times: release it and take another", uint64(maxRenewals))
	}
	name := l.name
	name.number, name.lasts = l.next, d.Truncate(time.Millisecond)
	l.next++
	until := l.t.s.now().Add(name.lasts)
	err := l.t.s.blobs.PutIfAbsent(ctx, name.object(l.t.name), appendLease(nil, l.owner))
	if err != nil && !errors.Is(err, object.ErrExists) { // nobody else has made it
		return fmt.Errorf("lease: %w", err)
	}
	l.name, l.until = name, until
	return nil
}

// Info describes the lease; its times are about those that count, which the store's clock tells.
func (l *Lease) Info() LeaseInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LeaseInfo{ID: l.name.lease, Snapshot: l.name.snapshot, Until: l.until, Owner: l.owner, Renewed: l.until.Add(-l.name.lasts)}
}

// Renew makes the lease last for d from now on. ErrNotFound: somebody has ended it, or it ran out and gc took it; it is over then, and what it
// kept may be gone.
func (l *Lease) Renew(ctx context.Context, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return errors.New("lease: renewed after its release")
	}
	old, until := l.name, l.until
	if err := l.put(ctx, d); err != nil {
		return err
	}
	// gc deletes leases that have run out, lists what leases there are then, and only after that deletes what nobody holds. So while the
	// one before is there, no gc has passed over both.
	_, err := l.t.s.blobs.Stat(ctx, old.object(l.t.name))
	if err == nil {
		// The one before stays until the next time: a directory that is read while both change may show neither.
		before := l.before
		l.before = old.object(l.t.name)
		return l.remove(ctx, before)
	}
	made := l.name.object(l.t.name)
	if !errors.Is(err, object.ErrNotFound) {
		l.name, l.until = old, until // whether it holds is not known
		return errors.Join(fmt.Errorf("lease: %w", err), l.remove(context.WithoutCancel(ctx), made))
	}
	l.ended = true
	err = fmt.Errorf("lease %s was ended, or ran out: %w", l.name.lease, ErrNotFound)
	return errors.Join(err, l.remove(context.WithoutCancel(ctx), made, l.before))
}

// Release ends the lease. Again it does nothing.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	if err := l.remove(ctx, l.before, l.name.object(l.t.name)); err != nil {
		return err
	}
	l.ended = true
	return nil
}

// remove deletes objects of the lease, those that are not empty.
func (l *Lease) remove(ctx context.Context, names ...string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		if err := l.t.s.remove(ctx, name); err != nil {
			return fmt.Errorf("lease: %w", err)
		}
	}
	return nil
}

func appendLease(dst []byte, owner string) []byte {
	start := len(dst)
	dst = append(append(dst, leaseMagic...), leaseVersion)
	dst = append(append(dst, byte(len(owner))), owner...)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

func decodeLease(b []byte) (owner, reason string) {
	d := wire.Decoder{Rest: b}
	head := d.Take(8)
	if !bytes.Equal(head, append([]byte(leaseMagic), leaseVersion)) {
		return "", "no lease, or one of another version"
	}
	owner = string(d.Take(uint64(d.Byte())))
	sum := d.U64()
	d.End()
	if d.Reason == "" && sum != xxhash.Sum64(b[:len(b)-8]) {
		d.Reason = "checksum mismatch"
	}
	return owner, d.Reason
}

// leasesOf returns the table's leases that have not run out, by snapshot and then by time.
func leasesOf(ctx context.Context, t *tableLog) ([]LeaseInfo, error) {
	now, _ := t.s.Time(ctx) // of a store that cannot be written to, this machine's must do
	all, err := leaseObjects(ctx, t)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(newestLeases(all), func(l storedLease) bool { return !l.until().After(now) })
	out := make([]LeaseInfo, len(all))
	err = object.Parallel(ctx, object.RequestsAtOnce, len(all), func(ctx context.Context, i int) (err error) {
		out[i], err = describe(ctx, t, all[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(l LeaseInfo) bool { return l.ID == "" }) // released meanwhile
	slices.SortFunc(out, func(a, b LeaseInfo) int {
		return cmp.Or(cmp.Compare(a.Snapshot, b.Snapshot), a.Until.Compare(b.Until), cmp.Compare(a.Owner, b.Owner))
	})
	return out, nil
}

// describe reads whose a lease is; the zero LeaseInfo where it is gone.
func describe(ctx context.Context, t *tableLog, l storedLease) (LeaseInfo, error) {
	if l.object.Size > maxLeaseSize {
		return LeaseInfo{}, wire.Corrupt(l.object.Name, fmt.Sprintf("%d bytes are no lease", l.object.Size))
	}
	b := make([]byte, l.object.Size)
	if err := t.s.blobs.ReadAt(ctx, l.object.Name, b, 0); errors.Is(err, object.ErrNotFound) {
		return LeaseInfo{}, nil
	} else if err != nil {
		return LeaseInfo{}, wire.Damaged(l.object.Name, err)
	}
	owner, reason := decodeLease(b)
	if reason != "" {
		return LeaseInfo{}, wire.Corrupt(l.object.Name, reason)
	}
	return LeaseInfo{ID: l.lease, Snapshot: l.snapshot, Until: l.until(), Owner: owner, Renewed: time.Unix(0, l.object.ModTime).UTC()}, nil
}

// endLease ends a lease, by its id, in place of its owner, who is killed, say. An owner who lives finds out when it renews the lease, or
// when what it reads is gone. ErrNotFound: there is no such lease.
func endLease(ctx context.Context, t *tableLog, lease string) (LeaseInfo, error) {
	var info LeaseInfo
	for range maxLeasePasses { // it may be renewed meanwhile
		all, err := leaseObjects(ctx, t)
		if err != nil {
			return info, err
		}
		all = slices.DeleteFunc(all, func(l storedLease) bool { return l.lease != lease })
		if len(all) == 0 && info.ID == "" {
			return info, fmt.Errorf("table %s: lease %.100q: %w", t.name, lease, ErrNotFound)
		}
		if len(all) == 0 {
			return info, nil
		}
		if info.ID == "" {
			// Whose it was is for the message alone: one that cannot be read is ended too.
			last := all[len(all)-1]
			if info, err = describe(ctx, t, last); err != nil || info.ID == "" {
				info = LeaseInfo{ID: lease, Snapshot: last.snapshot, Until: last.until()}
			}
		}
		for _, l := range all {
			if err := t.s.remove(ctx, l.object.Name); err != nil {
				return info, fmt.Errorf("lease: %w", err)
			}
		}
	}
	return info, fmt.Errorf("lease %s was renewed again and again while it was ended", lease)
}

// A storedLease is an object of a lease.
type storedLease struct {
	leaseName
	object object.Info
}

// until returns when the object runs out, by the clock that dates objects.
func (l storedLease) until() time.Time { return time.Unix(0, l.object.ModTime).Add(l.lasts).UTC() }

// newestLeases returns of each lease the object that lasts longest. all is as leaseObjects returns it.
func newestLeases(all []storedLease) []storedLease {
	var out []storedLease
	for _, l := range all {
		switch n := len(out) - 1; {
		case n < 0 || out[n].lease != l.lease:
			out = append(out, l)
		case l.until().After(out[n].until()):
			out[n] = l
		}
	}
	return out
}

// leaseObjects returns the objects of leases that there are, those that have run out too, the objects of each lease together and in the order
// in which they were made. It is one listing, and misses no lease that is in force all the while, even where its pages are far
// apart in time: of a lease whose objects lie behind what was listed, the one that is there then is seen.
func leaseObjects(ctx context.Context, t *tableLog) ([]storedLease, error) {
	var out []storedLease
	for info, err := range t.s.blobs.List(ctx, names.TableDir(t.name)+names.LeasesDir, "") {
		if err != nil {
			return nil, err
		}
		if l, ok := parseLease(t.name, info.Name); ok {
			out = append(out, storedLease{l, info})
		}
	}
	return out, nil
}
