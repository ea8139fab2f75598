package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// contents returns the data objects of a segment by the last part of their names.
func contents(t *testing.T, blobs object.Store, d catalog.SegmentDescriptor) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for info, err := range blobs.List(t.Context(), d.ID[:2]+"/"+d.ID+"/", "") {
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, info.Size)
		if err := blobs.ReadAt(t.Context(), info.Name, b, 0); err != nil {
			t.Fatal(err)
		}
		// The segment's id is in the index's keys and, hashed, in the salts of feature files.
		id, err := names.ParseID(d.ID)
		if err != nil {
			t.Fatal(err)
		}
		if name := info.Name[strings.LastIndexByte(info.Name, '/')+1:]; name != names.IndexFile {
			if bytes.Contains(b, id[:]) {
				t.Fatalf("%s holds the id", name)
			}
			out[name] = unsalted(t, b)
		}
	}
	return out
}

// unsalted returns the feature files of a pack, or one feature file, with the salt 0.
func unsalted(t *testing.T, object []byte) []byte {
	t.Helper()
	r := bytes.NewReader(object)
	files := []format.PackEntry{{Length: uint64(len(object))}}
	if string(object[:3]) == "DSP" {
		var err error
		if files, err = format.OpenPack(r, int64(len(object)), format.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	fmt.Fprintln(&out, files)
	for _, f := range files {
		m, err := format.OpenFile(r, int64(f.Offset), int64(f.Length), format.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		body := io.NewSectionReader(r, int64(f.Offset)+4, int64(f.Length)-4)
		if _, _, err := format.CopyFile(&out, m, 0, body); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// TestSkipLetsGo skips the order that a file waits for when nobody waits: the next call, of an order before it or
// after, lays the file down and goes on, and Finish what is left.
func TestSkipLetsGo(t *testing.T) {
	const skip = -1 // less the order
	for _, calls := range [][]int{{1, skip - 0, 3, 2}, {0, 2, skip - 1, 4, skip - 3}} {
		stripes := []uint32{50}
		w, err := newTable(t, object.NewMemory()).NewSegment(t.Context(), nil, stripes, segment.Options{HoldBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, order := range calls {
			if order <= skip {
				w.Skip(skip - order)
				continue
			}
			if err := w.AddFeature(ctx, order, feature(fmt.Sprint("f", order), int64Type), denseRows(stripes,
				1)); err != nil {
				t.Fatalf("%v: order %d: %v", calls, order, err)
			}
		}
		if _, err := w.Finish(ctx); err != nil {
			t.Fatalf("%v: %v", calls, err)
		}
	}
}

// TestSegmentBytes adds features from several goroutines in several orders, with little to hold them: packs and files
// are the same bytes each time.
func TestSegmentBytes(t *testing.T) {
	stripes := []uint32{50, 30}
	const n = 40
	rows := func(i int) func(*format.Writer) error { return denseRows(stripes, int64(i)<<(i%50)) }
	var want map[string][]byte
	for round := range 4 {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		w, err := tab.NewSegment(t.Context(), nil, stripes, segment.Options{PackBytes: 2000, StandAloneBytes: 780,
			HoldBytes: []int64{1, 500, 0, 3000}[round]})
		if err != nil {
			t.Fatal(err)
		}
		work := make(chan int)
		var wg sync.WaitGroup
		for range 1 + round {
			wg.Go(func() {
				for i := range work {
					if i%7 == 3 {
						w.Skip(i)
					} else if err := w.AddFeature(t.Context(), i, feature(fmt.Sprint("f", i),
						int64Type), rows(i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		// About in order: neighbours change places, as workers that differ in speed make them.
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		r := rand.New(rand.NewPCG(uint64(round), 1))
		for i := 0; i+1 < n && round > 1; i += 2 {
			if r.IntN(2) == 0 {
				order[i], order[i+1] = order[i+1], order[i]
			}
		}
		for _, i := range order {
			work <- i
		}
		close(work)
		wg.Wait()
		d, err := w.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Abort() // does nothing
		got := contents(t, mem, d)
		if want == nil {
			want = got
			if len(got) < 5 || got["pack-000001"] == nil || int(d.Objects) != len(got) || d.Features != 34 {
				t.Fatalf("%d objects: %+v", len(got), d)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("round %d: %d objects, want %d", round, len(got), len(want))
		}
		for name := range want {
			if !bytes.Equal(got[name], want[name]) {
				t.Fatalf("round %d: %s differs", round, name)
			}
		}
		if _, err := tab.Commit(t.Context(), commit.Change{Operation: "x",
			Ops: []commit.Operation{commit.AddSegments{d}}}); err != nil {
			t.Fatal(err)
		}
		if r, err := tab.Store().Verify(t.Context(), "", true, nil); err != nil || r.DamageCount > 0 ||
			r.Features != 34 {
			t.Fatal(err, r)
		}
	}
}

func TestSegmentWriterErrors(t *testing.T) {
	ctx := t.Context()
	boom := errors.New("boom")
	cases := map[string]struct {
		add  func(w *segment.Writer) error
		want string
	}{
		"write fails": {func(w *segment.Writer) error {
			return w.AddFeature(ctx, 0, feature("clicks", int64Type), func(*format.Writer) error { return boom })
		}, "feature clicks: boom"},
		"too few stripes": {func(w *segment.Writer) error {
			return w.AddFeature(ctx, 0, feature("clicks", int64Type), denseRows([]uint32{10}, 1))
		}, "feature clicks: 1 stripes"},
		"other rows": {func(w *segment.Writer) error {
			return w.AddFeature(ctx, 0, feature("clicks", int64Type), denseRows([]uint32{10, 11}, 1))
		}, "feature clicks: stripe 1 has 11 rows"},
		"order twice": {func(w *segment.Writer) error {
			w.Skip(0)
			return w.AddFeature(ctx, 0, feature("clicks", int64Type), denseRows([]uint32{10, 20}, 1))
		}, "order 0 is taken"},
		"feature twice": {func(w *segment.Writer) error {
			if err := w.AddFeature(ctx, 0, feature("clicks", int64Type), denseRows([]uint32{10, 20}, 1)); err != nil {
				return err
			}
			return w.AddFeature(ctx, 1, feature("clicks", int64Type), denseRows([]uint32{10, 20}, 1))
		}, "feature clicks: added twice"},
		"gap": {func(w *segment.Writer) error {
			if err := w.AddFeature(ctx, 1, feature("clicks", int64Type), denseRows([]uint32{10, 20}, 1)); err != nil {
				return err
			}
			_, err := w.Finish(ctx)
			return err
		}, "order 0 was neither added nor skipped"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := localStore(t)
			w, err := newTable(t, l).NewSegment(ctx, nil, []uint32{10, 20}, segment.Options{StandAloneBytes: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.add(w); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			w.Abort()
			w.Abort()
			for info := range l.List(ctx, "", "") {
				if info.Name != names.Marker && info.Name != names.TableRoot("ads") {
					t.Errorf("left %s", info.Name)
				}
			}
			if tmp, err := l.Temporary(ctx); err != nil || len(tmp) > 0 {
				t.Errorf("left %v, %v", tmp, err)
			}
			if err := w.AddFeature(ctx, 5, feature("late", int64Type), denseRows([]uint32{10, 20}, 1)); err == nil {
				t.Error("added after abort")
			}
		})
	}
}

// TestSegmentWriterWaits: a call that must wait for those before it ends with its context, and with Abort.
func TestSegmentWriterWaits(t *testing.T) {
	for _, how := range []string{"cancel", "abort"} {
		w, err := newTable(t, object.NewMemory()).NewSegment(t.Context(), nil, []uint32{10},
			segment.Options{HoldBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddFeature(t.Context(), 1, feature("one", int64Type), denseRows([]uint32{10}, 1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.AddFeature(ctx, 2, feature("two", int64Type), denseRows([]uint32{10}, 1)) }()
		if how == "cancel" {
			cancel()
		} else {
			w.Abort()
		}
		if err := <-done; err == nil {
			t.Fatal(how, "did not end it")
		}
		cancel()
		w.Abort()
	}
}

func TestSchemaConflicts(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	base := feature("x", int64Type)
	base.Role = catalog.RoleLabel
	if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
		Ops: []commit.Operation{commit.AddFeatures{base}}}); err != nil {
		t.Fatal(err)
	}
	change := func(edit func(*catalog.Feature)) error {
		f := base
		edit(&f)
		_, err := tab.Commit(ctx, commit.Change{Operation: "ingest", Base: 1,
			Ops: []commit.Operation{commit.AddFeatures{f}}})
		return err
	}
	for want, edit := range map[string]func(*catalog.Feature){
		"x is int64 in the table and string in the change": func(f *catalog.Feature) {
			f.Type.Kind,
				f.Type.Elem = 6, 0
		},
		"x is a label in the table and a user key in":       func(f *catalog.Feature) { f.Role = catalog.RoleUserKey },
		`x is of logical type "" in the table and "date64"`: func(f *catalog.Feature) { f.Logical = "date64" },
		"have the same id":               func(f *catalog.Feature) { f.Name = "other" },
		"x comes from key":               func(f *catalog.Feature) { f.OriginColumn = "m" },
		"of generation 1; the table has": func(f *catalog.Feature) { f.Generation = 1 },
		"id is 0":                        func(f *catalog.Feature) { f.ID = 0 },
		"feature name \"\"":              func(f *catalog.Feature) { f.Name = "" },
	} {
		if err := change(edit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := change(func(f *catalog.Feature) { f.Role = catalog.RoleFeature }); err != nil {
		t.Fatal(err)
	}
	s, err := tab.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := s.Lookup(ctx, "x"); err != nil || f[0].Role != catalog.RoleLabel {
		t.Fatal(f, err)
	}
}

// TestContextsOfSegment: a pack that several calls fill lives under the segment's context, not under that of the call
// that began it. When the segment's ends, nothing is left.
func TestContextsOfSegment(t *testing.T) {
	stripes := []uint32{50}
	for _, opts := range []segment.Options{{}, {PackBytes: 1}, {StandAloneBytes: 1}} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		add := func(w *segment.Writer) error {
			for i := range 3 {
				of, end := context.WithCancel(t.Context())
				err := w.AddFeature(of, i, feature(fmt.Sprint("f", i), int64Type), denseRows(stripes, int64(i)))
				end() // as an errgroup does
				if err != nil {
					return err
				}
			}
			return nil
		}
		w, err := tab.NewSegment(t.Context(), nil, stripes, opts)
		if err == nil {
			err = add(w)
		}
		if err != nil {
			t.Fatal(err)
		}
		d, err := w.Finish(t.Context())
		if err != nil {
			t.Fatalf("%+v: %v", opts, err)
		}
		mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddSegments{d},
			commit.AddFeatures(features("f0", "f1", "f2"))}})
		of, end := context.WithCancel(t.Context())
		if w, err = tab.NewSegment(of, nil, stripes, opts); err == nil {
			err = add(w)
		}
		if err != nil {
			t.Fatal(err)
		}
		end()
		if _, err := w.Finish(of); !errors.Is(err, context.Canceled) {
			t.Fatalf("%+v: %v", opts, err)
		}
		w.Abort()
		for info := range mem.List(t.Context(), w.ID()[:2]+"/"+w.ID()+"/", "") {
			t.Fatalf("%+v: left %s", opts, info.Name)
		}
	}
}
