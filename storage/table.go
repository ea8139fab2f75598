package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// A Table is a named set of rows with features. Safe for concurrent use.
type Table struct {
	s    *Store
	name string

	mu sync.Mutex
	// known is the highest snapshot number seen so far: a search starts there. last is the snapshot of that number, or nil.
	// gone is the highest that was there and is no more. Guarded by mu.
	// size is the size of that snapshot's object, 0 when it is not known; hint is what the hints said, once hinted; last in a
	// listing was the snapshot listed.
	known  uint64
	last   *Snapshot
	size   int64
	hint   uint64
	hinted bool
	listed uint64
	gone   uint64
}

// Name returns the table's name.
func (t *Table) Name() string { return t.name }

// Store returns the store that the table is in.
func (t *Table) Store() *Store { return t.s }

// numbers returns the numbers of the snapshots that there are, ascending. Unlike newest it lists them all, and so sees those
// behind a gap: verify and gc, which must not take a table for shorter than it is, ask it.
func (t *Table) numbers(ctx context.Context) ([]uint64, error) {
	var out []uint64
	for info, err := range t.s.blobs.List(ctx, tableDir(t.name)+snapshotsDir, "") {
		if err != nil {
			return nil, err
		}
		n, ok := parseSnapshot(info.Name)
		if !ok || info.Name != snapshotName(t.name, n) {
			continue
		}
		// Of two that are made while a directory is read, the later may be seen alone: those right before it are asked for. Where
		// the first have expired, that is one request and not one for each.
		last := uint64(0)
		if len(out) > 0 {
			last = out[len(out)-1]
		}
		low := n
		for low-1 > last {
			ok, err := t.exists(ctx, low-1)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			low--
		}
		for ; low < n; low++ {
			out = append(out, low)
		}
		out = append(out, n)
	}
	return out, nil
}

// gap says that the snapshots from first up to before next are missing.
func (t *Table) gap(first, next uint64) error {
	reason := "object is missing, and later snapshots are there"
	if n := next - first; n > 1 {
		reason = fmt.Sprintf("object is missing, as are the %d after it, and later snapshots are there", n-1)
	}
	return corrupt(snapshotName(t.name, first), reason)
}

// saw remembers that a snapshot exists. size 0: not known; s nil: not read.
func (t *Table) saw(number uint64, size int64, s *Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number > t.known {
		t.known, t.size, t.last = number, 0, nil
	}
	if number != t.known {
		return
	}
	if size != 0 {
		t.size = size
	}
	if s != nil {
		t.last = s
	}
}

// Latest returns the newest snapshot; ErrNotFound before the first commit.
func (t *Table) Latest(ctx context.Context) (*Snapshot, error) {
	n, s, err := t.find(ctx, true)
	if err != nil || s != nil {
		return s, err
	}
	if n == 0 {
		return nil, t.s.noTable(ctx, t.name)
	}
	s, err = t.read(ctx, n)
	if errors.Is(err, object.ErrNotFound) { // gc was quicker: there is a newer one
		if n, err = t.newest(ctx); err == nil && n > 0 {
			s, err = t.read(ctx, n)
		}
	}
	return s, err
}

// span returns the numbers of the first snapshot that has not expired and of the newest.
func (t *Table) span(ctx context.Context) (first, newest uint64, err error) {
	n, err := t.newest(ctx)
	if err != nil {
		return 0, 0, err
	}
	if n == 0 {
		return 0, 0, t.s.noTable(ctx, t.name)
	}
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	if last != nil && last.m.info.Number == n {
		return max(last.m.info.Oldest, 1), n, nil
	}
	m, err := t.header(ctx, n)
	return max(m.info.Oldest, 1), n, err
}

// expiredFirst reports whether the table's first snapshots have expired, for one without snapshot 1. Where they have not, that it
// is missing is damage.
func (t *Table) expiredFirst(ctx context.Context) (bool, error) {
	newest, err := t.Latest(ctx)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err == nil && newest.m.info.Oldest <= 1 {
		err = t.gap(1, 2)
	}
	return err == nil, err
}

// At returns the snapshot of a number; ErrNotFound says which numbers there are.
func (t *Table) At(ctx context.Context, number uint64) (*Snapshot, error) {
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
func (t *Table) AsOf(ctx context.Context, at time.Time) (*Snapshot, error) {
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
func (t *Table) asOf(ctx context.Context, at time.Time, from, to uint64) (number uint64, first time.Time, err error) {
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

// Snapshots describes the snapshots that have not expired, oldest first. Its cost is a small read each.
func (t *Table) Snapshots(ctx context.Context) ([]SnapshotInfo, error) {
	first, n, err := t.span(ctx)
	if err != nil {
		return nil, err
	}
	var out []SnapshotInfo
	for i := first; i <= n; i++ {
		m, err := t.header(ctx, i)
		if err != nil {
			return nil, err
		}
		out = append(out, m.info)
	}
	return out, nil
}

// header reads only the header of a snapshot.
func (t *Table) header(ctx context.Context, number uint64) (manifest, error) {
	name := snapshotName(t.name, number)
	var h [headerBytes]byte
	err := t.s.blobs.ReadAt(ctx, name, h[:], 0)
	if errors.Is(err, object.ErrNotFound) {
		// An expired one may be kept elsewhere; where it is not, the error is the first.
		pinned := pinnedName(t.name, number)
		if perr := t.s.blobs.ReadAt(ctx, pinned, h[:], 0); !errors.Is(perr, object.ErrNotFound) {
			name, err = pinned, perr
		}
	}
	if err != nil {
		return manifest{}, damaged(name, err)
	}
	if err := newerSnapshot(name, h[:]); err != nil {
		return manifest{}, err
	}
	m, reason := decodeHeader(h[:], number)
	if reason != "" {
		return manifest{}, corrupt(name, reason)
	}
	return m, nil
}

// read returns a snapshot; object.ErrNotFound when there is none of the number.
func (t *Table) read(ctx context.Context, number uint64) (*Snapshot, error) {
	t.mu.Lock()
	last, size := t.last, int64(0)
	if number == t.known {
		size = t.size
	}
	t.mu.Unlock()
	if last != nil && last.m.info.Number == number {
		return last, nil
	}
	name := snapshotName(t.name, number)
	b, err := t.readObject(ctx, name, size)
	if errors.Is(err, object.ErrNotFound) {
		// An expired one may be kept elsewhere, also since just now; where it is not, the error is the first.
		pinned := pinnedName(t.name, number)
		if pb, perr := t.readObject(ctx, pinned, 0); !errors.Is(perr, object.ErrNotFound) {
			name, b, err = pinned, pb, perr
		}
	}
	if err != nil {
		return nil, err
	}
	if err := newerSnapshot(name, b); err != nil {
		return nil, err
	}
	m, reason := decodeManifest(b, number)
	if reason != "" {
		return nil, corrupt(name, reason)
	}
	s := &Snapshot{t: t, m: m}
	if name == snapshotName(t.name, number) { // a copy elsewhere says nothing of the numbers that there are
		t.saw(number, int64(len(b)), s)
	}
	return s, nil
}

// readObject reads the whole of a snapshot's object; size 0: it is not known.
func (t *Table) readObject(ctx context.Context, name string, size int64) ([]byte, error) {
	if size == 0 {
		info, err := t.s.blobs.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		size = info.Size
	}
	if size < headerBytes || size > headerBytes+maxSnapshotBody {
		return nil, corrupt(name, fmt.Sprintf("%d bytes are no snapshot", size))
	}
	b := make([]byte, size)
	if err := t.s.blobs.ReadAt(ctx, name, b, 0); err != nil {
		return nil, damaged(name, err)
	}
	return b, nil
}
