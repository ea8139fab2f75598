package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/repair"
)

// once does something wrong in one of the requests that read, or in all from one on.
type once struct {
	object.Store
	n    atomic.Int64
	at   int64
	err  error // instead of what the request returns; nil: a bit of what a read returns is another
	ever bool
	what string // the first such request
}

func (o *once) turn(what string) bool {
	n := o.n.Add(1)
	if n == o.at {
		o.what = what
	}
	return n == o.at || o.ever && o.at > 0 && n > o.at
}

func (o *once) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	mine := o.turn("read of " + name)
	if mine && o.err != nil {
		return o.err
	}
	err := o.Store.ReadAt(ctx, name, p, off)
	if mine && len(p) > 0 {
		p[len(p)/2] ^= 4
	}
	return err
}

func (o *once) Stat(ctx context.Context, name string) (object.Info, error) {
	if o.turn("stat of "+name) && o.err != nil {
		return object.Info{}, o.err
	}
	return o.Store.Stat(ctx, name)
}

func (o *once) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	switch mine := o.turn("list of " + prefix); {
	case mine && o.ever: // nothing is there
		return func(func(object.Info, error) bool) {}
	case mine && o.err != nil:
		return func(yield func(object.Info, error) bool) { yield(object.Info{}, o.err) }
	}
	return o.Store.List(ctx, prefix, after)
}

// TestRepairOneWrongRead has each request of a repair fail, or return a wrong bit, once, and has the whole store gone
// from each request on: the repair stops, or takes out what it takes out without that, and nothing else.
func TestRepairOneWrongRead(t *testing.T) {
	b := newBroken(t)
	acts := func(r *repair.Report) (out []string) {
		for _, i := range r.Items {
			if i.Action != repair.Leave {
				out = append(out, fmt.Sprint(i.Action, i.Kind, i.ID, i.Name, i.Features, i.Rows, i.First, i.Last))
			}
		}
		slices.Sort(out)
		return out
	}
	last, step := uint64(len(b.snapshots)), int64(1)
	if race.Short() {
		step = 7
	}
	for what, mem := range map[string]*object.Memory{"whole": copyOf(t, b.mem), "damaged": b.harmed()} {
		for _, opts := range []repair.Options{{NullFeatures: true}, {Apply: true}} {
			dry := opts
			dry.Apply = false
			clean, err := brokenStore(t, mem).Repair(t.Context(), "ads", dry)
			if err != nil {
				t.Fatal(err)
			}
			want := acts(clean)
			for _, fault := range []error{nil, errors.New("no answer"), object.ErrNotFound} {
				for _, far := range []bool{false, true} {
					if far && (opts.Apply || race.Short()) {
						continue // its other requests are those that look
					}
					stride := step
					switch {
					case race.Short(): // it is long as it is
					case fault == object.ErrNotFound && !opts.Apply:
						stride *= 3 // one and the next differ by a request, and the repair that applies tries each
					case far:
						stride *= 2 // its requests are those of a near store in another order
					}
					stopped, same := 0, 0
					for at := int64(1); ; at += stride {
						copied := mem
						if opts.Apply {
							copied = copyOf(t, mem)
						}
						o := &once{Store: copied, err: fault, ever: fault == object.ErrNotFound}
						var blobs object.Store = o
						if far {
							blobs = object.NewDelayed(o, 1)
						}
						s := brokenStore(t, blobs)
						o.at = o.n.Load() + at
						r, err := s.Repair(t.Context(), "ads", opts)
						if o.what == "" {
							break
						}
						at := fmt.Sprintf("%s, %+v, %v, %s, far %v", what, opts, fault, o.what, far)
						if err != nil {
							stopped++
							n, nerr := brokenStore(t, copied).core.Log("ads").Newest(t.Context())
							if nerr != nil || n.Number != last {
								t.Errorf("%s: %v, and snapshot %d is there: %v", at, err, n.Number, nerr)
							}
							continue
						}
						same++
						got := acts(r)
						if r.Left() > 0 { // it may have missed what it could not look at
							got = slices.Compact(slices.Sorted(slices.Values(append(got, want...))))
						}
						if !slices.Equal(got, want) {
							t.Errorf("%s: %q, want %q", at, got, want)
						}
					}
					t.Logf("%s, %+v, %v, far %v: %d stopped, %d went on", what, opts, fault, far, stopped, same)
					if fault == nil && same == 0 || fault != nil && stopped == 0 {
						t.Error("none did")
					}
				}
			}
		}
	}
}
