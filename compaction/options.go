package compaction

import (
	"cmp"
	"fmt"

	"github.com/dsistore/dsistore/writer"
)

// Options say which segments are rewritten, and how. The zero value works.
type Options struct {
	// Partition is a predicate over partition values in the syntax of reader/expr. Default: every partition.
	Partition string
	// Segments are ids: exactly these segments are rewritten. Default: the fields below decide.
	Segments []string

	SegmentRows  uint64 // target rows of a segment; default 1<<20
	SegmentBytes uint64 // target stored bytes of a segment; default 4 GiB
	// Fanout is how many segments of about one size, less than half of the target size, are merged. Default 4.
	Fanout int
	// Full merges all segments of less than half of the target size if a partition has at least two; without a session
	// key, two next to each other.
	Full bool
	// DeletedShare: a segment is rewritten if at least this share of its rows is deleted. Default 0.1.
	DeletedShare float64
	// DroppedShare: a segment is rewritten if dropped features take at least this share of its bytes. Default 0.1.
	DroppedShare float64
	// SharedShare: the segments of a partition are merged, large ones too, if at least this share of its sessions has
	// rows in large segments of several commits. Default 0.1; above 1: never, and no session keys are read.
	SharedShare float64
	// Repack rewrites every segment, so that its packs have the order of Popularity.
	Repack bool
	// MaxInputs is the largest number of segments that a job rewrites; their indexes are in memory. Default 256.
	MaxInputs int

	// Popularity says which features are read most; they lie together in packs. Default: not known, smaller features
	// come first.
	Popularity Popularity

	// Write says how Run writes segments. Its SegmentRows and SegmentBytes are ignored.
	Write writer.Options
	// Owner is the owner's name in the leases on the snapshots that are read. Default "compaction".
	Owner string
	// Progress, if set, is called from one goroutine at a time. It must not block.
	Progress func(Progress)
	// Operation is the operation of the snapshots that are made. Default "compact".
	Operation string
}

// A Popularity says how often features are read. Usage records implement it.
type Popularity = writer.Popularity

// Progress says how far Run is.
type Progress struct {
	Job, Jobs int // number of the current job, from 1, and of all jobs
	// Decoded bytes of the current job's rows, written so far and in all.
	Bytes, TotalBytes int64
}

// Validate returns an error naming the first field that cannot be used.
func (o *Options) Validate() error {
	share := func(name string, v float64) error {
		if !(v >= 0) {
			return fmt.Errorf("%s share %v: want 0 or more", name, v)
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
