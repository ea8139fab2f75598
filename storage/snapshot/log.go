package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// A Log is the snapshots of one table, as numbered objects: it finds, lists and reads them. Safe for concurrent use.
type Log struct {
	Store *Store
	Table string // the table's

	mu sync.Mutex
	// id is the table's, zero until it is known. It never becomes another: if somebody removed the table and made
	// another of its name, methods return an error. last is the newest snapshot that was read, or nil, and at its
	// object. Guarded by mu.
	id   names.TableID
	last *Snapshot
	at   object.Info
	// turns has the Turns while no commit has them; nil before the first. The pointer is guarded by mu.
	turns chan *Turns
}

// Gap says that the snapshots from first up to before next are missing.
func (t *Log) Gap(first, next uint64) error {
	reason := "object is missing, and later snapshots are there"
	if n := next - first; n > 1 {
		reason = fmt.Sprintf("object is missing, as are the %d after it, and later snapshots are there", n-1)
	}
	return wire.Corrupt(names.SnapshotName(t.Table, first), reason)
}

// ErrReplaced is matched when the table that a handle was opened for is gone, and another has its name.
var ErrReplaced = errors.New("the table was removed, and another made of its name")

// ErrExpired is matched when a snapshot has expired, and was truncated.
var ErrExpired = errors.New("it has expired")

// bind makes the handle one of the table with the id, if it is none yet, and returns an error if it is one of another.
func (t *Log) bind(of names.TableID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.id == (names.TableID{}) {
		t.id = of
	}
	if t.id == of {
		return nil
	}
	return fmt.Errorf("table %s: %w: %w since it was opened: open it again", t.Table, catalog.ErrNotFound, ErrReplaced)
}

// ID returns the id of the table that the handle is of, zero when it is not known.
func (t *Log) ID() names.TableID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id
}

// Latest returns the newest snapshot; ErrNotFound before the first commit. It is a listing of one name, and where that
// is not the snapshot that the handle read last, a read.
func (t *Log) Latest(ctx context.Context) (*Snapshot, error) {
	s, err := t.LatestOrNil(ctx)
	if err == nil && s == nil {
		return nil, t.Store.NoTable(ctx, t.Table)
	}
	return s, err
}

// LatestOrNil is Latest, nil before the first commit.
func (t *Log) LatestOrNil(ctx context.Context) (*Snapshot, error) {
	for {
		n, err := t.Newest(ctx)
		if err != nil || n.Number == 0 {
			return nil, err
		}
		s, err := t.ReadNewest(ctx, n)
		if !errors.Is(err, object.ErrNotFound) {
			return s, err
		}
		// It has expired since, and gc has truncated it: there is a newer one. Where there is none, the next listing
		// has nothing.
	}
}

// ReadNewest returns the snapshot that newest found.
func (t *Log) ReadNewest(ctx context.Context, n Object) (*Snapshot, error) {
	t.mu.Lock()
	last, at := t.last, t.at
	t.mu.Unlock()
	if n.Size == 0 {
		return nil, wire.Corrupt(n.Name, "object is empty, and the newest snapshot")
	}
	var s *Snapshot
	var err error
	switch {
	case last != nil && at == n.Info:
		return last, nil
	case last != nil && last.Manifest.Info.Number == n.Number && at == (object.Info{}): // see Remember
		var m Manifest
		if m, err = t.Header(ctx, n.Number); err == nil && m.Commit == last.Manifest.Commit {
			s = last
		}
	}
	if s == nil && err == nil {
		if s, err = t.readObject(ctx, n.Name, n.Number, n.Size); errors.Is(err, io.ErrUnexpectedEOF) {
			s, err = t.Read(ctx, n.Number) // it was truncated since, or it is damaged
		}
	}
	if err != nil {
		return nil, err
	}
	t.Remember(s, n.Info)
	return s, nil
}

// LastRead returns the newest snapshot that the handle has read or made, or nil.
func (t *Log) LastRead() *Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Forget drops what LastRead returns.
func (t *Log) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.at = nil, object.Info{}
}

// Remember remembers a snapshot that was the newest a moment ago. at is zero where no listing has shown it: the handle
// made it, or asked for its number.
func (t *Log) Remember(s *Snapshot, at object.Info) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || t.last.Manifest.Info.Number <= s.Manifest.Info.Number {
		t.last, t.at = s, at
	}
}

// span returns the numbers of the first snapshot that has not expired and of the newest.
func (t *Log) span(ctx context.Context) (first, newest uint64, err error) {
	s, err := t.Latest(ctx)
	if err != nil {
		return 0, 0, err
	}
	return max(s.Manifest.Info.Oldest, 1), s.Manifest.Info.Number, nil
}

// At returns the snapshot of a number; ErrNotFound says which numbers there are.
func (t *Log) At(ctx context.Context, number uint64) (*Snapshot, error) {
	if number > 0 {
		s, err := t.Read(ctx, number)
		if !errors.Is(err, object.ErrNotFound) {
			return s, err
		}
	}
	first, n, err := t.span(ctx)
	if err != nil {
		return nil, err
	}
	return nil, t.noSnapshot(number, first, n)
}

// AtUnexpired is At, but a snapshot that has expired is ErrNotFound also while it is still there: an erasure may have
// removed its data. Snapshots that branches pin are found, and so are all where the newest, which knows what has
// expired, cannot be read. Its cost is that of Latest more, and a read of the branches.
func (t *Log) AtUnexpired(ctx context.Context, number uint64) (*Snapshot, error) {
	s, err := t.At(ctx, number)
	if err != nil {
		return nil, err
	}
	err = s.Unexpired(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, catalog.ErrNotFound):
		return nil, err
	}
	return s, nil
}

// Unexpired returns ErrNotFound when the snapshot has expired and no branch pins it.
func (s *Snapshot) Unexpired(ctx context.Context) error {
	newest, err := s.Log.Latest(ctx)
	if err != nil || s.Manifest.Info.Number >= newest.Manifest.Info.Oldest {
		return err
	}
	branches, err := newest.Branches(ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		if slices.Contains(b.Pins(), s.Manifest.Info.Number) {
			return nil
		}
	}
	last := newest.Manifest.Info
	return s.Log.noSnapshot(s.Manifest.Info.Number, last.Oldest, last.Number)
}

// noSnapshot returns the error of a number that no snapshot from first to newest has.
func (t *Log) noSnapshot(number, first, newest uint64) error {
	expired := ""
	if number > 0 && number < first {
		expired = ": it has expired"
	}
	return fmt.Errorf("table %s: snapshot %d: %w%s; there are %d to %d", t.Table, number, catalog.ErrNotFound, expired,
		first, newest)
}

// AsOf returns the newest snapshot that is not younger than at; ErrNotFound says how old the first is. Its cost is
// logarithmic in the number of snapshots.
func (t *Log) AsOf(ctx context.Context, at time.Time) (*Snapshot, error) {
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
			t.Table, at.Format(time.RFC3339Nano), catalog.ErrNotFound, which, first.Format(time.RFC3339Nano))
	}
	return t.Read(ctx, number)
}

// asOf returns the newest of the snapshots from to to that is not younger than at, or 0 and the time of the first.
func (t *Log) asOf(ctx context.Context, at time.Time, from, to uint64) (number uint64, first time.Time, err error) {
	// Times never go back. Snapshots up to low are not younger, those from high on are.
	low, high := from-1, to+1
	for high-low > 1 {
		mid := low + (high-low)/2
		m, err := t.Header(ctx, mid)
		if err != nil {
			return 0, first, err
		}
		if m.Info.Time.After(at) {
			high, first = mid, m.Info.Time
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
func (t *Log) Snapshots(ctx context.Context) ([]Info, error) {
	first, n, err := t.span(ctx)
	if err != nil {
		return nil, err
	}
	return t.Infos(ctx, first, n)
}

// Infos describes the snapshots from first to last, which have not expired. How many there are only a header says:
// memory is taken for no more than are found, and a part.
func (t *Log) Infos(ctx context.Context, first, last uint64) ([]Info, error) {
	const part = 1024
	var out []Info
	for ; first <= last; first += part {
		some := make([]Info, min(last-first+1, part))
		err := object.Parallel(ctx, object.RequestsAtOnce, len(some), func(ctx context.Context, i int) error {
			m, err := t.Header(ctx, first+uint64(i))
			some[i] = m.Info
			return wire.Missing(names.SnapshotName(t.Table, first+uint64(i)), err)
		})
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// Header reads only the header of a snapshot; object.ErrNotFound when there is none of the number.
func (t *Log) Header(ctx context.Context, number uint64) (Manifest, error) {
	var m Manifest
	err := t.either(ctx, number, func(name string) (err error) {
		var h [HeaderBytes]byte
		if err = t.Store.Blobs.ReadAt(ctx, name, h[:], 0); err != nil {
			return err
		}
		if err = newerSnapshot(name, h[:]); err != nil {
			return err
		}
		var reason string
		if m, reason = decodeHeader(h[:], number); reason != "" {
			return wire.Corrupt(name, reason)
		}
		return t.bind(m.Table)
	})
	return m, err
}

// Read returns a snapshot; object.ErrNotFound when there is none of the number.
func (t *Log) Read(ctx context.Context, number uint64) (*Snapshot, error) {
	if last := t.LastRead(); last != nil && last.Manifest.Info.Number == number {
		return last, nil
	}
	var s *Snapshot
	err := t.either(ctx, number, func(name string) (err error) {
		s, err = t.readName(ctx, name, number)
		return err
	})
	return s, err
}

// Next returns the snapshot of a number that may not have been made yet, nil then. It does not look for a copy of one
// that was truncated: ErrExpired.
func (t *Log) Next(ctx context.Context, number uint64) (s *Snapshot, err error) {
	if last := t.LastRead(); last != nil && last.Manifest.Info.Number == number {
		return last, nil
	}
	name := names.SnapshotName(t.Table, number)
	err = t.unlessExpired(ctx, name, func(name string) (err error) {
		s, err = t.readName(ctx, name, number)
		return err
	})
	if errors.Is(err, object.ErrNotFound) && !errors.Is(err, ErrExpired) {
		return nil, nil
	}
	return s, wire.Damaged(name, err)
}

// readName reads a snapshot from its object, or from the copy of it.
func (t *Log) readName(ctx context.Context, name string, number uint64) (*Snapshot, error) {
	b, size, err := object.ReadWhole(ctx, t.Store.Blobs, name, HeaderBytes+MaxBody)
	if err == nil {
		err = snapshotSize(name, size)
	}
	if err != nil {
		return nil, err
	}
	return t.decode(name, number, b)
}

// unlessExpired calls f for the object of a snapshot; ErrExpired when it was truncated.
func (t *Log) unlessExpired(ctx context.Context, name string, f func(name string) error) error {
	err := f(name)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		info, serr := t.Store.Blobs.Stat(ctx, name)
		if serr != nil {
			return serr
		}
		if info.Size == 0 {
			return fmt.Errorf("%w: %s: %w", object.ErrNotFound, name, ErrExpired)
		}
	}
	return err
}

// either calls f for the object of a snapshot, and for the copy of it where it has expired: a branch or a lease may
// keep that.
func (t *Log) either(ctx context.Context, number uint64, f func(name string) error) error {
	name := names.SnapshotName(t.Table, number)
	err := t.unlessExpired(ctx, name, f)
	if errors.Is(err, object.ErrNotFound) {
		// Where there is no copy either, the error is the first.
		if perr := f(names.PinnedName(t.Table, number)); !errors.Is(perr, object.ErrNotFound) {
			name, err = names.PinnedName(t.Table, number), perr
		}
	}
	return wire.Damaged(name, err)
}

// readObject reads the whole of a snapshot's object; io.ErrUnexpectedEOF where it ends before size.
func (t *Log) readObject(ctx context.Context, name string, number uint64, size int64) (*Snapshot, error) {
	if err := snapshotSize(name, size); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if err := t.Store.Blobs.ReadAt(ctx, name, b, 0); err != nil {
		return nil, err
	}
	return t.decode(name, number, b)
}

// snapshotSize returns an error where no snapshot has so many bytes; io.ErrUnexpectedEOF: it was truncated.
func snapshotSize(name string, size int64) error {
	if size == 0 {
		return fmt.Errorf("%s: %w", name, io.ErrUnexpectedEOF)
	}
	if size < HeaderBytes || size > HeaderBytes+MaxBody {
		return wire.Corrupt(name, fmt.Sprintf("%d bytes are no snapshot", size))
	}
	return nil
}

// decode returns the snapshot that an object holds.
func (t *Log) decode(name string, number uint64, b []byte) (*Snapshot, error) {
	if err := newerSnapshot(name, b); err != nil {
		return nil, err
	}
	m, reason := DecodeManifest(b, number)
	if reason != "" {
		return nil, wire.Corrupt(name, reason)
	}
	s := &Snapshot{Log: t, Manifest: m}
	s.seen.Store(int64(time.Since(began)))
	return s, t.bind(m.Table)
}

// Empty returns what the first commit builds on: a snapshot without anything, and without a number.
func (t *Log) Empty() *Snapshot {
	return &Snapshot{Log: t, Manifest: Manifest{Listing: lsm.Tree{Kind: lsm.Listing},
		Schema: lsm.Tree{Kind: lsm.Schema}}}
}
