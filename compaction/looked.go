package compaction

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
)

// lookedProperty is what a compaction notes in the table for those that follow: of segments that a snapshot had, the
// indexes were looked through for dropped features, and the session keys for sessions that several have, and what was
// worth rewriting was rewritten. So a plan looks at what came since, and its cost does not grow with the table for ever
// after one feature was dropped.
//
//	number of the snapshot | space | hash of what was looked for, 16 hexadecimal digits
//
// Where another was asked, and after features were dropped or taken back, the hash is another, and all is looked at
// again.
const lookedProperty = "compaction"

// worthNoting is how many segments a plan has to have looked at to be noted: what costs less than a commit is done
// again.
const worthNoting = 64

// asked hashes what a plan looks for: the dropped features, and the options that say what of it is worth a rewrite.
func (p *planner) asked(dropped map[catalog.FeatureID]bool) uint64 {
	var b []byte
	for _, f := range slices.Sorted(maps.Keys(dropped)) {
		b = binary.LittleEndian.AppendUint64(b, uint64(f))
	}
	o := &p.opts
	for _, v := range []uint64{
		math.Float64bits(o.DroppedShare), math.Float64bits(o.SharedShare), o.SegmentRows, o.SegmentBytes,
		uint64(o.MaxInputs), uint64(memoryOf(o)),
	} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return xxhash.Sum64(b)
}

// readLooked finds out what needs no look. An entry that nobody understands counts for nothing.
func (p *planner) readLooked(ctx context.Context, dropped map[catalog.FeatureID]bool) error {
	p.hash = p.asked(dropped)
	text, err := p.snap.Property(ctx, lookedProperty)
	if err != nil {
		return err
	}
	var number, hash uint64
	if n, err := fmt.Sscanf(text, "%d %x", &number, &hash); err == nil && n == 2 && hash == p.hash &&
		number <= p.snap.Info().Number {
		p.looked = number
	}
	return nil
}

// toNote returns what is to be noted once the jobs of the plan are done; empty: nothing.
func (p *planner) toNote() string {
	if p.looks < worthNoting || p.opts.Partition != "" || len(p.opts.Segments) > 0 {
		return ""
	}
	return fmt.Sprintf("%d %016x", p.snap.Info().Number, p.hash)
}

// note notes what a plan has looked at. It returns the snapshot made; 0: none was needed.
func (r *runner) note(ctx context.Context, looked string) (uint64, error) {
	if looked == "" {
		return 0, nil
	}
	made, err := r.table.Commit(ctx, commit.Change{Operation: r.opts.Operation,
		Ops: []commit.Operation{commit.SetProperties{lookedProperty: looked}}})
	if errors.Is(err, storage.ErrConflict) {
		return 0, nil // the next one looks again
	}
	if err != nil {
		return 0, err
	}
	return made.Info().Number, nil
}
