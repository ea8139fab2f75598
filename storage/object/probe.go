package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrUnfit is matched when a store does not keep what commits are built on.
var ErrUnfit = errors.New("the store cannot hold tables")

const (
	// racers is how many creations race at once.
	racers = 32
	// A server that looks whether there is an object, and then makes it, breaks the condition only where another
	// request comes between. In a server that works at one request at a time, as those in Python do, that is seldom.
	// So two race for each of more names, by uploads that are so large that the server needs a while to make the
	// object. In moto 5.2.5, 17 of 25 such pairs of 8 MiB both succeeded, and 6 of 25 of 4 MiB; of 25 times 16 pairs of
	// 1 MiB at once, one had a pair that did. It passes the races of 32 for one name in nine of ten tries.
	pairRounds = 8
	pairBytes  = 8 << 20
)

// Probe races creations for one name, and then for another by uploads in parts: of either, exactly one may succeed, and
// its bytes must be there. It also replaces an object by its version, and tries to by that of another object, and lists
// objects in the order of their names, from a name on. Then pairs of large ones race. Stores that make no objects in
// parts stand for no service, and are trusted. Some servers take no notice of the condition, or look whether there is
// an object long before they make it; commits to them would overwrite each other. name returns a name that is not used;
// the objects are deleted. An error that matches ErrUnfit says which promise was broken.
func Probe(ctx context.Context, s Store, name func() string) error {
	parts, ok := As[partsStore](s)
	if !ok {
		return nil
	}
	if err := Race(ctx, s, name); err != nil {
		return err
	}
	if err := replaces(ctx, s, name(), name()); err != nil {
		return err
	}
	ordered := make([]string, 4)
	for i := range ordered {
		ordered[i] = name()
	}
	if err := lists(ctx, s, ordered); err != nil {
		return err
	}
	for range pairRounds {
		if err := race(ctx, s, name(), 2, pairBytes, byParts(ctx, parts)); err != nil {
			return err
		}
	}
	return nil
}

// Race is the first part of Probe: as many creations as a store makes at once race for one name, by one request each,
// and for another by uploads in parts.
func Race(ctx context.Context, s Store, name func() string) error {
	parts, ok := As[partsStore](s)
	if !ok {
		return nil
	}
	puts := creation{
		"creations by one request each (If-None-Match: *)", func(name string, data []byte) (func() error, error) {
			return func() error { return s.PutIfAbsent(ctx, name, data) }, nil
		},
	}
	if err := race(ctx, s, name(), racers, 0, puts); err != nil {
		return err
	}
	return race(ctx, s, name(), racers, 0, byParts(ctx, parts))
}

// A creation makes an object.
type creation struct {
	what string
	// begin begins it, and end makes the object.
	begin func(name string, data []byte) (end func() error, err error)
}

func (c creation) make(name string, data []byte) error {
	end, err := c.begin(name, data)
	if err != nil {
		return err
	}
	return end()
}

// partsStore is a store that makes large objects by uploads in parts.
type partsStore interface {
	// CreateInParts is Create with an upload in parts however small the object is.
	CreateInParts(ctx context.Context, name string) (Writer, error)
}

func byParts(ctx context.Context, s partsStore) creation {
	return creation{
		"creations by uploads in parts (If-None-Match: * at their completion)",
		func(name string, data []byte) (func() error, error) {
			w, err := s.CreateInParts(ctx, name)
			if err != nil {
				return nil, err
			}
			if _, err := w.Write(data); err != nil {
				w.Abort()
				return nil, err
			}
			return func() error { return w.Commit(ctx) }, nil
		},
	}
}

const overwrite = "commits would overwrite each other"

// race makes n creations of one name at once, of at least size bytes each, and then another. It deletes the object.
func race(ctx context.Context, s Store, name string, n, size int, c creation) (err error) {
	defer func() {
		if derr := DeleteAll(context.WithoutCancel(ctx), s, []string{name}); err == nil {
			err = derr
		}
	}()
	data := func(i int) []byte { return append(fmt.Appendf(nil, "probe %d", i), make([]byte, size)...) }
	ends, errs := make([]func() error, n), make([]error, n)
	atOnce := func(do func(i int)) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { do(i) })
		}
		wg.Wait()
	}
	atOnce(func(i int) { ends[i], errs[i] = c.begin(name, data(i)) })
	atOnce(func(i int) {
		if errs[i] == nil {
			errs[i] = ends[i]()
		}
	})
	winner, won := 0, 0
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
		return unfit(s, overwrite, "of %d %s at once for one name, %d succeeded, and exactly one may", n, c.what, won)
	}
	if err := c.make(name, []byte("later")); err == nil {
		return unfit(s, overwrite, "of %s, one succeeded whose name was taken", c.what)
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
	if !bytes.Equal(got, want) {
		return unfit(s, overwrite, "of %s, one was told that it succeeded, and another's bytes are there", c.what)
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
			return unfit(s, missed, "a listing does not have an object that was just created")
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

// missed follows where listings are not what was put.
const missed = "a table would miss what was committed"

// lists makes objects of names, the last first, and requires that listings have them in the byte order of names, and
// begin after a name. The store may have others between.
func lists(ctx context.Context, s Store, names []string) (err error) {
	defer func() {
		if derr := DeleteAll(context.WithoutCancel(ctx), s, names); err == nil {
			err = derr
		}
	}()
	slices.Sort(names)
	for _, n := range slices.Backward(names) {
		if err := s.PutIfAbsent(ctx, n, []byte(n)); err != nil {
			return fmt.Errorf("store %s: %w", s.URI(), err)
		}
	}
	for i, after := range names[:len(names)-1] {
		info, ok, err := First(ctx, s, "", after)
		if err != nil {
			return fmt.Errorf("store %s: %w", s.URI(), err)
		}
		if !ok || info.Name <= after || info.Name > names[i+1] {
			return unfit(s, missed, "a listing from a name on (start-after) does not begin with the next name")
		}
	}
	last, left, seen := names[0], names[1:], 0
	for info, err := range s.List(ctx, "", names[0]) {
		if err != nil {
			return fmt.Errorf("store %s: %w", s.URI(), err)
		}
		if info.Name <= last || info.Name > left[0] {
			return unfit(s, missed, "its listings are not in the order of names")
		}
		if last = info.Name; last == left[0] {
			left = left[1:]
		}
		if seen++; len(left) == 0 || seen == mostListed {
			return nil
		}
	}
	return unfit(s, missed, "a listing does not have an object that was just created")
}

// mostListed is how many names of a listing are looked at: a page.
const mostListed = 1000

// unfit returns an error that says which promise s broke, and what follows.
func unfit(s Store, follows, format string, args ...any) error {
	return fmt.Errorf("store %s: %w: %s; %s. Use one that keeps conditions, as AWS S3 and versitygw do", s.URI(),
		ErrUnfit, fmt.Sprintf(format, args...), follows)
}
