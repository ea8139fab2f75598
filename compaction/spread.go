package compaction

import (
	"context"
	"slices"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Spread says how many segments the sessions of a table are spread over. A session has a piece in each segment that
// has a row of it, so Pieces/Sessions is the average number of segments per session.
type Spread struct {
	Sessions, Pieces uint64 // counted
	// OneIn: about one in so many sessions was counted, the same sessions in all segments.
	OneIn uint64
}

// SpreadOf counts the sessions and pieces of segments of a snapshot. It returns the zero Spread if the table has no
// session key. It reads the whole session key, and needs memory for about a million sessions.
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
