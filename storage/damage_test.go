package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/verify"
	"github.com/dsistore/dsistore/storage/wire"
)

// everything reads all that a reader can read of a table's newest snapshot, as one comparable value.
func everything(ctx context.Context, blobs object.Store) (string, error) {
	s, err := Create(ctx, blobs, Options{})
	if err != nil {
		return "", err
	}
	tab, err := s.Table(ctx, "ads")
	if err != nil {
		return "", err
	}
	snap, err := tab.Latest(ctx)
	if err != nil {
		return "", err
	}
	out := fmt.Sprintf("%+v\n", snap.Info())
	names := []string{"f0", "f7", "f39"}
	found, err := snap.Lookup(ctx, names...)
	if err != nil {
		return "", err
	}
	all, err := snap.Features(ctx)
	if err != nil {
		return "", err
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		return "", err
	}
	out += fmt.Sprintf("%+v\n%+v\n%+v\n", found, all, segments)
	for _, d := range segments {
		g, err := snap.OpenSegment(ctx, d)
		if err != nil {
			return "", err
		}
		entries, err := g.Entries(ctx)
		if err != nil {
			return "", err
		}
		some, err := g.Lookup(ctx, found[0].ID, found[1].ID)
		if err != nil {
			return "", err
		}
		objects, err := g.Objects(ctx)
		if err != nil {
			return "", err
		}
		out += fmt.Sprintf("%v\n%v\n", objects, g.StripeRows())
		for _, e := range append(entries, some...) {
			if e != nil {
				out += fmt.Sprintf("%s %d %d %d %+v\n", e.Object, e.ObjectSize, e.Offset, e.Length, *e.Meta)
			}
		}
	}
	return out, nil
}

// TestReadDamage flips every byte of every object that readers read without the data: they return the same as before,
// or an error that matches ErrCorrupt and names the object; and never panic.
func TestReadDamage(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	var columns []string
	for i := range 40 {
		columns = append(columns, fmt.Sprint("f", i))
	}
	for n := range 2 {
		// the first makes runs, the second a memtable
		tab.s.core.Trees.MemtableBytes = uint64(n * lsm.DefaultMemtableBytes)
		d := writeSegment(t, tab, partition("ds", fmt.Sprint(n)), []uint32{3, 2}, 1,
			segment.Options{StandAloneBytes: 170}, columns[:8]...)
		if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddFeatures(features(columns...)), commit.AddSegments{d},
				commit.AddSources{{Fingerprint: fmt.Sprint(n), Name: "x"}}}}); err != nil {
			t.Fatal(err)
		}
	}
	clean, err := everything(ctx, mem)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]int{}
	for info, err := range mem.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{names.ListingFile, names.SchemaFile, names.IndexFile,
			names.SnapshotName("ads", 2)} {
			if strings.HasSuffix(info.Name, part) {
				objects[info.Name] = int(info.Size)
			}
		}
	}
	if len(objects) != 5 {
		t.Fatal(objects)
	}
	wrong, unread := 0, 0
	for name, size := range objects {
		data := make([]byte, size)
		if err := mem.ReadAt(ctx, name, data, 0); err != nil {
			t.Fatal(err)
		}
		put := func(b []byte) {
			if err := errors.Join(mem.Delete(ctx, name), mem.PutIfAbsent(ctx, name, b)); err != nil {
				t.Fatal(err)
			}
		}
		check := func(b []byte, what string) {
			put(b)
			got, err := everything(ctx, mem)
			switch {
			case err == nil && got == clean:
				unread++ // a byte that nothing depends on, such as padding
			case err == nil:
				t.Fatalf("%s, %s: something else was read without an error", name, what)
			case !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) ||
				!strings.Contains(err.Error(), name):
				t.Fatalf("%s, %s: %v", name, what, err)
			default:
				wrong++
			}
		}
		step := 1
		if race.Short() {
			step = 7
		}
		for i := 0; i < len(data); i += step {
			b := bytes.Clone(data)
			b[i] ^= byte(1 << (i % 8))
			check(b, fmt.Sprintf("byte %d of %d", i, size))
		}
		for n := 0; n < size; n += 1 + size/50 {
			check(data[:n], fmt.Sprintf("cut to %d of %d", n, size))
		}
		put(data)
	}
	t.Logf("%d damaged, %d without consequence", wrong, unread)
	if unread > wrong/5 {
		t.Fatalf("%d of %d bytes are not checked", unread, unread+wrong)
	}
}

func FuzzSnapshot(f *testing.F) {
	mem := object.NewMemory()
	tab := newTable(f, mem)
	for n := range 3 {
		d := writeSegment(f, tab, partition("ds", fmt.Sprint(n)), []uint32{3}, 1, segment.Options{}, "a")
		if _, err := tab.Commit(f.Context(), commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.AddSegments{d}}}); err != nil {
			f.Fatal(err)
		}
		s, err := tab.Latest(f.Context())
		if err != nil {
			f.Fatal(err)
		}
		b := snapshot.AppendManifest(nil, s.Manifest)
		f.Add(b[snapshot.HeaderBytes:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		// The header is made right for the body, so that the fuzzer gets past the checksums.
		d := wire.Decoder{Rest: body}
		listing := lsm.DecodeTree(&d, lsm.Listing)
		schema := lsm.DecodeTree(&d, lsm.Schema)
		d.End()
		if d.Reason != "" {
			return
		}
		m := snapshot.Manifest{Info: snapshot.Info{Number: 1, Operation: "x"}, Table: names.TableID{1},
			Listing: listing, Schema: schema}
		b := snapshot.AppendManifest(nil, m)
		again, reason := snapshot.DecodeManifest(b, 1)
		if reason != "" || !reflect.DeepEqual(again.Listing, listing) || !reflect.DeepEqual(again.Schema, schema) {
			t.Fatalf("%s\n%+v\n%+v", reason, again, m)
		}
		// Whatever it holds is read without a panic.
		s := &snapshot.Snapshot{Log: tab.log, Manifest: again}
		_, _ = s.Segments(t.Context(), nil)
		_, _ = s.Features(t.Context())
		_, _ = s.Lookup(t.Context(), "a")
		_, _ = s.HasSource(t.Context(), "a")
		for _, tr := range []lsm.Tree{listing, schema} {
			for _, e := range tr.Memtable {
				_ = verify.CheckEntry("o", tr.Kind, e.Key, e.Value)
			}
		}
	})
}

// TestSnapshotBounds: a snapshot object of any size, of which little is there, makes a reader allocate little.
func TestSnapshotBounds(t *testing.T) {
	var before, after runtime.MemStats
	l := localStore(t)
	tab := newTable(t, l)
	if _, err := tab.Commit(t.Context(), commit.Change{Operation: "ingest"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(l.Root(), names.SnapshotName("ads", 1)), 1<<30); err != nil {
		t.Skip(err)
	}
	runtime.ReadMemStats(&before)
	_, err := newTable(t, l).Latest(t.Context())
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, format.ErrCorrupt) || got > 16<<20 {
		t.Errorf("%d bytes allocated: %v", got, err)
	}
}
