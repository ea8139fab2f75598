package compaction

import (
	"cmp"
	"fmt"

	"github.com/dsistore/dsistore/writer"
)

// Options say what is worth rewriting, and how it is done. The zero value works.
type Options struct {
	// Partition is a predicate over partition values in the words of reader/expr. Default: every partition.
	Partition string
	// Segments are ids; only these segments are rewritten, and all of them are. Default: what the rest says.
	Segments []string

	SegmentRows  uint64 // rows of a segment, about; default 1<<20
	SegmentBytes uint64 // bytes of a segment as it is stored, about; default 4 GiB
	// Fanout is how many segments of about one size, less than half of what a segment should have, are merged. Default
	// 4.
	Fanout int
	// Full merges all segments that are smaller than half of what they should be, wherever there are two of a
	// partition; without a session key, two side by side.
	Full bool
	// DeletedShare is the share of a segment's rows, from which on it is rewritten when they are deleted. Default 0.1.
	DeletedShare float64
	// DroppedShare is the share of a segment's bytes, from which on it is rewritten when they are of dropped features.
	// Default 0.1.
	DroppedShare float64
	// SharedShare is the share of a partition's sessions, from which on its segments are merged, large ones too, when
	// several segments have them. Default 0.1; above 1: never, and no session keys are read.
	SharedShare float64
	// Repack rewrites every segment, so that its packs have the order of Popularity.
	Repack bool
	// MaxInputs is how many segments are rewritten together at most; their indexes are in memory. Default 256.
	MaxInputs int

	// Popularity says which features are read most; they lie together in packs. Default: not known, small ones come
	// first.
	Popularity Popularity

	// What follows says how Run works, as in an ingest. Its Segment fields are not looked at.
	Write writer.Options
	// Owner is who holds the leases on the snapshots that are read, for people. Default "compaction".
	Owner string
	// Progress, when set, is called now and then, from one goroutine at a time. It must not block.
	Progress func(Progress)
	// Operation is what the snapshots say that made them. Default "compact".
	Operation string
}

// A Popularity says how often features are read. Usage records implement it.
type Popularity = writer.Popularity

// Progress says how far Run is.
type Progress struct {
	Job, Jobs int // from 1
	// Bytes of TotalBytes, decoded, of the job's rows are written.
	Bytes, TotalBytes int64
}

// Validate returns an error naming the first field that cannot be used.
func (o *Options) Validate() error {
	share := func(name string, v float64) error {
		if !(v >= 0) {
			return fmt.Errorf("%s share %v: want 0 (default) or more", name, v)
		}
		return nil
	}
	switch {
	case o.Fanout < 0 || o.Fanout == 1:
		return fmt.Errorf("fanout %d: want 2 or more, or 0 for the default", o.Fanout)
	case o.MaxInputs < 0:
		return fmt.Errorf("max inputs %d: want 1 or more, or 0 for the default", o.MaxInputs)
	}
	return cmp.Or(share("deleted", o.DeletedShare), share("dropped", o.DroppedShare), share("shared", o.SharedShare),
		o.Write.Validate())
}

func (o Options) withDefaults() Options {
	o.SegmentRows = cmp.Or(o.SegmentRows, 1<<20)
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 4<<30)
	o.Fanout = cmp.Or(o.Fanout, 4)
	o.DeletedShare = cmp.Or(o.DeletedShare, 0.1)
	o.DroppedShare = cmp.Or(o.DroppedShare, 0.1)
	o.SharedShare = cmp.Or(o.SharedShare, 0.1)
	o.MaxInputs = cmp.Or(o.MaxInputs, 256)
	o.Owner = cmp.Or(o.Owner, "compaction")
	o.Operation = cmp.Or(o.Operation, "compact")
	return o
}
