package lease

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

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/wire"
)

// A lease is an object of its own, so that readers commit nothing. All that gc needs stands in its name, and its age is
// told by the clock that dates objects: it is in force until that time after it was made. A renewed one is another
// object, whose number is one higher, so that the objects of a lease lie side by side, in order. Numbers in the bytes
// are little-endian.
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

// Max is how long a lease lasts at most before it is renewed.
const Max = 7 * 24 * time.Hour

// An Info describes a lease. Its times are those of the clock that dates the objects.
type Info struct {
	ID       string // 16 hexadecimal digits; it stays when the lease is renewed
	Snapshot uint64
	Until    time.Time
	Owner    string    // for people
	Renewed  time.Time // when it was taken or renewed last
}

// String says who holds what, for messages.
func (l Info) String() string {
	return fmt.Sprintf("lease %s of %s until %s", l.ID, l.Owner, l.Until.Format(time.RFC3339))
}

// A Name is what the name of a lease's object says.
type Name struct {
	Snapshot uint64
	ID       string // 16 hexadecimal digits
	number   uint64 // 0 for the one that was taken, 1 more each time it is renewed
	Lasts    time.Duration
}

// ObjectName returns the name of the object, which parseLease takes apart.
func (l Name) ObjectName(table string) string {
	return fmt.Sprintf("%s%s%d-%s-%08d-%d", names.TableDir(table), names.LeasesDir, l.Snapshot, l.ID, l.number,
		l.Lasts.Milliseconds())
}

func parseLease(table, name string) (l Name, ok bool) {
	parts := strings.Split(strings.TrimPrefix(name, names.TableDir(table)+names.LeasesDir), "-")
	if len(parts) != 4 {
		return l, false
	}
	var errs [3]error
	var lasts uint64
	l.Snapshot, errs[0] = strconv.ParseUint(parts[0], 10, 64)
	l.ID = parts[1]
	l.number, errs[1] = strconv.ParseUint(parts[2], 10, 64)
	lasts, errs[2] = strconv.ParseUint(parts[3], 10, 43) // nanoseconds fit 63 bits
	l.Lasts = time.Duration(lasts) * time.Millisecond
	lease, err := hex.DecodeString(l.ID)
	return l, errors.Join(append(errs[:], err)...) == nil && len(lease) == 8 && l.Snapshot > 0 &&
		l.ObjectName(table) == name
}

// A Lease keeps everything that a snapshot names, until a time or until it is released, whatever expires meanwhile. A
// reader that needs longer renews it. Safe for concurrent use.
type Lease struct {
	t        *snapshot.Log
	snapshot *snapshot.Snapshot
	owner    string

	mu     sync.Mutex // guards what follows, and is held while the lease is renewed or released
	name   Name       // the object that is in force
	next   uint64     // the number of the next object: each try to make one has its own
	until  time.Time  // about, by this machine's clock
	ended  bool
	before string // the object that this one was renewed from; empty: it never was, or it is gone
}

// Take takes a lease on the snapshot for d, at most Max. ErrNotFound: the snapshot has expired.
func Take(ctx context.Context, s *snapshot.Snapshot, owner string, d time.Duration) (*Lease, error) {
	var random [8]byte
	rand.Read(random[:])
	l := &Lease{t: s.Log, snapshot: s, owner: owner, name: Name{Snapshot: s.Manifest.Info.Number,
		ID: hex.EncodeToString(random[:])}}
	if err := l.put(ctx, d); err != nil {
		return nil, err
	}
	// gc reads which snapshots have expired first and the leases after. So a lease that gc has not seen finds here that
	// the snapshot has expired.
	if err := s.Unexpired(ctx); err != nil {
		return nil, errors.Join(err, l.Release(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// put makes the next object of the lease, and makes it the one in force. The caller has the lock, or the lease alone.
func (l *Lease) put(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond || d > Max {
		return fmt.Errorf("lease for %v: want at least a millisecond and at most %v", d, Max)
	}
	if len(l.owner) > maxLeaseName {
		return fmt.Errorf("lease: owner of %d bytes: want at most %d", len(l.owner), maxLeaseName)
	}
	if l.next > maxRenewals {
		return fmt.Errorf("lease: renewed %d times: release it and take another", uint64(maxRenewals))
	}
	name := l.name
	name.number, name.Lasts = l.next, d.Truncate(time.Millisecond)
	l.next++
	until := l.t.Store.CommitTime().Add(name.Lasts)
	err := l.t.Store.Blobs.PutIfAbsent(ctx, name.ObjectName(l.t.Table), Append(nil, l.owner))
	if err != nil && !errors.Is(err, object.ErrExists) { // nobody else has made it
		return fmt.Errorf("lease: %w", err)
	}
	l.name, l.until = name, until
	return nil
}

// Info describes the lease; its times are about those that count, which the store's clock tells.
func (l *Lease) Info() Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Info{ID: l.name.ID, Snapshot: l.name.Snapshot, Until: l.until, Owner: l.owner,
		Renewed: l.until.Add(-l.name.Lasts)}
}

// Renew makes the lease last for d from now on. ErrNotFound: somebody has ended it, or it ran out and gc took it; it is
// over then, and what it kept may be gone.
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
	// gc deletes leases that have run out, lists what leases there are then, and only after that deletes what nobody
	// holds. So while the one before is there, no gc has passed over both.
	_, err := l.t.Store.Blobs.Stat(ctx, old.ObjectName(l.t.Table))
	if err == nil {
		// The one before stays until the next time: a directory that is read while both change may show neither.
		before := l.before
		l.before = old.ObjectName(l.t.Table)
		return l.remove(ctx, before)
	}
	made := l.name.ObjectName(l.t.Table)
	if !errors.Is(err, object.ErrNotFound) {
		l.name, l.until = old, until // whether it holds is not known
		return errors.Join(fmt.Errorf("lease: %w", err), l.remove(context.WithoutCancel(ctx), made))
	}
	l.ended, l.until = true, until // Info says when it would have run out
	err = fmt.Errorf("lease %s was ended, or ran out: %w", l.name.ID, catalog.ErrNotFound)
	return errors.Join(err, l.remove(context.WithoutCancel(ctx), made, l.before))
}

// Release ends the lease. Again it does nothing.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	if err := l.remove(ctx, l.before, l.name.ObjectName(l.t.Table)); err != nil {
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
		if err := l.t.Store.Blobs.Delete(ctx, name); err != nil {
			return fmt.Errorf("lease: %w", err)
		}
	}
	return nil
}

func Append(dst []byte, owner string) []byte {
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

// List returns the table's leases that have not run out, by snapshot and then by time.
func List(ctx context.Context, t *snapshot.Log) ([]Info, error) {
	now, _ := t.Store.Time(ctx) // of a store that cannot be written to, this machine's must do
	all, err := Objects(ctx, t)
	if err != nil {
		return nil, err
	}
	margin := object.Margin(t.Store.Blobs)
	all = slices.DeleteFunc(Newest(all), func(l Object) bool { return l.Over(now, margin) })
	out := make([]Info, len(all))
	err = object.Parallel(ctx, object.RequestsAtOnce, len(all), func(ctx context.Context, i int) (err error) {
		out[i], err = Describe(ctx, t, all[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(l Info) bool { return l.ID == "" }) // released meanwhile
	slices.SortFunc(out, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Snapshot, b.Snapshot), a.Until.Compare(b.Until), cmp.Compare(a.Owner, b.Owner))
	})
	return out, nil
}

// Describe reads whose a lease is; the zero Info where it is gone.
func Describe(ctx context.Context, t *snapshot.Log, l Object) (Info, error) {
	if l.Info.Size > maxLeaseSize {
		return Info{}, wire.Corrupt(l.Info.Name, fmt.Sprintf("%d bytes are no lease", l.Info.Size))
	}
	b := make([]byte, l.Info.Size)
	if err := t.Store.Blobs.ReadAt(ctx, l.Info.Name, b, 0); errors.Is(err, object.ErrNotFound) {
		return Info{}, nil
	} else if err != nil {
		return Info{}, wire.Damaged(l.Info.Name, err)
	}
	owner, reason := decodeLease(b)
	if reason != "" {
		return Info{}, wire.Corrupt(l.Info.Name, reason)
	}
	return Info{ID: l.ID, Snapshot: l.Snapshot, Until: l.Until().Add(object.Margin(t.Store.Blobs)), Owner: owner,
		Renewed: time.Unix(0, l.Info.ModTime).UTC()}, nil
}

// End ends a lease, by its id, in place of its owner, who is killed, say. An owner who lives finds out when it renews
// the lease, or when what it reads is gone. ErrNotFound: there is no such lease.
func End(ctx context.Context, t *snapshot.Log, lease string) (Info, error) {
	var info Info
	for range maxLeasePasses { // it may be renewed meanwhile
		all, err := Objects(ctx, t)
		if err != nil {
			return info, err
		}
		all = slices.DeleteFunc(all, func(l Object) bool { return l.ID != lease })
		if len(all) == 0 && info.ID == "" {
			return info, fmt.Errorf("table %s: %w", t.Table, catalog.NotFound("lease", lease, nil))
		}
		if len(all) == 0 {
			return info, nil
		}
		if info.ID == "" {
			// Whose it was is for the message alone: one that cannot be read is ended too.
			last := all[len(all)-1]
			if info, err = Describe(ctx, t, last); err != nil || info.ID == "" {
				info = Info{ID: lease, Snapshot: last.Snapshot,
					Until: last.Until().Add(object.Margin(t.Store.Blobs))}
			}
		}
		for _, l := range all {
			if err := t.Store.Blobs.Delete(ctx, l.Info.Name); err != nil {
				return info, fmt.Errorf("lease: %w", err)
			}
		}
	}
	return info, fmt.Errorf("lease %s was renewed again and again while it was ended", lease)
}

// An Object is an object of a lease.
type Object struct {
	Name
	Info object.Info
}

// Until returns when the object runs out, by the clock that dates objects.
func (l Object) Until() time.Time { return time.Unix(0, l.Info.ModTime).Add(l.Lasts).UTC() }

// Over reports whether the object has run out at a time of the store's clock, by which objects may be dated too early
// by so much: see object.Margin.
func (l Object) Over(now time.Time, margin time.Duration) bool {
	return !l.Until().Add(margin).After(now)
}

// Newest returns of each lease the object that lasts longest. all is as leaseObjects returns it.
func Newest(all []Object) []Object {
	var out []Object
	for _, l := range all {
		switch n := len(out) - 1; {
		case n < 0 || out[n].ID != l.ID:
			out = append(out, l)
		case l.Until().After(out[n].Until()):
			out[n] = l
		}
	}
	return out
}

// Objects returns the objects of leases that there are, those that have run out too, the objects of each lease together
// and in the order in which they were made. It is one listing, and misses no lease that is in force all the while, even
// where its pages are far apart in time: of a lease whose objects lie behind what was listed, the one that is there
// then is seen.
func Objects(ctx context.Context, t *snapshot.Log) ([]Object, error) {
	var out []Object
	for info, err := range t.Store.Blobs.List(ctx, names.TableDir(t.Table)+names.LeasesDir, "") {
		if err != nil {
			return nil, err
		}
		if l, ok := parseLease(t.Table, info.Name); ok {
			out = append(out, Object{l, info})
		}
	}
	return out, nil
}
