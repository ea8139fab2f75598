package describe

import (
	"context"

	"github.com/dsistore/dsistore/storage/repair"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Tables lists the tables of a store.
type Tables struct{ app.StoreArg }

// snapshotJSON is a snapshot as --json prints it.
type snapshotJSON struct {
	Number      uint64 `json:"snapshot"`
	Time        string `json:"time"`
	Operation   string `json:"operation"`
	Rows        uint64 `json:"rows"`
	RowsAdded   uint64 `json:"rows_added"`
	RowsRemoved uint64 `json:"rows_removed"`
	RowsDeleted uint64 `json:"rows_deleted"` // of rows: stored, and seen by no reader
	Features    uint64 `json:"features"`
	Segments    uint64 `json:"segments"`
	Bytes       uint64 `json:"bytes"`
}

func newSnapshotJSON(i snapshot.Info) snapshotJSON {
	return snapshotJSON{
		i.Number, terminal.TimeMillis(i.Time), i.Operation, i.Rows, i.AddedRows, i.RemovedRows, i.DeletedRows,
		i.Features, i.Segments, i.Bytes,
	}
}

// Run runs the command.
func (c *Tables) Run(ctx context.Context, e *app.Env) error {
	store, err := c.Open(ctx, e)
	if err != nil {
		return err
	}
	names, err := store.Tables(ctx)
	if err != nil {
		return err
	}
	type tableJSON struct {
		Name string `json:"table"`
		snapshotJSON
		info snapshot.Info
	}
	out := struct {
		app.Head
		Tables []tableJSON `json:"tables"`
	}{app.Of(store, "", 0), []tableJSON{}}
	for _, name := range names {
		_, snap, err := store.Newest(ctx, name)
		if err != nil {
			return err
		}
		out.Tables = append(out.Tables, tableJSON{name, newSnapshotJSON(snap.Info()), snap.Info()})
	}
	return terminal.PrintList(e.Env, out, "no tables in "+out.Store,
		"table, #rows, #features, #segments, #bytes, #snapshot, time", out.Tables, func(t tableJSON) []string {
			i := t.info
			return []string{
				t.Name, terminal.Count(i.LiveRows()), terminal.Count(i.Features), terminal.Count(i.Segments),
				terminal.Bytes(i.Bytes), terminal.Count(i.Number), terminal.Time(i.Time),
			}
		})
}

// Snapshots lists a table's snapshots.
type Snapshots struct{ app.TableArgs }

// Run runs the command.
func (c *Snapshots) Run(ctx context.Context, e *app.Env) error {
	t, err := c.OpenTable(ctx, e)
	if err != nil {
		return err
	}
	infos, err := t.Snapshots(ctx)
	if err != nil {
		return err
	}
	out := struct {
		app.Head
		Snapshots []snapshotJSON `json:"snapshots"`
		Repairs   []repairedJSON `json:"repairs"` // what was removed by the snapshots whose operation is repair
	}{app.Of(t.Store(), c.Table, 0), []snapshotJSON{}, []repairedJSON{}}
	repaired := false
	for _, i := range infos {
		out.Snapshots = append(out.Snapshots, newSnapshotJSON(i))
		repaired = repaired || i.Operation == repair.Operation
	}
	if repaired {
		newest, err := t.Latest(ctx)
		if err != nil {
			return err
		}
		did, err := newest.Repaired(ctx)
		if err != nil {
			return err
		}
		for _, r := range did {
			out.Repairs = append(out.Repairs, repairedJSON{r.Snapshot, r.ID, r.Rows, r.What})
		}
	}
	var before snapshot.Info
	err = terminal.PrintList(e.Env, out, "no snapshots of "+terminal.OneLine(c.Table),
		"#snapshot, time, operation, #rows, #added, #removed, #features, #segments, #bytes", infos,
		func(i snapshot.Info) []string {
			gone := removed(before, i)
			before = i
			return []string{
				terminal.Count(i.Number), terminal.Time(i.Time), i.Operation, terminal.Count(i.LiveRows()),
				"+" + terminal.Count(i.AddedRows), gone, terminal.Count(i.Features),
				terminal.Count(i.Segments), terminal.Bytes(i.Bytes),
			}
		})
	if !e.JSON {
		for _, r := range out.Repairs {
			e.Printf("repaired in snapshot %d: %s\n", r.Snapshot, terminal.OneLine(r.What))
		}
	}
	return err
}

// removed says how many of the rows that readers saw in the snapshot before, and of those that this one added, they do
// not see in this one: those of removed segments, and deleted ones. It is not known if the snapshot before is gone.
func removed(before, i snapshot.Info) string {
	if before.Number+1 != i.Number {
		return "?"
	}
	had := before.LiveRows() + i.AddedRows
	return "-" + terminal.Count(had-min(had, i.LiveRows()))
}

// repairedJSON is what a repair did about one thing, as --json prints it.
type repairedJSON struct {
	Snapshot uint64 `json:"snapshot"`
	ID       string `json:"id,omitempty"`
	Rows     uint64 `json:"rows"` // that were lost
	What     string `json:"what"`
}
