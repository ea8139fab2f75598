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

// lookedProperty is a property of the table that records which segments plans need not examine again. Examining means
// reading indexes for dropped features, and session keys for sessions shared by several segments. After a compaction,
// the segments of its plan's snapshot are examined and those worth rewriting are rewritten. A later plan examines only
// segments that were added since. Its value is:
//
//	number of the snapshot | space | hash of what was looked for (asked), 16 hexadecimal digits
//
// With other options, or after features were dropped or restored, the hash differs and all segments are examined again.
const lookedProperty = "compaction"

// worthNoting is how many segments a plan must examine to be recorded. Examining fewer again costs less than a commit.
const worthNoting = 64

// asked hashes what a plan looks for: the dropped features, and the options that decide which segments are rewritten.
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

// readLooked sets p.looked from the table's property. A property that cannot be parsed is ignored.
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

// toNote returns the value of lookedProperty to set when all jobs of the plan are done; empty: none.
func (p *planner) toNote() string {
	if p.looks < worthNoting || p.opts.Partition != "" || len(p.opts.Segments) > 0 {
		return ""
	}
	return fmt.Sprintf("%d %016x", p.snap.Info().Number, p.hash)
}

// note sets lookedProperty. It returns the number of the snapshot that it made; 0: it made none.
func (r *runner) note(ctx context.Context, looked string) (uint64, error) {
	if looked == "" {
		return 0, nil
	}
	made, err := r.table.Commit(ctx, commit.Change{Operation: r.opts.Operation,
		Ops: []commit.Operation{commit.SetProperties{lookedProperty: looked}}})
	if errors.Is(err, storage.ErrConflict) {
		return 0, nil // the next plan examines the segments again
	}
	if err != nil {
		return 0, err
	}
	return made.Info().Number, nil
}
