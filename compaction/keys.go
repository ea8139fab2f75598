package compaction

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// sampledSessions is the approximate number of sessions that are compared: of more, a sample by hash.
const sampledSessions = 1 << 20

// sharedSessions reports whether to merge g because enough of its sessions have rows in large segments of several
// commits. text states the share, and is empty if the sessions were not compared. Segments of one commit are not merged
// for shared sessions: their writer clustered them as well as it could, so they would be merged by every plan.
func (p *planner) sharedSessions(ctx context.Context, g []*candidate) (merge bool, text string, err error) {
	var large []*candidate
	rows := uint64(0)
	for _, s := range g {
		if p.tier(s) == 0 {
			large = append(large, s)
			rows += s.d.Rows
		}
	}
	if len(large) < 2 || p.opts.SharedShare > 1 || len(p.opts.Segments) > 0 {
		return false, "", nil
	}
	commits, err := addedIn(ctx, p.snap, large)
	if err != nil || len(slices.Compact(slices.Sorted(slices.Values(commits)))) < 2 || slices.Max(commits) <= p.looked {
		return false, "", err
	}
	keys, err := p.snap.KeyFeatures(ctx)
	if err != nil {
		return false, "", err
	}
	at := slices.IndexFunc(keys, func(f catalog.Feature) bool { return f.Role == catalog.RoleSessionKey })
	if at < 0 {
		return false, "", nil
	}
	p.looks += len(large)
	var columns []*column
	fetch := newFetcher(p.snap.Table().Store().Blobs(), 2*maxBlock, 1)
	for _, s := range large {
		c, err := keyColumn(ctx, fetch, p.snap.Table().Store(), s.d, keys[at])
		if err != nil {
			return false, "", err
		}
		columns = append(columns, c)
	}
	if !overlap(columns) {
		return false, "", nil
	}
	several, all, err := countShared(columns, commits, max(rows/sampledSessions, 1))
	if err != nil || all == 0 {
		return false, "", err
	}
	share := float64(several) / float64(all)
	merge = share >= p.opts.SharedShare
	text = fmt.Sprintf("%.1f %% of the sessions of partition %q have rows from several commits, in %d large segments",
		100*share, g[0].d.Partition, len(large))
	return merge, text, nil
}

// addedIn returns the snapshot that added each segment.
func addedIn(ctx context.Context, snap *storage.Snapshot, segments []*candidate) ([]uint64, error) {
	ds := make([]catalog.SegmentDescriptor, len(segments))
	for i, s := range segments {
		ds[i] = s.d
	}
	return snap.AddedIn(ctx, ds...)
}

// keyColumn opens a feature of a segment, without overlays.
func keyColumn(ctx context.Context, fetch *fetcher, store *storage.Store, d catalog.SegmentDescriptor,
	key catalog.Feature) (*column, error) {
	g, err := store.Segments().Open(ctx, d)
	if err != nil {
		return nil, err
	}
	entries := map[catalog.FeatureID]*segment.Entry{}
	look := func(f catalog.FeatureID) error {
		e, err := g.Lookup(ctx, f)
		if err == nil && e[0] != nil {
			entries[f] = e[0]
		}
		return err
	}
	err = look(key.ID)
	if e := entries[key.ID]; err == nil && e != nil && e.Meta.Group != 0 {
		err = look(catalog.FeatureID(e.Meta.Group))
	}
	if err != nil {
		return nil, err
	}
	return newColumn(ctx, fetch, key.Type, startsOf(g.StripeRows()), []source{sourceOf(entries, key.ID, nil)}), nil
}

// overlap reports whether the key ranges of any two columns may overlap, by their statistics.
func overlap(columns []*column) bool {
	type span struct{ lo, hi float64 }
	var spans []span
	for _, c := range columns {
		e := c.sources[0].entry
		if e == nil {
			continue
		}
		s := &e.Meta.Stats
		switch {
		case !s.HasMinMax:
			return true
		case e.Meta.Type.Physical() != vector.Int64Values:
			spans = append(spans, span{s.MinFloat, s.MaxFloat})
		case e.Meta.Type.Elem == vector.Uint64:
			spans = append(spans, span{float64(uint64(s.MinInt)), float64(uint64(s.MaxInt))})
		default:
			spans = append(spans, span{float64(s.MinInt), float64(s.MaxInt)})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi)) })
	for i := 1; i < len(spans); i++ {
		if spans[i].lo < spans[i-1].hi {
			return true
		}
	}
	return false
}

// countShared counts the sessions of columns, all of them and those that are in columns of several commits. It counts
// one in oneIn sessions, chosen by hash. commits has an element for each column. The columns are closed.
func countShared(columns []*column, commits []uint64, oneIn uint64) (several, all int, err error) {
	type seen struct {
		in   uint64
		many bool
	}
	found := map[uint64]seen{}
	for i, c := range columns {
		err = errors.Join(err, c.eachSlot(func(h uint64) {
			if h%oneIn != 0 {
				return
			}
			s, ok := found[h]
			found[h] = seen{commits[i], s.many || ok && s.in != commits[i]}
		}))
		c.Close()
	}
	for _, s := range found {
		if s.many {
			several++
		}
	}
	return several, len(found), err
}

// eachSlot calls visit with a hash of each slot that is not null.
func (c *column) eachSlot(visit func(hash uint64)) error {
	return c.eachStripe(func(_ int, stripe *vector.Column) error {
		for slot := range stripe.Slots {
			if present(stripe, slot) {
				visit(hashOf(stripe, slot))
			}
		}
		return nil
	})
}

// hashOf hashes the value of a slot of a key: a number, or bytes.
func hashOf(c *vector.Column, slot int) uint64 {
	var b [8]byte
	lo, hi := c.SlotRange(slot)
	switch c.Type.Physical() {
	case vector.Int64Values:
		binary.LittleEndian.PutUint64(b[:], uint64(c.Ints[lo]))
	case vector.Float32Values:
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(float64(c.Floats[lo])))
	case vector.Float64Values:
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(c.Doubles[lo]))
	default:
		return xxhash.Sum64(c.Data[lo:hi])
	}
	return xxhash.Sum64(b[:])
}
