package segment

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
)

// Options: the zero value works.
type Options struct {
	PackBytes       int64 // target size of a pack; default 128 MiB
	StandAloneBytes int64 // a feature file this large is an object of its own; default 16 MiB
	HoldBytes       int64 // how much of finished feature files may wait for those before them; default 128 MiB
	// Profile weighs the size of feature files against the time to decode them. Default: balanced.
	Profile format.Profile
}

func (o Options) withDefaults() Options {
	o.PackBytes = cmp.Or(o.PackBytes, 128<<20)
	o.StandAloneBytes = cmp.Or(o.StandAloneBytes, 16<<20)
	o.HoldBytes = cmp.Or(o.HoldBytes, 128<<20)
	return o
}

// Validate returns an error naming the first field that is wrong.
func (o Options) Validate() error {
	if o.PackBytes < 0 || o.StandAloneBytes < 0 || o.HoldBytes < 0 {
		return fmt.Errorf("segment options: pack %d, stand-alone %d, hold %d bytes: want none negative", o.PackBytes,
			o.StandAloneBytes, o.HoldBytes)
	}
	return nil
}

// A Writer writes one segment: feature files into packs, in the order given, large ones into objects of their
// own, then the key table and the index. It holds no more than HoldBytes of finished files, StandAloneBytes for
// each AddFeature under way, and of a key feature 8 bytes for each distinct value of a stripe, 128 MiB at most.
// AddFeature and Skip are safe for concurrent use; Finish comes after all of them; Abort at any time.
type Writer struct {
	s       *Store
	ctx     context.Context // of NewWriter: packs are uploaded under it, by several calls of AddFeature
	id      names.ID
	p       catalog.Partition
	rows    uint64
	stripes []uint32
	opts    Options

	mu sync.Mutex // guards all below, except that pack belongs to who set draining
	// changed is closed, and made anew, when held, next or err changes.
	changed  chan struct{}
	orders   map[int]bool // every order taken
	features map[catalog.FeatureID]string
	waiting  map[int]finishedFile // by order: done, and waiting for those before it
	holding  int64                // bytes of held
	next     int                  // the order that goes into the packs next
	draining bool
	records  []placed
	objects  []segmentObject
	keys     []*keyHashes
	keysSize int64 // of the key table, once it is written
	err      error
	ended    bool

	pack  *packFile // the pack being written, or nil
	packs uint64
}

// laid is a feature file that is done: skipped, in an object of its own, or in memory.
type finishedFile struct {
	feature catalog.FeatureID
	name    string
	skip    bool
	file    []byte // the whole file, when it goes into a pack
	length  int64
	meta    *format.FileMeta
}

// placed is a feature file in its place, before the size of its object is known.
type placed struct {
	feature catalog.FeatureID
	at      location
	meta    []byte // format.AppendMeta
}

type packFile struct {
	number uint64
	w      object.Writer
	buf    *bufio.Writer
	pack   *format.PackWriter
}

var errAborted = errors.New("segment writer was aborted")

// NewWriter starts a segment of a table and partition whose stripes have the given rows. ctx is that of the whole
// segment: it must not end before Finish or Abort has returned.
func (s *Store) NewWriter(ctx context.Context, table names.TableID, p catalog.Partition, stripeRows []uint32,
	opts Options) (*Writer, error) {
	if err := errors.Join(ctx.Err(), p.Validate(), opts.Validate()); err != nil {
		return nil, err
	}
	w := &Writer{
		s: s, ctx: ctx, id: names.NewID(table), p: slices.Clone(p), stripes: slices.Clone(stripeRows),
		opts: opts.withDefaults(), changed: make(chan struct{}), orders: map[int]bool{},
		features: map[catalog.FeatureID]string{}, waiting: map[int]finishedFile{},
	}
	for i, n := range stripeRows {
		if n == 0 {
			return nil, fmt.Errorf("segment: stripe %d has no rows", i)
		}
		w.rows += uint64(n)
	}
	return w, nil
}

// ID returns the segment's id.
func (w *Writer) ID() string { return w.id.String() }

// AddFeature writes one feature: write is called with a format.Writer and writes every stripe. order is the feature's
// place in the packs, 0 first; every order from 0 up to the last must be added or skipped exactly once before Finish,
// and the bytes laid down do not depend on the calls' timing. A call may wait until those before it are done, so calls
// must be begun in about that order: the one whose turn it is never waits. After an error, which names the feature, the
// segment cannot be finished.
func (w *Writer) AddFeature(ctx context.Context, order int, f catalog.Feature, write func(*format.Writer) error) error {
	if err := w.begin(ctx, order, f); err != nil {
		return err
	}
	return w.add(ctx, order, 0, []catalog.Feature{f}, func(files []*format.Writer) error { return write(files[0]) })
}

// AddGroup is AddFeature for the features of a dedup group, at least one, which lie in the packs one after the other
// behind their inverse: that has the given order, the first feature the next, and so on. write is called with the
// writer of the inverse (stripes of kind Inverse) and those of the features; every stripe of a feature has the slots of
// the inverse's. While it is under way the call holds StandAloneBytes for each of them.
func (w *Writer) AddGroup(ctx context.Context, order int, features []catalog.Feature,
	write func(inverse *format.Writer, features []*format.Writer) error) error {
	if len(features) == 0 {
		return errors.New("segment: a dedup group without features")
	}
	files := append([]catalog.Feature{groupFeature(features[0])}, features...)
	if err := w.begin(ctx, order, files...); err != nil {
		return err
	}
	return w.add(ctx, order, files[0].ID, files, func(files []*format.Writer) error {
		return write(files[0],
			files[1:])
	})
}

// inverseOf begins the name of a group's inverse; its first feature's follows.
const inverseOf = "inverse of "

// groupFeature returns what stands for the inverse of the group whose first feature is f.
func groupFeature(f catalog.Feature) catalog.Feature {
	// A NUL keeps the hashed name apart from every feature's that people type.
	return catalog.Feature{
		ID: catalog.NewFeatureID("\x00inverse\x00"+f.Name, f.Generation), Name: inverseOf +
			strings.ToValidUTF8(f.Name[:min(len(f.Name), catalog.MaxName-32)], ""),
		Type: vector.Type{Kind: vector.Inverse},
	}
}

// add writes the files of the orders from first on, which begin took. The first is the inverse of group unless that is
// 0.
func (w *Writer) add(ctx context.Context, first int, group catalog.FeatureID, files []catalog.Feature,
	write func([]*format.Writer) error) error {
	done, at, err := w.write(ctx, first, group, files, write)
	if err != nil {
		err = fmt.Errorf("feature %s: %w", files[at].Name, err)
		w.fail(err)
		return err
	}
	for i, d := range done {
		err = cmp.Or(err, w.finished(ctx, first+i, d)) // several may return one fault
	}
	return err
}

// Skip says that no feature of this order comes: it is null in every row.
func (w *Writer) Skip(order int) {
	w.mu.Lock()
	if order < 0 || w.orders[order] {
		w.setErr(fmt.Errorf("segment: order %d skipped, and taken before", order))
		w.mu.Unlock()
		return
	}
	w.orders[order] = true
	w.waiting[order] = finishedFile{skip: true}
	w.wake()
	w.mu.Unlock()
	// Those that waited for this one are laid down by the next call or by Finish.
}

// wake lets those who wait look again. The caller holds mu.
func (w *Writer) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// setErr keeps the first error. The caller holds mu.
func (w *Writer) setErr(err error) {
	if w.err == nil {
		w.err = err
	}
	w.wake()
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setErr(err)
}

// begin takes the orders from the given one on and waits until there is room to hold what comes.
func (w *Writer) begin(ctx context.Context, order int, files ...catalog.Feature) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, f := range files {
		if err := w.take(order+i, f); err != nil {
			return err
		}
	}
	for w.err == nil && w.holding >= w.opts.HoldBytes && order != w.next {
		// Skip leaves what waited for it to the next call, and wakes only those who wait already.
		_, ready := w.waiting[w.next]
		ready = ready && !w.draining
		changed := w.changed
		w.mu.Unlock()
		var err error
		if ready {
			err = w.drain(ctx)
		} else {
			select {
			case <-changed:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		w.mu.Lock()
		if err != nil {
			w.setErr(err)
		}
	}
	return w.err
}

// take takes an order for a feature file. The caller holds mu.
func (w *Writer) take(order int, f catalog.Feature) error {
	if err := f.Validate(); err != nil {
		return err
	}
	switch {
	case w.ended:
		return fmt.Errorf("feature %s: added to a segment that has ended", f.Name)
	case order < 0 || order > names.MaxObjectNumber:
		return fmt.Errorf("feature %s: order %d: want 0 to %d", f.Name, order, names.MaxObjectNumber)
	case w.orders[order]:
		return fmt.Errorf("feature %s: order %d is taken", f.Name, order)
	}
	if other, ok := w.features[f.ID]; ok {
		if other != f.Name {
			return catalog.IDCollision(f.ID, other, f.Name)
		}
		return fmt.Errorf("feature %s: added twice", f.Name)
	}
	w.orders[order], w.features[f.ID] = true, f.Name
	return nil
}

// write makes the feature files of the orders from first on, in memory or, once they are large, each in an object of
// its own. An error is of file at.
func (w *Writer) write(ctx context.Context, first int, group catalog.FeatureID, files []catalog.Feature,
	write func([]*format.Writer) error) (done []finishedFile, at int, err error) {
	spools := make([]*spool, len(files))
	var keys []*keyHashes
	writers := make([]*format.Writer, len(files))
	for i, f := range files {
		sp := &spool{ctx: ctx, s: w.s, name: w.id.ObjectName(names.FileObject, uint64(first+i)),
			limit: w.opts.StandAloneBytes}
		defer sp.abort()
		opts := format.WriterOptions{Feature: uint64(f.ID), Salt: saltOf(w.id, f.ID), Name: f.Name,
			Profile: w.opts.Profile}
		if f.ID != group {
			opts.Group = uint64(group)
		}
		if group != 0 && i > 0 {
			opts.Inverse = writers[0]
		}
		if k := w.keysOf(f); k != nil {
			keys = append(keys, k)
			opts.Seen = k.add
		}
		if writers[i], err = format.NewWriter(sp, f.Type, opts); err != nil {
			return nil, i, err
		}
		spools[i] = sp
	}
	if err := write(writers); err != nil {
		return nil, 0, err
	}
	for i, f := range files {
		d, err := w.close(f, spools[i], writers[i])
		if err == nil && group != 0 {
			err = sameSlots(done, d)
		}
		if err != nil {
			w.deleteObjects(ctx, first, append(done, d))
			return nil, i, err
		}
		done = append(done, d)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys = append(w.keys, keys...)
	return done, 0, nil
}

// sameSlots checks that a feature of a group has the slots of its inverse, the first of done.
func sameSlots(done []finishedFile, d finishedFile) error {
	if len(done) == 0 {
		return nil
	}
	for i := range d.meta.Stripes {
		if got, want := d.meta.Stripes[i].Slots, done[0].meta.Stripes[i].Slots; got != want {
			return fmt.Errorf("stripe %d has %d slots: its dedup group has %d", i, got, want)
		}
	}
	return nil
}

// deleteObjects deletes what stands alone of files that no segment will have.
func (w *Writer) deleteObjects(ctx context.Context, first int, done []finishedFile) {
	var all []string
	for i, d := range done {
		if d.file == nil {
			all = append(all, w.id.ObjectName(names.FileObject, uint64(first+i)))
		}
	}
	w.discard(ctx, all)
}

// discard deletes objects of a segment that there will not be.
func (w *Writer) discard(ctx context.Context, all []string) {
	ctx, cancel := object.Cleanup(ctx)
	defer cancel()
	_ = object.DeleteAll(ctx, w.s.Blobs, all) // gc finds what is left
}

// close ends a feature file.
func (w *Writer) close(f catalog.Feature, sp *spool, fw *format.Writer) (finishedFile, error) {
	meta, n, err := fw.Finish()
	if err != nil {
		return finishedFile{}, err
	}
	if n != sp.n {
		return finishedFile{}, fmt.Errorf("feature file of %d bytes, %d written", n, sp.n)
	}
	e := Entry{Length: uint64(n), Meta: meta}
	if reason := checkEntry(&e, w.id, f.ID, w.stripes); reason != "" {
		return finishedFile{}, errors.New(reason)
	}
	done := finishedFile{feature: f.ID, name: f.Name, length: n, meta: meta, file: sp.buf}
	if sp.w != nil {
		done.file = nil
		return done, sp.commit()
	}
	return done, nil
}

// finished hands a file on to the packs.
func (w *Writer) finished(ctx context.Context, order int, done finishedFile) error {
	w.mu.Lock()
	if w.err != nil {
		err := w.err
		w.mu.Unlock()
		w.deleteObjects(ctx, order, []finishedFile{done}) // the call that ended the segment did not know of this object
		return err
	}
	if done.file == nil {
		w.objects = append(w.objects, segmentObject{names.FileObject, uint64(order), uint64(done.length)})
	}
	w.waiting[order] = done
	w.holding += int64(len(done.file))
	w.mu.Unlock()
	return w.drain(ctx)
}

// drain lays down the files whose turn it is. One goroutine does so at a time; another's files are laid down by it.
func (w *Writer) drain(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.draining && w.err == nil {
		item, ok := w.waiting[w.next]
		if !ok {
			break
		}
		order := w.next
		delete(w.waiting, order)
		w.draining = true
		w.mu.Unlock()
		at, sealed, err := w.place(ctx, order, item)
		w.mu.Lock()
		w.draining = false
		if sealed != nil {
			w.objects = append(w.objects, *sealed)
		}
		if err != nil {
			w.setErr(fmt.Errorf("feature %s: %w", item.name, err))
			break
		}
		if !item.skip {
			w.records = append(w.records, placed{item.feature, at, format.AppendMeta(nil, item.meta)})
		}
		w.holding -= int64(len(item.file))
		w.next++
		w.wake()
	}
	return w.err
}

// lay puts one file in its place and returns where it is, and the pack that it filled. The caller is draining.
func (w *Writer) place(ctx context.Context, order int,
	item finishedFile) (l location, sealed *segmentObject, err error) {
	if item.skip {
		return l, nil, nil
	}
	l = location{kind: names.FileObject, number: uint64(order), length: uint64(item.length)}
	if item.file != nil {
		if w.pack != nil && w.pack.pack.Size()+int64(len(item.file)) > w.opts.PackBytes {
			if sealed, err = w.seal(ctx); err != nil {
				return l, sealed, err
			}
		}
		if w.pack == nil {
			if w.pack, err = w.newPack(); err != nil {
				return l, sealed, err
			}
		}
		l.kind, l.number = names.PackObject, w.pack.number
		if l.offset, err = w.pack.pack.Add(uint64(item.feature), item.file); err != nil {
			return l, sealed, err
		}
	}
	return l, sealed, nil
}

func (w *Writer) newPack() (*packFile, error) {
	p := &packFile{number: w.packs}
	var err error
	if p.w, err = w.s.Blobs.Create(w.ctx, w.id.ObjectName(names.PackObject, p.number)); err != nil {
		return nil, err
	}
	p.buf = bufio.NewWriterSize(p.w, 256<<10)
	if p.pack, err = format.NewPackWriter(p.buf); err != nil {
		p.w.Abort()
		return nil, err
	}
	w.packs++
	return p, nil
}

// seal ends the open pack.
func (w *Writer) seal(ctx context.Context) (*segmentObject, error) {
	p := w.pack
	w.pack = nil
	defer p.w.Abort()
	size, err := p.pack.Finish()
	if err == nil {
		err = p.buf.Flush()
	}
	if err == nil {
		err = p.w.Commit(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &segmentObject{names.PackObject, p.number, uint64(size)}, nil
}

// Finish writes the last pack and the index, and returns the segment for a Change; all its objects are durable. It must
// be called once, after every AddFeature has returned.
func (w *Writer) Finish(ctx context.Context) (catalog.SegmentDescriptor, error) {
	d, err := w.finish(ctx)
	if err != nil {
		w.fail(err)
	}
	return d, err
}

func (w *Writer) finish(ctx context.Context) (catalog.SegmentDescriptor, error) {
	if err := w.drain(ctx); err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return catalog.SegmentDescriptor{}, errors.New("segment: finished twice")
	case w.draining || len(w.orders) != w.next:
		return catalog.SegmentDescriptor{}, fmt.Errorf(
			"segment: order %d was neither added nor skipped, or is not done", w.next)
	}
	if w.pack != nil {
		sealed, err := w.seal(ctx)
		if err != nil {
			return catalog.SegmentDescriptor{}, err
		}
		w.objects = append(w.objects, *sealed)
	}
	slices.SortFunc(w.objects, func(a, b segmentObject) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number))
	})
	var err error
	if w.keysSize, err = w.writeKeys(ctx); err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	size, err := w.writeIndex(ctx)
	if err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	d := catalog.SegmentDescriptor{
		ID: w.id.String(), Partition: w.p, Rows: w.rows, Bytes: uint64(size + w.keysSize),
		Features: uint32(len(w.records)), Objects: uint32(len(w.objects)), Index: w.id.IndexName(),
		IndexSize: uint64(size), KeysSize: uint64(w.keysSize),
	}
	for _, o := range w.objects {
		d.Bytes += o.size
	}
	w.ended = true
	return d, d.Validate()
}

func (w *Writer) writeIndex(ctx context.Context) (int64, error) {
	slices.SortFunc(w.records, func(a, b placed) int { return cmp.Compare(a.feature, b.feature) })
	sizes := make(map[names.ObjectKind]map[uint64]uint64)
	for _, o := range w.objects {
		if sizes[o.kind] == nil {
			sizes[o.kind] = map[uint64]uint64{}
		}
		sizes[o.kind][o.number] = o.size
	}
	out, err := w.s.Blobs.Create(ctx, w.id.IndexName())
	if err != nil {
		return 0, err
	}
	defer out.Abort()
	buf := bufio.NewWriterSize(out, 256<<10)
	table := sst.NewWriter(buf)
	err = table.Add(recordKey(w.id, factsRecord), appendFacts(nil, w.stripes))
	var value []byte
	for _, r := range w.records {
		if err != nil {
			break
		}
		r.at.size = sizes[r.at.kind][r.at.number]
		value = append(appendLocation(value[:0], r.at), r.meta...)
		err = table.Add(featureKey(w.id, r.feature), value)
	}
	err = errors.Join(err, table.Add(recordKey(w.id, objectsRecord), appendObjects(nil, w.objects)))
	size, ferr := table.Finish()
	if err := errors.Join(err, ferr, buf.Flush()); err != nil {
		return 0, fmt.Errorf("segment index: %w", err)
	}
	return size, out.Commit(ctx)
}

// Abort drops the segment: nothing of it stays but what a crash would leave. After Finish it does nothing.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	w.setErr(errAborted)
	if w.pack != nil && !w.draining {
		w.pack.w.Abort()
		w.pack = nil
	}
	var all []string
	for _, o := range w.objects {
		all = append(all, w.id.ObjectName(o.kind, o.number))
	}
	if w.keysSize > 0 {
		all = append(all, w.id.KeysName())
	}
	w.discard(context.Background(), all)
	clear(w.waiting)
}

// A spool takes a feature file into memory until it is large, then into an object.
type spool struct {
	ctx   context.Context // of the one call that the spool lives for
	s     *Store
	name  string
	limit int64
	n     int64
	buf   []byte
	w     object.Writer // nil while in memory
	out   *bufio.Writer
}

func (s *spool) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	if s.w == nil {
		if s.n < s.limit {
			s.buf = append(s.buf, p...)
			return len(p), nil
		}
		w, err := s.s.Blobs.Create(s.ctx, s.name)
		if err != nil {
			return 0, err
		}
		s.w, s.out = w, bufio.NewWriterSize(w, 256<<10)
		if _, err := s.out.Write(s.buf); err != nil {
			return 0, err
		}
		s.buf = nil
	}
	return s.out.Write(p)
}

func (s *spool) commit() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.w.Commit(s.ctx)
}

func (s *spool) abort() {
	if s.w != nil {
		s.w.Abort()
	}
}
