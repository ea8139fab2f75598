package reader

import (
	"context"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/cache"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/lease"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// What package plan has for users of readers.
type (
	Plan        = plan.Plan
	PlanOptions = plan.Options
	Output      = plan.Output
	Dedup       = plan.Dedup
	Shuffle     = plan.Shuffle
	Unit        = plan.Unit
	Position    = plan.Position
	Split       = plan.Split
)

// What package batch has for users of readers.
type (
	Batch          = batch.Batch
	Tensors        = batch.Tensors
	Matrix         = batch.Matrix
	Jagged         = batch.Jagged
	Group          = batch.Group
	Schema         = batch.Schema
	ListsSchema    = batch.ListsSchema
	Array          = batch.Array
	Info           = batch.Info
	LabelMean      = batch.LabelMean
	InfoTotals     = batch.InfoTotals
	InfoSummary    = batch.InfoSummary
	LabelSummary   = batch.LabelSummary
	InexactError   = batch.InexactError
	InexactInteger = batch.InexactInteger
)

// NewSchema returns what the blocks of a plan's batches have, with Options.KeepSlots or without.
func NewSchema(p *Plan, keepSlots bool) *Schema { return batch.NewSchema(p, keepSlots) }

// What package cache has for users of readers.
type (
	Selections = cache.Selections
	ReuseStats = cache.ReuseStats
)

// NewSelections returns Selections that keep about so many bytes.
func NewSelections(maxBytes int64) *Selections { return cache.NewSelections(maxBytes) }

// Reused returns what was reused so far, of all readers of the process.
func Reused() ReuseStats { return cache.Reused() }

// Stats are what a reader has done so far.
type Stats = metering.Stats

// ReleaseReused frees what closed readers with Options.Reuse left, without waiting for its minute to pass, and gives
// back their leases.
func ReleaseReused() {
	execution.ReleaseReused()
	lease.ReleaseKept()
}

// LeaseOptions say how a reader that is open keeps what it reads from gc.
type LeaseOptions = lease.Options

// An Allocator provides the memory that batches are made of.
type Allocator = memory.Allocator

const (
	OutputColumns    = plan.OutputColumns
	OutputTensors    = plan.OutputTensors
	DedupKJT         = plan.DedupKJT
	DedupIKJT        = plan.DedupIKJT
	DedupPartial     = plan.DedupPartial
	UnitNone         = plan.UnitNone
	UnitSession      = plan.UnitSession
	UnitRow          = plan.UnitRow
	MaxBatchSize     = plan.MaxBatchSize
	MaxBufferStripes = plan.MaxBufferStripes
)

// ErrSelection is matched when an entry of PlanOptions.Features is nothing that selects features, whatever the table
// has.
var ErrSelection = plan.ErrSelection

// NewPlan makes a plan over a snapshot: see plan.New.
func NewPlan(ctx context.Context, snap *storage.Snapshot, opts PlanOptions) (*Plan, error) {
	return plan.New(ctx, snap, opts)
}

// NewViewPlan makes a plan over what a branch reads, as NewPlan does over a snapshot.
func NewViewPlan(ctx context.Context, v *storage.View, opts PlanOptions) (*Plan, error) {
	return plan.NewOfView(ctx, v, opts)
}

// ParseOutput returns the Output that String prints as s.
func ParseOutput(s string) (Output, error) { return plan.ParseOutput(s) }

// ParseDedup returns the Dedup that String prints as s.
func ParseDedup(s string) (Dedup, error) { return plan.ParseDedup(s) }

// ParseUnit returns the Unit that String prints as s.
func ParseUnit(s string) (Unit, error) { return plan.ParseUnit(s) }

// IsPartitionKey reports whether a feature of a plan is a partition key.
func IsPartitionKey(f catalog.Feature) bool { return plan.IsPartitionKey(f) }

// Names reports whether an entry of PlanOptions.Features selects a feature by its name.
func Names(entry, name string) bool { return plan.Names(entry, name) }

// Literal returns the entry of PlanOptions.Features that selects the feature of a name alone.
func Literal(name string) string { return plan.Literal(name) }

// WeightFeature is the name that the weights of PlanOptions.Downsample have in a plan.
const WeightFeature = plan.WeightFeature
