package app

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/azure" // stores at az://
	"github.com/dsistore/dsistore/storage/object/diskcache"
	_ "github.com/dsistore/dsistore/storage/object/gcs" // stores at gs://
	_ "github.com/dsistore/dsistore/storage/object/s3"  // stores at s3://
	"github.com/dsistore/dsistore/tools/terminal"
)

// StoreArg is the argument that every command on a store begins with. What it opens is closed when the command ends.
type StoreArg struct {
	Store string `arg:"" complete:"dirs" help:"Root of the store: a directory, file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix."`
	terminal.Endpoint
	// Cache are the options of the cache on the local disk, for commands that read what a job reads. nil: the store is
	// read as it is, by those that check and change it.
	Cache map[string]string `commandline:"-"`
}

// Place returns where the store is.
func (s StoreArg) Place() terminal.Place { return terminal.Place{Store: s.Store, Endpoint: s.Endpoint} }

// storageOptions are those of the store, and of the cache.
func (s StoreArg) storageOptions() map[string]string {
	options := map[string]string{}
	maps.Copy(options, s.StorageOptions())
	if s.Cache == nil {
		options[diskcache.DirOption] = "" // whatever the environment says
	}
	maps.Copy(options, s.Cache)
	return options
}

// Open opens the store. Where there is none, as on a disk that is not mounted, whatever looks for tables says so.
func (s StoreArg) Open(ctx context.Context, e *Env) (*storage.Store, error) {
	return s.OpenAt(ctx, e, 0)
}

// OpenAt opens the store, to read no more than rate bytes per second, and to write no more than that. 0: no limit.
func (s StoreArg) OpenAt(ctx context.Context, e *Env, rate int64) (*storage.Store, error) {
	return s.with(ctx, e, rate, storage.Open, storage.Options{})
}

// Create opens the store, and makes one where there is none. initialize: also in a directory that is not empty.
func (s StoreArg) Create(ctx context.Context, e *Env, initialize bool) (*storage.Store, error) {
	store, err := s.with(ctx, e, 0, storage.Create, storage.Options{Init: initialize})
	if errors.Is(err, storage.ErrNoStore) {
		err = fmt.Errorf("%w, or add --init to keep a store beside what is there", err)
	}
	return store, err
}

// with opens the store by one of package storage's functions.
func (s StoreArg) with(ctx context.Context, e *Env, rate int64,
	open func(context.Context, object.Store, storage.Options) (*storage.Store, error), opts storage.Options,
) (*storage.Store, error) {
	blobs, err := diskcache.OpenStore(s.Store, s.storageOptions())
	if err != nil {
		return nil, terminal.UsageError{Err: err}
	}
	blobs = e.Metrics.Blobs(blobs)
	if rate > 0 {
		blobs = object.NewThrottled(blobs, rate)
	}
	store, err := open(ctx, blobs, opts)
	if err != nil {
		return nil, err
	}
	e.AtEnd(store.Close)
	e.Metrics.AddStore(store)
	return store, nil
}

// TableNames returns a name, or those of all tables of a store where it is empty.
func TableNames(ctx context.Context, store *storage.Store, name string) ([]string, error) {
	if name != "" {
		return []string{name}, nil
	}
	return store.Tables(ctx)
}

// Tables returns a table of a store, or all where none is named.
func Tables(ctx context.Context, store *storage.Store, name string) ([]*storage.Table, error) {
	names, err := TableNames(ctx, store, name)
	if err != nil {
		return nil, err
	}
	var out []*storage.Table
	for _, n := range names {
		t, err := store.Table(ctx, n)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// TableArgs are the arguments of the commands on a table.
type TableArgs struct {
	StoreArg
	Table string `arg:"" complete:"tables" help:"Name of the table. Commands that read rows, and overlay add, also take TABLE@BRANCH."`
}

// Place returns where the store is, and the table, perhaps with a branch.
func (t TableArgs) Place() terminal.Place {
	at := t.StoreArg.Place()
	at.Table = t.Table
	return at
}

// OpenTable opens the table.
func (t TableArgs) OpenTable(ctx context.Context, e *Env) (*storage.Table, error) {
	store, err := t.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return store.Table(ctx, t.Table)
}

// OpenWhole opens the table for what is done to its newest snapshot; what says what that is. A branch, which would not
// show it, is refused.
func (t TableArgs) OpenWhole(ctx context.Context, e *Env, rate int64, what string) (*storage.Table, error) {
	store, err := t.OpenAt(ctx, e, rate)
	if err != nil {
		return nil, err
	}
	table, branch, err := store.OpenRef(ctx, t.Table)
	if err == nil && branch != "" {
		return nil, terminal.Usagef("%s in the newest snapshot of table %s, not in what branch %s reads: leave @%s out",
			what, table.Name(), branch, branch)
	}
	return table, err
}

// OpenNewest opens the table's newest snapshot.
func (t TableArgs) OpenNewest(ctx context.Context, e *Env) (*storage.Snapshot, error) {
	return t.OpenSnapshot(ctx, e, AtFlag{})
}

// OpenSnapshot opens the snapshot that the flag selects.
func (t TableArgs) OpenSnapshot(ctx context.Context, e *Env, at AtFlag) (*storage.Snapshot, error) {
	store, err := t.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return at.Snapshot(ctx, store, t.Table)
}

// OpenView opens what the arguments mean: of "table@branch" what the branch reads, else a snapshot.
func (t TableArgs) OpenView(ctx context.Context, e *Env, at AtFlag) (*storage.View, error) {
	store, err := t.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	if at.latest() {
		return store.Open(ctx, t.Table)
	}
	table, branch, err := store.OpenRef(ctx, t.Table)
	if err != nil {
		return nil, err
	}
	if branch != "" {
		return nil, terminal.Usagef("--at: branch %s says itself which snapshot it reads: leave out --at or the branch",
			terminal.OneLine(t.Table))
	}
	snap, err := at.of(ctx, table)
	if err != nil {
		return nil, err
	}
	return &storage.View{Snapshot: snap}, nil
}

// Commit commits one operation to the newest snapshot, under a name, and says what it did.
func (t TableArgs) Commit(ctx context.Context, e *Env, snap *storage.Snapshot, name string, op commit.Operation,
	did string) error {
	made, err := snap.Table().Commit(ctx, commit.Change{Operation: name, Base: snap.Info().Number,
		Ops: []commit.Operation{op}})
	if err != nil {
		return err
	}
	return e.PrintCommitted(t.Table, made, did)
}

// AtFlag selects the snapshot.
type AtFlag struct {
	At Moment `name:"at" placeholder:"N|TIME" help:"Read this snapshot, or the one that was the latest at this time (UTC). Default: the latest."`
}

// Snapshot finds the snapshot that the flag selects.
func (at AtFlag) Snapshot(ctx context.Context, store *storage.Store, name string) (*storage.Snapshot, error) {
	if at.latest() { // in one round trip less than by way of a Table
		_, snap, err := store.Newest(ctx, name)
		return snap, err
	}
	t, err := store.Table(ctx, name)
	if err != nil {
		return nil, err
	}
	return at.of(ctx, t)
}

// latest reports whether the newest snapshot is meant.
func (at AtFlag) latest() bool { return at.At == Moment{} }

// of finds the snapshot of a table that is not the latest.
func (at AtFlag) of(ctx context.Context, t *storage.Table) (*storage.Snapshot, error) {
	if at.At.Number != 0 {
		return t.AtUnexpired(ctx, at.At.Number)
	}
	return t.AsOf(ctx, at.At.Time)
}
