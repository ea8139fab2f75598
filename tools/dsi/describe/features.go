package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Features lists a table's features and their types.
type Features struct {
	app.TableArgs
	app.AtFlag
	Features []string `complete:"features" help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions)." default:"@all"`
	Totals   bool     `help:"Show coverage, values, bytes and duplicates of each feature. values/row is over all rows, null ones too; of strings it counts bytes. This reads every segment's index."`
}

// FeatureJSON is a feature as --json prints it.
type FeatureJSON struct {
	Name         string `json:"feature"`
	ID           string `json:"id,omitempty"` // none: a partition key
	Kind         string `json:"kind"`
	Type         string `json:"type"`
	Role         string `json:"role,omitempty"`
	Status       string `json:"status,omitempty"` // none: active
	Logical      string `json:"logical,omitempty"`
	OriginColumn string `json:"origin_column,omitempty"`
	OriginKey    string `json:"origin_key,omitempty"`

	*totalsJSON
}

// totalsJSON is what the segments hold of a feature, with --totals. Rows that a segment has no feature file for are
// null.
type totalsJSON struct {
	Segments    uint64  `json:"segments"`
	Rows        uint64  `json:"rows"`
	NullRows    uint64  `json:"null_rows"`
	Coverage    float64 `json:"coverage"`
	Elements    uint64  `json:"elements"`
	RawBytes    uint64  `json:"raw_bytes"`
	StoredBytes uint64  `json:"stored_bytes"`
	// Duplicates, as found at ingest.
	Factor     float64 `json:"dedupe_factor"`
	Slots      uint64  `json:"slots"`
	Partial    uint64  `json:"partial"`
	Group      string  `json:"group"` // its first feature
	SavedBytes uint64  `json:"saved_bytes_estimate"`
}

// NewFeatureJSON returns a feature as --json prints it.
func NewFeatureJSON(f catalog.Feature) FeatureJSON {
	if reader.IsPartitionKey(f) {
		return FeatureJSON{Name: f.Name, Kind: f.Type.Kind.String(), Type: f.Type.String(), Role: "partition key"}
	}
	status := ""
	if f.Status != catalog.FeatureActive {
		status = f.Status.String()
	}
	return FeatureJSON{
		Name: f.Name, ID: fmt.Sprintf("%016x", uint64(f.ID)), Kind: f.Type.Kind.String(), Type: f.Type.String(),
		Role: roleText(f.Role), Status: status, Logical: f.Logical, OriginColumn: f.OriginColumn,
		OriginKey: f.OriginKey,
	}
}

// Run runs the command.
func (c *Features) Run(ctx context.Context, e *app.Env) error {
	view, err := c.OpenView(ctx, e, c.AtFlag)
	if err != nil {
		return err
	}
	plan, err := reader.NewViewPlan(ctx, view, reader.PlanOptions{Features: c.Features})
	if err != nil {
		return err
	}
	infos := make([]FeatureJSON, len(plan.Features))
	for i, f := range plan.Features {
		infos[i] = NewFeatureJSON(f)
	}
	if c.Totals {
		if err := addTotals(ctx, view.Snapshot, infos); err != nil {
			return err
		}
	}
	if e.JSON {
		return e.PrintJSON(struct {
			app.Head
			Features []FeatureJSON `json:"features"`
		}{app.Of(view.Snapshot.Table().Store(), c.Table, plan.Snapshot), infos})
	}
	PrintFeatures(e, infos)
	return nil
}

// addTotals sets the totals of each feature.
func addTotals(ctx context.Context, snap *storage.Snapshot, infos []FeatureJSON) error {
	all, err := snap.FeatureTotals(ctx)
	if err != nil {
		return err
	}
	byName := make(map[string]snapshot.FeatureTotals, len(all))
	for _, t := range all {
		byName[t.Name] = t
	}
	rows := snap.Info().Rows
	for i := range infos {
		if infos[i].ID == "" {
			continue // a partition key takes no bytes
		}
		t := byName[infos[i].Name]
		nulls := rows - t.Rows + t.NullRows
		infos[i].totalsJSON = &totalsJSON{
			Segments: t.Segments, Rows: rows, NullRows: nulls, Coverage: float64(rows-nulls) / float64(max(rows, 1)),
			Elements: t.Elements, RawBytes: t.RawBytes, StoredBytes: t.StoredBytes,
			Factor: t.Factor(), Slots: t.Slots, Partial: t.Partial, Group: t.Group, SavedBytes: t.SavedBytes,
		}
	}
	return nil
}

// PrintFeatures prints a line per feature, without the columns that would be empty throughout.
func PrintFeatures(e *app.Env, features []FeatureJSON) {
	names := strings.Split("feature, kind, type, role, status, logical, from column, #coverage, #values/row, #raw, "+
		"#stored, #dedupe, #partial, group", ", ")
	rows := make([][]string, len(features))
	for i, f := range features {
		rows[i] = append([]string{f.Name, f.Kind, f.Type, f.Role, f.Status, f.Logical, f.OriginColumn},
			f.totalsJSON.cells()...)
	}
	for i := len(names) - 1; i >= 0; i-- {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
			names = slices.Delete(names, i, i+1)
			for r := range rows {
				rows[r] = slices.Delete(rows[r], i, i+1)
			}
		}
	}
	e.PrintTable(strings.Join(names, ", "), rows)
}

// cells are the last columns of PrintFeatures.
func (t *totalsJSON) cells() []string {
	if t == nil {
		return make([]string, 7)
	}
	partial := ""
	if t.Partial > 0 {
		partial = terminal.Count(t.Partial)
	}
	return []string{
		fmt.Sprintf("%.3f", t.Coverage), fmt.Sprintf("%.2f", float64(t.Elements)/float64(max(t.Rows, 1))),
		terminal.Bytes(t.RawBytes), terminal.Bytes(t.StoredBytes), fmt.Sprintf("%.2f", t.Factor), partial, t.Group,
	}
}

// roleText prints a role, "" for a plain feature.
func roleText(r catalog.Role) string {
	if r == catalog.RoleFeature {
		return ""
	}
	return r.String()
}
