package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// The root of a table is the object tables/<table>/table, made before anything else of the table. It gives the table
// its id.
//
//	offset  size
//	     0     8  magic "DSITABL" and the version, 1
//	     8     8  id, random
//	    16     8  xxhash64 of all before, little-endian
const (
	rootMagic   = "DSITABL"
	rootVersion = 1
	rootBytes   = 24
)

func appendRoot(dst []byte, t names.TableID) []byte {
	start := len(dst)
	dst = append(append(append(dst, rootMagic...), rootVersion), t[:]...)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

func decodeRoot(b []byte) (t names.TableID, reason string) {
	switch {
	case len(b) != rootBytes || string(b[:7]) != rootMagic || b[7] != rootVersion:
		return t, "no root of a table, or one of another version"
	case binary.LittleEndian.Uint64(b[16:]) != xxhash.Sum64(b[:16]):
		return t, "checksum mismatch"
	case names.TableID(b[8:16]) == names.TableID{}:
		return t, "of no table"
	}
	return names.TableID(b[8:16]), ""
}

// Identity returns the table's id. A table that has none yet gets one: nothing of it is visible before its first
// commit.
func (t *Log) Identity(ctx context.Context) (names.TableID, error) {
	if of := t.ID(); of != (names.TableID{}) {
		return of, nil
	}
	s, err := t.LatestOrNil(ctx)
	if err != nil {
		return names.TableID{}, err
	}
	if s != nil {
		return s.Manifest.Table, nil
	}
	if t.Store.Make != nil {
		if err := t.Store.Make(ctx); err != nil {
			return names.TableID{}, err
		}
	}
	of := names.NewTableID()
	err = t.Store.Blobs.PutIfAbsent(ctx, names.TableRoot(t.Table), appendRoot(nil, of))
	if err != nil && !errors.Is(err, object.ErrExists) {
		return names.TableID{}, fmt.Errorf("table %s: %w", t.Table, err)
	}
	return t.Root(ctx)
}

// Root returns the id of a table that has no snapshot yet, and gives it one if it has none. The handle's own must be
// the same.
func (t *Log) Root(ctx context.Context) (names.TableID, error) {
	of, err := t.ReadRoot(ctx)
	if !errors.Is(err, object.ErrNotFound) {
		return of, err
	}
	if t.ID() != (names.TableID{}) {
		return of, fmt.Errorf("table %s: %w: it was removed since it was opened: %w", t.Table, catalog.ErrNotFound,
			catalog.ErrConflict)
	}
	return t.Identity(ctx)
}

// RestoreRoot makes the root of a table that has snapshots, where it is missing: each of them has the id.
func (t *Log) RestoreRoot(ctx context.Context, of names.TableID) error {
	err := t.Store.Blobs.PutIfAbsent(ctx, names.TableRoot(t.Table), appendRoot(nil, of))
	if errors.Is(err, object.ErrExists) {
		_, err = t.ReadRoot(ctx)
	}
	return err
}

// ReadRoot reads the root of the table; object.ErrNotFound where there is none.
func (t *Log) ReadRoot(ctx context.Context) (names.TableID, error) {
	name := names.TableRoot(t.Table)
	var b [rootBytes]byte
	if err := t.Store.Blobs.ReadAt(ctx, name, b[:], 0); err != nil {
		return names.TableID{}, wire.Damaged(name, err)
	}
	of, reason := decodeRoot(b[:])
	if reason != "" {
		return names.TableID{}, wire.Corrupt(name, reason)
	}
	return of, t.bind(of)
}
