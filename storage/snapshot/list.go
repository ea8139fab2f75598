package snapshot

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// An Object is a snapshot as a listing shows it. Size 0: it has expired, gc has truncated it, and its number stays
// taken.
type Object struct {
	Number uint64
	object.Info
}

// Newest returns the newest snapshot's number and object, 0 when there is none. Names sort newest first: it is one
// request, of one name, at any number of snapshots.
func (t *Log) Newest(ctx context.Context) (Object, error) {
	n, err := t.firstListed(ctx)
	for err == nil && n.Number > 0 && n.Size == 0 {
		// A listing of a local store reads names before sizes: this one may have expired, and been truncated, in
		// between. Then there is a newer one.
		listed := n.Number
		if n, err = t.firstListed(ctx); n.Number <= listed {
			break
		}
	}
	return n, err
}

// firstListed returns the first snapshot that a listing has.
func (t *Log) firstListed(ctx context.Context) (Object, error) {
	dir := names.TableDir(t.Table) + names.SnapshotsDir
	info, ok, err := object.First(ctx, t.Store.Blobs, dir, "")
	if err != nil || !ok {
		return Object{}, err
	}
	if n, ok := names.ParseSnapshot(t.Table, info.Name); ok {
		return Object{n, info}, nil
	}
	for info, err := range t.Store.Blobs.List(ctx, dir, info.Name) { // it was not ours
		if err != nil {
			return Object{}, err
		}
		if n, ok := names.ParseSnapshot(t.Table, info.Name); ok {
			return Object{n, info}, nil
		}
	}
	return Object{}, nil
}

// truncatedRun is how many truncated snapshots in a row say that all before them are truncated too: gc truncates the
// lowest first, fewer than this many at a time.
const truncatedRun = 2 * object.RequestsAtOnce

// List lists the snapshots that there are, the lowest first, without those that were truncated. It ends at a run of
// truncated ones, so that its cost does not grow with what has expired. verify and gc, which must see a gap, ask it;
// who reads asks newest.
func (t *Log) List(ctx context.Context) ([]Object, error) {
	var out []Object // the newest first
	run := 0
	for info, err := range t.Store.Blobs.List(ctx, names.TableDir(t.Table)+names.SnapshotsDir, "") {
		if err != nil {
			return nil, err
		}
		n, ok := names.ParseSnapshot(t.Table, info.Name)
		if !ok {
			continue
		}
		if info.Size > 0 || len(out) == 0 { // the newest is never truncated: without bytes it is damaged
			out, run = append(out, Object{n, info}), 0
		} else if run++; run == truncatedRun {
			break
		}
	}
	if len(out) > 0 && out[0].Size == 0 {
		// As newest has it: the names may be older than the sizes.
		if n, err := t.Newest(ctx); err != nil {
			return nil, err
		} else if n.Number > out[0].Number {
			return t.List(ctx)
		}
	}
	// A snapshot that is made while a directory is read may be seen, and the one right before it not.
	for at := 0; at+1 < len(out); at++ {
		for n := out[at].Number - 1; n > out[at+1].Number; n-- {
			info, err := t.Store.Blobs.Stat(ctx, names.SnapshotName(t.Table, n))
			if errors.Is(err, object.ErrNotFound) || err == nil && info.Size == 0 {
				break
			}
			if err != nil {
				return nil, err
			}
			at++
			out = slices.Insert(out, at, Object{n, info})
		}
	}
	slices.Reverse(out)
	return out, nil
}

// Copies lists the copies of truncated snapshots, the lowest first. A branch or a lease held each of them when gc
// truncated it, and may be gone since.
func (t *Log) Copies(ctx context.Context) ([]Object, error) {
	var out []Object
	for info, err := range t.Store.Blobs.List(ctx, names.TableDir(t.Table)+names.PinnedDir, "") {
		if err != nil {
			return nil, err
		}
		if n, ok := names.ParsePinned(t.Table, info.Name); ok {
			out = append(out, Object{n, info})
		}
	}
	slices.SortFunc(out, func(a, b Object) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// Readable lists the numbers of the snapshots that can be read, the lowest first: those that have not expired, expired
// ones that gc has not truncated, and those that it has truncated and left a copy of.
func (t *Log) Readable(ctx context.Context) ([]uint64, error) {
	there, err := t.List(ctx)
	if err != nil {
		return nil, err
	}
	copies, err := t.Copies(ctx) // after the others: the copy of what was truncated meanwhile is there
	if err != nil {
		return nil, err
	}
	out := make([]uint64, 0, len(there)+len(copies))
	for _, o := range slices.Concat(copies, there) {
		out = append(out, o.Number)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// SyncBefore makes the snapshot before n durable, which has been read, and which a writer may have put that was killed
// before it was durable. The directory of a local store that both are in is synced with n: so it is about those of
// another. Else a crash could leave n, and a gap before it.
func (t *Log) SyncBefore(ctx context.Context, n uint64) error {
	local := object.AsLocal(t.Store.Blobs)
	if local == nil || n == 1 {
		return nil
	}
	dir := path.Dir(names.SnapshotName(t.Table, n-1))
	if dir == path.Dir(names.SnapshotName(t.Table, n)) {
		return nil
	}
	return local.SyncDir(ctx, dir)
}
