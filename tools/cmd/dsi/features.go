package main

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

type featuresCmd struct {
	tableArgs
	atFlag
	Features []string `help:"Names, globs (user_*) or sets (@all, @labels, @keys)." default:"@all"`
}

// featureJSON is a feature as --json prints it.
type featureJSON struct {
	Name         string `json:"name"`
	ID           string `json:"id"`
	Kind         string `json:"kind"`
	Type         string `json:"type"`
	Role         string `json:"role,omitempty"`
	Logical      string `json:"logical,omitempty"`
	OriginColumn string `json:"origin_column,omitempty"`
	OriginKey    string `json:"origin_key,omitempty"`
}

func featureInfo(f storage.Feature) featureJSON {
	return featureJSON{
		Name: f.Name, ID: fmt.Sprintf("%016x", uint64(f.ID)), Kind: f.Type.Kind.String(), Type: f.Type.String(),
		Role: roleText(f.Role), Logical: f.Logical, OriginColumn: f.OriginColumn, OriginKey: f.OriginKey,
	}
}

func (c *featuresCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := c.snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: c.Features})
	if err != nil {
		return err
	}
	if a.json {
		out := struct {
			Store    string        `json:"store"`
			Table    string        `json:"table"`
			Snapshot uint64        `json:"snapshot"`
			Features []featureJSON `json:"features"`
		}{store.Blobs().URI(), c.Table, plan.Snapshot, []featureJSON{}}
		for _, f := range plan.Features {
			out.Features = append(out.Features, featureInfo(f))
		}
		return a.printJSON(out)
	}
	a.printFeatures(plan.Features)
	return nil
}

// printFeatures prints a line a feature; columns that would be empty throughout are left out.
func (a *app) printFeatures(features []storage.Feature) {
	names := []string{"feature", "kind", "type", "role", "logical", "from column"}
	used := []bool{true, true, true, false, false, false}
	var all [][]string
	for _, f := range features {
		i := featureInfo(f)
		row := []string{i.Name, i.Kind, i.Type, i.Role, i.Logical, i.OriginColumn}
		for j, cell := range row {
			used[j] = used[j] || cell != ""
		}
		all = append(all, row)
	}
	keep := func(row []string) []string {
		var kept []string
		for j, cell := range row {
			if used[j] {
				kept = append(kept, cell)
			}
		}
		return kept
	}
	for j := range all {
		all[j] = keep(all[j])
	}
	a.printTable(keep(names), all)
}

type describeCmd struct {
	tableArgs
	atFlag
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
	if a.json {
		return a.printJSON(d)
	}
	a.printFacts(describeFacts(d))
	return nil
}
