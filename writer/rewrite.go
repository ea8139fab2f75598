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

// A Rewrite makes segments of one partition into others.
//
//	inputs' keys ──> streams of records, each in order ──> merge ──> plans: pieces of inputs
//	                                                                    |            └─> Origins
//	inputs' columns, opened feature by feature ──> gather pieces ──> duplicates ──> segments, and their overlays
//
// Since the rows of a segment are in the order of records, inputs are merged as runs are, and nothing is sorted: of a
// feature a worker holds one stripe of each input or, where that is more than its share of Options.Memory, spills the
// rows to a file, by the stripes that they go to. Nothing is committed.
type Rewrite struct {
	Table     *storage.Table
	Partition catalog.Partition
	Inputs    []RewriteInput
	// Features are those of the segments, in the order in which packs hold them. Layers are further segments over the
	// same rows, in the same stripes, with these features. Run
	// numbers all of them through: those of Features from 0, then those of each layer.
	Features []*Feature
	Layers   [][]*Feature
	// Session and Time are the numbers of the keys that order the rows; below 0: none.
	Session, Time int
	// Segments is into how many segments, about, the rows are cut. Default 1.
	Segments int
	// KeepOrder leaves the rows in the order of the inputs, whatever their keys.
	KeepOrder bool
	// Open opens a feature of an input, by number; nil: it is null in every row. It is called by several goroutines at
	// once, each column is used by one.
	Open func(ctx context.Context, input, feature int) (RewriteColumn, error)
	// Progress, when set, is called now and then, from one goroutine at a time, with how many of the decoded bytes are
	// written. It must not block.
	Progress func(bytes, totalBytes int64)
}

// A RewriteInput is the rows of a segment.
type RewriteInput struct {
	Stripes []RewriteStripe
	Deleted *roaring.Bitmap // rows that are left out; nil: none
}

// A RewriteStripe says how many rows a stripe has, deleted ones too, and what one of them decodes to on average.
type RewriteStripe struct {
	Rows uint32
	// RowBytes is over all features, MostBytes the largest of one.
	RowBytes, MostBytes uint32
}

// A RewriteColumn is an opened feature of an input.
type RewriteColumn interface {
	// MayHave reports whether a row of [lo, hi) may be not null.
	MayHave(lo, hi int) bool
	// Append appends rows [lo, hi) to dst, a plain column of the feature's type. Calls ascend, save that the rows of
	// one call may come again in the next.
	Append(dst *vector.Column, lo, hi int) error
	// Close gives its memory back for others. An Append after it takes memory again.
	Close()
}

// ErrUnordered is matched when the rows of an input are not in the order of the keys: they were written when the table
// had others.
var ErrUnordered = errors.New("rows are not in the order of the keys")

// A Rewritten is one segment that a Rewrite made.
type Rewritten struct {
	Data   catalog.SegmentDescriptor
	Layers []catalog.SegmentDescriptor // aligned with Rewrite.Layers
	Rows   OriginSpan
}

// A RewriteResult is what a Rewrite made. Close it.
type RewriteResult struct {
	Segments   []Rewritten
	Duplicates Duplicates
	origins    *originFile
}

// Close frees the file of origins.
func (r *RewriteResult) Close() error { return r.origins.close() }

// Origins calls visit for the rows of a segment, in order, as pieces of inputs: n rows of the segment from at on are
// those of the input from row on.
func (r *RewriteResult) Origins(of OriginSpan, visit func(at uint32, o Origin) error) error {
	return r.origins.each(of, visit)
}

// Run writes the segments. After an error there are none: what was written is deleted, as far as that can be.
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
	r.output, err = newOutput(&opts, ToTable(x.Table, opts.Memory), func() rowsOf { return &inputRows{ctx: ctx, r: r} },
		r.rows)
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

// number numbers the features through, and returns them by their numbers.
func (x *Rewrite) number() []*Feature {
	all := slices.Concat(append([][]*Feature{x.Features}, x.Layers...)...)
	for i, f := range all {
		f.Number, f.choice = i, dedup.Choice{}
	}
	return all
}

// A rewriting is a Rewrite under way.
type rewriting struct {
	*Rewrite
	*output
	dir      string     // for spill files
	features []*Feature // by number
	origins  *originFile

	rows, bytes int64 // that are live
}

func (r *rewriting) discard(ctx context.Context, made []Rewritten) {
	var all []catalog.SegmentDescriptor
	for _, m := range made {
		all = append(append(all, m.Data), m.Layers...)
	}
	r.target.Discard(context.WithoutCancel(ctx), all)
}

func (r *rewriting) write(ctx context.Context, out *RewriteResult) error {
	r.tell(0, 0)
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
		r.tell(int64(plan.rows), plan.bytes-share*int64(len(r.features)))
	}
}

// live returns how many rows are not deleted, and about what they decode to.
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

// locate makes the ranges of a plan, which count live rows, those of the inputs' rows, with the deleted ones between
// them.
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

// liveRow returns the row that the n-th live one is, from 0. There are deleted ones.
func (i *RewriteInput) liveRow(n uint32) uint32 {
	rows := 0
	for _, s := range i.Stripes {
		rows += int(s.Rows)
	}
	return uint32(sort.Search(rows,
		func(row int) bool { return uint64(row)+1-i.Deleted.Rank(uint32(row)) > uint64(n) }))
}

// eachLive calls visit with the pieces of rows [lo, hi) that are not deleted.
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

// planner returns what plans the segments from the inputs' records.
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

// spills reports whether the opened columns of a feature take so much that its rows are spilled.
func (r *rewriting) spills(f *Feature) bool {
	return 3*r.stripeBytes(f)+f.HeldBytes > writeShare(r.Memory)
}

// columnMemory returns what is held of opened columns while a stripe of f is written: the inputs' stripes, or one of
// them and what is on the way to a file.
func (r *rewriting) columnMemory(f *Feature) int64 {
	if r.spills(f) {
		return f.MostBytes + spillBufBytes
	}
	return f.HeldBytes
}

const (
	// An inputStream reads the keys of keyBlockRows rows at once; of fewer, leastKeyRows at least, where there are many
	// inputs for the memory.
	keyBlockRows = 4096
	leastKeyRows = 256
	// keyRowBytes is about what a row takes of which the keys are read: a record, and the keys.
	keyRowBytes = 128
)

// keyMemory says how the streams of the inputs' keys stay within the half of memory that a buffer has in an ingest: how
// many rows each reads at once, and whether it gives its decoded stripes back between.
func (r *rewriting) keyMemory() (rows int, shut bool) {
	half := bufferShare(r.Memory) / 2
	held := int64(0)
	for _, number := range []int{r.Session, r.Time} {
		if number >= 0 {
			held += r.features[number].HeldBytes
		}
	}
	each := half / int64(max(len(r.Inputs), 1)) / keyRowBytes
	return int(min(max(each, leastKeyRows), keyBlockRows)), held > half
}

// An inputStream is the records of an input's live rows. Their chunk is the input, their row counts its live ones, and
// the end of their ord is the row in it.
type inputStream struct {
	ctx           context.Context // of the one Run that the stream is read for
	x             *rewriting
	input         int
	blockRows     int           // that are read at once
	shut          bool          // columns give their memory back after each block
	session, time RewriteColumn // nil: there is none
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

// open makes the first record the head.
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

// load makes records of the next rows that are not deleted; none at the end.
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

// block makes records of rows [lo, hi).
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
