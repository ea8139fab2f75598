package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// storeArg is the argument that every command on a store begins with.
type storeArg struct {
	Store string `arg:"" help:"Root of the store: a directory, or file:///path."`
}

// open opens the store. Close it. Where there is none, of a disk that is not mounted or a name mistyped, whatever looks for tables says so.
func (s storeArg) open(ctx context.Context) (*storage.Store, error) {
	return s.with(ctx, storage.Open, storage.Options{})
}

// create opens the store, and makes one where there is none. initialize: also in a directory that is not empty.
func (s storeArg) create(ctx context.Context, initialize bool) (*storage.Store, error) {
	store, err := s.with(ctx, storage.Create, storage.Options{Init: initialize})
	if errors.Is(err, storage.ErrNoStore) {
		err = fmt.Errorf("%w, or add --init to keep a store beside what is there", err)
	}
	return store, err
}

// with opens the store by one of package storage's functions.
func (s storeArg) with(ctx context.Context, open func(context.Context, object.Store, storage.Options) (*storage.Store, error),
	opts storage.Options) (*storage.Store, error) {
	blobs, err := object.Open(s.Store)
	if err != nil {
		return nil, usageError{Err: err}
	}
	m := metricsOf(ctx)
	store, err := open(ctx, m.Blobs(blobs), opts)
	if err != nil {
		return nil, err
	}
	m.AddStore(store)
	return store, nil
}

// tableArgs are the arguments of the commands that read a table.
type tableArgs struct {
	storeArg
	Table string `arg:"" help:"Name of the table. Commands that read also take TABLE@BRANCH."`
}

// whole opens the table, for what is done to its newest snapshot; what says what that is. A branch, which would not show it, is refused.
func (t tableArgs) whole(ctx context.Context, store *storage.Store, what string) (*storage.Table, error) {
	table, branch, err := store.OpenRef(ctx, t.Table)
	if err == nil && branch != "" {
		return nil, usagef("%s in the newest snapshot of table %s, not in what branch %s reads: leave @%s out", what, table.Name(), branch, branch)
	}
	return table, err
}

// atFlag selects the snapshot.
type atFlag struct {
	At moment `name:"at" placeholder:"N|TIME" help:"Read this snapshot, or the one that was the latest at this time (UTC). Default: the latest."`
}

// snapshot finds the snapshot that the arguments mean.
func (at atFlag) snapshot(ctx context.Context, store *storage.Store, name string) (*storage.Snapshot, error) {
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

// view finds what the arguments mean: of "table@branch" what the branch reads, else a snapshot.
func (at atFlag) view(ctx context.Context, store *storage.Store, name string) (*storage.View, error) {
	if at.latest() {
		return store.Open(ctx, name)
	}
	t, branch, err := store.OpenRef(ctx, name)
	if err != nil {
		return nil, err
	}
	if branch != "" {
		return nil, usagef("--at: %s is of the snapshot that the branch names", oneLine(name))
	}
	snap, err := at.of(ctx, t)
	if err != nil {
		return nil, err
	}
	return &storage.View{Snapshot: snap}, nil
}

// latest reports whether the newest snapshot is meant.
func (at atFlag) latest() bool { return at.At.number == 0 && at.At.time.IsZero() }

// of finds the snapshot of a table that is not the latest.
func (at atFlag) of(ctx context.Context, t *storage.Table) (*storage.Snapshot, error) {
	if at.At.number != 0 {
		return t.At(ctx, at.At.number)
	}
	return t.AsOf(ctx, at.At.time)
}
