package remotetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/objecttest"
)

// Parts tests that an object of several parts is whole, that of those that race for a name one wins, and that what is
// aborted makes none. left returns how many uploads have not ended; nil: what was sent stays until gc.
func Parts(t *testing.T, s object.Store, left func() int) {
	ctx := t.Context()
	for _, n := range []int{8 << 20, 8<<20 + 1, 16 << 20, 29<<20 + 7} {
		name, all := fmt.Sprintf("parts/%d", n), Large(n)
		w, err := s.Create(ctx, name)
		must(t, err)
		for rest := all; len(rest) > 0; {
			k := min(len(rest), 1+rand.IntN(3<<20))
			_, err := w.Write(rest[:k])
			must(t, err)
			rest = rest[k:]
		}
		must(t, w.Commit(ctx))
		if !bytes.Equal(objecttest.Content(t, s, name), all) {
			t.Fatalf("%d bytes: others", n)
		}
	}
	if err := Put(ctx, s, fmt.Sprintf("parts/%d", 16<<20), Large(9<<20)); !errors.Is(err, object.ErrExists) {
		t.Fatalf("made twice: %v", err)
	}
	const writers = 8
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { errs[i] = Put(ctx, s, "race", bytes.Repeat([]byte{byte(i)}, 9<<20)) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("writers %d and %d have won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, object.ErrExists):
			t.Fatalf("writer %d: %v", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody has won")
	}
	got := objecttest.Content(t, s, "race")
	if len(got) != 9<<20 || bytes.Count(got, []byte{byte(winner)}) != len(got) {
		t.Fatal("not the winner's bytes")
	}
	w, err := s.Create(ctx, "aborted")
	must(t, err)
	_, err = w.Write(Large(20 << 20))
	must(t, err)
	w.Abort()
	of, end := context.WithCancel(ctx)
	w, err = s.Create(of, "ended")
	must(t, err)
	_, err = w.Write(Large(20 << 20))
	must(t, err)
	end()
	if err := w.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.Abort()
	for _, name := range []string{"aborted", "ended"} {
		if _, err := s.Stat(ctx, name); !errors.Is(err, object.ErrNotFound) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if left == nil {
		return
	}
	if n := left(); n != 0 {
		t.Fatalf("%d uploads are left", n)
	}
}
