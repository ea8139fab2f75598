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
	// known is the highest snapshot number seen so far: snapshots are never removed, so a search starts there. last is
	// the snapshot of that number, or nil. Guarded by mu.
	// size is the size of that snapshot's object, 0 when it is not known; hint is what the hints said, once hinted.
	known  uint64
	last   *Snapshot
	size   int64
	hint   uint64
	hinted bool
}

// Name returns the table's name.
func (t *Table) Name() string { return t.name }

// Store returns the store that the table is in.
func (t *Table) Store() *Store { return t.s }

// newest returns the highest snapshot number, 0 when there is none. Snapshots are numbered without gaps, so that a
// number that exists bounds it from below and one that does not from above; hints only say where to begin.
func (t *Table) newest(ctx context.Context) (uint64, error) {
	if err := t.readHint(ctx); err != nil {
		return 0, err
	}
	t.mu.Lock()
	low, hint := t.known, t.hint
	t.mu.Unlock()
	// A hint is not trusted: what it names must be there.
	if hint > low {
		ok, err := t.exists(ctx, hint)
		if err != nil {
			return 0, err
		}
		if ok {
			low = hint
		}
	}
	ahead := t.readAhead(ctx, low)
	defer ahead()
	step := uint64(1)
	for {
		ok, err := t.exists(ctx, low+step)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		low += step
		step *= 2
	}
	high := low + step
	for high-low > 1 {
		mid := low + (high-low)/2
		ok, err := t.exists(ctx, mid)
		if err != nil {
			return 0, err
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// readHint asks once for the number that the newest hint names.
func (t *Table) readHint(ctx context.Context) error {
	t.mu.Lock()
	hinted := t.hinted
	t.mu.Unlock()
	if hinted {
		return nil
	}
	hint := uint64(0)
	for info, err := range t.s.blobs.List(ctx, newestPrefix(t.name), "") {
		if err != nil {
			return err
		}
		var ok bool
		if hint, ok = parseNewest(info.Name); ok {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hint, t.hinted = hint, true
	return nil
}

// readAhead begins to read the first snapshot where a search begins there, so that it is there when it turns out to be the only
// one: over a network the two take as long as one. The caller waits for it by calling what is returned.
func (t *Table) readAhead(ctx context.Context, number uint64) (wait func()) {
	t.mu.Lock()
	unread := number == 1 && t.known == 1 && t.last == nil && t.size != 0
	t.mu.Unlock()
	if !unread {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = t.read(ctx, number) // who asks for it reads it again, and gets the error
	}()
	return func() { <-done }
}

func (t *Table) exists(ctx context.Context, number uint64) (bool, error) {
	info, err := t.s.blobs.Stat(ctx, snapshotName(t.name, number))
	if errors.Is(err, object.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		t.saw(number, info.Size, nil)
	}
	return err == nil, err
}

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
		// Of two that are made while a directory is read, the later may be seen alone.
		last := uint64(0)
		if len(out) > 0 {
			last = out[len(out)-1]
		}
		for between := last + 1; between < n && n-last < maxUnlisted; between++ {
			ok, err := t.exists(ctx, between)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, between)
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// maxUnlisted bounds how many numbers that a listing passed over are asked for one by one.
const maxUnlisted = 1000

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
	n, err := t.newest(ctx)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, t.s.noTable(ctx, t.name)
	}
	return t.read(ctx, n)
}

// At returns the snapshot of a number; ErrNotFound says which numbers there are.
func (t *Table) At(ctx context.Context, number uint64) (*Snapshot, error) {
	if number > 0 {
		s, err := t.read(ctx, number)
		if !errors.Is(err, object.ErrNotFound) {
			return s, err
		}
	}
	n, err := t.newest(ctx)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, t.s.noTable(ctx, t.name)
	}
	return nil, fmt.Errorf("table %s: snapshot %d: %w; there are 1 to %d", t.name, number, ErrNotFound, n)
}

// AsOf returns the newest snapshot that is not younger than at; ErrNotFound says how old the first is. Its cost is
// logarithmic in the number of snapshots.
func (t *Table) AsOf(ctx context.Context, at time.Time) (*Snapshot, error) {
	n, err := t.newest(ctx)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, t.s.noTable(ctx, t.name)
	}
	// Times never go back. Snapshots up to low are not younger, those from high on are.
	low, high := uint64(0), n+1
	var first time.Time
	for high-low > 1 {
		mid := low + (high-low)/2
		m, err := t.header(ctx, mid)
		if err != nil {
			return nil, err
		}
		if m.info.Time.After(at) {
			high, first = mid, m.info.Time
		} else {
			low = mid
		}
	}
	if low == 0 {
		return nil, fmt.Errorf("table %s: snapshot as of %s: %w; the first is of %s",
			t.name, at.Format(time.RFC3339Nano), ErrNotFound, first.Format(time.RFC3339Nano))
	}
	return t.read(ctx, low)
}

// Snapshots describes all snapshots, oldest first. Its cost is a small read each.
func (t *Table) Snapshots(ctx context.Context) ([]SnapshotInfo, error) {
	n, err := t.newest(ctx)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, t.s.noTable(ctx, t.name)
	}
	var out []SnapshotInfo
	for i := uint64(1); i <= n; i++ {
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
	if err := t.s.blobs.ReadAt(ctx, name, h[:], 0); err != nil {
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
	if err := newerSnapshot(name, b); err != nil {
		return nil, err
	}
	m, reason := decodeManifest(b, number)
	if reason != "" {
		return nil, corrupt(name, reason)
	}
	s := &Snapshot{t: t, m: m}
	t.saw(number, size, s)
	return s, nil
}
