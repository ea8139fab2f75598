package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

import ()

// A tableLog is the snapshots of one table, as numbered objects: it finds, lists and reads them. Safe for concurrent use.
type tableLog struct {
	s    *coreStore
	name string // the table's

	mu sync.Mutex
	// id is the table's, zero until it is known. It never becomes another: if somebody removed the table and made another of its name,
	// methods return an error. last is the newest snapshot that was read, or nil, and at its object. Guarded by mu.
	id   names.TableID
	last *coreSnapshot
	at   object.Info
}

// gap says that the snapshots from first up to before next are missing.
func (t *tableLog) gap(first, next uint64) error {
	reason := "object is missing, and later snapshots are there"
	if n := next - first; n > 1 {
		reason = fmt.Sprintf("object is missing, as are the %d after it, and later snapshots are there", n-1)
	}
	return wire.Corrupt(names.SnapshotName(t.name, first), reason)
}

// errReplaced is matched when the table that a handle was opened for is gone, and another has its name.
var errReplaced = errors.New("the table was removed, and another made of its name")

// bind makes the handle one of the table with the id, if it is none yet, and returns an error if it is one of another.
func (t *tableLog) bind(of names.TableID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.id == (names.TableID{}) {
		t.id = of
	}
	if t.id == of {
		return nil
	}
	return fmt.Errorf("table %s: %w: %w since it was opened: open it again", t.name, ErrNotFound, errReplaced)
}

// bound returns the id of the table that the handle is of, zero when it is not known.
func (t *tableLog) bound() names.TableID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id
}

// Latest returns the newest snapshot; ErrNotFound before the first commit. It is a listing of one name, and where that is not the snapshot
// that the handle read last, a read.
func (t *tableLog) Latest(ctx context.Context) (*coreSnapshot, error) {
	s, err := t.latest(ctx)
	if err == nil && s == nil {
		return nil, t.s.noTable(ctx, t.name)
	}
	return s, err
}

// latest is Latest, nil before the first commit.
func (t *tableLog) latest(ctx context.Context) (*coreSnapshot, error) { return t.latestOr(ctx, nil) }

// latestOr is latest, and last, not read again, where the newest snapshot has its number: whether it is that is for the caller to find out.
func (t *tableLog) latestOr(ctx context.Context, last *coreSnapshot) (*coreSnapshot, error) {
	for {
		n, err := t.newest(ctx)
		if err != nil || n.number == 0 {
			return nil, err
		}
		if last != nil && last.m.info.Number == n.number && n.Size > 0 {
			return last, nil
		}
		s, err := t.readNewest(ctx, n)
		if !errors.Is(err, object.ErrNotFound) {
			return s, err
		}
		// It has expired since, and gc has truncated it: there is a newer one. Where there is none, the next listing has nothing.
	}
}

// readNewest returns the snapshot that newest found.
func (t *tableLog) readNewest(ctx context.Context, n snapshotObject) (*coreSnapshot, error) {
	t.mu.Lock()
	last, at := t.last, t.at
	t.mu.Unlock()
	if n.Size == 0 {
		return nil, wire.Corrupt(n.Name, "object is empty, and the newest snapshot")
	}
	var s *coreSnapshot
	var err error
	switch {
	case last != nil && at == n.Info:
		return last, nil
	case last != nil && last.m.info.Number == n.number && at == (object.Info{}): // the handle has made it
		var m manifest
		if m, err = t.header(ctx, n.number); err == nil && m.commit == last.m.commit {
			s = last
		}
	}
	if s == nil && err == nil {
		if s, err = t.readObject(ctx, n.Name, n.number, n.Size); errors.Is(err, io.ErrUnexpectedEOF) {
			s, err = t.read(ctx, n.number) // it was truncated since, or it is damaged
		}
	}
	if err != nil {
		return nil, err
	}
	t.saw(s, n.Info)
	return s, nil
}

// newestRead returns the newest snapshot that the handle has read or made, or nil.
func (t *tableLog) newestRead() *coreSnapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// forget drops what newestRead returns.
func (t *tableLog) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.at = nil, object.Info{}
}

// saw remembers a snapshot that was the newest a moment ago. at is zero where the handle made it.
func (t *tableLog) saw(s *coreSnapshot, at object.Info) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || t.last.m.info.Number <= s.m.info.Number {
		t.last, t.at = s, at
	}
}

// span returns the numbers of the first snapshot that has not expired and of the newest.
func (t *tableLog) span(ctx context.Context) (first, newest uint64, err error) {
	s, err := t.Latest(ctx)
	if err != nil {
		return 0, 0, err
	}
	return max(s.m.info.Oldest, 1), s.m.info.Number, nil
}

// At returns the snapshot of a number; ErrNotFound says which numbers there are.
func (t *tableLog) At(ctx context.Context, number uint64) (*coreSnapshot, error) {
	if number > 0 {
		s, err := t.read(ctx, number)
		if !errors.Is(err, object.ErrNotFound) {
			return s, err
		}
	}
	first, n, err := t.span(ctx)
	if err != nil {
		return nil, err
	}
	expired := ""
	if number > 0 && number < first {
		expired = ": it has expired"
	}
	return nil, fmt.Errorf("table %s: snapshot %d: %w%s; there are %d to %d", t.name, number, ErrNotFound, expired, first, n)
}

// AsOf returns the newest snapshot that is not younger than at; ErrNotFound says how old the first is. Its cost is
// logarithmic in the number of snapshots.
func (t *tableLog) AsOf(ctx context.Context, at time.Time) (*coreSnapshot, error) {
	from, n, err := t.span(ctx)
	if err != nil {
		return nil, err
	}
	number, first, err := t.asOf(ctx, at, from, n)
	if err != nil {
		return nil, err
	}
	if number == 0 {
		which := "first"
		if from > 1 {
			which = "first that has not expired"
		}
		return nil, fmt.Errorf("table %s: snapshot as of %s: %w; the %s is of %s",
			t.name, at.Format(time.RFC3339Nano), ErrNotFound, which, first.Format(time.RFC3339Nano))
	}
	return t.read(ctx, number)
}

// asOf returns the newest of the snapshots from to to that is not younger than at, or 0 and the time of the first.
func (t *tableLog) asOf(ctx context.Context, at time.Time, from, to uint64) (number uint64, first time.Time, err error) {
	// Times never go back. Snapshots up to low are not younger, those from high on are.
	low, high := from-1, to+1
	for high-low > 1 {
		mid := low + (high-low)/2
		m, err := t.header(ctx, mid)
		if err != nil {
			return 0, first, err
		}
		if m.info.Time.After(at) {
			high, first = mid, m.info.Time
		} else {
			low = mid
		}
	}
	if low < from {
		return 0, first, nil
	}
	return low, first, nil
}

// Snapshots describes the snapshots that have not expired, oldest first. Its cost is a small read each, many at a time.
func (t *tableLog) Snapshots(ctx context.Context) ([]SnapshotInfo, error) {
	first, n, err := t.span(ctx)
	if err != nil {
		return nil, err
	}
	return t.infos(ctx, first, n)
}

// infos describes the snapshots from first to last, which have not expired. How many there are only a header says: memory is taken for no more than
// are found, and a part.
func (t *tableLog) infos(ctx context.Context, first, last uint64) ([]SnapshotInfo, error) {
	const part = 1024
	var out []SnapshotInfo
	for ; first <= last; first += part {
		some := make([]SnapshotInfo, min(last-first+1, part))
		err := object.Parallel(ctx, object.RequestsAtOnce, len(some), func(ctx context.Context, i int) error {
			m, err := t.header(ctx, first+uint64(i))
			some[i] = m.info
			return wire.Missing(names.SnapshotName(t.name, first+uint64(i)), err)
		})
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// header reads only the header of a snapshot; object.ErrNotFound when there is none of the number.
func (t *tableLog) header(ctx context.Context, number uint64) (manifest, error) {
	var m manifest
	err := t.either(ctx, number, func(name string) (err error) {
		var h [headerBytes]byte
		if err = t.s.blobs.ReadAt(ctx, name, h[:], 0); err != nil {
			return err
		}
		if err = newerSnapshot(name, h[:]); err != nil {
			return err
		}
		var reason string
		if m, reason = decodeHeader(h[:], number); reason != "" {
			return wire.Corrupt(name, reason)
		}
		return t.bind(m.table)
	})
	return m, err
}

// read returns a snapshot; object.ErrNotFound when there is none of the number.
func (t *tableLog) read(ctx context.Context, number uint64) (*coreSnapshot, error) {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	if last != nil && last.m.info.Number == number {
		return last, nil
	}
	var s *coreSnapshot
	err := t.either(ctx, number, func(name string) error {
		info, err := t.s.blobs.Stat(ctx, name)
		if err == nil {
			s, err = t.readObject(ctx, name, number, info.Size)
		}
		return err
	})
	return s, err
}

// either calls f for the object of a snapshot, and for the copy of it where it has expired: a branch or a lease may keep that.
func (t *tableLog) either(ctx context.Context, number uint64, f func(name string) error) error {
	name := names.SnapshotName(t.name, number)
	err := f(name)
	gone := errors.Is(err, object.ErrNotFound)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		info, serr := t.s.blobs.Stat(ctx, name)
		if serr != nil {
			return serr
		}
		if gone = info.Size == 0; gone {
			err = fmt.Errorf("%w: %s: it has expired", object.ErrNotFound, name)
		}
	}
	if gone {
		// Where there is no copy either, the error is the first.
		if perr := f(names.PinnedName(t.name, number)); !errors.Is(perr, object.ErrNotFound) {
			name, err = names.PinnedName(t.name, number), perr
		}
	}
	return wire.Damaged(name, err)
}

// readObject reads the whole of a snapshot's object; io.ErrUnexpectedEOF where it ends before size.
func (t *tableLog) readObject(ctx context.Context, name string, number uint64, size int64) (*coreSnapshot, error) {
	if size == 0 {
		return nil, fmt.Errorf("%s: %w", name, io.ErrUnexpectedEOF)
	}
	if size < headerBytes || size > headerBytes+maxSnapshotBody {
		return nil, wire.Corrupt(name, fmt.Sprintf("%d bytes are no snapshot", size))
	}
	b := make([]byte, size)
	if err := t.s.blobs.ReadAt(ctx, name, b, 0); err != nil {
		return nil, err
	}
	if err := newerSnapshot(name, b); err != nil {
		return nil, err
	}
	m, reason := decodeManifest(b, number)
	if reason != "" {
		return nil, wire.Corrupt(name, reason)
	}
	return &coreSnapshot{log: t, m: m}, t.bind(m.table)
}

// empty returns what the first commit builds on: a snapshot without anything, and without a number.
func (t *tableLog) empty() *coreSnapshot {
	return &coreSnapshot{log: t, m: manifest{listing: lsm.Tree{Kind: lsm.Listing}, schema: lsm.Tree{Kind: lsm.Schema}}}
}
