package column

import "context"

// A Reader reads one input of one format.
type Reader interface {
	// Columns returns the types of the input's columns. It may return more after a batch than before, never fewer.
	Columns() []*Type
	// Next returns the next batch, which the caller owns, and io.EOF after the last. Its errors need not name the file.
	Next(ctx context.Context) (*Batch, error)
	Close() error
}

// A Projector is a Reader that can leave columns unread: their arrays are nil.
// Neither do members of structs that are unread have values.
type Projector interface{ Project(wanted []bool) error }

// An EmptyFile is a Reader of a format whose files say nothing of their columns where they have no rows: parts of
// a dump that are empty but for their compression.
type EmptyFile interface{ IsEmpty() bool }

// A Batch is consecutive rows.
type Batch struct {
	Rows     int
	Arrays   []*Array // aligned with Columns; nil or missing at the end: null in every row
	RowGroup int      // -1: none
	Row      int64    // of the first row, in the file
	Lines    []int64  // of each row; nil: none
	// Hold keeps what the arrays borrow: one reference is the batch's. nil: the arrays are owned.
	Hold     holder
	Resident bool     // what is borrowed is in memory anyway
	Bad      []BadRow // rows that the reader could not read; the arrays hold nulls in their place
}

// Part returns a copy of rows [lo, hi).
func (b *Batch) Part(lo, hi int) *Batch {
	out := &Batch{Rows: hi - lo, RowGroup: b.RowGroup, Row: b.Row + int64(lo), Arrays: make([]*Array, len(b.Arrays))}
	for i, a := range b.Arrays {
		if a != nil {
			out.Arrays[i] = NewArray(a.Type)
			out.Arrays[i].AppendFrom(a, lo, hi)
		}
	}
	if b.Lines != nil {
		out.Lines = b.Lines[lo:hi]
	}
	for _, r := range b.Bad {
		if r.Row >= lo && r.Row < hi {
			r.Row -= lo
			out.Bad = append(out.Bad, r)
		}
	}
	return out
}

// A holder counts who uses what was borrowed of it.
type holder interface {
	Retain()
	Release()
}

// A BadRow is a row that cannot be stored, and why. Column is empty where it is the row as a whole.
type BadRow struct {
	Row    int
	Column string
	Err    error
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
	MinRows = 256
	MaxRows = 1 << 16
)
