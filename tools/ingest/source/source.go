package source

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// A Chunk is rows of one source, all of one partition, in the source's order. A Field that is not in Fields is null in
// every row. Columns are plain (no Inverse). The caller owns the chunk; columns of Records may borrow their values,
// which are never written, until Release.
type Chunk struct {
	Rows      int
	Partition catalog.Partition
	Fields    []*mapping.Field
	Columns   []*vector.Column // aligned with Fields
	Place     Place            // of the first row
	// Lent is how many bytes of Columns are in memory whether or not the chunk is kept.
	Lent int64

	free func() // gives back what Columns borrow; nil: nothing
}

// Release gives back what Columns borrow. None of them may be read after it. It is called once, or not at all where
// nothing is borrowed.
func (c *Chunk) Release() {
	if c.free != nil {
		c.free()
		c.free = nil
	}
}

// A Place says where rows came from, for messages: file, row group, row in the file.
type Place struct {
	File     string
	RowGroup int   // -1 where there is none
	Row      int64 // counted from 0 in the file
	Line     int64 // text and JSON: counted from 1; 0 where there are no lines
}

// String prints the place for people: "part-0.parquet, row group 2, row 17" or "part-0.txt, line 18".
func (p Place) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ", line %d", p.Line)
		return b.String()
	}
	if p.RowGroup >= 0 {
		fmt.Fprintf(&b, ", row group %d", p.RowGroup)
	}
	fmt.Fprintf(&b, ", row %d", p.Row)
	return b.String()
}

// A Source is one file or stream. Not safe for concurrent use.
type Source interface {
	// Fields returns the features known so far: keys of maps are found while reading.
	Fields() []*mapping.Field
	// Next returns the next chunk, io.EOF after the last. Errors name file, row group, row and column. After an error
	// every later call returns it again.
	Next(ctx context.Context) (*Chunk, error)
	// Close frees what the source holds and ends its child process, if any. It may be called at any time, once.
	Close() error
}

// A File is a discovered input, not yet opened.
type File struct {
	Path      string
	Size      int64  // -1 for a stream
	Format    string // parquet, orc, text, jsonl or arrow
	Partition catalog.Partition
	Open      func(ctx context.Context) (Source, error)
	// Fingerprint returns a hash of the content, in hex. For stdin it is known once Next returned io.EOF, and an error
	// before.
	Fingerprint func(ctx context.Context) (string, error)

	records     *arrowsource.Records // what "-" reads; nil: not records
	openLenient func(ctx context.Context) (*tableSource, error)
}

// Options say how to read. The zero value works.
type Options struct {
	Format      string // auto, parquet, hive, orc, csv or text (the same), jsonl or arrow; default auto
	MappingFile string
	DDLFile     string
	// OnBadRow is told of each row that is left out, and why. nil: the first bad row is an error of Next.
	OnBadRow   func(place Place, column string, err error)
	ChunkBytes int64 // aim for chunks of about this; default 8 MiB
	// PageBytes is what the open pages of a Parquet file may hold between chunks, one page and one dictionary a column.
	// Those that do not fit are read again for each chunk, which costs time. Default 256 MiB.
	PageBytes int64
	Threads   int // that decode one file; default: one for each processor
	// SessionKey, TimeKey: columns named on the command line; they get roles and must exist.
	SessionKey, TimeKey string
	// PartitionBy names columns whose values partition the rows, after those of the directories. They become partition
	// values and are no features.
	PartitionBy []string
	// Inferred is told what types the columns of text and of JSON lines have by their values, before any row of them is
	// read: once for all files of a format, and once for each stream. It may be called from several goroutines at once.
	// nil: nobody asks.
	Inferred func(Inferred)
	// LeftOut reports whether a file has no say in the types that the values of all files give, since its rows are left
	// out. It is called when sources are opened. nil: none is.
	LeftOut func(path string) bool
	// Stdin is what the path "-" reads; default os.Stdin.
	Stdin io.Reader
	// Records, when set, are what the path "-" reads instead. The caller closes them, after every Source of them.
	Records *arrowsource.Records
	// Known returns the features of the table that the dump is for: where a source's own types are guessed from its
	// values, as those of JSON lines are, an integer is read as the float that the table has. It is called when a
	// source is opened. nil: none.
	Known func() []catalog.Feature
	// PartitionKeys returns the partition keys of that table. Those that no directory gives are taken from columns,
	// where neither PartitionBy nor the mapping file says by what rows are partitioned. It is called when a source is
	// opened. nil, or none: nothing is known.
	PartitionKeys func() []string
	// StorageOptions say how the object stores are reached that paths name, as object.OpenWith takes them.
	StorageOptions map[string]string
	// TempDir returns where temporary files are made. Default: the system's directory for them.
	TempDir func() (string, error)
	Limits  column.Limits
}

const (
	defaultChunkBytes = 8 << 20
	defaultPageBytes  = 256 << 20
)

// A RowError is a row whose value has no place: Place and Column say which.
type RowError struct {
	Place  Place
	Column string
	Err    error
}

func (e *RowError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("%v: %v", e.Place, e.Err)
	}
	return fmt.Sprintf("%v, column %q: %v", e.Place, e.Column, e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }
