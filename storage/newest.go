package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/storage/object"
)

// listAhead is how many snapshots a handle's first search lists at most: well above the number between two hints, well below what an
// object store answers with at once.
const listAhead = 4 * newestEvery

// newest returns the highest snapshot number, 0 when there is none. The numbers that there are follow each other without gaps,
// from 1 or, where those before expired and gc took them, lowest first, from a later one. So a number that exists bounds the newest
// from below and, as long as it exists, one that does not from above; hints only say where to begin.
func (t *Table) newest(ctx context.Context) (uint64, error) {
	n, _, err := t.find(ctx, false)
	return n, err
}

// find is newest. reading: it is enough that the snapshot was there, or was read, before none was found behind it. It may be that gc took
// it and the next one between the two, so a commit asks once more: the next one's number would be free again, and what is put there
// nobody would find. read: the snapshot that was read meanwhile, or nil.
func (t *Table) find(ctx context.Context, reading bool) (n uint64, read *Snapshot, err error) {
	for again := false; ; again = true {
		n, seen, read, err := t.search(ctx)
		if err != nil || reading && (seen || read != nil) {
			return n, read, err
		}
		if n > 0 {
			// No later one was found: is that because this one and those behind it are gone?
			if ok, err := t.exists(ctx, n); err != nil || ok {
				return n, nil, err
			}
		}
		if again || n == 0 {
			n, err = t.byListing(ctx)
			return n, nil, err
		}
		t.mu.Lock()
		if t.known == n {
			t.known, t.last, t.size, t.hinted = 0, nil, 0, false
		}
		t.gone = max(t.gone, n)
		t.mu.Unlock()
	}
}

// byListing is newest by a listing of all snapshots, for where no number is known to begin with.
func (t *Table) byListing(ctx context.Context) (uint64, error) {
	numbers, err := t.numbers(ctx)
	if err != nil {
		return 0, err
	}
	if len(numbers) > 0 {
		n := numbers[len(numbers)-1]
		t.saw(n, 0, nil)
		return n, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone > 0 {
		return 0, fmt.Errorf("snapshot %d, which was there, is gone: %w", t.gone, ErrNotFound)
	}
	return 0, nil
}

// search returns the highest snapshot number that can be reached from where the handle stands; seen: that it was there; read: it was
// read meanwhile, and is this.
func (t *Table) search(ctx context.Context) (n uint64, seen bool, read *Snapshot, err error) {
	if err := t.readHint(ctx); err != nil {
		return 0, false, nil, err
	}
	t.mu.Lock()
	low, hint := t.known, t.hint
	t.mu.Unlock()
	// A hint is not trusted: what it names must be there.
	if hint > low {
		ok, err := t.exists(ctx, hint)
		if err != nil {
			return 0, false, nil, err
		}
		if ok {
			low, seen = hint, true
		}
	}
	first, ahead := low, t.readAhead(ctx, low)
	defer ahead()
	step := uint64(1)
	for {
		ok, err := t.exists(ctx, low+step)
		if err != nil {
			return 0, false, nil, err
		}
		if !ok {
			break
		}
		low, seen = low+step, true
		step *= 2
	}
	high := low + step
	for high-low > 1 {
		mid := low + (high-low)/2
		ok, err := t.exists(ctx, mid)
		if err != nil {
			return 0, false, nil, err
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	if read = ahead(); low != first {
		read = nil
	}
	return low, seen, read, nil
}

// readHint asks once for the number that the newest hint names. Where requests take long, it lists meanwhile what snapshots there
// are: a search by number is some six requests one after another.
func (t *Table) readHint(ctx context.Context) error {
	t.mu.Lock()
	hinted := t.hinted
	t.mu.Unlock()
	if hinted {
		return nil
	}
	far := object.Far(t.s.blobs)
	done, ahead := make(chan struct{}), false
	if far {
		go func() {
			defer close(done)
			ahead = t.listFrom(ctx, 1)
		}()
	} else {
		close(done)
	}
	hint, err := t.readNewestHint(ctx)
	<-done
	if err != nil {
		return err
	}
	if far && !ahead && hint > 1 {
		t.listFrom(ctx, hint)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hint, t.hinted = hint, true
	return nil
}

// readNewestHint returns the number that the newest hint names, 0 when there is none.
func (t *Table) readNewestHint(ctx context.Context) (uint64, error) {
	for info, err := range t.s.blobs.List(ctx, newestPrefix(t.name), "") {
		if err != nil {
			return 0, err
		}
		if hint, ok := parseNewest(info.Name); ok {
			return hint, nil
		}
	}
	return 0, nil
}

// listFrom lists up to listAhead snapshots from number on and reports whether they were all, without a gap: then the last is
// remembered as one that exists. It may be wrong about what it does not say: who searches goes on from there.
func (t *Table) listFrom(ctx context.Context, number uint64) (all bool) {
	var last object.Info
	n, count := uint64(0), 0
	for info, err := range t.s.blobs.List(ctx, tableDir(t.name)+snapshotsDir, snapshotName(t.name, number-1)) {
		if count++; err != nil || count > listAhead {
			return false // an error shows again where it matters
		}
		m, ok := parseSnapshot(info.Name)
		if !ok || info.Name != snapshotName(t.name, m) {
			continue
		}
		if n != 0 && m != n+1 {
			return false
		}
		n, last = m, info
	}
	if n == 0 {
		return false
	}
	t.saw(n, last.Size, nil)
	t.mu.Lock()
	t.listed = n
	t.mu.Unlock()
	return true
}

// readAhead begins to read the snapshot that a search begins with, where that is the first, or was the last in a listing: it is there
// then when it turns out to be the newest. Over a network the two take as long as one. The caller waits for it by calling what is
// returned.
func (t *Table) readAhead(ctx context.Context, number uint64) (wait func() *Snapshot) {
	t.mu.Lock()
	unread := (number == 1 || number == t.listed) && t.known == number && t.last == nil && t.size != 0
	t.mu.Unlock()
	if !unread {
		return func() *Snapshot { return nil }
	}
	var s *Snapshot
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, _ = t.read(ctx, number) // nil: who asks for it reads it again, and gets the error
	}()
	return func() *Snapshot { <-done; return s }
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
