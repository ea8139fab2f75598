package storage

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/repair"
)

// TestRepairMeanwhile: what others replace, let expire and remove while a repair looks is not damaged.
func TestRepairMeanwhile(t *testing.T) {
	b := newBroken(t)
	ctx, step := t.Context(), int64(1)
	if race.Short() {
		step = 5
	}
	for _, purge := range []bool{false, true} {
		for _, apply := range []bool{false, true} {
			fine, refused := 0, 0
			for at := int64(1); ; at += step {
				h := &hookedStore{Store: copyOf(t, b.mem)}
				other := brokenStore(t, h.Store)
				var n atomic.Int64
				ran := false
				hook := func(string) {
					if n.Add(1) != at {
						return
					}
					ran = true
					tab, err := other.NewTable(ctx, "ads")
					if err != nil {
						t.Error(err)
						return
					}
					_, err = tab.Commit(ctx, commit.Change{Operation: "compact", Base: uint64(len(b.snapshots)),
						Ops: []commit.Operation{commit.RemoveSegments{b.now.segments[0].id, b.now.segments[3].id},
							commit.DropBranches{"b"}}})
					if err == nil {
						_, err = tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1})
					}
					if err == nil && purge {
						_, err = tab.Purge(ctx)
					} else if err == nil {
						_, err = other.GC(ctx, gc.Options{NoWait: true})
					}
					if err != nil {
						t.Error(err)
					}
				}
				s := brokenStore(t, h)
				h.before, h.reads, h.lists = hook, hook, hook
				r, err := s.Repair(ctx, "ads", repair.Options{Apply: apply})
				h.before, h.reads, h.lists = nil, nil, nil
				if !ran {
					break
				}
				what := fmt.Sprintf("request %d, purge %v, apply %v", at, purge, apply)
				switch {
				case err == nil && (r.Repairs() > 0 || r.LostRows > 0):
					t.Errorf("%s: %+v", what, deref(r.Items))
				case err != nil && !errors.Is(err, ErrConflict):
					t.Errorf("%s: %v", what, err)
				case err != nil:
					refused++
				default:
					fine++
				}
				verifyClean(t, other)
			}
			t.Logf("purge %v, apply %v: fine %d, refused %d", purge, apply, fine, refused)
		}
	}
}
