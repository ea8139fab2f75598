package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/order"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
)

// shuffledShape has many small segments and stripes of one row and more.
var shuffledShape = tableShape{features: 3, segments: 6, stripes: 5, stripeRows: 9, sessions: true}

// A shuffled is a table, its plan, and what the test knows of its rows.
type shuffled struct {
	table    *testTable
	features []int // the last one is the number of the row
	layout   *Layout
	session  []int // of each row of the table: a number
	sizes    []int // rows of each session
	info     bool  // of the scanner that epoch reads
}

func drawShuffled(t *rapid.T, shape tableShape) *shuffled {
	x := &shuffled{table: drawTable(t, shape)}
	place := func(r catalog.Role) int {
		return slices.IndexFunc(x.table.features, func(f catalog.Feature) bool { return f.Role == r })
	}
	key, number := place(catalog.RoleSessionKey), place(catalog.RoleRequestKey)
	for _, f := range drawProjection(t, x.table) {
		if f != number {
			x.features = append(x.features, f)
		}
	}
	x.features = append(x.features, number)
	plan := Plan{
		Table: "t", Snapshot: 1, BatchSize: drawBatchSize(t),
		Output: rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output"), Dedup: drawDedup(t),
		Shuffle: Shuffle{
			Unit:          rapid.SampledFrom([]Unit{UnitSession, UnitRow}).Draw(t, "unit"),
			BufferStripes: rapid.SampledFrom([]int{1, 2, 3, 100}).Draw(t, "buffer_stripes"),
			Seed:          rapid.Uint64Range(0, 3).Draw(t, "seed"),
		},
	}
	if plan.Shuffle.Unit == UnitSession || rapid.Bool().Draw(t, "key") {
		plan.Shuffle.Key = x.table.features[key]
	}
	x.layout = x.table.layoutOf(x.features, plan)
	row := 0
	for _, stripes := range x.table.stripeRows {
		for _, n := range stripes {
			for i := range int(n) {
				k := x.table.rows[row]
				if i == 0 || k[key].null || !equalValues(k[key], x.table.rows[row-1][key], x.table.features[key].Type) {
					x.sizes = append(x.sizes, 0)
				}
				x.session = append(x.session, len(x.sizes)-1)
				x.sizes[len(x.sizes)-1]++
				row++
			}
		}
	}
	return x
}

// numbers returns the rows of the table that a batch has, after comparing every value with the model.
func (x *shuffled) numbers(t *rapid.T, b *Batch) []int {
	column := b.Columns[len(x.features)-1]
	out := make([]int, b.Rows)
	for r := range out {
		out[r] = x.table.positions[column.Ints[column.Slot(r)]]
	}
	checkRows(t, x.table, x.features, b, out)
	if x.layout.plan.Dedup != DedupKJT {
		checkGroups(t, x.table, x.features, b, out)
	}
	if x.info {
		x.checkInfo(t, b, out)
	} else if b.Info.Sessions != 0 || b.Info.Slots != 0 || b.Info.Labels != nil {
		t.Fatalf("not asked for: %+v", b.Info)
	}
	return out
}

// checkInfo checks what a batch says of its rows.
func (x *shuffled) checkInfo(t *rapid.T, b *Batch, rows []int) {
	sessions := map[int]bool{}
	for _, row := range rows {
		sessions[x.session[row]] = true
	}
	if x.layout.sessionKey < 0 {
		clear(sessions)
	}
	if b.Info.Sessions != len(sessions) {
		t.Fatalf("batch %d of rows %v: %d sessions, want %d", b.Index, rows, b.Info.Sessions, len(sessions))
	}
	if b.Info.SlotRows != b.SlotRows || x.layout.plan.Dedup != DedupKJT && b.Info.Slots != b.Slots ||
		b.Info.Slots > b.SlotRows {
		t.Fatalf("%+v, %d slots for %d rows", b.Info, b.Slots, b.SlotRows)
	}
	var want []LabelMean
	for place, f := range x.features {
		feature := x.table.features[f]
		if feature.Role != catalog.RoleLabel || feature.Type.Kind != vector.Dense {
			continue
		}
		m := LabelMean{Feature: int32(place)}
		for _, row := range rows {
			if v := x.table.rows[row][f]; !v.null {
				m.Rows++
				switch {
				case feature.Type.Elem == vector.Uint64:
					m.Sum += float64(uint64(v.numbers[0].i))
				case feature.Type.Elem.IsInteger():
					m.Sum += float64(v.numbers[0].i)
				default:
					m.Sum += v.numbers[0].f
				}
			}
		}
		want = append(want, m)
	}
	same := func(a, b LabelMean) bool {
		return a.Feature == b.Feature && a.Rows == b.Rows && (a.Sum == b.Sum || a.Sum != a.Sum && b.Sum != b.Sum)
	}
	if !slices.EqualFunc(b.Info.Labels, want, same) {
		t.Fatalf("labels %+v, want %+v", b.Info.Labels, want)
	}
}

// An IKJT's Info has the slots of its batches; a KJT's has what they would be.
func TestInfoSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, shuffledShape)
		var slots [3][]uint64
		for dedup := range slots {
			p := *x.layout.plan
			p.Dedup = Dedup(dedup)
			l, err := x.table.newLayout(&p)
			if err != nil {
				t.Fatal(err)
			}
			opts := drawOptions(t)
			opts.Info = true
			s := open(t, l, opts)
			for {
				b, err := s.Next(context.Background())
				if err != nil {
					break
				}
				slots[dedup] = append(slots[dedup], b.Info.Slots)
				b.Release()
			}
			s.Close()
		}
		if !slices.Equal(slots[DedupKJT], slots[DedupIKJT]) || !slices.Equal(slots[DedupPartial], slots[DedupIKJT]) {
			t.Fatalf("slots %v", slots)
		}
	})
}

// epoch reads from a position to the end and returns the rows of each batch.
func (x *shuffled) epoch(t *rapid.T, s *Scanner, p Position) (out [][]int) {
	x.info = s.opts.Info
	if err := s.Seek(p); err != nil {
		t.Fatal(err)
	}
	for b := range eachBatch(t, s) {
		at := p.Batch + uint64(len(out))
		size := uint64(x.layout.plan.BatchSize)
		if b.Index != at || b.FirstRow != at*size || uint64(b.Rows) != min(size, x.layout.Rows()-at*size) {
			t.Fatalf("batch %d has %d rows at %d, want batch %d", b.Index, b.Rows, b.FirstRow, at)
		}
		out = append(out, x.numbers(t, b))
	}
	return out
}

// Every row comes once an epoch, with the values that the model has; sessions are whole but where a batch ends; and the
// order is the same whatever the options, and from any position.
func TestShuffleEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, shuffledShape)
		s := open(t, x.layout, drawOptions(t))
		defer s.Close()
		epoch := rapid.Uint64Range(0, 3).Draw(t, "epoch")
		batches := x.epoch(t, s, Position{Epoch: epoch})
		all := slices.Concat(batches...)
		slices.Sort(all)
		if !slices.Equal(all, indices(len(x.table.rows))) {
			t.Fatalf("rows %v, want each of %d once", all, len(x.table.rows))
		}
		checkStatsOnce(t, s, epoch)
		if x.layout.plan.Shuffle.Unit == UnitSession {
			x.checkWhole(t, batches)
		}
		for range 2 {
			again := open(t, x.layout, drawOptions(t))
			from := rapid.IntRange(0, len(batches)).Draw(t, "from")
			tail := x.epoch(t, again, Position{Epoch: epoch, Batch: uint64(from)})
			if !slices.EqualFunc(tail, batches[from:], slices.Equal) {
				t.Fatalf("from batch %d: %v, want %v", from, tail, batches[from:])
			}
			again.Close()
		}
	})
}

// TestShuffleKeyAsFeature: a plan that reads the session key as an ordinary feature has the same order and sessions.
func TestShuffleKeyAsFeature(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, shuffledShape)
		p := *x.layout.plan
		at := slices.IndexFunc(p.Features, func(f catalog.Feature) bool { return f.Role == catalog.RoleSessionKey })
		if at < 0 || p.Shuffle.Key.ID == 0 || p.Output != OutputColumns {
			t.Skip("the key is not read")
		}
		epochOf := func() [][]int {
			s := open(t, x.layout, Options{Info: true})
			defer s.Close()
			return x.epoch(t, s, Position{Epoch: 1})
		}
		want := epochOf()
		p.Features = slices.Clone(p.Features)
		p.Features[at].Role = catalog.RoleFeature
		err := p.Validate()
		if err == nil {
			x.layout, err = x.table.newLayout(&p)
		}
		if err != nil {
			t.Fatal(err)
		}
		if int(x.layout.sessionKey) != at || len(x.layout.features) != len(p.Features) {
			t.Fatalf("the session key is feature %d of %d, want %d of %d", x.layout.sessionKey,
				len(x.layout.features), at, len(p.Features))
		}
		if got := epochOf(); !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// checkStatsOnce holds what was read against Cost.
func checkStatsOnce(t *rapid.T, s *Scanner, epoch uint64) {
	cost, err := s.layout.Cost(context.Background(), s.opts)
	st := s.Stats()
	if err != nil || cost.BytesNeeded != st.BytesNeeded || cost.Rows != st.Rows {
		t.Fatalf("%v: cost %+v, stats %+v", err, cost, st)
	}
	if epoch == 0 && (cost.Requests != st.Requests || cost.BytesUnneeded != st.BytesUnneeded) {
		t.Fatalf("cost %+v, stats %+v", cost, st)
	}
}

// checkWhole checks that a session's rows are next to each other in the order of the epoch: in one batch, or in batches
// that follow each other and that only it reaches over.
func (x *shuffled) checkWhole(t *rapid.T, batches [][]int) {
	seen := make([]int, len(x.sizes))
	cut := -1 // the session that the batch before cut
	for i, rows := range batches {
		var open []int
		for k, row := range rows {
			session := x.session[row]
			if k > 0 && x.session[rows[k-1]] == session && rows[k-1] != row-1 {
				t.Fatalf("batch %d: row %d of session %d after row %d", i, row, session, rows[k-1])
			}
			seen[session]++
			switch next := k+1 < len(rows) && x.session[rows[k+1]] == session; {
			case next:
			case seen[session] < x.sizes[session]:
				open = append(open, session)
			}
		}
		if cut >= 0 && !slices.ContainsFunc(rows, func(row int) bool { return x.session[row] == cut }) {
			t.Fatalf("session %d is cut, and does not go on in batch %d", cut, i)
		}
		cut = -1
		if len(open) > 1 {
			t.Fatalf("batch %d cuts sessions %v", i, open)
		}
		if len(open) == 1 {
			cut = open[0]
		}
	}
}

// A batch takes rows of the stripes of one buffer, and of the next where it reaches over: no others are in memory.
func TestShuffleBufferBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, shuffledShape)
		s := open(t, x.layout, drawOptions(t))
		defer s.Close()
		var stripeOf []int
		stripe := 0
		for _, stripes := range x.table.stripeRows {
			for _, n := range stripes {
				stripeOf = append(stripeOf, slices.Repeat([]int{stripe}, int(n))...)
				stripe++
			}
		}
		// A stripe is in use from the first batch that has a row of it to the last. Its buffer is too.
		first, last := map[int]int{}, map[int]int{}
		batches := x.epoch(t, s, Position{})
		for i, rows := range batches {
			for _, row := range rows {
				if _, ok := first[stripeOf[row]]; !ok {
					first[stripeOf[row]] = i
				}
				last[stripeOf[row]] = i
			}
		}
		for i := range batches {
			n := 0
			for stripe, from := range first {
				if from < i && i < last[stripe] {
					n++
				}
			}
			if n > x.layout.plan.Shuffle.BufferStripes {
				t.Fatalf("batch %d: %d stripes are in use before and after, in buffers of %d", i, n,
					x.layout.plan.Shuffle.BufferStripes)
			}
		}
	})
}

// Epochs, seeds and buffers order rows differently; an epoch is not the table's order.
func TestShuffleOrdersDiffer(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, segments: 3, stripes: 4, stripeRows: 100})
	rows := func(s Shuffle, epoch uint64) []float32 {
		l := table.layoutOf([]int{0}, Plan{Table: "t", Snapshot: 1, BatchSize: 50, Output: OutputTensors, Shuffle: s})
		sc := open(t, l, Options{Workers: 1})
		defer sc.Close()
		if err := sc.Seek(Position{Epoch: epoch}); err != nil {
			t.Fatal(err)
		}
		var out []float32
		for {
			b, err := sc.Next(context.Background())
			if errors.Is(err, io.EOF) {
				return out
			}
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b.Tensors.Dense.Values...)
			b.Release()
		}
	}
	row := Shuffle{Unit: UnitRow, BufferStripes: 3}
	other, wide := row, row
	other.Seed, wide.BufferStripes = 1, 6
	all := [][]float32{rows(Shuffle{}, 0), rows(row, 0), rows(row, 1), rows(other, 0), rows(wide, 0)}
	for i := range all {
		for j := range i {
			if slices.Equal(all[i], all[j]) {
				t.Errorf("orders %d and %d are the same", j, i)
			}
		}
		slices.Sort(all[i])
		if !slices.Equal(all[i], all[0]) {
			t.Errorf("order %d has other rows", i)
		}
	}
	if !slices.Equal(rows(Shuffle{}, 0), rows(Shuffle{}, 1)) {
		t.Error("without a shuffle, epochs differ")
	}
}

// Seek reads the buffer that holds the position and what follows, no buffer before it; and only that buffer's group of
// segments is opened.
func TestShuffleSeekReadsItsBuffer(t *testing.T) {
	const segments = 3 * order.GroupSegments
	table := plainTable(t, plainShape{dense: 1, segments: segments, stripes: 2, stripeRows: 50})
	plan := Plan{Table: "t", Snapshot: 1, BatchSize: 50, Output: OutputColumns,
		Shuffle: Shuffle{Unit: UnitRow, BufferStripes: 4}}
	l := table.layoutOf([]int{0}, plan)
	s := open(t, l, Options{Workers: 1, GapBytes: -1})
	defer s.Close()
	if err := s.Seek(Position{Epoch: 2, Batch: l.Batches() - 1}); err != nil {
		t.Fatal(err)
	}
	b, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	if n := table.opens.Load(); n > order.GroupSegments+4 {
		t.Errorf("opened %d segments", n)
	}
	if n := len(table.blobs.reads); n > 4 {
		t.Errorf("read %d ranges for the last buffer of 4 stripes", n)
	}
}

// A damaged byte gives the same error at the same place, whatever the options, or is in bytes that nobody reads.
func TestShuffleDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, shuffledShape)
		if len(x.table.names) == 0 {
			return
		}
		name := rapid.SampledFrom(x.table.names).Draw(t, "object")
		data := x.table.blobs.objects[name]
		data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		var first string
		info := rapid.Bool().Draw(t, "info")
		for i := range 3 {
			// With Info all of a stripe is decoded, without only the parts of a merge that win a row: what is damaged
			// elsewhere is nobody's.
			opts := drawOptions(t)
			opts.Info = info
			s := open(t, x.layout, opts)
			x.info = info
			rows := 0
			for {
				b, err := s.Next(context.Background())
				if err == nil {
					x.numbers(t, b)
					rows += b.Rows
					b.Release()
					continue
				}
				if !errors.Is(err, io.EOF) && !errors.Is(err, format.ErrCorrupt) {
					t.Fatal(err)
				}
				text := fmt.Sprintf("%v after row %d", err, rows)
				if i > 0 && text != first {
					t.Fatalf("%s, then %s", first, text)
				}
				first = text
				break
			}
			s.Close()
		}
	})
}

// An index that has other stripes when it is read again is damage, not a panic.
func TestShuffleIndexChanges(t *testing.T) {
	for _, rows := range [][]uint32{{50}, {50, 50, 50}, {49, 51}, {25, 25, 25, 25}} {
		table := plainTable(t, plainShape{dense: 1, segments: 1, stripes: 2, stripeRows: 50})
		l := table.layoutOf([]int{0}, Plan{
			Table: "t", Snapshot: 1, BatchSize: 50, Output: OutputColumns, Shuffle: Shuffle{Unit: UnitRow,
				BufferStripes: 1},
		})
		index := table.indexes[table.segments[0].ID]
		l.open = func(context.Context, catalog.SegmentDescriptor) (segmentIndex, error) {
			changed := *index
			if table.opens.Add(1) > 1 {
				changed.stripeRows = rows
				changed.entries = nil
			}
			return &changed, nil
		}
		s := open(t, l, Options{})
		if _, err := s.Next(context.Background()); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%v: %v", rows, err)
		}
		s.Close()
	}
}

// Splits are of the plan's own order: a plan that shuffles refuses them by name.
func TestShuffleRefusesSplits(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, segments: 1, stripes: 2, stripeRows: 50})
	l := table.layoutOf([]int{0}, Plan{
		Table: "t", Snapshot: 1, BatchSize: 50, Output: OutputColumns, Shuffle: Shuffle{Unit: UnitRow,
			BufferStripes: 1},
	})
	if _, err := l.Splits(context.Background(), 2); !errors.Is(err, plan.ErrSplitShuffled) {
		t.Error(err)
	}
	split := Split{Plan: l.plan.Hash(), Rows: 50}
	if _, err := l.Open(Options{Split: &split}); !errors.Is(err, plan.ErrSplitShuffled) {
		t.Error(err)
	}
	if _, err := l.Cost(context.Background(), Options{Split: &split}); !errors.Is(err, plan.ErrSplitShuffled) {
		t.Error(err)
	}
}
