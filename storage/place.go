package storage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/storage/wire"
)

// A place says where a segment stands among those of its partition: the canonical order of rows. A 'p' key ends in one:
//
//	number (8 BE) | index (4 BE)                                           a segment that was appended
//	number (8 BE) | index (4 BE) | slot (8 BE) | added (8 BE)              a segment that replaced others
//
// number is the snapshot that appended a segment, index the segment's place in that change. Segments that replace others stand where the first of
// those stood: they keep its number and index, and slot orders them. The slots of one number and index are 2^64, and those of n segments are spread
// over the ones that are free, so that each can be replaced by several again. added is the snapshot that added the segment; where it
// is not stored it is number.
type place struct {
	number uint64
	index  uint32
	slot   uint64
	added  uint64
}

func (p place) before(o place) bool {
	return cmp.Or(cmp.Compare(p.number, o.number), cmp.Compare(p.index, o.index), cmp.Compare(p.slot, o.slot)) < 0
}

const (
	appendedPlaceLen = 12
	replacedPlaceLen = 28
)

func appendPlace(dst []byte, p place) []byte {
	dst = binary.BigEndian.AppendUint64(dst, p.number)
	dst = binary.BigEndian.AppendUint32(dst, p.index)
	if p.added == p.number {
		return dst
	}
	dst = binary.BigEndian.AppendUint64(dst, p.slot)
	return binary.BigEndian.AppendUint64(dst, p.added)
}

func parsePlace(b []byte) (p place, ok bool) {
	if len(b) != appendedPlaceLen && len(b) != replacedPlaceLen {
		return p, false
	}
	p.number, p.index = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])
	if p.added = p.number; len(b) == appendedPlaceLen {
		return p, true
	}
	p.slot, p.added = binary.BigEndian.Uint64(b[12:]), binary.BigEndian.Uint64(b[20:])
	return p, p.added > p.number
}

func segmentKey(canonical string, p place) []byte { return appendPlace(partitionPrefix(canonical), p) }

// parseSegmentKey takes a 'p' key apart.
func parseSegmentKey(k []byte) (canonical string, p place, ok bool) {
	if len(k) == 0 || k[0] != partitionSpace {
		return "", p, false
	}
	n := bytes.IndexByte(k, 0) // a canonical form has none
	if n < 0 {
		return "", p, false
	}
	p, ok = parsePlace(k[n+1:])
	return string(k[1:n]), p, ok
}

// vacate notes a place that a named segment gives up.
func (e *edit) vacate(canonical string, p place) {
	if e.vacated == nil {
		e.vacated = map[string]place{}
	}
	if first, ok := e.vacated[canonical]; !ok || p.before(first) {
		e.vacated[canonical] = p
	}
}

// places returns where the added segments stand: in place of those of their partition that the change names to be removed, else behind all others.
func (e *edit) places(ctx context.Context, add []SegmentDescriptor) ([]place, error) {
	out := make([]place, len(add))
	count, before := map[string]uint64{}, map[string]uint64{}
	for _, d := range add {
		count[d.Partition.String()]++
	}
	steps := map[string]uint64{}
	for i, d := range add {
		canonical := d.Partition.String()
		first, ok := e.vacated[canonical]
		if !ok {
			out[i] = place{number: e.info.Number, index: uint32(i), added: e.info.Number}
			continue
		}
		if before[canonical] == 0 {
			room, err := e.room(ctx, canonical, first)
			if err != nil {
				return nil, err
			}
			if steps[canonical] = room / count[canonical]; steps[canonical] == 0 {
				return nil, fmt.Errorf("partition %q has no room in its order for %d segments in place of fewer: replace more of them at once",
					canonical, count[canonical])
			}
		}
		out[i] = place{number: first.number, index: first.index, slot: first.slot + before[canonical]*steps[canonical], added: e.info.Number}
		before[canonical]++
	}
	return out, nil
}

// room returns how many slots there are from a place that is given up to the next segment that stays.
func (e *edit) room(ctx context.Context, canonical string, first place) (uint64, error) {
	it := e.store().iter(ctx, e.base.m.listing, partitionEnd(canonical))
	for ok := it.seek(ctx, segmentKey(canonical, first)); ok; ok = it.next(ctx) {
		p, d, reason := parseSegment(it.key, it.value)
		if reason != "" {
			return 0, wire.Corrupt(e.base.treeName(e.base.m.listing), reason)
		}
		if p.number != first.number || p.index != first.index {
			break
		}
		if _, gone := e.removed[d.ID]; !gone {
			return p.slot - first.slot, nil
		}
	}
	return math.MaxUint64 - first.slot, it.err
}
