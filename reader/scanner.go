package reader

import (
	"context"

	"github.com/dsistore/dsistore/storage"
)

// Options say how to read. They do not change what is read. The zero value works.
type Options struct {
	// MemoryBudget bounds the bytes of stripes fetched and decoded ahead. One stripe of all features is always let
	// through. Default 256 MiB.
	MemoryBudget int64
	// MaxBatches bounds the batches that are made and not yet released; Next waits for a Release beyond it. Default 4
	// more than Workers.
	MaxBatches int
	// Workers decode and assemble. Default GOMAXPROCS.
	Workers int
	// Requests bounds the reads in flight. Default 16.
	Requests int
	// GapBytes: ranges of an object that lie no further apart are read as one. Default 64 KiB.
	GapBytes int64
	// RequestBytes: a longer range is read as several requests. Default 8 MiB.
	RequestBytes int64
	// Presence asks for the presence bitmaps of tensors.
	Presence bool
	// Split reads only that part of the plan; batches are counted from its first row.
	Split *Split
	// Allocator provides the memory of batches. Default: Go's heap.
	Allocator Allocator
}

// An Allocator provides the memory that batches are made of. Its methods are safe for concurrent use.
type Allocator interface {
	// Allocate returns n bytes, aligned to 64; their content is undefined.
	Allocate(n int) []byte
	// Free takes back a slice that Allocate returned, whole.
	Free(b []byte)
}

// Stats are what a Scanner has done so far.
type Stats struct {
	Rows, Batches   uint64
	BytesNeeded     uint64 // of the projected stripes
	BytesOverRead   uint64 // of the gaps between them that were read too
	Requests        uint64
	DecodeSeconds   float64 // over all workers: checksum, decode, convert
	AssembleSeconds float64 // over all workers: making batches of stripes
	StallSeconds    float64 // Next waited
	// DedupeFactor is rows over slots of the stripes decoded; 1 without duplicates.
	DedupeFactor float64
}

// Open returns a Scanner of the plan's rows. The snapshot must be the plan's.
func Open(ctx context.Context, snap *storage.Snapshot, plan *Plan, opts Options) (*Scanner, error) {
	return nil, errStub
}

// OpenPlan finds the plan's snapshot in the store and returns a Scanner of its rows.
func OpenPlan(ctx context.Context, store *storage.Store, plan *Plan, opts Options) (*Scanner, error) {
	return nil, errStub
}

// A Scanner gives the batches of a plan, or of one split of it. Next, Seek and Close are called from one goroutine;
// Batch.Release and Stats from any.
type Scanner struct{}

// Next returns the next Batch, or io.EOF after the last. It waits while Options.MaxBatches are unreleased, and returns
// ctx.Err() when ctx ends first. After any other error every later call returns that error.
func (s *Scanner) Next(ctx context.Context) (*Batch, error) { return nil, errStub }

// Rows returns how many rows the scanner gives in an epoch.
func (s *Scanner) Rows() uint64 { return 0 }

// Plan returns the plan. Borrowed: do not write.
func (s *Scanner) Plan() *Plan { return nil }

// Position returns the position of the batch that Next gives.
func (s *Scanner) Position() Position { return Position{} }

// Seek makes p the position, without reading what comes before. Batches given stay valid.
func (s *Scanner) Seek(p Position) error { return errStub }

// Stats may be called at any time, also after Close.
func (s *Scanner) Stats() Stats { return Stats{} }

// Close stops all work and waits for it. Batches given stay valid until Release.
func (s *Scanner) Close() error { return nil }
