package writer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/processors"
)

// Dedup is the set of deduplication steps that the writer tries. Each step includes those before it. A step is used for
// a feature and stripe only where it lowers the cost of size and decoding.
type Dedup string

const (
	DedupAuto    Dedup = "auto"    // every step
	DedupOff     Dedup = "off"     // one stored value per row
	DedupRuns    Dedup = "runs"    // a row equal to the one before is not stored
	DedupSlots   Dedup = "slots"   // a row equal to any earlier one of the stripe is not stored
	DedupPartial Dedup = "partial" // a list that is a slice of another list is not stored
	DedupGroups  Dedup = "groups"  // features that repeat on the same rows share an inverse
)

// dedupSteps are in order: each includes those before it.
var dedupSteps = []Dedup{DedupOff, DedupRuns, DedupSlots, DedupPartial, DedupGroups}

// includes reports whether d includes a step.
func (d Dedup) includes(step Dedup) bool {
	return d == DedupAuto || slices.Index(dedupSteps, d) >= slices.Index(dedupSteps, step)
}

// Options say how segments are written. The zero value works.
type Options struct {
	// Memory limits the bytes in memory: buffered rows, keys, and stripes being encoded. The package comment says how
	// it is divided. Default 1 GiB.
	Memory int64

	// TempDir is the directory of spill files. Default: the store's directory if it is a local one, else os.TempDir.
	TempDir string

	// FanIn is how many spilled sequences are merged into one. Default: as many as Memory allows, 8 to 128.
	FanIn int

	Dedup Dedup // deduplication steps to try; default DedupAuto

	// Profile weighs stored size against decoding time: "speed", "balanced" or "size". Default: the table's, else
	// balanced.
	Profile string
	// NsPerByte replaces the weight of the profile: how many ns of decoding a stored byte is worth. Default: the
	// profile's.
	NsPerByte float64

	Workers int // goroutines that encode and write; default: one for each processor

	SegmentRows  int   // approximate rows of a segment; default 1<<20
	SegmentBytes int64 // approximate decoded bytes of a segment; default 16 GiB
	StripeRows   int   // approximate rows of a stripe; default 16,384
	// StripeBytes limits the decoded bytes of a stripe of one feature; a single row may exceed it. Default 64 MiB, or a
	// 16th of Memory if that is less.
	StripeBytes int64
}

// maxMemory keeps sums of budgets within an int64.
const maxMemory = 1 << 50

// Validate returns an error naming the first field that cannot be used.
func (o *Options) Validate() error {
	switch {
	case o.Memory < 0 || o.Memory > maxMemory:
		return fmt.Errorf("memory of %d bytes: want 1 to %d, or 0 for 1 GiB", o.Memory, int64(maxMemory))
	case o.Workers < 0:
		return fmt.Errorf("%d workers: want 1 or more, or 0 for one per core", o.Workers)
	case o.FanIn < 0 || o.FanIn == 1:
		return fmt.Errorf("fan-in %d: want 2 or more, or 0 for the default", o.FanIn)
	case o.SegmentRows < 0 || o.SegmentBytes < 0:
		return fmt.Errorf("segments of %d rows, %d bytes: want positive numbers, or 0 for the default", o.SegmentRows,
			o.SegmentBytes)
	case o.StripeRows < 0 || o.StripeRows > 1<<22:
		return fmt.Errorf("stripes of %d rows: want 1 to %d, or 0 for the default", o.StripeRows, 1<<22)
	case o.StripeBytes < 0 || o.StripeBytes > 512<<20:
		return fmt.Errorf("stripes of %d bytes: want at most 512 MiB, or 0 for the default", o.StripeBytes)
	case o.Dedup != "" && o.Dedup != DedupAuto && !slices.Contains(dedupSteps, o.Dedup):
		return fmt.Errorf("dedup %q: want auto, off, runs, slots, partial or groups", o.Dedup)
	case o.Profile != "" && !slices.Contains(format.ProfileNames(), o.Profile):
		_, err := format.ParseProfile(o.Profile)
		return err
	case !(o.NsPerByte >= 0 && o.NsPerByte <= 1e6):
		return fmt.Errorf("%v ns/byte: want 0 to 1e6", o.NsPerByte)
	}
	return nil
}

// WithDefaults returns o with every zero field set, except TempDir, Profile and NsPerByte.
func (o Options) WithDefaults() Options {
	o.Memory = cmp.Or(o.Memory, 1<<30)
	o.Workers = cmp.Or(o.Workers, processors.Workers())
	o.FanIn = cmp.Or(o.FanIn, fanIn(&o))
	o.SegmentRows = cmp.Or(o.SegmentRows, 1<<20)
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 16<<30)
	o.StripeRows = cmp.Or(o.StripeRows, 16384)
	o.StripeBytes = cmp.Or(o.StripeBytes, max(64<<10, min(64<<20, o.Memory/16)))
	o.Dedup = cmp.Or(o.Dedup, DedupAuto)
	return o
}

// profile returns NsPerByte if set, else the weight of Profile.
func (o *Options) profile() (format.Profile, error) {
	if o.NsPerByte > 0 {
		return format.Profile(o.NsPerByte), nil
	}
	return format.ParseProfile(cmp.Or(o.Profile, "balanced"))
}
