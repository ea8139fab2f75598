package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// Expired is the operation of the snapshots that Expire makes. They have the rows of those before them.
// The operations of snapshots after which older ones have expired: of Expire, and of an erasure that is finished but
// for purging.
const (
	Expired = "expire"
	Erased  = "erased"
)

// ExpireOptions say which snapshots stay: those that either of the first two keeps, and always the newest.
type ExpireOptions struct {
	KeepLast    uint64        // this many of the newest, those that Expire (as Erase does) and GC made not counted
	YoungerThan time.Duration // those made, or followed by the next, within this time by the store's clock
	DryRun      bool          // say what would expire, and commit nothing
}

// An ExpireReport says what Expire did, or would do.
type ExpireReport struct {
	DryRun   bool
	Oldest   uint64   // the first snapshot that has not expired
	Expired  []uint64 // those that expired now
	Held     []Hold   // those below Oldest that stay, and for whom
	Snapshot uint64   // that the commit made; 0: none was needed
}

// Expire makes the snapshots below a number expire: they are no longer part of the table's history, and gc removes
// them, with what only they name, after its grace period. Those that a branch pins, or a lease holds, stay for those.
// Its cost is a small read for each snapshot that is looked at, and a commit; none where only snapshots that an Expire
// or GC made would expire: else one that runs every day would go on for ever about itself.
func Expire(ctx context.Context, t *snapshot.Log, opts ExpireOptions) (*ExpireReport, error) {
	if opts.YoungerThan < 0 {
		return nil, fmt.Errorf("expire: younger than %v: want none negative", opts.YoungerThan)
	}
	if opts.KeepLast == 0 && opts.YoungerThan == 0 {
		return nil, errors.New("expire: nothing says which snapshots stay")
	}
	there, err := t.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(there) == 0 {
		return nil, t.Store.NoTable(ctx, t.Table)
	}
	newest, err := t.ReadNewest(ctx, there[len(there)-1])
	if err != nil {
		return nil, err
	}
	first, last := max(newest.Manifest.Info.Oldest, 1), newest.Manifest.Info.Number
	oldest := last
	if opts.KeepLast > 0 {
		if oldest, err = keepLast(ctx, t, first, last, opts.KeepLast); err != nil {
			return nil, fmt.Errorf("expire: %w", err)
		}
	}
	if opts.YoungerThan > 0 {
		now, err := t.Store.Time(ctx)
		if err != nil && !opts.DryRun { // which may look at a store that it cannot write to
			return nil, fmt.Errorf("expire: %w", err)
		}
		// The newest that is older than that was the table until the next one came, and stays. Ages are the objects',
		// not those that committers wrote into them.
		young, cutoff := first, now.Add(-opts.YoungerThan-object.Margin(t.Store.Blobs)).UnixNano()
		for _, s := range there {
			if s.Number > first && s.ModTime <= cutoff {
				young = s.Number
			}
		}
		if opts.KeepLast == 0 {
			oldest = young
		}
		oldest = min(oldest, young)
	}
	if some, err := someChange(ctx, t, first, oldest); err != nil {
		return nil, fmt.Errorf("expire: %w", err)
	} else if !some {
		oldest = first
	}
	r := &ExpireReport{DryRun: opts.DryRun, Oldest: max(oldest, first)}
	for n := first; n < oldest; n++ {
		r.Expired = append(r.Expired, n)
	}
	if len(r.Expired) > 0 && !opts.DryRun {
		s, err := commit.Run(ctx, t, commit.Change{Operation: Expired, Base: last,
			Ops: []commit.Operation{commit.ExpireBelow(oldest)}})
		if err != nil {
			return nil, err
		}
		newest, r.Snapshot = s, s.Manifest.Info.Number
	}
	r.Held, err = held(ctx, t, newest, r.Oldest)
	return r, err
}

// isMaintenance reports whether an operation's snapshots have the rows of those before them, and are made again and
// again.
func isMaintenance(operation string) bool {
	return operation == Expired || operation == Erased || operation == Operation
}

// keepLast returns the lowest of the n newest snapshots from first to last that no Expire or GC made, first where there
// are fewer.
func keepLast(ctx context.Context, t *snapshot.Log, first, last, n uint64) (uint64, error) {
	for high := last; high > first; {
		low := max(first+1, high-min(high, object.RequestsAtOnce)+1)
		infos, err := t.Infos(ctx, low, high)
		if err != nil {
			return 0, err
		}
		for _, info := range slices.Backward(infos) {
			if isMaintenance(info.Operation) {
				continue
			}
			if n--; n == 0 {
				return info.Number, nil
			}
		}
		high = low - 1
	}
	return first, nil
}

// someChange reports whether a snapshot from first on and below end was made by something else than Expire or GC.
func someChange(ctx context.Context, t *snapshot.Log, first, end uint64) (bool, error) {
	for low := first; low < end; low += object.RequestsAtOnce {
		infos, err := t.Infos(ctx, low, min(low+object.RequestsAtOnce, end)-1)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(infos, func(i snapshot.Info) bool { return !isMaintenance(i.Operation) }) {
			return true, nil
		}
	}
	return false, nil
}

// held says which snapshots below oldest stay, by branches of the newest snapshot and by leases.
func held(ctx context.Context, t *snapshot.Log, newest *snapshot.Snapshot, oldest uint64) ([]Hold, error) {
	now, _ := t.Store.Time(ctx) // of a store that cannot be written to, this machine's must do: it is for messages
	p := tablePlan{t: t, now: now, oldest: oldest, whole: oldest, dryRun: true}
	var r Report
	if err := p.holds(ctx, newest, &r); err != nil {
		return nil, err
	}
	slices.SortFunc(r.Held, func(a, b Hold) int { return int(int64(a.Snapshot) - int64(b.Snapshot)) })
	return r.Held, nil
}
