package maintain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Verify checks that what the snapshots refer to is there and whole.
type Verify struct {
	app.StoreArg
	app.MetricsFlag
	Table string `arg:"" optional:"" complete:"tables" help:"Check this table only."`
	Deep  bool   `help:"Read everything and check every checksum. Default: check that everything is there with the right size."`
}

// verifyJSON is what verify prints with --json.
type verifyJSON struct {
	Store       string   `json:"store"`
	Deep        bool     `json:"deep"`
	Tables      uint64   `json:"tables"`
	Snapshots   uint64   `json:"snapshots"`
	Segments    uint64   `json:"segments"`
	RowBitmaps  uint64   `json:"row_bitmaps"`
	Objects     uint64   `json:"objects"`
	Features    uint64   `json:"feature_files"`
	Stripes     uint64   `json:"stripes"`
	Bytes       uint64   `json:"bytes"`
	DamageCount uint64   `json:"damage_count"`
	Damage      []string `json:"damage"`
	Seconds     float64  `json:"seconds"`
	// Known is what a repair has found damaged, and snapshots before it name: no damage of the table as it is.
	Known uint64 `json:"known"`
	// DamagedUsageRecords is no damage of the store: what they say of who read what is lost.
	DamagedUsageRecords uint64 `json:"usage_records_damaged"`
}

// Run runs the command.
func (c *Verify) Run(ctx context.Context, e *app.Env) error {
	store, err := c.Open(ctx, e)
	if err != nil {
		return err
	}
	bar := e.Progress("verifying", app.UnitBytes)
	defer bar.Finish()
	start := time.Now()
	r, err := store.Verify(ctx, c.Table, c.Deep, func(done, total uint64) { bar.Set(int64(done), int64(total)) })
	bar.Finish()
	if err != nil {
		return err
	}
	out := verifyJSON{
		store.Blobs().URI(), r.Deep, r.Tables, r.Snapshots, r.Segments, r.RowBitmaps, r.Objects, r.Features, r.Stripes,
		r.Bytes, r.DamageCount, []string{}, time.Since(start).Seconds(), r.Known, 0,
	}
	records, err := verifyUsage(ctx, store, c.Table)
	if err != nil && !(r.DamageCount > 0 && errors.Is(err, format.ErrCorrupt)) { // else a damaged marker, which r has
		return err
	}
	out.DamagedUsageRecords = records.DamagedCount
	for _, d := range r.Damage {
		out.Damage = append(out.Damage, terminal.ErrorText(d))
	}
	if err = nil; e.JSON {
		err = e.PrintJSON(out)
	} else {
		printVerified(e, out)
		printDamagedRecords(e, records)
	}
	if err == nil && out.DamageCount > 0 {
		err = fmt.Errorf("%w: %s in %s; dsi repair says what can be done", terminal.ErrDamage,
			terminal.Plural(out.DamageCount, "fault"), out.Store)
	}
	return err
}

func printVerified(e *app.Env, v verifyJSON) {
	for _, d := range v.Damage {
		e.Printf("%s\n", d)
	}
	if more := v.DamageCount - uint64(len(v.Damage)); more > 0 {
		e.Printf("... and %s more\n", terminal.Count(more))
	}
	looked := fmt.Sprintf("%s, %s, %s, %s, %s", terminal.Plural(v.Tables, "table"),
		terminal.Plural(v.Snapshots, "snapshot"), terminal.Plural(v.Segments, "segment"), terminal.Plural(v.Objects,
			"object"), terminal.Bytes(v.Bytes))
	if v.Deep {
		looked += fmt.Sprintf("; every checksum of %s in %s", terminal.Plural(v.Stripes, "stripe"),
			terminal.Plural(v.Features, "feature file"))
	} else {
		looked += "; values were not read: --deep"
	}
	verdict := "nothing is missing"
	switch {
	case v.DamageCount > 0:
		verdict = terminal.Plural(v.DamageCount, "fault")
	case v.Deep:
		verdict = "no damage"
	}
	e.Printf("%s: %s (%.1f s)\n", verdict, looked, v.Seconds)
	if v.Known > 0 {
		e.Printf("left out: %s that a repair found damaged; only snapshots before it, or branches, read them\n",
			terminal.Plural(v.Known, "object"))
	}
}
