package main

import (
	"context"

	"github.com/dsistore/dsistore/storage"
)

type tablesCmd struct{ storeArg }

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

func snapshotInfo(i storage.SnapshotInfo) snapshotJSON {
	return snapshotJSON{
		Number: i.Number, Time: i.Time.UTC().Format("2006-01-02T15:04:05.000Z"), Operation: i.Operation, Rows: i.Rows,
		RowsAdded: i.AddedRows, RowsRemoved: i.RemovedRows, RowsDeleted: i.DeletedRows, Features: i.Features, Segments: i.Segments, Bytes: i.Bytes,
	}
}

func (c *tablesCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	names, err := store.Tables(ctx)
	if err != nil {
		return err
	}
	type tableJSON struct {
		Name string `json:"table"`
		snapshotJSON
	}
	out := struct {
		Store  string      `json:"store"`
		Tables []tableJSON `json:"tables"`
	}{store.Blobs().URI(), []tableJSON{}}
	var rows [][]string
	for _, name := range names {
		snap, err := atFlag{}.snapshot(ctx, store, name)
		if err != nil {
			return err
		}
		i := snap.Info()
		out.Tables = append(out.Tables, tableJSON{name, snapshotInfo(i)})
		rows = append(rows, []string{name, countText(i.LiveRows()), countText(i.Features), countText(i.Segments), bytesText(i.Bytes),
			countText(i.Number), timeText(i.Time)})
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(rows) == 0 {
		a.printf("no tables in %s\n", store.Blobs().URI())
		return nil
	}
	a.printTable([]string{"table", "rows", "features", "segments", "bytes", "snapshot", "time"}, rows,
		"rows", "features", "segments", "bytes", "snapshot")
	return nil
}

type snapshotsListCmd struct{ tableArgs }

func (c *snapshotsListCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	t, err := store.Table(ctx, c.Table)
	if err != nil {
		return err
	}
	infos, err := t.Snapshots(ctx)
	if err != nil {
		return err
	}
	if a.json {
		out := struct {
			Store     string         `json:"store"`
			Table     string         `json:"table"`
			Snapshots []snapshotJSON `json:"snapshots"`
		}{store.Blobs().URI(), c.Table, []snapshotJSON{}}
		for _, i := range infos {
			out.Snapshots = append(out.Snapshots, snapshotInfo(i))
		}
		return a.printJSON(out)
	}
	var rows [][]string
	for _, i := range infos {
		rows = append(rows, []string{countText(i.Number), timeText(i.Time), i.Operation, countText(i.LiveRows()), "+" + countText(i.AddedRows),
			"-" + countText(i.RemovedRows), countText(i.Features), countText(i.Segments), bytesText(i.Bytes)})
	}
	a.printTable([]string{"snapshot", "time", "operation", "rows", "added", "removed", "features", "segments", "bytes"}, rows,
		"snapshot", "rows", "added", "removed", "features", "segments", "bytes")
	return nil
}
