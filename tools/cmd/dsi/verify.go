package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/command"
)

type verifyCmd struct {
	storeArg
	metricsFlag
	Table string `arg:"" optional:"" help:"Check this table only."`
	Deep  bool   `help:"Read everything and check every checksum. Default: check that everything is there with the right size."`
}

// verifyJSON is what verify prints with --json.
type verifyJSON struct {
	Store       string   `json:"store"`
	Deep        bool     `json:"deep"`
	Tables      uint64   `json:"tables"`
	Snapshots   uint64   `json:"snapshots"`
	Segments    uint64   `json:"segments"`
	RowSets     uint64   `json:"row_sets"`
	Objects     uint64   `json:"objects"`
	Features    uint64   `json:"feature_files"`
	Stripes     uint64   `json:"stripes"`
	Bytes       uint64   `json:"bytes"`
	DamageCount uint64   `json:"damage_count"`
	Damage      []string `json:"damage"`
	Seconds     float64  `json:"seconds"`
	// DamagedUsageRecords is no damage of the store: what they say of who read what is lost.
	DamagedUsageRecords uint64 `json:"damaged_usage_records"`
}

func (c *verifyCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	bar := a.progress("verifying", unitBytes)
	defer bar.finish()
	start := time.Now()
	r, err := storage.Verify(ctx, store, c.Table, c.Deep, func(done, total uint64) { bar.set(int64(done), int64(total)) })
	bar.finish()
	if err != nil {
		return err
	}
	out := verifyJSON{
		store.Blobs().URI(), r.Deep, r.Tables, r.Snapshots, r.Segments, r.RowBitmaps, r.Objects, r.Features, r.Stripes, r.Bytes, r.DamageCount,
		[]string{}, time.Since(start).Seconds(), 0,
	}
	records, err := a.verifyUsage(ctx, store, c.Table)
	if err != nil {
		return err
	}
	out.DamagedUsageRecords = records.DamagedCount
	for _, d := range r.Damage {
		out.Damage = append(out.Damage, oneLine(d.Error()))
	}
	if a.json {
		err = a.printJSON(out)
	} else {
		a.printVerified(out)
		a.printDamagedRecords(records)
	}
	if err == nil && out.DamageCount > 0 {
		err = fmt.Errorf("%w: %s in %s", command.ErrDamage, plural(out.DamageCount, "fault"), out.Store)
	}
	return err
}

func (a *app) printVerified(v verifyJSON) {
	for _, d := range v.Damage {
		a.printf("%s\n", d)
	}
	if more := v.DamageCount - uint64(len(v.Damage)); more > 0 {
		a.printf("... and %s more\n", countText(more))
	}
	looked := fmt.Sprintf("%s, %s, %s, %s, %s", plural(v.Tables, "table"), plural(v.Snapshots, "snapshot"), plural(v.Segments, "segment"),
		plural(v.Objects, "object"), bytesText(v.Bytes))
	if v.Deep {
		looked += fmt.Sprintf("; every checksum of %s in %s", plural(v.Stripes, "stripe"), plural(v.Features, "feature file"))
	}
	verdict := "no damage"
	if v.DamageCount > 0 {
		verdict = plural(v.DamageCount, "fault")
	}
	a.printf("%s: %s (%.1f s)\n", verdict, looked, v.Seconds)
}
