package compaction

import (
	"context"
	"slices"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Spread says in how many pieces the sessions of some segments lie: a session has a piece in each segment that has a
// row of it. Of many sessions some are counted, the same of every segment.
type Spread struct {
	Sessions, Pieces uint64
	// OneIn: so many sessions stand for one that was counted, about.
	OneIn uint64
}

// SpreadOf counts the pieces of the sessions of segments of a snapshot; all zero: the table has no session key. Its
// cost is the read of the session keys' feature files, and memory for about a million sessions.
func SpreadOf(ctx context.Context, snap *storage.Snapshot, segments ...catalog.SegmentDescriptor) (Spread, error) {
	keys, err := snap.KeyFeatures(ctx)
	if err != nil {
		return Spread{}, err
	}
	at := slices.IndexFunc(keys, func(f catalog.Feature) bool { return f.Role == catalog.RoleSessionKey })
	if at < 0 {
		return Spread{}, nil
	}
	rows := uint64(0)
	for _, d := range segments {
		rows += d.Rows
	}
	out := Spread{OneIn: max(rows/sampledSessions, 1)}
	sessions, fetch := map[uint64]bool{}, newFetcher(snap.Table().Store().Blobs(), 2*maxBlock, 1)
	for _, d := range segments {
		c, err := keyColumn(ctx, fetch, snap.Table().Store(), d, keys[at])
		if err != nil {
			return Spread{}, err
		}
		here := map[uint64]bool{}
		err = c.eachSlot(func(h uint64) {
			if h%out.OneIn == 0 {
				here[h] = true
			}
		})
		c.Close()
		if err != nil {
			return Spread{}, err
		}
		out.Pieces += uint64(len(here))
		for h := range here {
			sessions[h] = true
		}
	}
	out.Sessions = uint64(len(sessions))
	return out, nil
}
