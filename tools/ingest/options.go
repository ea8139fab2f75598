package ingest

import (
	"fmt"
	"io"
	"time"

	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

// BadRow says what to do with a row, or a file, that cannot be read.
type BadRow string

const (
	// BadRowFail ends the ingest at the first bad row, with its file, row group, row and column.
	BadRowFail BadRow = "fail"
	// BadRowQuarantine leaves bad rows out and reports each; a file that cannot be read to its end is left out whole.
	BadRowQuarantine BadRow = "quarantine"
)

// Options say what to ingest and how. The zero value works.
type Options struct {
	Format      string // as source.Options.Format; default auto
	MappingFile string // default none
	DDLFile     string // default none

	// SessionKey names the column whose equal values make a session; rows of a partition are clustered by it, then
	// ordered by TimeKey, then as in the source. Default: the feature with that role in the mapping, else in the table,
	// else none: the source's order is kept.
	SessionKey string
	TimeKey    string // default as for SessionKey

	// PartitionBy names a column whose value becomes the last key of each row's partition. The column is no feature
	// then, as in Hive. Default: the keys of the table's partitions that the directories do not give, if any.
	PartitionBy string

	// Overwrite replaces the partitions that the dump has rows of, instead of appending to them, and lets sources be
	// ingested again. Default false.
	Overwrite bool

	// NewOnly leaves out files that were ingested before: the same bytes for the same partition. Where all were, or the
	// others have no rows, nothing is committed. Streams, of which that shows when they have been read, are refused.
	// Default false: a file that was ingested before is an error.
	NewOnly bool

	// TakeCopies takes each of several files that hold the same bytes for the same partition. Default false: they are
	// refused.
	TakeCopies bool

	OnBadRow BadRow // default BadRowFail
	// BadRowReport is the file that lists quarantined rows as JSON lines. It is made when the first one is found. A
	// file of this name that has bytes in it is an error, or with NumberReports the report gets a number: bad-2.jsonl
	// in place of bad.jsonl. Default none.
	BadRowReport  string
	NumberReports bool

	// Stdin is what the path "-" reads. Default os.Stdin.
	Stdin io.Reader
	// Records, when set, are what the path "-" reads instead. They stay the caller's, who closes them after Run.
	Records *source.Records

	// SourceOptions say how the object stores of sources are reached, as object.OpenWith takes them. Default: as the
	// environment says.
	SourceOptions map[string]string

	// Popularity says which features are read most; they lie together in packs. Default: not known, small ones come
	// first.
	Popularity writer.Popularity

	// How segments are written. Workers read files, too. The profile becomes the table's, for later ingests; NsPerByte
	// is not remembered.
	writer.Options

	// Inferred, when set, is told what types the columns of text and of JSON lines have by their values, before any row
	// of them is read. Calls come one at a time.
	Inferred func(source.Inferred)

	// Progress, when set, is called now and then, from one goroutine at a time. It must not block.
	Progress func(Progress)
}

// Validate returns an error naming the first field that cannot be used.
func (o *Options) Validate() error {
	if err := o.Options.Validate(); err != nil {
		return err
	}
	switch {
	case o.OnBadRow != "" && o.OnBadRow != BadRowFail && o.OnBadRow != BadRowQuarantine:
		return fmt.Errorf("on bad row %q: want fail or quarantine", o.OnBadRow)
	case o.BadRowReport != "" && o.OnBadRow != BadRowQuarantine:
		return fmt.Errorf("a bad row report is written only with on-bad-row quarantine")
	case o.Overwrite && o.NewOnly:
		return fmt.Errorf("overwrite and new only: want one of them")
	case o.PartitionBy != "" && (o.PartitionBy == o.SessionKey || o.PartitionBy == o.TimeKey):
		return fmt.Errorf("column %q cannot be both partition and key: a partition column is no feature", o.PartitionBy)
	}
	return nil
}

// withDefaults returns o with every zero field set.
func (o Options) withDefaults() Options {
	o.Options = o.Options.WithDefaults()
	if o.OnBadRow == "" {
		o.OnBadRow = BadRowFail
	}
	return o
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
	Table    string `json:"table"`
	Snapshot uint64 `json:"snapshot"`
	// Committed is false, without an error, where nothing was new: Snapshot is then the newest that the ingest saw.
	Committed bool  `json:"committed"`
	Rows      int64 `json:"rows"`
	Files     int   `json:"files"`
	Known     int   `json:"files_known"` // left out, since they were ingested before: see Options.NewOnly
	// Changed counts files whose paths were ingested before with other bytes, and FirstChanged is one of them: the rows
	// that they had then are in the table too. They are looked for with Options.NewOnly.
	Changed      int      `json:"files_changed"`
	FirstChanged string   `json:"first_file_changed,omitempty"`
	Features     int      `json:"features"`
	Added        []string `json:"features_added"` // names that the table did not have
	// Again are those of Added whose names the table had before: features that were dropped or renamed, and are others.
	Again     []string `json:"features_added_again,omitempty"`
	Widened   []string `json:"features_widened"`
	Valueless []string `json:"features_without_values"` // left out: no file says what type they have
	// Missing are features of the table that no file has: they are null in the new rows. Deprecated ones do not count.
	Missing      []string `json:"features_missing"`
	MissingRoles []string `json:"keys_and_labels_missing,omitempty"` // those of Missing with another role than feature
	Partitions   int      `json:"partitions"`                        // that got rows; 1 in a table without partitions
	Partitioned  bool     `json:"-"`                                 // the table has partitions
	Replaced
	Segments   int    `json:"segments"`
	Stripes    int    `json:"stripes"`
	Profile    string `json:"profile"`
	BytesIn    int64  `json:"bytes_in"`      // of the files
	BytesRaw   int64  `json:"bytes_decoded"` // of the rows in memory
	BytesOut   int64  `json:"bytes_out"`     // of the segments
	Spills     int    `json:"spills"`
	SpillBytes int64  `json:"spill_bytes"`
	BadRows    int64  `json:"bad_rows"`
	BadFiles   int    `json:"bad_files"`
	BadReport  string `json:"bad_row_report,omitempty"` // the file that lists them
	// WidenedByBadFiles are features whose types were widened by files that are left out, where the others could not be
	// read again: one of them is a stream.
	WidenedByBadFiles []string          `json:"features_widened_by_bad_files,omitempty"`
	Duplicates        writer.Duplicates `json:"duplicates"`
	// Inferred has the types of columns that their values gave, where some did.
	Inferred []source.Inferred `json:"types_inferred,omitempty"`
	Seconds  Seconds           `json:"seconds"`
}

// Replaced says what an overwrite took away. Rows that had been deleted or erased are in the table again if the files
// still have them.
type Replaced struct {
	Partitions int    `json:"partitions_replaced"`
	Table      bool   `json:"table_replaced"` // all of it: it has no partitions
	Rows       uint64 `json:"rows_replaced"`  // that readers saw
	// DeletedRows were hidden by dsi delete. Those that compaction has removed are not known any more.
	DeletedRows uint64 `json:"deleted_rows_replaced"`
	// Overlays and SampleLists had values for replaced rows, or had them listed: they have none of the new rows.
	Overlays    []string `json:"overlays_replaced,omitempty"`
	SampleLists []string `json:"sample_lists_replaced,omitempty"`
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
