package overlay

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/dsistore/dsistore/internal/processors"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/usage"
)

// Options say what an overlay has and how it is made. Either From or Exprs is needed.
type Options struct {
	// From are files, or directories of them, in the formats of an ingest; "-" is standard input. That a path says a
	// partition has no meaning here.
	From []string
	// Key are the features whose values, taken together, say which rows of the table a row of the files is about.
	// Default: the table's request key.
	Key []string
	// Features are those of the files to take, by the names that they get. Default: every one but the key.
	Features []string
	// Format, MappingFile and DDLFile are as in source.Options.
	Format, MappingFile, DDLFile string
	// Stdin is what "-" reads. Default os.Stdin.
	Stdin io.Reader
	// Records, when set, are what "-" reads instead. They stay the caller's, who closes them after Add.
	Records *source.Records

	// Exprs are expressions of features, each "name = condition" or "name = number" in the words of package expr.
	Exprs []string

	// Over are names of overlays, the lowest first, that features of expressions are read under, besides those that are
	// part of the table and the branch's. Default: none.
	Over []string

	// Role is that of features which the table does not have and of which a mapping says nothing: a feature, which is
	// the default, or a label.
	Role catalog.Role
	// MissingRows says what the features are in rows that are not covered, MissingLayers what in segments that are
	// ingested later. Default: as before.
	MissingRows, MissingLayers catalog.MissingPolicy
	// Replace drops an overlay of the name, in the same commit. Default: it is an error that there is one.
	Replace bool

	// Memory bounds, in bytes, what is held; doc.go says how it is shared. Default 1 GiB.
	Memory int64
	// Workers are the goroutines that read and encode. Default: one for each processor.
	Workers int
	// Usage says how it is recorded what is read of the table: keys that rows are joined by, and features of
	// expressions. The purpose is usage.PurposeOverlay.
	Usage reader.UsageOptions
	// TempDir holds spill files. Default: the store's own directory where it is a local one, else os.TempDir.
	TempDir string
	// Progress, when set, is called now and then, from one goroutine at a time. It must not block.
	Progress func(Progress)

	hash func([]byte) uint64 // of keys; tests make it collide
}

const (
	defaultMemory = 1 << 30
	maxMemory     = 1 << 50 // keeps sums of budgets inside an int64
)

// Validate returns an error naming the first field that cannot be used.
func (o *Options) Validate() error {
	switch {
	case len(o.From) == 0 && len(o.Exprs) == 0:
		return errors.New("an overlay is made from files or from expressions: neither is given")
	case len(o.From) > 0 && len(o.Exprs) > 0:
		return errors.New("an overlay is made from files or from expressions: both are given")
	case len(o.Exprs) > 0 && (len(o.Key) > 0 || len(o.Features) > 0 || o.Format != "" || o.MappingFile != "" ||
		o.DDLFile != ""):
		return errors.New("key, features, format, mapping and DDL are about files: an expression has none")
	case len(o.From) > 0 && len(o.Over) > 0:
		return errors.New("over is about expressions: files are joined with the table's own key")
	case o.Role != catalog.RoleFeature && o.Role != catalog.RoleLabel:
		return fmt.Errorf("role %v: want %v or %v", o.Role, catalog.RoleFeature, catalog.RoleLabel)
	case o.MissingRows > catalog.Null:
		return fmt.Errorf("rows that are not covered: %v: want %v or %v", o.MissingRows, catalog.FallThrough,
			catalog.Null)
	case o.MissingLayers > catalog.Refuse:
		return fmt.Errorf("segments without a layer: %v: want %v, %v or %v", o.MissingLayers, catalog.FallThrough,
			catalog.Null, catalog.Refuse)
	case o.Memory < 0 || o.Memory > maxMemory:
		return fmt.Errorf("memory of %d bytes: want 1 to %d, or 0 for 1 GiB", o.Memory, int64(maxMemory))
	case o.Workers < 0:
		return fmt.Errorf("%d workers: want 1 or more, or 0 for one per core", o.Workers)
	}
	for i, k := range o.Key {
		if slices.Contains(o.Key[:i], k) {
			return fmt.Errorf("key %q is given twice", k)
		}
		if slices.Contains(o.Features, k) {
			return fmt.Errorf("key %q cannot be a feature of the overlay, too", k)
		}
	}
	for i, f := range o.Features {
		if slices.Contains(o.Features[:i], f) {
			return fmt.Errorf("feature %q is given twice", f)
		}
	}
	return nil
}

// withDefaults returns o with every zero field set.
func (o Options) withDefaults() Options {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Workers == 0 {
		o.Workers = processors.Workers()
	}
	o.Usage.Purpose = usage.PurposeOverlay
	if o.hash == nil {
		o.hash = hashKey
	}
	return o
}

// keySeed is drawn for each process: with one that is known, a file can have keys that all fall into one place of a
// table. Nothing that is stored depends on it.
var keySeed = maphash.MakeSeed()

func hashKey(key []byte) uint64 { return maphash.Bytes(keySeed, key) }

// The shares of Options.Memory.
func (o *Options) heldShare() int64   { return max(o.Memory/2, 1) } // rows of the files, or what is sorted
func (o *Options) readerShare() int64 { return max(o.Memory/4, 1) } // stripes of the table that are read
func (o *Options) encodeShare() int64 { return max(o.Memory/8, 1) } // feature files that wait for their place
func (o *Options) mergeShare() int64  { return max(o.Memory/8, 1) } // blocks of runs that are merged
func (o *Options) chunkBytes() int64  { return min(max(o.Memory/32, 64<<10), 8<<20) }
func (o *Options) pageBytes() int64   { return max(o.Memory/16, 1<<20) } // open pages of a Parquet file

// Phase is a part of the making of an overlay.
type Phase string

const (
	PhaseRead   Phase = "read"   // the files
	PhaseMatch  Phase = "match"  // the table's keys with the files', beyond memory
	PhaseWrite  Phase = "write"  // layers
	PhaseCommit Phase = "commit" // making them visible
)

// Progress says how far a phase is.
type Progress struct {
	Phase Phase
	// Done of Total: bytes of the files in PhaseRead, else rows of the table. Total is 0 where it is not known.
	Done, Total int64
}

// Report says what became of an overlay. Its JSON keys are stable.
type Report struct {
	Table    string          `json:"table"`
	Overlay  string          `json:"overlay"`
	Branch   string          `json:"branch,omitempty"`
	Snapshot uint64          `json:"snapshot"`
	Features []FeatureReport `json:"features"`
	Rows     uint64          `json:"rows"`    // of the table
	Covered  uint64          `json:"covered"` // of Rows
	Segments int             `json:"segments"`
	Layers   int             `json:"layers"` // segments that have one
	// Before is what was covered before, of an overlay that was extended.
	Before *CoverageReport `json:"before,omitempty"`
	// Partial are the segments with rows that are not covered, in the order of the table.
	Partial []SegmentReport `json:"partial"`

	FileRows uint64 `json:"file_rows"` // each with a key of its own
	// of FileRows: no row has the key, of the segments that Extend has not found covered whole
	Unmatched  uint64 `json:"unmatched"`
	Unknown    []Row  `json:"unknown"`     // the first of those
	BytesIn    int64  `json:"bytes_in"`    // of the files
	BytesOut   uint64 `json:"bytes_out"`   // of the layers
	Spills     int    `json:"spills"`      // runs that were written to disk
	SpillBytes int64  `json:"spill_bytes"` // of them
	// Attempts counts how often layers were made for what the table had: more than once where others changed it
	// meanwhile.
	Attempts int     `json:"attempts"`
	Seconds  Seconds `json:"seconds"`
}

// A CoverageReport says how much of a table was covered.
type CoverageReport struct {
	Rows     uint64 `json:"rows"`
	Covered  uint64 `json:"covered"`
	Segments int    `json:"segments"`
	Layers   int    `json:"layers"`
}

// A FeatureReport is a feature of an overlay.
type FeatureReport struct {
	Name     string `json:"feature"`
	Type     string `json:"type"`
	Role     string `json:"role"`
	Replaces bool   `json:"replaces"` // the table has a feature of the name
	// ReplacedType is that feature's type. Where it is another, readers of both get the narrowest that holds both.
	ReplacedType string `json:"replaced_type,omitempty"`
	// Nulls is in how many of the covered rows it is null, as the layers were written. nil: it is not known, of an
	// overlay that was extended.
	Nulls *uint64 `json:"nulls"`
}

// A SegmentReport says how much of a segment is covered.
type SegmentReport struct {
	Segment   string `json:"segment"`
	Partition string `json:"partition"`
	Rows      uint64 `json:"rows"`
	Covered   uint64 `json:"covered"`
}

// A Row is a row of the files, for messages.
type Row struct {
	Place string `json:"place"`
	Key   string `json:"key"`
}

// Seconds spent in each phase, by the clock.
type Seconds struct {
	Read   float64 `json:"read"`
	Match  float64 `json:"match"`
	Write  float64 `json:"write"`
	Commit float64 `json:"commit"`
	Total  float64 `json:"total"`
}
