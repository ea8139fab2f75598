package ingest

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// BadRow says what to do with a row, or a file, that cannot be read.
type BadRow string

const (
	// BadRowFail ends the ingest at the first bad row, with its file, row group, row and column.
	BadRowFail BadRow = "fail"
	// BadRowQuarantine leaves bad rows out and reports each; a file that cannot be read to its end is left out whole.
	BadRowQuarantine BadRow = "quarantine"
)

// Dedup says how far duplicates are looked for. Each step takes those before it; each is taken, feature by feature and
// stripe by stripe, only where it pays.
type Dedup string

const (
	DedupAuto    Dedup = "auto"    // every step
	DedupOff     Dedup = "off"     // each row is stored
	DedupRuns    Dedup = "runs"    // rows equal to the one before
	DedupSlots   Dedup = "slots"   // rows equal to any before in the stripe
	DedupWindows Dedup = "windows" // lists that are ranges of others
	DedupGroups  Dedup = "groups"  // features that repeat together share an inverse
)

// dedupSteps are in the order in which steps build on each other.
var dedupSteps = []Dedup{DedupOff, DedupRuns, DedupSlots, DedupWindows, DedupGroups}

// takes reports whether d takes a step.
func (d Dedup) takes(step Dedup) bool {
	return d == DedupAuto || slices.Index(dedupSteps, d) >= slices.Index(dedupSteps, step)
}

// Options say what to ingest and how. The zero value works.
type Options struct {
	Format      string // as source.Options.Format; default auto
	MappingFile string // default none
	DDLFile     string // default none

	// SessionKey names the column whose equal values make a session; rows of a partition are clustered by it, then ordered by
	// TimeKey, then as in the source. Default: the feature with that role in the mapping, else in the table, else none: the
	// source's order is kept.
	SessionKey string
	TimeKey    string // default as for SessionKey

	// PartitionBy names a column whose value becomes the last key of each row's partition. The column is no feature then,
	// as in Hive. Default: the keys of the table's partitions that the directories do not give, if any.
	PartitionBy string

	// Memory bounds, in bytes, what an ingest holds: rows buffered, keys, and what is being encoded. doc.go says how it is
	// shared. Default 1 GiB.
	Memory int64

	// Overwrite replaces the partitions that the dump has rows of, instead of appending to them, and lets sources be
	// ingested again. Default false.
	Overwrite bool

	// TakeCopies takes each of several files that hold the same bytes for the same partition. Default false: they are refused.
	TakeCopies bool

	OnBadRow BadRow // default BadRowFail
	// BadRowReport is the file that lists quarantined rows as JSON lines; it is made when the first one is found, and an
	// existing one is replaced. Default none.
	BadRowReport string

	// Stdin is what the path "-" reads. Default os.Stdin.
	Stdin io.Reader
	// Records, when set, are what the path "-" reads instead. They stay the caller's, who closes them after Run.
	Records *source.Records

	// TempDir holds spill files. Default: the store's own directory where it is a local one, else os.TempDir.
	TempDir string

	Dedup Dedup // how far duplicates are looked for; default DedupAuto

	// Profile is what the size of the table is weighed against the time to read it for: speed, balanced or size. It becomes the
	// table's, for later ingests. Default: the table's, else balanced.
	Profile string
	// NsPerByte weighs in place of the profile, and is not remembered: the ns of decoding that a stored byte counts for. Default: the
	// profile's.
	NsPerByte float64

	// Popularity says which features are read most; they lie together in packs. Default: not known, small ones come first. A Rewrite
	// has its features in order already.
	Popularity Popularity

	Workers int // goroutines that read, encode and write; default GOMAXPROCS

	SegmentRows  int   // rows of a segment, about; default 1<<20
	SegmentBytes int64 // decoded bytes of a segment, about; default 16 GiB
	StripeRows   int   // rows of a stripe, about; default 16,384
	// StripeBytes is what a stripe of one feature may decode to, except when it is one row; default 64 MiB, or a 16th of
	// Memory where that is less.
	StripeBytes int64

	// Progress, when set, is called now and then, from one goroutine at a time. It must not block.
	Progress func(Progress)
}

// maxMemory keeps sums of budgets inside an int64.
const maxMemory = 1 << 50

// Validate returns an error naming the first field that cannot be used.
func (o *Options) Validate() error {
	switch {
	case o.Memory < 0 || o.Memory > maxMemory:
		return fmt.Errorf("memory of %d bytes: want 1 to %d, or 0 for 1 GiB", o.Memory, int64(maxMemory))
	case o.Workers < 0:
		return fmt.Errorf("%d workers: want 1 or more, or 0 for one a core", o.Workers)
	case o.SegmentRows < 0 || o.SegmentBytes < 0:
		return fmt.Errorf("segments of %d rows, %d bytes: want positive numbers, or 0 for the default", o.SegmentRows, o.SegmentBytes)
	case o.StripeRows < 0 || o.StripeRows > 1<<22:
		return fmt.Errorf("stripes of %d rows: want 1 to %d, or 0 for the default", o.StripeRows, 1<<22)
	case o.StripeBytes < 0 || o.StripeBytes > 512<<20:
		return fmt.Errorf("stripes of %d bytes: want at most 512 MiB, or 0 for the default", o.StripeBytes)
	case o.Dedup != "" && o.Dedup != DedupAuto && !slices.Contains(dedupSteps, o.Dedup):
		return fmt.Errorf("dedup %q: want auto, off, runs, slots, windows or groups", o.Dedup)
	case o.Profile != "" && !slices.Contains(format.ProfileNames(), o.Profile):
		_, err := format.ParseProfile(o.Profile)
		return err
	case !(o.NsPerByte >= 0 && o.NsPerByte <= 1e6):
		return fmt.Errorf("%v ns a byte: want 0 to 1e6", o.NsPerByte)
	case o.OnBadRow != "" && o.OnBadRow != BadRowFail && o.OnBadRow != BadRowQuarantine:
		return fmt.Errorf("on bad row %q: want fail or quarantine", o.OnBadRow)
	case o.BadRowReport != "" && o.OnBadRow != BadRowQuarantine:
		return fmt.Errorf("a bad row report is written only with on-bad-row quarantine")
	case o.PartitionBy != "" && (o.PartitionBy == o.SessionKey || o.PartitionBy == o.TimeKey):
		return fmt.Errorf("column %q cannot be both partition and key: a partition column is no feature", o.PartitionBy)
	}
	return nil
}

// withDefaults returns o with every zero field set.
func (o Options) withDefaults() Options {
	setDefault(&o.Memory, 1<<30)
	setDefault(&o.Workers, runtime.GOMAXPROCS(0))
	setDefault(&o.SegmentRows, 1<<20)
	setDefault(&o.SegmentBytes, 16<<30)
	setDefault(&o.StripeRows, 16384)
	setDefault(&o.StripeBytes, max(64<<10, min(64<<20, o.Memory/16)))
	if o.Dedup == "" {
		o.Dedup = DedupAuto
	}
	if o.OnBadRow == "" {
		o.OnBadRow = BadRowFail
	}
	return o
}

func setDefault[T int | int64](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// Phase is a part of an ingest.
type Phase string

const (
	PhaseCheck  Phase = "check"  // finding the files and hashing them
	PhaseRead   Phase = "read"   // reading and, when memory is full, sorting and spilling
	PhaseWrite  Phase = "write"  // merging and encoding
	PhaseCommit Phase = "commit" // making it visible
)

// Progress says how far a phase is.
type Progress struct {
	Phase Phase
	Rows  int64 // read or written in this phase
	// Bytes of the phase's TotalBytes are done: of the files when checking and reading, of decoded rows when writing.
	// TotalBytes is 0 where it is not known (stdin).
	Bytes, TotalBytes int64
}

// Report says what an ingest did. Its JSON keys are stable.
type Report struct {
	Table      string     `json:"table"`
	Snapshot   uint64     `json:"snapshot"`
	Rows       int64      `json:"rows"`
	Files      int        `json:"files"`
	Features   int        `json:"features"`
	Added      []string   `json:"features_added"` // names that the table did not have
	Widened    []string   `json:"features_widened"`
	Partitions int        `json:"partitions"`
	Replaced   int        `json:"partitions_replaced"`
	Segments   int        `json:"segments"`
	Stripes    int        `json:"stripes"`
	Profile    string     `json:"profile"`
	BytesIn    int64      `json:"bytes_in"`      // of the files
	BytesRaw   int64      `json:"bytes_decoded"` // of the rows in memory
	BytesOut   int64      `json:"bytes_out"`     // of the segments
	Spills     int        `json:"spills"`
	SpillBytes int64      `json:"spill_bytes"`
	BadRows    int64      `json:"bad_rows"`
	BadFiles   int        `json:"bad_files"`
	Duplicates Duplicates `json:"duplicates"`
	Seconds    Seconds    `json:"seconds"`
}

// Seconds spent in each phase, by the clock. Spill is a part of Read.
type Seconds struct {
	Check  float64 `json:"check"`
	Read   float64 `json:"read"`
	Spill  float64 `json:"spill"`
	Write  float64 `json:"write"`
	Commit float64 `json:"commit"`
	Total  float64 `json:"total"`
}

// since adds the time from start to *s and returns now.
func since(s *float64, start time.Time) time.Time {
	now := time.Now()
	*s += now.Sub(start).Seconds()
	return now
}
