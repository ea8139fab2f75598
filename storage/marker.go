package storage

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// The marker is the object that makes a root a store: one line of text, the version, the store's id and the xxhash64 of
// what is before it.
//
//	dsistore 2 0123456789abcdef0123456789abcdef 0123456789abcdef
//
// Version 1 is what development builds wrote before the first release, in more than one layout.
const (
	// Version is that of all stores that this program makes and reads: others are refused.
	Version       = "2"
	markerVersion = "dsistore " + Version + " "
	markerBytes   = len(markerVersion) + 32 + 1 + 16 + 1
)

func appendMarker(dst []byte, store names.ID) []byte {
	head := markerVersion + store.String() + " "
	return fmt.Appendf(append(dst, head...), "%016x\n", xxhash.Sum64String(head))
}

// checkMarker returns an error unless b is a marker of this version: one that matches format.ErrUnsupported of a whole
// marker of another.
func checkMarker(b []byte) error {
	head, sum := string(b[:len(b)-17]), string(b[len(b)-17:])
	version, _, _ := strings.Cut(strings.TrimPrefix(head, "dsistore "), " ")
	_, err := hex.DecodeString(strings.TrimSuffix(strings.TrimPrefix(head, markerVersion), " "))
	switch {
	case !strings.HasPrefix(head, "dsistore "):
		return wire.Corrupt(names.Marker, "no marker of a store")
	case fmt.Sprintf("%016x\n", xxhash.Sum64String(head)) != sum:
		return wire.Corrupt(names.Marker, "checksum mismatch")
	case version == "1":
		return fmt.Errorf("%w: a store of version 1, which development builds wrote: this program reads version "+
			Version+"; ingest its sources into a new store", format.ErrUnsupported)
	case !strings.HasPrefix(head, markerVersion):
		return fmt.Errorf("%w: a store of version %.20s: this program reads version "+Version+"; use a newer program",
			format.ErrUnsupported, version)
	case err != nil:
		return wire.Corrupt(names.Marker, "no id")
	}
	return nil
}

// ready returns an error unless the root is a store: ErrNoStore where it is none. It is one small read, the first time.
func (s *Store) ready(ctx context.Context) error {
	err := s.readMarker(ctx)
	if errors.Is(err, ErrNoStore) && s.creating {
		return nil
	}
	return err
}

// readMarker is ready of a store that nobody is about to make.
func (s *Store) readMarker(ctx context.Context) error {
	if s.marked.Load() {
		return nil
	}
	b := make([]byte, markerBytes)
	err := s.core.Blobs.ReadAt(ctx, names.Marker, b, 0)
	if errors.Is(err, object.ErrNotFound) {
		hint := "ingest makes one"
		if tables, err := s.core.Tables(ctx, false); err == nil && len(tables) > 0 {
			hint = fmt.Sprintf("its file %s is missing, and there are tables: dsi repair says what can be done",
				names.Marker)
		}
		return fmt.Errorf("%w at %s (%s)", ErrNoStore, s.core.Blobs.URI(), hint)
	}
	if err != nil {
		return wire.Damaged(names.Marker, err)
	}
	if err := checkMarker(b); err != nil {
		return fmt.Errorf("store %s: %w", s.core.Blobs.URI(), err)
	}
	s.marked.Store(true)
	return nil
}

// RepairMarker returns what is wrong with the store's marker, nil if nothing is. With apply it writes the marker anew,
// with a new id, which nothing refers to: then the store can be opened again. It does so only where there is a table
// whose newest snapshot can be read, and none that a newer version has written. An error: nothing can be done.
func (s *Store) RepairMarker(ctx context.Context, apply bool) (damage, err error) {
	for range 2 { // what was read wrong once may be whole
		err = s.readMarker(ctx)
	}
	missing := errors.Is(err, ErrNoStore)
	if err == nil || !missing && (!errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrUnsupported)) {
		return nil, err
	}
	tables, terr := s.core.Tables(ctx, false)
	if terr != nil {
		return nil, terr
	}
	readable := false
	for _, t := range tables {
		_, terr := s.core.Log(t).Latest(ctx)
		lost := errors.Is(terr, format.ErrCorrupt) || errors.Is(terr, ErrNotFound)
		if terr != nil && (!lost || errors.Is(terr, format.ErrUnsupported)) {
			return nil, fmt.Errorf("table %s: %w: the marker is left as it is: %w", t, terr, err)
		}
		readable = readable || terr == nil
	}
	switch {
	case !readable && (!missing || len(tables) > 0):
		return nil, fmt.Errorf("%w: there is no table that can be read, to show that this is a store: put the file "+
			"back from a copy", err)
	case !readable:
		return nil, err
	}
	if damage = err; missing {
		damage = wire.Corrupt(names.Marker, "object is missing")
	}
	if !apply {
		return damage, nil
	}
	// Another process may write one meanwhile: it is one of this store too.
	if !missing {
		if err := s.core.Blobs.Delete(ctx, names.Marker); err != nil {
			return nil, err
		}
	}
	perr := s.core.Blobs.PutIfAbsent(ctx, names.Marker, appendMarker(nil, names.RandomID()))
	if perr != nil && !errors.Is(perr, object.ErrExists) {
		return nil, perr
	}
	return damage, s.readMarker(ctx)
}

// make puts the marker of a store that Create is to make. It comes before everything else that is written.
func (s *Store) make(ctx context.Context) error {
	if !s.creating || s.marked.Load() {
		return nil
	}
	probe := func() string { return names.RandomID().Dir() + names.ProbeFile }
	if err := object.Probe(ctx, s.core.Blobs, probe); err != nil {
		return err
	}
	err := s.core.Blobs.PutIfAbsent(ctx, names.Marker, appendMarker(nil, names.RandomID()))
	if err != nil && !errors.Is(err, object.ErrExists) {
		return err
	}
	if rerr := s.readMarker(ctx); !errors.Is(rerr, ErrNoStore) {
		return rerr
	}
	return fmt.Errorf(
		"%s: the store's marker is to have the name %s, and something else has it, as a directory may: name another "+
			"directory",
		s.core.Blobs.URI(), names.Marker)
}

// Create opens the store at the root that blobs stand for, which becomes one with the first table, where it is none
// yet: it is empty then, or Options.Init says that what it holds is to stay beside the store. It takes no lock, and
// several may do it at once.
func Create(ctx context.Context, blobs object.Store, opts Options) (*Store, error) {
	s, err := Open(ctx, blobs, opts)
	if err != nil {
		return nil, err
	}
	err = s.ready(ctx)
	if err == nil || !errors.Is(err, ErrNoStore) {
		return s, err
	}
	if !opts.Init {
		if held, err := holds(ctx, blobs); err != nil {
			return nil, err
		} else if held != "" {
			// The marker comes before all else: where another has made the store meanwhile, it is there now.
			if err := s.ready(ctx); err == nil || !errors.Is(err, ErrNoStore) {
				return s, err
			}
			return nil, fmt.Errorf("%w at %s, and it is not empty (%s): name a new directory, or a store", ErrNoStore,
				blobs.URI(), held)
		}
	}
	s.creating = true
	return s, nil
}

// holds returns something that the root holds, or nothing. Objects of a probe, which a process that was killed has
// left, count as nothing: the store can be made, and its gc removes them.
func holds(ctx context.Context, blobs object.Store) (string, error) {
	if local := object.AsLocal(blobs); local != nil {
		return local.Holds()
	}
	after := ""
	for {
		first, ok, err := object.First(ctx, blobs, "", after)
		if err != nil || !ok || !names.IsProbe(first.Name) {
			return first.Name, err
		}
		after = first.Name
	}
}
