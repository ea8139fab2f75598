package writer

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"github.com/dsistore/dsistore/format"
)

// Dedup says how far duplicates are looked for. Each step takes those before it; each is taken, feature by feature and
// stripe by stripe, only where it pays.
type Dedup string

const (
	DedupAuto    Dedup = "auto"    // every step
	DedupOff     Dedup = "off"     // each row is stored
	DedupRuns    Dedup = "runs"    // rows equal to the one before
	DedupSlots   Dedup = "slots"   // rows equal to any before in the stripe
	DedupPartial Dedup = "partial" // lists that are ranges of others
	DedupGroups  Dedup = "groups"  // features that repeat together share an inverse
)

// dedupSteps are in the order in which steps build on each other.
var dedupSteps = []Dedup{DedupOff, DedupRuns, DedupSlots, DedupPartial, DedupGroups}

// takes reports whether d takes a step.
func (d Dedup) takes(step Dedup) bool {
	return d == DedupAuto || slices.Index(dedupSteps, d) >= slices.Index(dedupSteps, step)
}

// Options say how segments are written. The zero value works.
type Options struct {
	// Memory bounds, in bytes, what is held: rows buffered, keys, and what is being encoded. doc.go says how it is
	// shared. Default 1 GiB.
	Memory int64

	// TempDir holds spill files. Default: the store's own directory where it is a local one, else os.TempDir.
	TempDir string

	// FanIn is how many spilled sequences are merged into one. Default: as many as Memory allows, 8 to 128.
	FanIn int

	Dedup Dedup // how far duplicates are looked for; default DedupAuto

	// Profile is what the size of the table is weighed against the time to read it for: speed, balanced or size.
	// Default: the table's, else balanced.
	Profile string
	// NsPerByte weighs in place of the profile: the ns of decoding that a stored byte counts for. Default: the
	// profile's.
	NsPerByte float64

	Workers int // goroutines that encode and write; default GOMAXPROCS

	SegmentRows  int   // rows of a segment, about; default 1<<20
	SegmentBytes int64 // decoded bytes of a segment, about; default 16 GiB
	StripeRows   int   // rows of a stripe, about; default 16,384
	// StripeBytes is what a stripe of one feature may decode to, except when it is one row; default 64 MiB, or a 16th
	// of Memory where that is less.
	StripeBytes int64
}

// maxMemory keeps sums of budgets inside an int64.
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

// WithDefaults returns o with every zero field set, save TempDir and the profile.
func (o Options) WithDefaults() Options {
	o.Memory = cmp.Or(o.Memory, 1<<30)
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	o.FanIn = cmp.Or(o.FanIn, fanIn(&o))
	o.SegmentRows = cmp.Or(o.SegmentRows, 1<<20)
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 16<<30)
	o.StripeRows = cmp.Or(o.StripeRows, 16384)
	o.StripeBytes = cmp.Or(o.StripeBytes, max(64<<10, min(64<<20, o.Memory/16)))
	o.Dedup = cmp.Or(o.Dedup, DedupAuto)
	return o
}

// profile returns what NsPerByte or Profile says.
func (o *Options) profile() (format.Profile, error) {
	if o.NsPerByte > 0 {
		return format.Profile(o.NsPerByte), nil
	}
	return format.ParseProfile(cmp.Or(o.Profile, "balanced"))
}
