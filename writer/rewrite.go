package writer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/spill"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Rewrite writes the rows of segments of one partition as new segments. It commits nothing.
//
//	inputs' keys ──> streams of records, each in order ──> merge ──> plans: pieces of inputs
//	                                                                    |            └─> Origins
//	inputs' columns, opened feature by feature ──> gather pieces ──> duplicates ──> segments, and their overlays
//
// The rows of a segment are already in the order of records, so the inputs are merged and nothing is sorted. A worker
// holds one decoded stripe of its feature for each input. If these exceed its share of Options.Memory, it spills the
// rows to a file instead (inputRows).
type Rewrite struct {
	Table     *storage.Table
	Partition catalog.Partition
	Inputs    []RewriteInput
	// Features are the features of the new segments, in the order of packs. Each element of Layers makes one more
	// segment (an overlay) for each new one, over the same rows in the same stripes, with the features of that element.
	// Run sets Feature.Number: Features first, from 0, then those of each layer.
	Features []*Feature
	Layers   [][]*Feature
	// Session and Time are the numbers of the key features that order the rows; below 0: none.
	Session, Time int
	// Segments is the approximate number of new segments. Default 1.
	Segments int
	// KeepOrder leaves the rows in the order of the inputs and does not compare keys.
	KeepOrder bool
	// Open opens a feature, by number, of an input. It returns nil if the feature is null in every row. Several
	// goroutines call it at once; each returned column is used by one goroutine.
	Open func(ctx context.Context, input, feature int) (RewriteColumn, error)
	// Progress, if set, is called from one goroutine at a time with the decoded bytes written so far and in all. It
	// must not block.
	Progress func(bytes, totalBytes int64)
}

// A RewriteInput describes the rows of one input segment.
type RewriteInput struct {
	Stripes []RewriteStripe
	Deleted *roaring.Bitmap // rows to leave out; nil: none
}

// A RewriteStripe describes a stripe of an input.
type RewriteStripe struct {
	Rows uint32 // including deleted ones
	// RowBytes is the average decoded bytes of a row over all features, MostBytes those of the largest feature.
	RowBytes, MostBytes uint32
}

// A RewriteColumn is an opened feature of an input.
type RewriteColumn interface {
	// MayHave returns false only if every row of [lo, hi) is null.
	MayHave(lo, hi int) bool
	// Append appends rows [lo, hi) to dst, a plain column of the feature's type. lo and hi never decrease from call to
	// call, so ranges ascend but may overlap.
	Append(dst *vector.Column, lo, hi int) error
	// Close frees the column's memory. A later Append allocates it again.
	Close()
}

// ErrUnordered is returned when the rows of an input are not in the order of the keys, because the table had other keys
// when they were written.
var ErrUnordered = errors.New("rows are not in the order of the keys")

// A Rewritten is one segment that a Rewrite wrote.
type Rewritten struct {
	Data   catalog.SegmentDescriptor
	Layers []catalog.SegmentDescriptor // aligned with Rewrite.Layers
	Rows   OriginSpan
}

// A RewriteResult holds the segments that a Rewrite wrote. The caller closes it.
type RewriteResult struct {
	Segments   []Rewritten
	Duplicates Duplicates
	origins    *originFile
}

// Close frees the file of origins.
func (r *RewriteResult) Close() error { return r.origins.close() }

// Origins calls visit for the rows of a segment in order: rows [at, at+o.N) of the segment are rows [o.Row, o.Row+o.N)
// of input o.Input. It is safe for concurrent use until Close.
func (r *RewriteResult) Origins(of OriginSpan, visit func(at uint32, o Origin) error) error {
	return r.origins.each(of, visit)
}

// Run writes the segments. After an error it deletes the segments that it wrote, as far as the store allows.
func (x *Rewrite) Run(ctx context.Context, opts Options) (_ *RewriteResult, err error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.WithDefaults()
	release := spill.HoldMemory(opts.Memory)
	defer release()
	dir, err := spill.Dir(opts.TempDir, x.Table.Store().Blobs())
	if err != nil {
		return nil, err
	}
	r := &rewriting{Rewrite: x, dir: dir, features: x.number()}
	for i := range x.Inputs {
		rows, bytes := x.Inputs[i].live()
		r.rows += rows
		r.bytes += bytes
	}
	r.output, err = newOutput(&opts, ToTable(x.Table, opts.Memory),
		func() rowSource { return &inputRows{ctx: ctx, r: r} }, r.rows)
	if err != nil {
		return nil, err
	}
	r.output.held = r.columnMemory
	if x.Progress != nil {
		done := int64(0)
		r.wrote = func(_, bytes int64) { done += bytes; x.Progress(done, r.bytes) }
	}
	if r.origins, err = newOriginFile(dir); err != nil {
		return nil, err
	}
	out := &RewriteResult{origins: r.origins}
	if err = r.write(ctx, out); err == nil {
		return out, nil
	}
	r.discard(ctx, out.Segments)
	return nil, errors.Join(err, out.Close())
}

// number sets the Number of all features and returns the features by number.
func (x *Rewrite) number() []*Feature {
	all := slices.Concat(append([][]*Feature{x.Features}, x.Layers...)...)
	for i, f := range all {
		f.Number, f.choice = i, dedup.Choice{}
	}
	return all
}

// A rewriting is the state of Rewrite.Run.
type rewriting struct {
	*Rewrite
	*output
	dir      string     // for spill files
	features []*Feature // by number
	origins  *originFile

	rows, bytes int64 // live rows of all inputs, and their decoded bytes
}

func (r *rewriting) discard(ctx context.Context, made []Rewritten) {
	var all []catalog.SegmentDescriptor
	for _, m := range made {
		all = append(append(all, m.Data), m.Layers...)
	}
	r.target.Discard(ctx, all)
}

func (r *rewriting) write(ctx context.Context, out *RewriteResult) error {
	r.progress(0, 0)
	p, err := r.planner(ctx)
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		plan, err := p.next()
		if err != nil || plan == nil {
			out.Duplicates = r.found
			return err
		}
		r.locate(plan)
		made := Rewritten{}
		if made.Rows, err = r.origins.end(); err != nil {
			return err
		}
		share := plan.bytes / int64(max(len(r.features), 1))
		if made.Data, err = r.output.write(ctx, plan, r.Partition, r.Features, share); err != nil {
			return err
		}
		out.Segments = append(out.Segments, made)
		for _, features := range r.Layers {
			d, err := r.output.write(ctx, plan, r.Partition, features, share)
			if err != nil {
				return err
			}
			last := &out.Segments[len(out.Segments)-1]
			last.Layers = append(last.Layers, d)
		}
		r.progress(int64(plan.rows), plan.bytes-share*int64(len(r.features)))
	}
}

// live returns how many rows are not deleted, and their approximate decoded bytes.
func (i *RewriteInput) live() (rows, bytes int64) {
	first := uint64(0)
	for _, s := range i.Stripes {
		n := uint64(s.Rows)
		if i.Deleted != nil {
			n -= i.Deleted.CardinalityInRange(first, first+n)
		}
		first += uint64(s.Rows)
		rows += int64(n)
		bytes += int64(n) * int64(s.RowBytes)
	}
	return rows, bytes
}

// locate converts the ranges of a plan, which count live rows, to ranges of the inputs' rows, which include the deleted
// rows between them.
func (r *rewriting) locate(plan *segmentPlan) {
	move := func(g *runRange, in *RewriteInput) {
		if in.Deleted != nil {
			g.lo, g.hi = in.liveRow(g.lo), in.liveRow(g.hi-1)+1
		}
	}
	for i := range plan.stripes {
		for k := range plan.stripes[i].ranges {
			g := &plan.stripes[i].ranges[k]
			move(g, &r.Inputs[plan.ranges[g.run].run])
		}
	}
	for k := range plan.ranges {
		move(&plan.ranges[k], &r.Inputs[plan.ranges[k].run])
	}
}

// liveRow returns the row of the n-th live row, from 0. Deleted is not nil.
func (i *RewriteInput) liveRow(n uint32) uint32 {
	rows := 0
	for _, s := range i.Stripes {
		rows += int(s.Rows)
	}
	return uint32(sort.Search(rows,
		func(row int) bool { return uint64(row)+1-i.Deleted.Rank(uint32(row)) > uint64(n) }))
}

// eachLive calls visit with the maximal ranges of rows of [lo, hi) that are not deleted.
func (i *RewriteInput) eachLive(lo, hi uint32, visit func(lo, hi int) error) error {
	if i.Deleted != nil {
		it := i.Deleted.Iterator()
		for it.AdvanceIfNeeded(lo); it.HasNext() && it.PeekNext() < hi; it.AdvanceIfNeeded(lo) {
			gone := it.Next()
			if gone > lo {
				if err := visit(int(lo), int(gone)); err != nil {
					return err
				}
			}
			lo = gone + 1
		}
	}
	if lo == hi {
		return nil
	}
	return visit(int(lo), int(hi))
}

// planner returns the planner of the new segments, over the merged records of the inputs.
func (r *rewriting) planner(ctx context.Context) (*planner, error) {
	if len(r.Inputs) > MaxSources {
		return nil, fmt.Errorf("%d inputs: want at most %d", len(r.Inputs), MaxSources)
	}
	streams := make([]recordStream, len(r.Inputs))
	rows, shut := r.keyMemory()
	for i := range r.Inputs {
		s := &inputStream{ctx: ctx, x: r, input: i, blockRows: rows, shut: shut}
		if err := s.open(); err != nil {
			return nil, err
		}
		streams[i] = s
	}
	segmentRows := int(math.Ceil(float64(r.rows) / float64(max(r.Rewrite.Segments, 1))))
	return &planner{
		in:         spill.NewMerge(compareRecords, streams),
		stripeRows: r.StripeRows, stripeBytes: r.StripeBytes, overRuns: true,
		segmentRows: func(uint32) int { return max(segmentRows, 1) },
		keep:        func(h *record) { r.origins.add(h.chunk, uint32(h.ord&(1<<ordSourceShift-1))) },
	}, nil
}

// spills reports whether the opened columns of a feature take so much memory that its rows are spilled.
func (r *rewriting) spills(f *Feature) bool {
	return 3*r.stripeBytes(f)+f.HeldBytes > writeShare(r.Memory)
}

// columnMemory returns the memory of the opened columns while a stripe of f is written: a decoded stripe of each input
// or, when f is spilled, of one input, and the write buffer.
func (r *rewriting) columnMemory(f *Feature) int64 {
	if r.spills(f) {
		return f.MostBytes + spillBufBytes
	}
	return f.HeldBytes
}

const (
	// An inputStream reads the keys of at most maxKeyRows rows at once, and at least minKeyRows however little memory
	// there is.
	maxKeyRows = 4096
	minKeyRows = 256
	// keyRowBytes is the approximate memory of a row whose keys are read: its record and its keys.
	keyRowBytes = 128
)

// keyMemory divides bufferShare among the streams of the inputs' keys. It returns how many rows each reads at once, and
// whether each closes its columns after every read because their decoded stripes would take too much.
func (r *rewriting) keyMemory() (rows int, shut bool) {
	half := bufferShare(r.Memory) / 2
	held := int64(0)
	for _, number := range []int{r.Session, r.Time} {
		if number >= 0 {
			held += r.features[number].HeldBytes
		}
	}
	each := half / int64(max(len(r.Inputs), 1)) / keyRowBytes
	return int(min(max(each, minKeyRows), maxKeyRows)), held > half
}

// An inputStream is the records of an input's live rows. A record's chunk is the input, its row counts live rows only,
// and the low bits of its ord are the row of the input, deleted rows counted.
type inputStream struct {
	ctx           context.Context // of the one Run that the stream is read for
	x             *rewriting
	input         int
	blockRows     int           // that are read at once
	shut          bool          // columns are closed after each block
	session, time RewriteColumn // nil: null in every row, or the table has no such key
	sessions      vector.Column
	times         vector.Column

	stripe     int // of the next row
	stripeEnd  int
	next, rows int
	live       uint32 // rows before next that are not deleted
	records    []record
	at         int
	last       record
	any        bool // last is set
}

// open opens the key columns and loads the first block.
func (s *inputStream) open() (err error) {
	for _, n := range s.x.Inputs[s.input].Stripes {
		s.rows += int(n.Rows)
	}
	if s.rows > math.MaxUint32 {
		return fmt.Errorf("input of %d rows: want at most %d", s.rows, math.MaxUint32)
	}
	s.stripe = -1
	if s.x.Session >= 0 && !s.x.KeepOrder {
		if s.session, err = s.x.Open(s.ctx, s.input, s.x.Session); err != nil {
			return err
		}
		s.sessions.Type = s.x.features[s.x.Session].Type
	}
	if s.session != nil && s.x.Time >= 0 {
		if s.time, err = s.x.Open(s.ctx, s.input, s.x.Time); err != nil {
			return err
		}
		s.times.Type = s.x.features[s.x.Time].Type
	}
	return s.load()
}

func (s *inputStream) Head() *record {
	if s.at == len(s.records) {
		return nil
	}
	return &s.records[s.at]
}

func (s *inputStream) Advance() error {
	if s.at++; s.at < len(s.records) {
		return nil
	}
	return s.load()
}

// load makes records of the next block with a live row; none at the end.
func (s *inputStream) load() error {
	s.records, s.at = s.records[:0], 0
	for len(s.records) == 0 && s.next < s.rows {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if err := s.block(s.next, min(s.next+s.blockRows, s.rows)); err != nil {
			return err
		}
	}
	for _, c := range []RewriteColumn{s.session, s.time} {
		if c != nil && (s.shut || len(s.records) == 0) {
			c.Close()
		}
	}
	return nil
}

// block makes records of the live rows of [lo, hi).
func (s *inputStream) block(lo, hi int) error {
	in := &s.x.Inputs[s.input]
	key := func(c RewriteColumn, to *vector.Column) (*vector.Column, error) {
		if c == nil {
			return nil, nil
		}
		to.Reset()
		return to, c.Append(to, lo, hi)
	}
	session, err := key(s.session, &s.sessions)
	if err != nil {
		return err
	}
	times, err := key(s.time, &s.times)
	if err != nil {
		return err
	}
	s.records = vector.Resize(s.records, hi-lo)
	clear(s.records)
	setKeys(s.records, session, times)
	kept := 0
	for i := range s.records {
		row := lo + i
		for row >= s.stripeEnd {
			s.stripe++
			s.stripeEnd += int(in.Stripes[s.stripe].Rows)
		}
		if in.Deleted != nil && in.Deleted.Contains(uint32(row)) {
			continue
		}
		r := s.records[i]
		r.ord = uint64(s.input)<<ordSourceShift | uint64(row)
		r.chunk, r.row = uint32(s.input), s.live
		r.bytes, r.most = in.Stripes[s.stripe].RowBytes, in.Stripes[s.stripe].MostBytes
		if s.any && compareRecords(&s.last, &r) > 0 {
			return fmt.Errorf("row %d: %w", row, ErrUnordered)
		}
		s.last, s.any = r, true
		s.live++
		s.records[kept] = r
		kept++
	}
	s.records, s.next = s.records[:kept], hi
	return nil
}
