package app

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/terminal"
	"github.com/dsistore/dsistore/writer"
)

// PopularFlag is embedded in commands that write packs.
type PopularFlag struct {
	PopularDays int `default:"30" placeholder:"N" help:"In packs, store together the features that were read most in this many days, according to the usage records; 0 ignores the records."`
}

// RecentUsage says which usage records the order of packs was made of.
type RecentUsage struct {
	Days     int    `json:"days"`
	Readers  uint64 `json:"readers"`
	Jobs     int    `json:"jobs"`
	Features int    `json:"features"`
	Damaged  uint64 `json:"records_damaged"`
}

func (r *RecentUsage) String() string {
	text := fmt.Sprintf("read in %d days: %s by %s of %s", r.Days, terminal.Plural(uint64(r.Features), "feature"),
		terminal.Plural(r.Readers, "reader"), terminal.Plural(uint64(r.Jobs), "job"))
	if r.Damaged > 0 {
		text += fmt.Sprintf("; %s passed over, which dsi verify names", terminal.Plural(r.Damaged, "damaged record"))
	}
	return text
}

// Popularity returns what was read of a table lately; nil, and no error, where that is not known: the order of packs is
// not worth a command.
func (f PopularFlag) Popularity(ctx context.Context, e *Env, table *storage.Table) (writer.Popularity, *RecentUsage) {
	if f.PopularDays <= 0 {
		return nil, nil
	}
	r, err := ingest.RecentlyRead(ctx, table, f.PopularDays)
	if err != nil && ctx.Err() == nil {
		e.Warnf("packs have what is small first, not what is read most: %s", terminal.ErrorText(err))
	}
	if err != nil || r == nil {
		return nil, nil
	}
	return r, &RecentUsage{f.PopularDays, r.Total.Readers, len(r.Jobs), len(r.Features), r.DamagedCount}
}
