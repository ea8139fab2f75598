package compaction

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
)

// TestFetch: any range of any object, by several at once, however little is kept; what lies past an end, or is gone, is
// damage.
func TestFetch(t *testing.T) {
	ctx := t.Context()
	m := object.NewMemory()
	r := rand.New(rand.NewPCG(1, 1))
	want := map[string][]byte{}
	for _, name := range []string{"a/a", "a/b", "a/c"} {
		b := make([]byte, 100_000+r.IntN(400_000))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		want[name] = b
		if err := m.PutIfAbsent(ctx, name, b); err != nil {
			t.Fatal(err)
		}
	}
	f := newFetcher(m, 3*minBlock, 100)
	if f.size != minBlock {
		t.Fatalf("blocks of %d bytes", f.size)
	}
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 2))
			for range 100 {
				name := []string{"a/a", "a/b", "a/c"}[r.IntN(3)]
				b := want[name]
				off := r.IntN(len(b))
				n := r.IntN(min(len(b)-off, 200_000) + 1)
				got, err := f.get(ctx, []byte("x"), name, uint64(len(b)), uint64(off), uint64(n))
				if err != nil || !bytes.Equal(got[1:], b[off:off+n]) {
					t.Errorf("%s, %d bytes at %d: %v", name, n, off, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := f.blocks.Size(); n > f.max {
		t.Errorf("%d bytes are kept: want at most %d", n, f.max)
	}
	size := uint64(len(want["a/a"]))
	for what, err := range map[string]error{
		"past the end": second(f.get(ctx, nil, "a/a", size, size-1, 2)),
		"overflow":     second(f.get(ctx, nil, "a/a", size, 1, 1<<64-1)),
		"a lie":        second(f.get(ctx, nil, "a/a", size+10, size, 10)),
		"a large lie":  second(f.get(ctx, nil, "a/a", 1<<40, 5, 1<<39)),
		"gone":         second(f.get(ctx, nil, "a/d", 10, 0, 10)),
	} {
		if !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
