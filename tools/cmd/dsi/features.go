package main

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

type featuresListCmd struct {
	tableArgs
	atFlag
	Features []string `help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions)." default:"@all"`
	Totals   bool     `help:"Sum up what the segments hold of each feature: coverage, values, bytes, duplicates. It reads every segment's index."`
}

// featureJSON is a feature as --json prints it.
type featureJSON struct {
	Name         string `json:"name"`
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

// totalsJSON is what the segments hold of a feature, with --totals. Rows that a segment has no feature file for are null.
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

func featureInfo(f storage.Feature) featureJSON {
	if reader.IsPartitionKey(f) {
		return featureJSON{Name: f.Name, Kind: f.Type.Kind.String(), Type: f.Type.String(), Role: "partition key"}
	}
	status := ""
	if f.Status != storage.FeatureActive {
		status = f.Status.String()
	}
	return featureJSON{
		Status: status,
		Name:   f.Name, ID: fmt.Sprintf("%016x", uint64(f.ID)), Kind: f.Type.Kind.String(), Type: f.Type.String(),
		Role: roleText(f.Role), Logical: f.Logical, OriginColumn: f.OriginColumn, OriginKey: f.OriginKey,
	}
}

func (c *featuresListCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	view, err := c.view(ctx, store, c.Table)
	if err != nil {
		return err
	}
	snap := view.Snapshot
	plan, err := reader.NewViewPlan(ctx, view, reader.PlanOptions{Features: c.Features})
	if err != nil {
		return err
	}
	infos := make([]featureJSON, len(plan.Features))
	for i, f := range plan.Features {
		infos[i] = featureInfo(f)
	}
	if c.Totals {
		if err := addTotals(ctx, snap, infos); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(struct {
			Store    string        `json:"store"`
			Table    string        `json:"table"`
			Snapshot uint64        `json:"snapshot"`
			Features []featureJSON `json:"features"`
		}{store.Blobs().URI(), c.Table, plan.Snapshot, infos})
	}
	a.printFeatures(infos)
	return nil
}

// addTotals sets the totals of each feature.
func addTotals(ctx context.Context, snap *storage.Snapshot, infos []featureJSON) error {
	all, err := snap.FeatureTotals(ctx)
	if err != nil {
		return err
	}
	byName := make(map[string]storage.FeatureTotals, len(all))
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

// printFeatures prints a line a feature; columns that would be empty throughout are left out.
func (a *app) printFeatures(features []featureJSON) {
	names := []string{"feature", "kind", "type", "role", "status", "logical", "from column", "coverage", "values a row", "raw", "stored", "dedupe", "partial", "group"}
	used := make([]bool, len(names))
	var all [][]string
	for _, f := range features {
		row := []string{f.Name, f.Kind, f.Type, f.Role, f.Status, f.Logical, f.OriginColumn, "", "", "", "", "", "", ""}
		if t := f.totalsJSON; t != nil {
			row[7] = fmt.Sprintf("%.3f", t.Coverage)
			row[8] = fmt.Sprintf("%.2f", float64(t.Elements)/float64(max(t.Rows, 1)))
			row[9], row[10] = bytesText(t.RawBytes), bytesText(t.StoredBytes)
			row[11], row[13] = fmt.Sprintf("%.2f", t.Factor), t.Group
			if t.Partial > 0 {
				row[12] = countText(t.Partial)
			}
		}
		for i, cell := range row {
			used[i] = used[i] || cell != ""
		}
		all = append(all, row)
	}
	keep := func(row []string) []string {
		var kept []string
		for i, cell := range row {
			if used[i] {
				kept = append(kept, cell)
			}
		}
		return kept
	}
	for i := range all {
		all[i] = keep(all[i])
	}
	a.printTable(keep(names), all, "coverage", "values a row", "raw", "stored", "dedupe", "partial")
}

type describeCmd struct {
	tableArgs
	atFlag
	Totals bool `help:"Sum up the duplicates that ingest found. It reads every segment's index."`
}

// duplicatesJSON sums over features what ingest found.
type duplicatesJSON struct {
	Factor     float64 `json:"dedupe_factor"`
	Slots      uint64  `json:"slots"`
	Partial    uint64  `json:"partial"`
	Groups     int     `json:"groups"`
	Grouped    int     `json:"group_features"`
	SavedBytes uint64  `json:"saved_bytes_estimate"`
}

func sumDuplicates(all []storage.FeatureTotals) *duplicatesJSON {
	var sum storage.FeatureTotals
	groups := map[string]bool{}
	d := new(duplicatesJSON)
	for _, t := range all {
		sum.Elements += t.Elements
		sum.StoredElements += t.StoredElements
		sum.Rows += t.Rows
		sum.Slots += t.Slots
		d.Partial += t.Partial
		d.SavedBytes += t.SavedBytes
		if t.Group != "" {
			groups[t.Group] = true
			d.Grouped++
		}
	}
	d.Factor, d.Slots, d.Groups = sum.Factor(), sum.Slots, len(groups)
	return d
}

// describeJSON is what describe prints with --json.
type describeJSON struct {
	Store string `json:"store"`
	Table string `json:"table"`
	snapshotJSON
	BytesPerRow    float64           `json:"bytes_per_row"`
	Kinds          map[string]int    `json:"kinds"`
	Roles          map[string]string `json:"roles"`
	Labels         []string          `json:"labels"`
	PartitionCount int               `json:"partition_count"`
	FirstPartition string            `json:"first_partition"`
	LastPartition  string            `json:"last_partition"`
	// Duplicates, with --totals.
	Duplicates *duplicatesJSON `json:"duplicates,omitempty"`
}

func (c *describeCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := c.snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	features, err := snap.Features(ctx)
	if err != nil {
		return err
	}
	partitions, err := snap.Partitions(ctx)
	if err != nil {
		return err
	}
	d := describeJSON{
		Store: store.Blobs().URI(), Table: c.Table, snapshotJSON: snapshotInfo(snap.Info()), Kinds: map[string]int{},
		Roles: map[string]string{}, Labels: []string{}, PartitionCount: len(partitions),
	}
	d.BytesPerRow = float64(d.Bytes) / float64(max(d.Rows, 1))
	for _, f := range features {
		d.Kinds[f.Type.Kind.String()]++
		switch {
		case f.Role == storage.RoleLabel:
			d.Labels = append(d.Labels, f.Name)
		case f.Role != storage.RoleFeature:
			d.Roles[roleText(f.Role)] = f.Name
		}
	}
	if len(partitions) > 0 {
		d.FirstPartition, d.LastPartition = partitions[0].String(), partitions[len(partitions)-1].String()
	}
	if c.Totals {
		all, err := snap.FeatureTotals(ctx)
		if err != nil {
			return err
		}
		d.Duplicates = sumDuplicates(all)
	}
	if a.json {
		return a.printJSON(d)
	}
	a.printFacts(describeFacts(d))
	return nil
}
