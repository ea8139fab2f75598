package storage

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// A snapshotObject is a snapshot as a listing shows it. Size 0: it has expired, gc has truncated it, and its number stays taken.
type snapshotObject struct {
	number uint64
	object.Info
}

// newest returns the newest snapshot's number and object, 0 when there is none. Names sort newest first: it is one request, of one
// name, at any number of snapshots.
func (t *tableLog) newest(ctx context.Context) (snapshotObject, error) {
	n, err := t.firstListed(ctx)
	for err == nil && n.number > 0 && n.Size == 0 {
		// A listing of a local store reads names before sizes: this one may have expired, and been truncated, in between. Then there is a newer one.
		listed := n.number
		if n, err = t.firstListed(ctx); n.number <= listed {
			break
		}
	}
	return n, err
}

// firstListed returns the first snapshot that a listing has.
func (t *tableLog) firstListed(ctx context.Context) (snapshotObject, error) {
	for info, err := range t.s.blobs.List(ctx, names.TableDir(t.name)+names.SnapshotsDir, "") {
		if err != nil {
			return snapshotObject{}, err
		}
		if n, ok := names.ParseSnapshot(t.name, info.Name); ok {
			return snapshotObject{n, info}, nil
		}
	}
	return snapshotObject{}, nil
}

// truncatedRun is how many truncated snapshots in a row say that all before them are truncated too: gc truncates the lowest first, fewer
// than this many at a time.
const truncatedRun = 2 * object.RequestsAtOnce

// snapshots lists the snapshots that there are, the lowest first, without those that were truncated. It ends at a run of truncated ones, so
// that its cost does not grow with what has expired. verify and gc, which must see a gap, ask it; who reads asks newest.
func (t *tableLog) snapshots(ctx context.Context) ([]snapshotObject, error) {
	var out []snapshotObject // the newest first
	run := 0
	for info, err := range t.s.blobs.List(ctx, names.TableDir(t.name)+names.SnapshotsDir, "") {
		if err != nil {
			return nil, err
		}
		n, ok := names.ParseSnapshot(t.name, info.Name)
		if !ok {
			continue
		}
		if info.Size > 0 || len(out) == 0 { // the newest is never truncated: without bytes it is damaged
			out, run = append(out, snapshotObject{n, info}), 0
		} else if run++; run == truncatedRun {
			break
		}
	}
	if len(out) > 0 && out[0].Size == 0 {
		// As newest has it: the names may be older than the sizes.
		if n, err := t.newest(ctx); err != nil {
			return nil, err
		} else if n.number > out[0].number {
			return t.snapshots(ctx)
		}
	}
	// A snapshot that is made while a directory is read may be seen, and the one right before it not.
	for at := 0; at+1 < len(out); at++ {
		for n := out[at].number - 1; n > out[at+1].number; n-- {
			info, err := t.s.blobs.Stat(ctx, names.SnapshotName(t.name, n))
			if errors.Is(err, object.ErrNotFound) || err == nil && info.Size == 0 {
				break
			}
			if err != nil {
				return nil, err
			}
			at++
			out = slices.Insert(out, at, snapshotObject{n, info})
		}
	}
	slices.Reverse(out)
	return out, nil
}

// syncBase makes the snapshot before n durable, which has been read, and which a writer may have put that was killed before it was durable. The directory
// of a local store that both are in is synced with n: so it is about those of another. Else a crash could leave n, and a gap before it.
func (t *tableLog) syncBase(ctx context.Context, n uint64) error {
	local := object.AsLocal(t.s.blobs)
	if local == nil || n == 1 {
		return nil
	}
	dir := path.Dir(names.SnapshotName(t.name, n-1))
	if dir == path.Dir(names.SnapshotName(t.name, n)) {
		return nil
	}
	return local.SyncDir(ctx, dir)
}
