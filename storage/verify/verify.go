package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/processors"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/wire"
)

// MaxDamage bounds the errors that a report keeps, unless Options say otherwise.
const MaxDamage = 1000

// Options: the zero value works.
type Options struct {
	Deep bool // read everything: see Run
	// Progress, unless nil, is called with the bytes of segments done and to do; never by two goroutines at once.
	Progress func(done, total uint64)
	// MaxDamage bounds the errors that the report keeps; default MaxDamage.
	MaxDamage uint64
	// Only, unless nil, are the segments and row bitmaps to look at. Snapshots, listings and schemas are read all.
	Only map[names.ID]bool
}

// A Report says what Verify looked at and what is wrong.
type Report struct {
	Deep       bool
	Tables     uint64
	Snapshots  uint64
	Segments   uint64 // of any snapshot, those of layers too
	RowBitmaps uint64 // deleted rows, rows of sample lists and covered rows of layers
	Objects    uint64 // of segments
	Features   uint64 // feature files read (deep)
	Stripes    uint64 // whose checksums were verified (deep)
	Bytes      uint64 // of segments' objects that exist; read in full when deep
	// Damage is what is wrong, at most Options.MaxDamage errors; DamageCount is how many there are.
	Damage      []error
	DamageCount uint64
	// Known are segments and row bitmaps that a repair has found damaged, and that snapshots before it still name. They
	// are not looked at again: who reads them there gets an error.
	Known uint64
}

// Run checks tables, and returns what it found; the error is for what kept it from looking. damage is what the caller
// found. What is damaged, missing or unreadable is in the report, unless a repair has dealt with it.
//
// Shallow: the table has its root; no snapshot that has not expired is missing, nor one that a branch or a lease holds;
// every one decodes and follows from the one before; every listing and schema decodes, all checksums of their tables
// right; every object that a segment, a layer or a row bitmap of any of them names exists with the right size; row
// bitmaps within the listing decode. What a snapshot names that expired meanwhile, or that nobody holds any more, may
// be gone: that is no damage. Deep: besides, every stripe's checksums hold, each feature file's and pack's own
// directory agrees with the segment's index, every row bitmap decodes, and every layer has the stripes of the segment
// under it.
func Run(ctx context.Context, s *snapshot.Store, tables []string, opts Options, damage ...error) (*Report, error) {
	opts.MaxDamage = cmp.Or(opts.MaxDamage, MaxDamage)
	v, err := look(ctx, s, tables, opts)
	r := v.report
	if err == nil {
		err = v.lookAgain(ctx, tables, opts, r)
	}
	r.Damage = slices.Concat(damage, r.Damage)
	r.Damage = r.Damage[:min(uint64(len(r.Damage)), opts.MaxDamage)]
	r.DamageCount += uint64(len(damage))
	return r, err
}

type verifier struct {
	s        *snapshot.Store
	progress func(done, total uint64)
	most     uint64 // errors that the report keeps

	todo   []catalog.SegmentDescriptor // every segment of any snapshot, once, those of layers too
	seen   map[names.ID]bool
	total  uint64 // bytes of todo
	layers []notedOverlaySegment
	sets   []notedBitmap
	noted  map[string]bool // entries of layers and sets, by key and value
	// onBranch has the overlays that were made on a branch.
	onBranch map[notedOverlay]bool
	// known are segments and row bitmaps that repairs have found damaged.
	known map[names.ID]bool
	only  map[names.ID]bool // of Options
	spans map[string]span   // by table: as they were when the look at it began

	mu     sync.Mutex // guards report and done
	report *Report
	done   uint64
}

func newVerifier(s *snapshot.Store) *verifier {
	return &verifier{s: s, report: &Report{}, most: MaxDamage, seen: map[names.ID]bool{}, noted: map[string]bool{},
		onBranch: map[notedOverlay]bool{}, known: map[names.ID]bool{},
		spans: map[string]span{}}
}

func (v *verifier) damage(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.DamageCount++
	if uint64(len(v.report.Damage)) < v.most {
		v.report.Damage = append(v.report.Damage, err)
	}
}

// found notes err as damage, unless it is nil. If the context has ended, that is why, and found returns its error.
func (v *verifier) found(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v.damage(err)
	}
	return nil
}

// table checks a table's snapshots and trees and notes its segments.
func (v *verifier) table(ctx context.Context, t *snapshot.Log) error {
	there, err := t.List(ctx)
	if err != nil {
		return err
	}
	v.report.Tables++
	if len(there) == 0 {
		v.damage(wire.Corrupt(names.TableDir(t.Table)+names.SnapshotsDir, "the table has no snapshot"))
		return nil
	}
	if _, err := t.ReadRoot(ctx); err != nil && ctx.Err() == nil {
		v.damage(wire.Missing(names.TableRoot(t.Table), err))
	}
	var before *snapshot.Manifest
	h := snapshot.History{Log: t, Damaged: v.damage, Entry: CheckEntry, There: there}
	h.Shown = func(object string, kind lsm.Kind, key, value []byte) error {
		return v.shown(t.Table, object, kind, key, value)
	}
	h.Snapshot = func(m snapshot.Manifest) error {
		v.report.Snapshots++
		name := names.SnapshotName(t.Table, m.Info.Number)
		if before != nil && before.Info.Number+1 == m.Info.Number {
			if m.Info.Time.Before(before.Info.Time) {
				v.damage(wire.Corrupt(name, "is older than the snapshot before"))
			}
			if m.Parent != before.Commit {
				v.damage(wire.Corrupt(name, "was made after another snapshot than the one before it"))
			}
			if before.Info.Rows+m.Info.AddedRows-m.Info.RemovedRows != m.Info.Rows {
				v.damage(wire.Corrupt(name, fmt.Sprintf("%d rows: %d before, %d added, %d removed",
					m.Info.Rows, before.Info.Rows, m.Info.AddedRows, m.Info.RemovedRows)))
			}
		}
		before = &m
		return nil
	}
	last := there[len(there)-1].Number
	must := v.span(ctx, t, there)
	v.spans[t.Table] = must
	for _, n := range must.held {
		if err := h.Walk(ctx, n, n); err != nil {
			return err
		}
	}
	before = nil                          // what is held may be of a history that a repair has left
	begin, next := must.first, must.first // those from begin to before next are there
	walk := func() error {
		if begin == next {
			return nil
		}
		return h.Walk(ctx, begin, next-1)
	}
	for _, s := range there {
		if s.Number < must.first {
			continue // expired
		}
		if s.Number != next {
			v.damage(t.Gap(next, s.Number))
			if err := walk(); err != nil {
				return err
			}
			begin = s.Number
		}
		next = s.Number + 1
	}
	if err := walk(); err != nil {
		return err
	}
	return v.totals(ctx, t, last)
}

func (v *verifier) note(d catalog.SegmentDescriptor) {
	i, err := names.ParseID(d.ID)
	if err != nil || v.seen[i] {
		return
	}
	v.seen[i] = true
	v.todo = append(v.todo, d)
	v.total += d.Bytes
}

// Totals checks the totals of snapshot n, and returns what is wrong with them. The error is for what kept it from
// looking.
func Totals(ctx context.Context, t *snapshot.Log, n uint64) ([]error, error) {
	v := newVerifier(t.Store)
	err := v.totals(ctx, t, n)
	return v.report.Damage, err
}

// totals holds the newest snapshot's totals to its listing and schema, and its keys to each other.
func (v *verifier) totals(ctx context.Context, t *snapshot.Log, n uint64) error {
	s, err := t.Read(ctx, n)
	if err != nil {
		return nil // the walk has reported it
	}
	var got snapshot.Info
	var keys [][]byte // of the segments by id
	err = s.WalkSegments(ctx, func(string, catalog.Partition) bool { return true }, func(d catalog.SegmentDescriptor) {
		got.Rows += d.Rows
		got.Bytes += d.Bytes
		got.Segments++
		if segment, err := names.ParseID(d.ID); err == nil { // it is: d was decoded
			keys = append(keys, catalog.SegmentIDKey(segment))
		}
	})
	if err == nil {
		err = v.listedByID(ctx, s, keys)
	}
	if err == nil {
		err = v.overTable(ctx, s)
	}
	if err != nil {
		return v.found(ctx, err)
	}
	features, err := s.Features(ctx)
	if err != nil {
		return v.found(ctx, err)
	}
	got.Features = uint64(len(features))
	if err := v.found(ctx, v.keyFeatures(ctx, s, features)); err != nil {
		return err
	}
	if i := s.Manifest.Info; i.Rows != got.Rows || i.Bytes != got.Bytes || i.Segments != got.Segments ||
		i.Features != got.Features {
		v.damage(wire.Corrupt(s.ObjectName(),
			fmt.Sprintf("says %d rows, %d bytes, %d segments, %d features: its parts have %d, %d, %d, %d",
				i.Rows, i.Bytes, i.Segments, i.Features, got.Rows, got.Bytes, got.Segments, got.Features)))
	}
	return nil
}

// keyFeatures holds the entry of the key features to the schema.
func (v *verifier) keyFeatures(ctx context.Context, s *snapshot.Snapshot, features []catalog.Feature) error {
	got, err := s.KeyFeatures(ctx)
	if err != nil {
		return err
	}
	want := slices.DeleteFunc(slices.Clone(features), func(f catalog.Feature) bool { return !f.Role.IsKey() })
	if !slices.Equal(got, want) {
		return s.CorruptSchema(fmt.Sprintf("key features: %d are noted, the schema has %d",
			len(got), len(want)))
	}
	return nil
}

// listedByID checks that the listing has the keys, many at a time.
func (v *verifier) listedByID(ctx context.Context, s *snapshot.Snapshot, keys [][]byte) error {
	for some := range slices.Chunk(keys, 4096) {
		where, err := s.GetListing(ctx, some...)
		if err != nil {
			return err
		}
		for i, w := range where {
			if w == nil {
				return s.CorruptListing(fmt.Sprintf("segment %x is not listed by its id",
					some[i][1:]))
			}
		}
	}
	return nil
}

// segments checks all segments noted, and what lies over them, several at once.
func (v *verifier) segments(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(processors.Workers())
	v.overSegments(gctx, g)
	for _, d := range v.todo {
		g.Go(func() error {
			if err := v.found(gctx, v.segment(gctx, d)); err != nil {
				return err
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			v.report.Segments++
			v.done += d.Bytes
			if v.progress != nil {
				v.progress(v.done, v.total)
			}
			return nil
		})
	}
	return g.Wait()
}

// Segment checks one segment, deeply, committed or not, and returns what is wrong with it. The error is for what kept
// it from looking.
func Segment(ctx context.Context, s *snapshot.Store, d catalog.SegmentDescriptor) ([]error, error) {
	v := newVerifier(s)
	v.report.Deep = true
	err := v.found(ctx, v.segment(ctx, d))
	return v.report.Damage, err
}

// Values checks what readers need of a feature of a segment besides the index: the dictionary and all stripes. Their
// checksums say that they are the feature's.
func Values(ctx context.Context, s *snapshot.Store, e *segment.Entry) error {
	return stripes(object.ReaderAt(ctx, s.Blobs, e.Object), int64(e.Offset), e)
}

// directory reads the directory of a feature file, which begins at base of r. other is the error that it is not that of
// the index.
func directory(r io.ReaderAt, base int64, e *segment.Entry, limits format.Limits) (other, err error) {
	meta, err := format.OpenFile(r, base, int64(e.Length), limits)
	if err != nil || bytes.Equal(format.AppendMeta(nil, meta), format.AppendMeta(nil, e.Meta)) {
		return nil, err
	}
	return &format.CorruptError{Object: e.Object, Feature: e.Meta.Name, Stripe: -1, Offset: int64(e.Offset),
		Reason: "the file's directory differs from the index's"}, nil
}

// passes reports whether the segment or row bitmap of an id is not looked at: a repair has found it damaged, which is
// counted, or it is none of Options.Only.
func (v *verifier) passes(id names.ID) bool {
	if v.known[id] {
		v.mu.Lock()
		v.report.Known++
		v.mu.Unlock()
	}
	return v.known[id] || v.only != nil && !v.only[id]
}

// segment checks one segment. What it returns is the damage that ends it; the rest it reports itself.
func (v *verifier) segment(ctx context.Context, d catalog.SegmentDescriptor) error {
	if id, err := names.ParseID(d.ID); err == nil && v.passes(id) {
		return nil
	}
	if err := v.object(ctx, segment.Object{Name: d.Index, Size: d.IndexSize}); err != nil {
		return err
	}
	g, err := v.s.Segments.Open(ctx, d)
	if err != nil {
		return err
	}
	seg, err := names.ParseID(d.ID)
	if err != nil {
		return err
	}
	objects, err := g.Objects(ctx)
	if err != nil {
		return err
	}
	sum := d.IndexSize + d.KeysSize
	if err := v.found(ctx, v.keyTable(ctx, seg, d)); err != nil {
		return err
	}
	there := map[string]uint64{}
	for _, o := range objects {
		sum += o.Size
		err := v.object(ctx, o)
		if err == nil {
			there[o.Name] = o.Size
		} else if err := v.found(ctx, err); err != nil {
			return err
		}
	}
	if sum != d.Bytes {
		v.damage(wire.Corrupt(d.Index, fmt.Sprintf("objects of %d bytes in all: the listing says %d", sum, d.Bytes)))
	}
	if !v.report.Deep {
		return nil
	}
	entries, err := g.Entries(ctx)
	if err != nil {
		return err
	}
	if uint64(len(entries)) != uint64(d.Features) {
		v.damage(wire.Corrupt(d.Index, fmt.Sprintf("%d features: the listing says %d", len(entries), d.Features)))
	}
	packed := map[string]map[uint64]*segment.Entry{} // by pack and feature
	for _, e := range entries {
		size, ok := there[e.Object]
		if !ok {
			continue // missing, and reported; or not of the segment, which the next check would say
		}
		if size != e.ObjectSize {
			v.damage(format.Locate(wire.Corrupt(d.Index, fmt.Sprintf("%s of %d bytes: its record says %d", e.Object,
				size, e.ObjectSize)), d.Index, e.Meta.Name, 0))
			continue
		}
		err := v.feature(ctx, e)
		if err := v.found(ctx, format.Locate(err, e.Object, e.Meta.Name, 0)); err != nil {
			return err
		}
		if packed[e.Object] == nil {
			packed[e.Object] = map[uint64]*segment.Entry{}
		}
		packed[e.Object][e.Meta.Feature] = e
	}
	for _, o := range objects {
		if _, ok := there[o.Name]; !ok {
			continue
		}
		err := v.pack(ctx, seg, o, packed[o.Name])
		if err := v.found(ctx, format.Locate(err, o.Name, "", 0)); err != nil {
			return err
		}
	}
	return nil
}

// keyTable checks a segment's key table, where it has one.
func (v *verifier) keyTable(ctx context.Context, seg names.ID, d catalog.SegmentDescriptor) error {
	if d.KeysSize == 0 {
		return nil
	}
	err := v.object(ctx, segment.Object{Name: seg.KeysName(), Size: d.KeysSize})
	if err == nil && v.report.Deep {
		err = v.s.Segments.CheckKeys(ctx, d)
	}
	return err
}

// object checks that an object is there and of the right size.
func (v *verifier) object(ctx context.Context, o segment.Object) error {
	info, err := v.s.Blobs.Stat(ctx, o.Name)
	if err != nil {
		return wire.Missing(o.Name, err)
	}
	v.mu.Lock()
	v.report.Objects++
	v.report.Bytes += uint64(info.Size)
	v.mu.Unlock()
	if uint64(info.Size) != o.Size {
		return wire.Corrupt(o.Name, fmt.Sprintf("%d bytes: want %d", info.Size, o.Size))
	}
	return nil
}

// wholeFile is how large a feature file may be to be read at once.
const wholeFile = 32 << 20

// feature checks every checksum of a feature file, and its directory against the index's.
func (v *verifier) feature(ctx context.Context, e *segment.Entry) error {
	r := object.ReaderAt(ctx, v.s.Blobs, e.Object)
	base := int64(e.Offset)
	if e.Length <= wholeFile {
		b := make([]byte, e.Length)
		if _, err := r.ReadAt(b, base); err != nil {
			return wire.Missing(e.Object, err)
		}
		r, base = bytes.NewReader(b), 0
	}
	shift := int64(e.Offset) - base // what offsets of errors lack
	other, err := directory(r, base, e, v.s.Segments.Limits)
	if err != nil {
		return format.Locate(err, e.Object, e.Meta.Name, shift)
	}
	if other != nil {
		return other
	}
	if err := stripes(r, base, e); err != nil {
		return err
	}
	v.mu.Lock()
	v.report.Features++
	v.report.Stripes += uint64(len(e.Meta.Stripes))
	v.mu.Unlock()
	return nil
}

// stripes checks the dictionary and all stripes of a feature file, which begins at base of r.
func stripes(r io.ReaderAt, base int64, e *segment.Entry) error {
	var buf []byte
	if at, length := e.Meta.Dictionary.Range(); length > 0 {
		buf = make([]byte, length)
		if _, err := r.ReadAt(buf, base+int64(at)); err != nil {
			return wire.Missing(e.Object, err)
		}
		if err := format.VerifyDictionary(e.Meta, buf); err != nil {
			return format.Locate(err, e.Object, e.Meta.Name, int64(e.Offset))
		}
	}
	for i, s := range e.Meta.Stripes {
		if uint64(cap(buf)) < s.Length {
			buf = make([]byte, s.Length)
		}
		buf = buf[:s.Length]
		if _, err := r.ReadAt(buf, base+int64(s.Offset)); err != nil {
			return wire.Missing(e.Object, err)
		}
		if err := format.VerifyStripe(e.Meta, i, buf); err != nil {
			return format.Locate(err, e.Object, e.Meta.Name, int64(e.Offset))
		}
	}
	return nil
}

// pack checks a pack's directory against the index: the same files in the same places.
func (v *verifier) pack(ctx context.Context, segment names.ID, o segment.Object,
	entries map[uint64]*segment.Entry) error {
	if !segment.IsPack(o.Name) {
		if len(entries) != 1 {
			return wire.Corrupt(o.Name, fmt.Sprintf("holds %d feature files: want one", len(entries)))
		}
		return nil
	}
	files, err := format.OpenPack(object.ReaderAt(ctx, v.s.Blobs, o.Name), int64(o.Size), v.s.Segments.Limits)
	if err != nil {
		return wire.Missing(o.Name, err)
	}
	for _, f := range files {
		e := entries[f.Feature]
		if e == nil || e.Offset != f.Offset || e.Length != f.Length {
			return wire.Corrupt(o.Name, fmt.Sprintf("feature %016x of the pack's directory is not where the index says",
				f.Feature))
		}
	}
	if len(files) != len(entries) {
		return wire.Corrupt(o.Name, fmt.Sprintf("%d feature files: the index has %d", len(files), len(entries)))
	}
	return nil
}
