package storage

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
)

// A meddled store calls a function, if it has one, before a segment's index is asked for the first time. Others that
// ask wait until it has returned.
type meddled struct {
	object.Store
	stat atomic.Pointer[func()]
	once sync.Once
	ran  atomic.Bool
}

func (m *meddled) Stat(ctx context.Context, name string) (object.Info, error) {
	if f := m.stat.Load(); f != nil && strings.HasSuffix(name, "/index.sst") && !m.ran.Load() {
		m.once.Do(func() {
			m.stat.Store(nil) // for what it asks itself
			(*f)()
			m.ran.Store(true)
		})
	}
	return m.Store.Stat(ctx, name)
}

// TestVerifyMeanwhile: what a purge removes while verify looks, because snapshots expire or a branch is dropped, is not
// reported. What is damaged besides is.
func TestVerifyMeanwhile(t *testing.T) {
	for _, held := range []bool{false, true} {
		for _, damaged := range []bool{false, true} {
			t.Run(map[bool]string{false: "expired", true: "branch dropped"}[held]+
				map[bool]string{true: ", damaged"}[damaged], func(t *testing.T) {
				ctx := t.Context()
				m := &meddled{Store: object.NewMemory()}
				tab := newTable(t, m)
				segs := replaceAll(t, tab, 3)
				expire := func() {
					if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
						t.Error(err)
					}
				}
				if held {
					mustCommit(t, tab, commit.Change{Base: 3, Ops: []commit.Operation{
						commit.SetBranches{{Name: "b", Snapshot: 1}}}})
					expire()
				}
				lost := segs[2].Index
				if damaged {
					if err := m.Delete(ctx, lost); err != nil {
						t.Fatal(err)
					}
				}
				meanwhile := func() {
					if held {
						s, err := tab.Latest(ctx)
						if err != nil {
							t.Error(err)
							return
						}
						mustCommit(t, tab, commit.Change{Base: s.Info().Number,
							Ops: []commit.Operation{commit.DropBranches{"b"}}})
					} else {
						expire()
					}
					if r, err := tab.Purge(ctx); err != nil || len(r.Removed) == 0 {
						t.Error(r, err)
					}
				}
				m.stat.Store(&meanwhile)
				r, err := tab.Store().Verify(ctx, "ads", false, nil)
				if !m.ran.Load() {
					t.Fatal("nothing happened meanwhile")
				}
				switch {
				case err != nil:
					t.Fatal(err)
				case !damaged && r.DamageCount > 0:
					t.Fatalf("%d damaged: %v", r.DamageCount, r.Damage)
				case damaged && (r.DamageCount != 1 || !strings.Contains(r.Damage[0].Error(), lost)):
					t.Fatalf("want that %s is missing: %v", lost, r.Damage)
				}
			})
		}
	}
}
