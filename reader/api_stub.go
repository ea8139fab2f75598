package reader

// STUB: signatures that land first; replaced as the parts arrive.

import (
	"context"
	"errors"

	"github.com/dsistore/dsistore/storage"
)

var errStub = errors.New("reader: not built yet")

func selectFeatures(ctx context.Context, snap *storage.Snapshot, names []string) ([]storage.Feature, error) {
	return nil, errStub
}

// MarshalJSON and UnmarshalJSON are the stable, versioned encoding of a Plan.
func (p *Plan) MarshalJSON() ([]byte, error)     { return nil, errStub }
func (p *Plan) UnmarshalJSON(data []byte) error  { return errStub }
func (s Split) MarshalJSON() ([]byte, error)     { return nil, errStub }
func (s *Split) UnmarshalJSON(data []byte) error { return errStub }

// Hash identifies the plan: of its encoding.
func (p *Plan) Hash() uint64 { return 0 }

// A Layout is where a plan's rows lie: the plan put against its snapshot. Safe for concurrent use.
type Layout struct{}

// NewLayout lists the segments that the plan selects. It opens none of them.
func NewLayout(ctx context.Context, snap *storage.Snapshot, plan *Plan) (*Layout, error) {
	return nil, errStub
}

// Rows returns the rows that the plan selects; Batches how many batches they make.
func (l *Layout) Rows() uint64    { return 0 }
func (l *Layout) Batches() uint64 { return 0 }

// Splits cuts the plan into at most n parts of about equal rows at stripe boundaries. It opens at most n segments.
func (l *Layout) Splits(ctx context.Context, n int) ([]Split, error) { return nil, errStub }

// A Cost is what reading a layout takes.
type Cost struct {
	Rows, Segments, Stripes    uint64
	Requests                   uint64
	BytesNeeded, BytesOverRead uint64
}

// Cost opens every segment and adds up what a Scanner with the options would read.
func (l *Layout) Cost(ctx context.Context, opts Options) (Cost, error) { return Cost{}, errStub }
