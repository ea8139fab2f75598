// Package source reads dumps: Parquet, Hive layouts, Hive text, JSON lines, Arrow streams, ORC.
package source

// STUB: the signatures that the ingest engine codes against; the source owner replaces this file.

import (
	"context"
	"errors"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

var errStub = errors.New("source: not built yet")

// A Field is a feature that a source offers. Fields are compared by pointer within one Source: the same feature of one
// Source is always the same *Field, but its Type may differ between Sources (files); the engine widens.
type Field struct {
	Name    string
	Type    vector.Type
	Role    storage.Role
	Logical string
	// Set on features that came out of a map or struct column.
	OriginColumn, OriginKey string
}

// A Chunk is some consecutive rows of one source, all of one partition. A Field that is not in Fields is null in every
// row. Columns are plain (no Inverse). The caller owns the chunk.
type Chunk struct {
	Rows      int
	Partition storage.Partition
	Fields    []*Field
	Columns   []*vector.Column // aligned with Fields
	Place     Place            // of the first row
}

// A Place says where rows came from, for messages: file, row group, row in the file.
type Place struct {
	File     string
	RowGroup int // -1 where there is none
	Row      int64
}

// A Source is one file or stream. Not safe for concurrent use.
type Source interface {
	// Fields returns the features known before reading (keys of maps are found while reading).
	Fields() []*Field
	// Next returns the next chunk, io.EOF after the last. Errors name file, row group, row and column.
	Next(ctx context.Context) (*Chunk, error)
	Close() error
}

// A File is a discovered input, not yet opened.
type File struct {
	Path        string
	Size        int64
	Partition   storage.Partition
	Open        func(ctx context.Context) (Source, error)
	Fingerprint func(ctx context.Context) (string, error) // content hash; for stdin known only at the end
}

// Options say how to read.
type Options struct {
	Format      string // auto, parquet, hive, orc, text, jsonl, arrow
	MappingFile string
	DDLFile     string
	OnBadRow    func(place Place, column string, err error) // nil: fail at the first
	ChunkBytes  int64                                       // aim for chunks of about this; default 8 MiB
	// SessionKey, TimeKey: columns named on the command line; they get roles and must exist.
	SessionKey, TimeKey string
}

// Discover lists the files that the paths ("-" is stdin) hold, in a deterministic order.
func Discover(ctx context.Context, paths []string, opts Options) ([]File, error) { return nil, errStub }
