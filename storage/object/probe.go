package object

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrUnfit is matched when a store does not keep what commits are built on.
var ErrUnfit = errors.New("the store cannot hold tables")

// probes is how many creations race for a name.
const probes = 32

// Probe races creations for one name, and then for another by uploads in parts: of either, exactly one may succeed, and
// its bytes must be there. It also replaces an object by its version, and tries to by that of another object. Stores
// that make no objects in parts stand for no service, and are trusted. Some servers take no notice of the condition, or
// look whether there is an object long before they make it; commits to them would overwrite each other. name returns a
// name that is not used; the objects are deleted. An error that matches ErrUnfit says which promise was broken.
func Probe(ctx context.Context, s Store, name func() string) error {
	parts, ok := As[partsStore](s)
	if !ok {
		return nil
	}
	put := func(name string, data []byte) error { return s.PutIfAbsent(ctx, name, data) }
	if err := race(ctx, s, name(), "creations by one request each (If-None-Match: *)", put); err != nil {
		return err
	}
	if err := replaces(ctx, s, name(), name()); err != nil {
		return err
	}
	return race(ctx, s, name(), "creations by uploads in parts (If-None-Match: * at their completion)",
		func(name string, data []byte) error {
			w, err := parts.CreateInParts(ctx, name)
			if err != nil {
				return err
			}
			if _, err := w.Write(data); err != nil {
				w.Abort()
				return err
			}
			return w.Commit(ctx)
		})
}

// partsStore is a store that makes large objects by uploads in parts.
type partsStore interface {
	// CreateInParts is Create with an upload in parts however small the object is.
	CreateInParts(ctx context.Context, name string) (Writer, error)
}

const overwrite = "commits would overwrite each other"

// race creates an object many times at once, and once more, and deletes it.
func race(ctx context.Context, s Store, name, what string, create func(name string, data []byte) error) (err error) {
	defer func() {
		if derr := s.Delete(context.WithoutCancel(ctx), name); err == nil {
			err = derr
		}
	}()
	data := func(i int) []byte { return fmt.Appendf(nil, "probe %d", i) }
	errs := make([]error, probes)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = create(name, data(i)) })
	}
	wg.Wait()
	winner, won := -1, 0
	for i, err := range errs {
		switch {
		case err == nil:
			winner = i
			won++
		case !errors.Is(err, ErrExists):
			return fmt.Errorf("store %s: %w", s.URI(), err)
		}
	}
	if won != 1 {
		return unfit(s, overwrite, "of %d %s at once for one name, %d succeeded, and exactly one may", probes, what,
			won)
	}
	if err := create(name, []byte("later")); err == nil {
		return unfit(s, overwrite, "of %s, one succeeded whose name was taken", what)
	} else if !errors.Is(err, ErrExists) {
		return fmt.Errorf("store %s: %w", s.URI(), err)
	}
	want := data(winner)
	info, err := s.Stat(ctx, name)
	if err != nil {
		return unfit(s, overwrite, "an object that was just created cannot be found: %v", err)
	}
	got := make([]byte, info.Size)
	if err := s.ReadAt(ctx, name, got, 0); err != nil {
		return fmt.Errorf("store %s: %w", s.URI(), err)
	}
	if string(got) != string(want) {
		return unfit(s, overwrite, "of %s, one was told that it succeeded, and another's bytes are there", what)
	}
	return nil
}

// replaces truncates an object by the version of another, which must have no effect, and then by its own, as listings
// have them.
func replaces(ctx context.Context, s Store, name, other string) (err error) {
	defer func() {
		if derr := DeleteAll(context.WithoutCancel(ctx), s, []string{name, other}); err == nil {
			err = derr
		}
	}()
	const lost = "a request of gc that comes late could empty what a table has in place of a removed one"
	listed := map[string]Info{}
	for _, n := range []string{name, other} {
		if err := s.PutIfAbsent(ctx, n, []byte(n)); err != nil {
			return fmt.Errorf("store %s: %w", s.URI(), err)
		}
		info, ok, err := First(ctx, s, n, "")
		if err != nil {
			return fmt.Errorf("store %s: %w", s.URI(), err)
		}
		if !ok || info.Name != n {
			return unfit(s, "a table would miss what was committed",
				"a listing does not have an object that was just created")
		}
		if info.Version == "" {
			return unfit(s, lost, "its listings tell no versions of objects (ETag)")
		}
		listed[n] = info
	}
	wrong := listed[other]
	wrong.Name = name
	switch err := s.Truncate(ctx, wrong); {
	case err == nil:
		return unfit(s, lost, "it replaced an object by the version of another one (If-Match)")
	case !errors.Is(err, ErrChanged):
		return fmt.Errorf("store %s: replacing an object by its version (If-Match): %w", s.URI(), err)
	}
	if err := s.Truncate(ctx, listed[name]); errors.Is(err, ErrChanged) {
		return unfit(s, "gc could remove no snapshot",
			"it does not replace an object by the version that a listing has (If-Match)")
	} else if err != nil {
		return fmt.Errorf("store %s: replacing an object by its version (If-Match): %w", s.URI(), err)
	}
	return nil
}

// unfit returns an error that says which promise s broke, and what follows.
func unfit(s Store, follows, format string, args ...any) error {
	return fmt.Errorf("store %s: %w: %s; %s. Use one that keeps conditions, as AWS S3 and versitygw do", s.URI(),
		ErrUnfit, fmt.Sprintf(format, args...), follows)
}
