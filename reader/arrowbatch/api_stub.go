// Package arrowbatch turns batches into Arrow records and writes them to Parquet and Arrow IPC.
package arrowbatch

// STUB: signatures that land first.

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dsistore/dsistore/reader"
)

var errStub = errors.New("arrowbatch: not built yet")

// Options: the zero value works.
type Options struct {
	// Fold puts the features of one source map or struct back into one column of that type. Default: one column a feature.
	Fold bool
}

// Schema returns the Arrow schema of a plan's batches.
func Schema(p *reader.Plan, opts Options) (*arrow.Schema, error) { return nil, errStub }

// A Converter makes Arrow records of the batches of one plan. Not safe for concurrent use.
type Converter struct{}

// NewConverter returns a Converter for a plan whose Output is OutputColumns.
func NewConverter(p *reader.Plan, opts Options) (*Converter, error) { return nil, errStub }

// Schema returns the schema of every record.
func (c *Converter) Schema() *arrow.Schema { return nil }

// Record returns b as a record, which shares b's memory where the layouts match: release the record before b.
func (c *Converter) Record(b *reader.Batch) (arrow.RecordBatch, error) { return nil, errStub }

// Format is a file format that Write knows.
type Format uint8

const (
	Parquet   Format = 1
	IPCFile   Format = 2
	IPCStream Format = 3
)

// ParseFormat returns the format of a file name or of a name: parquet, arrow (file), stream.
func ParseFormat(name string) (Format, error) { return 0, fmt.Errorf("format %q", name) }

// Write writes every batch that s still gives, in bounded memory, and returns the rows written. It does not close w.
func Write(ctx context.Context, w io.Writer, f Format, s *reader.Scanner, opts Options) (rows uint64, err error) {
	return 0, errStub
}
