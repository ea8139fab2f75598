package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

// A cell is one value of the model: nil is null, else the printed value. It shares no code with columns.
type cell any

// A modelRow is one row of the dump as the model sees it.
type modelRow struct {
	part    string
	session cell // nil: none
	time    cell
	ord     int
	cells   map[string]cell
}

// cellOf reads one row of a column.
func cellOf(c *vector.Column, row int) cell {
	if c.IsNull(row) {
		return nil
	}
	lo, hi := c.RowRange(row)
	var s string
	switch c.Type.Physical() {
	case vector.Int64Values:
		s = fmt.Sprint(c.Ints[lo:hi])
	case vector.Float32Values:
		s = fmt.Sprint(c.Floats[lo:hi])
	case vector.Float64Values:
		s = fmt.Sprint(c.Doubles[lo:hi])
	case vector.ByteValues:
		s = fmt.Sprintf("%q", c.Data[lo:hi])
	}
	if c.Type.Kind == vector.Weighted {
		if c.Type.Score == vector.Float64 {
			s += fmt.Sprint(c.ScoreDoubles[lo:hi])
		} else {
			s += fmt.Sprint(c.ScoreFloats[lo:hi])
		}
	}
	return s
}

// A fakeSource gives chunks that were made before.
type fakeSource struct {
	fields []*source.Field
	chunks []*source.Chunk
	failAt int // chunk before which Next fails; -1: never
	err    error
}

func (s *fakeSource) Fields() []*source.Field { return s.fields }

func (s *fakeSource) Next(ctx context.Context) (*source.Chunk, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.failAt == 0 {
		return nil, s.err
	}
	s.failAt--
	if len(s.chunks) == 0 {
		return nil, io.EOF
	}
	c := s.chunks[0]
	s.chunks = s.chunks[1:]
	return c, nil
}

func (s *fakeSource) Close() error { return nil }

var errFake = errors.New("the disk is on fire")

// A fakeTable keeps what is committed, as cells.
type fakeTable struct {
	mu       sync.Mutex
	state    targetState
	sources  map[string]bool
	segments []*fakeSegment // committed
	open     int            // segments neither finished nor aborted
	written  map[string]*fakeSegment
	commits  int
	// failAfter counts calls down; the one at 0 fails. Negative: none does.
	failAfter int
	// nullFeatures allows features without a value in their segment: rows left out may have been all that had one.
	nullFeatures bool
}

type fakeSegment struct {
	table      *fakeTable
	id         string
	part       catalog.Partition
	stripeRows []uint32
	mu         sync.Mutex
	orders     map[int]string
	features   map[string][]cell
	types      map[string]vector.Type
}

func newFakeTable() *fakeTable {
	return &fakeTable{sources: map[string]bool{}, written: map[string]*fakeSegment{}, failAfter: -1}
}

func (t *fakeTable) fail() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failAfter == 0 {
		return errFake
	}
	t.failAfter--
	return nil
}

func (t *fakeTable) latest(context.Context) (targetState, error) {
	s := t.state
	s.hasSource = func(_ context.Context, print string) (bool, error) { return t.sources[print], t.fail() }
	return s, t.fail()
}

func (t *fakeTable) replaced(context.Context, []catalog.Partition) (Replaced, error) {
	return Replaced{}, t.fail()
}

func (t *fakeTable) NewSegment(_ context.Context, p catalog.Partition, stripeRows []uint32,
	_ format.Profile) (writer.SegmentWriter, error) {
	if err := t.fail(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open++
	return &fakeSegment{table: t, id: fmt.Sprint("segment ", len(t.written)+t.open), part: p, stripeRows: stripeRows,
		orders: map[int]string{}, features: map[string][]cell{}, types: map[string]vector.Type{}}, nil
}

func (t *fakeTable) commit(_ context.Context, c commit.Change) (uint64, error) {
	if err := t.fail(); err != nil {
		return 0, err
	}
	t.segments = slices.DeleteFunc(t.segments, func(s *fakeSegment) bool {
		return slices.ContainsFunc(commit.Op[commit.OverwritePartitions](&c),
			func(p catalog.Partition) bool { return p.String() == s.part.String() })
	})
	for _, d := range commit.Op[commit.AddSegments](&c) {
		t.segments = append(t.segments, t.written[d.ID])
		delete(t.written, d.ID)
		t.state.partition = d.Partition
	}
	for _, s := range commit.Op[commit.AddSources](&c) {
		t.sources[s.Fingerprint] = true
	}
	for _, f := range commit.Op[commit.AddFeatures](&c) {
		i := slices.IndexFunc(t.state.features, func(g catalog.Feature) bool { return g.Name == f.Name })
		if i < 0 {
			t.state.features = append(t.state.features, f)
		} else {
			t.state.features[i] = f
		}
	}
	t.commits++
	t.state.number++
	return t.state.number, nil
}

func (t *fakeTable) Discard(_ context.Context, segments []catalog.SegmentDescriptor) {
	for _, d := range segments {
		delete(t.written, d.ID)
	}
}

// rows returns the committed rows of a partition in order.
func (t *fakeTable) rows(part string) []map[string]cell {
	var out []map[string]cell
	for _, s := range t.segments {
		if s.part.String() != part {
			continue
		}
		n := 0
		for _, r := range s.stripeRows {
			n += int(r)
		}
		for i := range n {
			row := map[string]cell{}
			for name, cells := range s.features {
				if cells[i] != nil {
					row[name] = cells[i]
				}
			}
			out = append(out, row)
		}
	}
	return out
}

func (w *fakeStripes) Note(format.Found) {}
func (w *fakeStripes) Finalize() error   { return w.s.table.fail() }

type fakeStripes struct {
	s    *fakeSegment
	name string
	t    vector.Type
	n    int
}

func (w *fakeStripes) WriteStripe(c *vector.Column) error {
	if err := w.s.table.fail(); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Type != w.t {
		return fmt.Errorf("stripe of %v in a file of %v", c.Type, w.t)
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if c.Rows != int(w.s.stripeRows[w.n]) {
		return fmt.Errorf("stripe %d has %d rows: want %d", w.n, c.Rows, w.s.stripeRows[w.n])
	}
	w.n++
	for row := range c.Rows {
		w.s.features[w.name] = append(w.s.features[w.name], cellOf(c, row))
	}
	return nil
}

func (s *fakeSegment) AddFeature(_ context.Context, order int, f catalog.Feature,
	write func(writer.StripeWriter) error) error {
	w := &fakeStripes{s: s, name: f.Name, t: f.Type}
	if err := write(w); err != nil {
		return err
	}
	if w.n != len(s.stripeRows) {
		return fmt.Errorf("%d stripes: want %d", w.n, len(s.stripeRows))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders[order] != "" {
		return fmt.Errorf("order %d twice", order)
	}
	if !s.table.nullFeatures && !slices.ContainsFunc(s.features[f.Name], func(c cell) bool { return c != nil }) {
		return fmt.Errorf("feature %q is null in every row and was not skipped", f.Name)
	}
	s.orders[order] = f.Name
	s.types[f.Name] = f.Type
	return nil
}

// AddGroup takes the slots of the inverse for each feature's.
func (s *fakeSegment) AddGroup(ctx context.Context, order int, features []catalog.Feature,
	write func([]writer.StripeWriter) error) error {
	inverse := &fakeInverse{}
	files := []writer.StripeWriter{inverse}
	for _, f := range features {
		files = append(files, &fakeMember{fakeStripes{s: s, name: f.Name, t: f.Type}, inverse})
	}
	if err := write(files); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range features {
		if n := files[i+1].(*fakeMember).n; n != len(s.stripeRows) {
			return fmt.Errorf("%d stripes: want %d", n, len(s.stripeRows))
		}
		if !slices.ContainsFunc(s.features[f.Name], func(c cell) bool { return c != nil }) {
			return fmt.Errorf("feature %q is null in every row and in a group", f.Name)
		}
		s.types[f.Name] = f.Type
	}
	for i := range len(features) + 1 {
		if s.orders[order+i] != "" {
			return fmt.Errorf("order %d twice", order+i)
		}
		s.orders[order+i] = "group"
	}
	return nil
}

// A fakeInverse keeps the last stripe of a group's inverse.
func (w *fakeInverse) Note(format.Found) {}
func (w *fakeInverse) Finalize() error   { return nil }

type fakeInverse struct{ last *vector.Column }

func (w *fakeInverse) WriteStripe(c *vector.Column) error {
	w.last = c
	return c.Validate()
}

type fakeMember struct {
	fakeStripes
	inverse *fakeInverse
}

func (w *fakeMember) WriteStripe(c *vector.Column) error {
	if i := w.inverse.last; i.Rows != c.Rows || i.Slots != c.Slots {
		return fmt.Errorf("%d rows of %d slots: the inverse has %d of %d", c.Rows, c.Slots, i.Rows, i.Slots)
	}
	own := *c
	own.Inverse, own.Monotone = w.inverse.last.Inverse, w.inverse.last.Monotone
	return w.fakeStripes.WriteStripe(&own)
}

func (s *fakeSegment) Skip(order int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[order] = "skipped"
}

func (s *fakeSegment) Finish(context.Context) (catalog.SegmentDescriptor, error) {
	if err := s.table.fail(); err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	rows := uint64(0)
	for _, r := range s.stripeRows {
		rows += uint64(r)
	}
	for i := range len(s.orders) {
		if s.orders[i] == "" {
			return catalog.SegmentDescriptor{}, fmt.Errorf("order %d is missing", i)
		}
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.open--
	s.table.written[s.id] = s
	return catalog.SegmentDescriptor{ID: s.id, Partition: s.part, Rows: rows, Features: uint32(len(s.features))}, nil
}

func (s *fakeSegment) Abort() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.open--
}
