package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// Output is the form of a Batch. The numbers are written into plans and never change meaning.
type Output uint8

const (
	// OutputColumns: an exact typed column for each feature.
	OutputColumns Output = 1
	// OutputTensors: the dense matrix, labels and jagged tensors of a trainer, and exact columns for other features.
	OutputTensors Output = 2
)

var outputNames = []string{OutputColumns: "columns", OutputTensors: "tensors"}

func (o Output) String() string { return nameOf("output", outputNames, o) }

// ParseOutput returns the Output that String prints as s.
func ParseOutput(s string) (Output, error) { return parseName[Output]("output", outputNames, s) }

const (
	// DefaultBatchSize is the default of Options.BatchSize.
	DefaultBatchSize = 4096
	// MaxBatchSize is the largest number of rows of a batch.
	MaxBatchSize = 1 << 24
)

// Options say what to read. Features is required.
type Options struct {
	// Features are names, globs (* and ?, \ escapes) or the sets @all, @labels, @keys and @partitions, in the order of
	// the batches. A feature that several entries select is read once, at its first position. Names, globs and @all
	// also select partition keys; @all has them last. If a feature and a partition key have the same name, the feature
	// is selected.
	Features []string
	// Partition is a predicate over partition values in the syntax of reader/expr. Default: every partition.
	Partition string
	// Filter is a predicate over features and partition keys in the syntax of reader/expr: only rows for which it is
	// true are read. It is evaluated on stored values, before Transforms. Default: every row.
	Filter string
	// Downsample keeps only a sample of the rows of a class, and adds a weight that makes up for it. With click = 0 AND
	// sample(0.1, key=request_id, seed=7), a tenth of the rows with click = 0 are kept with weight 10; all other rows
	// have weight 1. The weight is an additional feature, the last: WeightFeature, a float32 label. Like a filter,
	// Downsample is evaluated on stored values. It always keeps the same rows. Default: every row.
	Downsample string
	// SampleList is the name of a sample list of the table: only its rows are read. Default: every row.
	SampleList string
	// Overlays are names of overlays to apply to the table, the lowest first, above those of the branch. Default: none.
	Overlays []string
	// BatchSize is the number of rows of every batch except the last. Default 4096.
	BatchSize int
	// Output is the form of batches. Default OutputColumns.
	Output Output
	// Dedup is the form of duplicates in batches. Default DedupKJT: expanded.
	Dedup Dedup
	// Integers are names of features of dense integers. With OutputTensors they become exact columns, like keys,
	// instead of float32 in a matrix. Default: none.
	Integers []string
	// Expand are names, globs and sets among Features. Their lists are expanded to one for each row, whatever Dedup is.
	// This suits features with few duplicates, and models that need an ordinary KJT of them. Default: none.
	Expand []string
	// Transforms change the values of features. A rule by name precedes rules by glob or set. Two globs that select the
	// same feature are an error. Default: none.
	Transforms []transform.Rule
	// Shuffle is the order of rows in an epoch; leave its Key empty. Default: the plan's own order.
	Shuffle Shuffle
}

// A Plan describes completely what a reader reads. It is plain data, with the same encoding wherever it is made from
// the same snapshot and options. It is immutable once made.
type Plan struct {
	Table    string
	Snapshot uint64
	// Features are in the order requested. Their types and Logicals are those of batches: the schema's, which a
	// segment's may be narrower than, after Transforms. A feature without an ID is the partition key of that name: a
	// string column with the value of each row's partition. It is null for Hive's default partition, and if a partition
	// has no such key.
	Features  []catalog.Feature
	Partition string // empty: every partition
	Filter    string // empty: none
	// Downsample is empty for none. Otherwise the last of Features is WeightFeature.
	Downsample string
	// SampleList is empty for none.
	SampleList string
	// Branch is the name of the branch that the plan was made of. It is only informative: Snapshot, Overlays and
	// BranchList say what is read.
	Branch string
	// Overlays are applied to the table, the lowest first, above those that are part of it. Each is used as it is in
	// the pin's snapshot.
	Overlays []catalog.Pin
	// BranchList is the branch's sample list: only rows in it, and in SampleList, are read. Without a name: every row.
	BranchList catalog.Pin
	BatchSize  int
	Output     Output
	Dedup      Dedup
	// Expanded says for each feature whether its lists are expanded whatever Dedup is. nil: none are.
	Expanded []bool
	// Transforms has an element for each feature, zero if it has no transforms. nil: no feature has any.
	Transforms []transform.Bound
	// Exact says for each feature whether it is a dense integer of Options.Integers. nil: none is.
	Exact   []bool
	Shuffle Shuffle
}

// Labels returns the positions in Features of the labels.
func (p *Plan) Labels() []int {
	return p.positions(func(f catalog.Feature) bool { return IsLabel(f.Role) })
}

// Keys returns the positions in Features of the keys.
func (p *Plan) Keys() []int {
	return p.positions(func(f catalog.Feature) bool { return f.Role.IsKey() })
}

func (p *Plan) positions(want func(catalog.Feature) bool) []int {
	var out []int
	for i, f := range p.Features {
		if want(f) {
			out = append(out, i)
		}
	}
	return out
}

// IsLabel reports whether r is the role of labels.
func IsLabel(r catalog.Role) bool { return r == catalog.RoleLabel }

// Pin sets Branch and BranchList from a view, and Overlays from overlays, the lowest first.
func (p *Plan) Pin(v *storage.View, overlays []storage.ViewOverlay) {
	p.Branch = v.Branch
	for _, o := range overlays {
		p.Overlays = append(p.Overlays, catalog.Pin{Name: o.Name, Snapshot: o.In.Info().Number})
	}
	if v.List != "" {
		p.BranchList = catalog.Pin{Name: v.List, Snapshot: v.ListIn.Info().Number}
	}
}

// Lists returns the plan's sample lists.
func (p *Plan) Lists() []catalog.Pin {
	var out []catalog.Pin
	if p.SampleList != "" {
		out = append(out, catalog.Pin{Name: p.SampleList, Snapshot: p.Snapshot})
	}
	if p.BranchList.Name != "" {
		out = append(out, p.BranchList)
	}
	return out
}

// New makes a plan of a snapshot. It looks up names, and reads the whole schema only for globs, and sets other than
// @keys and @partitions. An unknown name is storage.ErrNotFound with suggestions; a glob or set that selects nothing is
// storage.ErrNotFound, too. A malformed entry is ErrSelection.
func New(ctx context.Context, snap *storage.Snapshot, opts Options) (*Plan, error) {
	return NewOfView(ctx, &storage.View{Snapshot: snap}, opts)
}

// NewOfView is New for a view, which is what a branch reads. Features are those of the table with the view's overlays.
func NewOfView(ctx context.Context, v *storage.View, opts Options) (*Plan, error) {
	snap := v.Snapshot
	overlays, err := NamedOverlays(ctx, v, opts.Overlays)
	if err != nil {
		return nil, err
	}
	schema, err := OverlaySchema(ctx, snap, overlays)
	if err != nil {
		return nil, err
	}
	features, err := selectFeatures(ctx, schema, opts.Features)
	if err != nil {
		return nil, err
	}
	shuffle, err := opts.Shuffle.find(ctx, schema, features)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Table: snap.Table().Name(), Snapshot: snap.Info().Number, Features: features,
		Partition: opts.Partition, Filter: opts.Filter, SampleList: opts.SampleList, BatchSize: opts.BatchSize,
		Output: opts.Output, Dedup: opts.Dedup, Shuffle: shuffle,
	}
	p.Pin(v, overlays)
	if p.BatchSize == 0 {
		p.BatchSize = DefaultBatchSize
	}
	if p.Output == 0 {
		p.Output = OutputColumns
	}
	if err := p.TransformBy(opts.Transforms); err != nil {
		return nil, err
	}
	if opts.Downsample != "" {
		if err := p.addWeights(ctx, schema, opts.Downsample); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(p.ExactBy(opts.Integers), p.expand(opts.Expand)); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if _, err := p.PartitionMatch(ctx, snap); err != nil {
		return nil, err
	}
	if p.SampleList != "" {
		if _, err := snap.SampleList(ctx, p.SampleList); err != nil {
			return nil, err
		}
	}
	if p.Filter != "" {
		if _, _, err := ParseFilter(ctx, schema, p.Filter); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Validate returns an error naming the first part of p that is not valid.
func (p *Plan) Validate() error {
	switch {
	case p.Table == "" || !utf8.ValidString(p.Table):
		return fmt.Errorf("plan: table %q is not a name", p.Table)
	case p.Snapshot == 0:
		return errors.New("plan: snapshot 0: snapshots count from 1")
	case len(p.Features) == 0:
		return errors.New("plan: no features")
	case p.BatchSize < 1 || p.BatchSize > MaxBatchSize:
		return fmt.Errorf("plan: batch size %d: want 1 to %d", p.BatchSize, MaxBatchSize)
	case p.Output != OutputColumns && p.Output != OutputTensors:
		return fmt.Errorf("plan: %v: want %s", p.Output, oneOf(outputNames))
	case p.Dedup > DedupPartial:
		return fmt.Errorf("plan: %v: want %s", p.Dedup, oneOf(dedupNames))
	}
	if err := p.ValidateSelection(); err != nil {
		return err
	}
	if err := p.validateView(); err != nil {
		return err
	}
	seen := make(map[catalog.FeatureID]bool, len(p.Features))
	keys := make(map[string]bool)
	for _, f := range p.Features {
		if IsPartitionKey(f) {
			if f != PartitionColumn(f.Name) || f.Name == "" || !utf8.ValidString(f.Name) || keys[f.Name] {
				return fmt.Errorf("plan: feature %q: it has no id, and is no partition key or one that is taken",
					f.Name)
			}
			keys[f.Name] = true
			continue
		}
		if seen[f.ID] {
			return fmt.Errorf("plan: feature %q: id %016x is taken", f.Name, uint64(f.ID))
		}
		seen[f.ID] = true
		if err := validateFeature(f); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	if err := p.validateWeights(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if err := p.validateTransforms(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if err := errors.Join(p.validateExact(), p.validateFlags("expanded", p.Expanded)); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return p.validateShuffle()
}

// ValidateSelection is Validate for the fields that select rows.
func (p *Plan) ValidateSelection() error {
	switch {
	case !utf8.ValidString(p.Partition):
		return fmt.Errorf("plan: partition predicate %q is not UTF-8", p.Partition)
	case !utf8.ValidString(p.Filter):
		return fmt.Errorf("plan: filter %q is not UTF-8", p.Filter)
	case !utf8.ValidString(p.SampleList):
		return fmt.Errorf("plan: sample list %q is not UTF-8", p.SampleList)
	}
	return nil
}

// validateView is Validate for Branch, BranchList and Overlays.
func (p *Plan) validateView() error {
	if !utf8.ValidString(p.Branch) {
		return fmt.Errorf("plan: branch %q is not UTF-8", p.Branch)
	}
	if l := p.BranchList; !utf8.ValidString(l.Name) || (l.Name == "") != (l.Snapshot == 0) {
		return fmt.Errorf("plan: the branch's sample list is %q of snapshot %d", l.Name, l.Snapshot)
	}
	seen := make(map[string]bool, len(p.Overlays))
	for _, o := range p.Overlays {
		if o.Name == "" || !utf8.ValidString(o.Name) || o.Snapshot == 0 || seen[o.Name] {
			return fmt.Errorf("plan: overlay %q of snapshot %d: want each once, by its name and snapshot", o.Name,
				o.Snapshot)
		}
		seen[o.Name] = true
	}
	return nil
}

// validateFeature returns an error naming the first part of f that is not valid.
func validateFeature(f catalog.Feature) error {
	switch {
	case f.Name == "" || !utf8.ValidString(f.Name):
		return fmt.Errorf("feature %016x: name %q is empty or not UTF-8", uint64(f.ID), f.Name)
	case !utf8.ValidString(f.OriginColumn) || !utf8.ValidString(f.OriginKey):
		return fmt.Errorf("feature %q: origin is not UTF-8", f.Name)
	case f.Role > catalog.RoleTimeKey:
		return fmt.Errorf("feature %q: unknown role %d", f.Name, f.Role)
	}
	return validateType(f.Name, f.Type, f.Logical)
}

func validateType(name string, t vector.Type, logical string) error {
	if !utf8.ValidString(logical) {
		return fmt.Errorf("feature %q: logical type is not UTF-8", name)
	}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("feature %q: %w", name, err)
	}
	if t.Kind == vector.Inverse {
		return fmt.Errorf("feature %q: an inverse is not read by itself", name)
	}
	return nil
}

// String prints p, with a line for each field that is set and for each feature.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table      %s\n", p.Table)
	fmt.Fprintf(&b, "snapshot   %d\n", p.Snapshot)
	partition := p.Partition
	if partition == "" {
		partition = "(all)"
	}
	fmt.Fprintf(&b, "partition  %s\n", partition)
	if p.Filter != "" {
		fmt.Fprintf(&b, "filter     %s\n", p.Filter)
	}
	if p.Downsample != "" {
		fmt.Fprintf(&b, "downsample %s\n", p.Downsample)
	}
	if p.SampleList != "" {
		fmt.Fprintf(&b, "samples    %s\n", p.SampleList)
	}
	if p.Branch != "" {
		fmt.Fprintf(&b, "branch     %s\n", p.Branch)
	}
	if l := p.BranchList; l.Name != "" {
		fmt.Fprintf(&b, "samples    %s\n", pinText(l, p.Snapshot))
	}
	for i := len(p.Overlays) - 1; i >= 0; i-- { // as they lie
		fmt.Fprintf(&b, "overlay    %s\n", pinText(p.Overlays[i], p.Snapshot))
	}
	fmt.Fprintf(&b, "batch      %d rows, %v", p.BatchSize, p.Output)
	if p.Dedup != DedupKJT {
		fmt.Fprintf(&b, ", %v", p.Dedup)
	}
	b.WriteByte('\n')
	if p.Shuffle.Unit != UnitNone {
		fmt.Fprintf(&b, "shuffle    %v\n", &p.Shuffle)
	}
	partitions := p.positions(IsPartitionKey)
	fmt.Fprintf(&b, "features   %d (%d labels, %d keys)\n", len(p.Features)-len(partitions), len(p.Labels()),
		len(p.Keys()))
	for i, f := range p.Features {
		if IsPartitionKey(f) {
			fmt.Fprintf(&b, "  %16s  %-20v  %s (%s)\n", "", f.Type, f.Name, partitionRole)
			continue
		}
		fmt.Fprintf(&b, "  %016x  %-20v  %s%s", uint64(f.ID), p.StoredType(i), f.Name, roleSuffix(f.Role))
		if p.Expands(int32(i)) {
			b.WriteString(" (expanded)")
		}
		b.WriteByte('\n')
		if x := p.transform(i); x != nil {
			fmt.Fprintf(&b, "  %16s  %-20v    %v\n", "->", f.Type, x.Chain)
		}
	}
	return b.String()
}

// pinText prints a pin, with its snapshot if that is not the plan's.
func pinText(p catalog.Pin, snapshot uint64) string {
	if p.Snapshot == snapshot {
		return p.Name
	}
	return fmt.Sprintf("%s, as of snapshot %d", p.Name, p.Snapshot)
}

func roleSuffix(r catalog.Role) string {
	if r == catalog.RoleFeature {
		return ""
	}
	return " (" + roleNames[r] + ")"
}

// partitionRole is written into plans as the role of partition keys.
const partitionRole = "partition key"

// roleNames are written into plans.
var roleNames = [...]string{
	catalog.RoleFeature: "feature", catalog.RoleLabel: "label", catalog.RoleSessionKey: "session key",
	catalog.RoleRequestKey: "request key", catalog.RoleUserKey: "user key", catalog.RoleTimeKey: "time key",
}

// PartitionMatch returns the predicate over partitions; nil selects all.
func (p *Plan) PartitionMatch(ctx context.Context, snap *storage.Snapshot) (func(catalog.Partition) bool, error) {
	if p.Partition == "" {
		return nil, nil
	}
	partitions, err := snap.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	var keys []string
	for _, part := range partitions {
		for _, v := range part {
			if !seen[v.Key] {
				seen[v.Key] = true
				keys = append(keys, v.Key)
			}
		}
	}
	if len(partitions) == 0 { // use the keys that the table had when it had segments
		if keys, err = snap.PartitionKeys(ctx); err != nil {
			return nil, err
		}
	}
	match, err := expr.ParsePartition(p.Partition, keys)
	if err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	return match, nil
}
