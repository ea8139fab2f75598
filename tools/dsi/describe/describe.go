package describe

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Describe sums up a table.
type Describe struct {
	app.TableArgs
	app.AtFlag
	Totals bool `help:"Summarize the duplicates that ingest found. This reads every segment's index."`
}

func sumDuplicates(all []snapshot.FeatureTotals) *Duplicates {
	var sum snapshot.FeatureTotals
	groups := map[string]bool{}
	d := new(Duplicates)
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
	d.Factor, d.Slots, d.Groups = sum.Factor(), sum.Slots, uint64(len(groups))
	return d
}

// describeJSON is what describe prints with --json.
type describeJSON struct {
	Store        string      `json:"store"`
	StoreVersion json.Number `json:"store_version"`
	Table        string      `json:"table"`
	snapshotJSON
	BytesPerRow    float64           `json:"bytes_per_row"`
	Kinds          map[string]int    `json:"kinds"`
	Roles          map[string]string `json:"roles"`
	Labels         []string          `json:"labels"`
	Partitions     int               `json:"partitions"`
	FirstPartition string            `json:"first_partition"`
	LastPartition  string            `json:"last_partition"`
	Duplicates     *Duplicates       `json:"duplicates,omitempty"` // with --totals
}

// Run runs the command.
func (c *Describe) Run(ctx context.Context, e *app.Env) error {
	snap, err := c.OpenSnapshot(ctx, e, c.AtFlag)
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
		Store: snap.Table().Store().Blobs().URI(), StoreVersion: storage.Version,
		Table: c.Table, snapshotJSON: newSnapshotJSON(snap.Info()),
		Kinds: map[string]int{}, Roles: map[string]string{}, Labels: []string{}, Partitions: len(partitions),
	}
	d.BytesPerRow = float64(d.Bytes) / float64(max(d.Rows, 1))
	for _, f := range features {
		d.Kinds[f.Type.Kind.String()]++
		switch {
		case f.Role == catalog.RoleLabel:
			d.Labels = append(d.Labels, f.Name)
		case f.Role != catalog.RoleFeature:
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
	return e.Print(d, d.facts()...)
}

// facts returns the description for people.
func (d *describeJSON) facts() [][2]string {
	facts := [][2]string{
		{"table", d.Table},
		{"store", d.Store},
		{"store version", d.StoreVersion.String()},
		{"snapshot", fmt.Sprintf("%d, %s, %s", d.Number, d.Operation, d.Time)},
		{"rows", terminal.Count(d.Rows - d.RowsDeleted)},
		{"bytes", fmt.Sprintf("%s, %.1f per row", terminal.Bytes(d.Bytes), d.BytesPerRow)},
		{"segments", terminal.Count(d.Segments)},
	}
	add := func(name, value string) { facts = append(facts, [2]string{name, value}) }
	if d.RowsDeleted > 0 {
		add("deleted", terminal.Plural(d.RowsDeleted, "row")+", stored and seen by no reader")
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(d.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", d.Kinds[kind], kind))
	}
	add("features", fmt.Sprintf("%s: %s", terminal.Count(d.Features), strings.Join(kinds, ", ")))
	for _, role := range slices.Sorted(maps.Keys(d.Roles)) {
		add(role, d.Roles[role])
	}
	if len(d.Labels) > 0 {
		add("labels", strings.Join(d.Labels, ", "))
	}
	switch {
	case d.Partitions == 1 && d.FirstPartition == "":
		add("partitions", "none")
	case d.Partitions > 0:
		add("partitions", fmt.Sprintf("%s, from %s to %s", terminal.Count(d.Partitions), d.FirstPartition,
			d.LastPartition))
	}
	if d.Duplicates != nil {
		add("duplicates", d.Duplicates.String())
	}
	return facts
}
