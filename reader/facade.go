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

// The types of package plan that users of readers need.
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

// The types of package batch that users of readers need.
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

// NewSchema returns the schema of a plan's batches. keepSlots is Options.KeepSlots.
func NewSchema(p *Plan, keepSlots bool) *Schema { return batch.NewSchema(p, keepSlots) }

// The types of package cache that users of readers need.
type (
	Selections = cache.Selections
	ReuseStats = cache.ReuseStats
)

// NewSelections returns Selections that hold about maxBytes.
func NewSelections(maxBytes int64) *Selections { return cache.NewSelections(maxBytes) }

// Reused returns how much all readers of the process have reused so far.
func Reused() ReuseStats { return cache.Reused() }

// Stats are the counters of a reader.
type Stats = metering.Stats

// ReleaseReused frees at once the memory and leases that closed readers with Options.Reuse keep for a minute.
func ReleaseReused() {
	execution.ReleaseReused()
	lease.ReleaseKept()
}

// EndLeases releases all leases of this process, which ends. Readers that are still open lose their protection from gc.
func EndLeases() { lease.EndAll() }

// EndLeasesOf ends the leases on snapshots of a table that readers of processes left, which were killed. It has the
// processes' numbers, as this process sees them.
func EndLeasesOf(ctx context.Context, t *storage.Table, processes []int) error {
	return lease.EndOf(ctx, t, processes)
}

// LeaseOptions say how an open reader protects what it reads from gc.
type LeaseOptions = lease.Options

// An Allocator provides the memory of batches.
type Allocator = memory.Allocator

// ErrNoMemory is matched by the error of a batch for which the Allocator has no memory.
var ErrNoMemory = memory.ErrNoMemory

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

// ErrSelection is returned when an entry of PlanOptions.Features is malformed, whatever features the table has.
var ErrSelection = plan.ErrSelection

// NewPlan makes a plan over a snapshot: see plan.New.
func NewPlan(ctx context.Context, snap *storage.Snapshot, opts PlanOptions) (*Plan, error) {
	return plan.New(ctx, snap, opts)
}

// NewViewPlan is NewPlan over a view, which is what a branch reads.
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

// Matcher returns what an entry of PlanOptions.Features selects: a name, a glob or a set.
func Matcher(entry string) (func(catalog.Feature) bool, error) { return plan.Matcher(entry) }

// Literal returns the entry of PlanOptions.Features that selects only the feature of that name.
func Literal(name string) string { return plan.Literal(name) }

// WeightFeature is the name of the feature that holds the weights of PlanOptions.Downsample.
const WeightFeature = plan.WeightFeature
