package source

import "context"

// A batchReader reads one input of one format.
type batchReader interface {
	// columns returns the types of the input's columns. It may return more after a batch than before, never fewer.
	columns() []*node
	// next returns the next batch, which the caller owns, and io.EOF after the last. Its errors need not name the file.
	next(ctx context.Context) (*batch, error)
	close() error
}

// A columnChooser is a batchReader that can leave columns unread: their arrays are nil.
// Neither do members of structs that are unread have values.
type columnChooser interface{ want(wanted []bool) error }

// An emptyReader is a batchReader of a format whose files say nothing of their columns where they have no rows: parts of
// a dump that are empty but for their compression.
type emptyReader interface{ hasNothing() bool }

// A batch is consecutive rows.
type batch struct {
	rows     int
	arrays   []*array // aligned with columns(); nil or missing at the end: null in every row
	rowGroup int      // -1: none
	row      int64    // of the first row, in the file
	lines    []int64  // of each row; nil: none
	// hold keeps what the arrays borrow: one reference is the batch's. nil: the arrays are owned.
	hold     holder
	resident bool     // what is borrowed is in memory anyway
	bad      []badRow // rows that the reader could not read; the arrays hold nulls in their place
}

// A holder counts who uses what was borrowed of it.
type holder interface {
	Retain()
	Release()
}

type badRow struct {
	row    int
	column string
	err    error
}

// ReadOptions are what all readers of formats need. Every field is set.
type ReadOptions struct {
	Limits     Limits
	ChunkBytes int64 // aim for batches of about this
	PageBytes  int64 // the most that the open pages of a Parquet file hold between batches
	Threads    int   // that decode one file
}

// How many rows a batch has, where the size of rows does not say less.
const (
	minRows = 256
	maxRows = 1 << 16
)
