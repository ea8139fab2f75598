package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// A value is one value of the model: rows of values are what every test compares with. It knows nothing of columns.
type value struct {
	null    bool
	numbers []number64
	text    string
	scores  []float64
}

// A number64 is a number of any element type: integers as int64 (uint64 bit for bit), floats as float64.
type number64 struct {
	i int64
	f float64
}

// A model is a table as rows of values.
type model struct {
	features []catalog.Feature
	rows     [][]value // [row][feature]
}

// A testTable is a model written as segments into memory.
type testTable struct {
	model
	blobs    *memoryBlobs
	segments []catalog.SegmentDescriptor
	indexes  map[string]*testIndex
	names    []string // of the objects, segment by segment
	opens    atomic.Int64
	slots    [][]storedSlot // [row][feature]
	// selected are the rows of each segment that model has and layouts give; nil: all.
	selected       []*roaring.Bitmap
	rowSelectRatio int
	gatheredRun    int
	positions      []int      // in rows, of each row that is stored, or -1
	stripeRows     [][]uint32 // of each segment's stripes, that are selected
	overlays       testOverlays
}

type testIndex struct {
	stripeRows []uint32
	entries    map[catalog.FeatureID]*segment.Entry
}

func (x *testIndex) StripeRows() []uint32 { return x.stripeRows }

func (x *testIndex) Lookup(ctx context.Context, ids ...catalog.FeatureID) ([]*segment.Entry, error) {
	out := make([]*segment.Entry, len(ids))
	for i, id := range ids {
		out[i] = x.entries[id]
	}
	return out, ctx.Err()
}

func (table *testTable) open(ctx context.Context, d catalog.SegmentDescriptor) (segmentIndex, error) {
	table.opens.Add(1)
	return table.indexes[d.ID], ctx.Err()
}

// layout puts a plan of the given features (positions in t.features) against the table.
func (table *testTable) layout(features []int, batch int, output Output) *Layout {
	return table.dedupLayout(features, batch, output, DedupKJT)
}

func (table *testTable) dedupLayout(features []int, batch int, output Output, dedup Dedup) *Layout {
	return table.layoutOf(features, Plan{Table: "t", Snapshot: 1, BatchSize: batch, Output: output, Dedup: dedup})
}

// layoutOf puts a plan, completed by features, against the table.
func (table *testTable) layoutOf(features []int, plan Plan) *Layout {
	p := &plan
	for _, f := range features {
		p.Features = append(p.Features, table.features[f])
	}
	if err := p.Validate(); err != nil {
		panic(err)
	}
	l, err := table.newLayout(p)
	if err != nil {
		panic(err)
	}
	return l
}

// newLayout puts a plan against the rows of the table that are selected.
func (table *testTable) newLayout(p *Plan) (*Layout, error) {
	l, err := newLayout(p, table.blobs, table.segments, table.open)
	if err == nil && table.overlays.defined != nil {
		table.overlays.apply(l)
	}
	if err == nil && table.selected != nil {
		l.rowSelectRatio, l.gatheredRun = table.rowSelectRatio, table.gatheredRun
		err = l.restrict(table.selected)
	}
	return l, err
}

// drawRowSelectRatio draws Layout.rowSelectRatio and gatheredRun: stripes of which rows are selected are decoded in all
// ways.
func drawRowSelectRatio(t *rapid.T) (rowSelectRatio, gatheredRun int) {
	return rapid.SampledFrom([]int{0, 2, 100}).Draw(t, "sparse rows"), rapid.SampledFrom([]int{0, 2, 100}).Draw(t,
		"gathered run")
}

// drawSelection leaves, of a table that is not to be whole, only some rows selected: the model has those alone, and so
// do layouts.
func (table *testTable) drawSelection(t *rapid.T, whole bool) {
	for row := range table.rows {
		table.positions = append(table.positions, row)
	}
	for _, d := range table.segments {
		table.stripeRows = append(table.stripeRows, table.indexes[d.ID].stripeRows)
	}
	if whole || rapid.IntRange(0, 2).Draw(t, "selection") > 0 {
		return
	}
	table.rowSelectRatio, table.gatheredRun = drawRowSelectRatio(t)
	all, slots := table.rows, table.slots
	table.rows, table.slots, table.stripeRows = nil, nil, nil
	row := 0
	for _, d := range table.segments {
		share := rapid.SampledFrom([]int{0, 1, 5, 9, 10, 11}).Draw(t, "share")
		selected := roaring.New()
		var counts []uint32
		at := uint32(0)
		for _, n := range table.indexes[d.ID].stripeRows {
			before := len(table.rows)
			for range n {
				table.positions[row] = -1
				if share > 10 || rapid.IntRange(0, 9).Draw(t, "row") < share {
					selected.Add(at)
					table.positions[row] = len(table.rows)
					table.rows = append(table.rows, all[row])
					table.slots = append(table.slots, slots[row])
				}
				at++
				row++
			}
			counts = append(counts, uint32(len(table.rows)-before))
		}
		if share > 10 && rapid.Bool().Draw(t, "unrestricted") {
			selected = nil
		}
		table.selected = append(table.selected, selected)
		table.stripeRows = append(table.stripeRows, counts)
	}
}

// memoryBlobs are objects in memory. hook, when set, runs before every read.
type memoryBlobs struct {
	mu      sync.Mutex
	objects map[string][]byte
	hook    func(ctx context.Context, name string, p []byte, off int64) error
	reads   []readRecord
	stats   int  // calls of Stat
	far     bool // as if they were in an object store
}

func (m *memoryBlobs) HighLatency() bool { return m.far }

type readRecord struct {
	name     string
	from, to int64
}

func (m *memoryBlobs) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	m.mu.Lock()
	hook := m.hook
	data, ok := m.objects[name]
	m.reads = append(m.reads, readRecord{name, off, off + int64(len(p))})
	m.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, name, p, off); err != nil {
			return err
		}
	}
	if !ok {
		return fmt.Errorf("%s: %w", name, object.ErrNotFound)
	}
	if off+int64(len(p)) > int64(len(data)) {
		return io.ErrUnexpectedEOF
	}
	copy(p, data[off:])
	return ctx.Err()
}

func (m *memoryBlobs) Stat(_ context.Context, name string) (object.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats++
	data, ok := m.objects[name]
	if !ok {
		return object.Info{}, object.ErrNotFound
	}
	return object.Info{Name: name, Size: int64(len(data))}, nil
}

var errNotInTest = errors.New("the reader only reads")

func (m *memoryBlobs) PutIfAbsent(context.Context, string, []byte) error { return errNotInTest }
func (m *memoryBlobs) Create(context.Context, string) (object.Writer, error) {
	return nil, errNotInTest
}
func (m *memoryBlobs) List(context.Context, string, string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) { yield(object.Info{}, errNotInTest) }
}
func (m *memoryBlobs) Delete(context.Context, string) error        { return errNotInTest }
func (m *memoryBlobs) Truncate(context.Context, object.Info) error { return errNotInTest }
func (m *memoryBlobs) URI() string                                 { return "memory:" }

// drawNarrower returns a type that widens to t exactly, t itself half of the time.
func drawNarrower(t *rapid.T, want vector.Type) vector.Type {
	if rapid.Bool().Draw(t, "same type") {
		return want
	}
	if want.Kind == vector.Bytes {
		return vector.Type{Kind: vector.String}
	}
	options := []vector.Type{want}
	for _, e := range vectortest.Elems {
		for _, s := range []vector.Elem{vector.NoElem, vector.Float32, vector.Float64} {
			n := want
			n.Elem, n.Score = e, s
			if n.Validate() != nil {
				continue
			}
			if w, err := vector.Widen(n, want); err == nil && w == want {
				options = append(options, n)
			}
		}
	}
	return rapid.SampledFrom(options).Draw(t, "narrower")
}

// Numbers in which bits count: zeros with a sign, two NaNs.
var (
	someFloats = []float32{
		0, 1.5, -2.25, 3e30, 1e-40, 7, float32(math.Copysign(0,
			-1)), float32(math.NaN()), math.Float32frombits(0xffc00123),
		float32(math.Inf(-1)), -1, 0.1,
	}
	someDoubles = []float64{
		0, 1.1, -2.2, 3e300, 1e-310, math.Inf(1), math.Copysign(0,
			-1), math.NaN(), math.Float64frombits(0xfff8abcd00000001),
		-1, 0.1, 1 << 63, -1e19,
	}
)

func drawNumber(t *rapid.T, e vector.Elem) number64 {
	integer := func(lo, hi int64) number64 { return number64{i: rapid.Int64Range(lo, hi).Draw(t, "v")} }
	switch e {
	case vector.Bool:
		return integer(0, 1)
	case vector.Int8:
		return integer(math.MinInt8, math.MaxInt8)
	case vector.Int16:
		return integer(math.MinInt16, math.MaxInt16)
	case vector.Int32:
		return integer(math.MinInt32, math.MaxInt32)
	case vector.Uint8:
		return integer(0, math.MaxUint8)
	case vector.Uint16:
		return integer(0, math.MaxUint16)
	case vector.Uint32:
		return integer(0, math.MaxUint32)
	case vector.Float32:
		return number64{f: float64(rapid.SampledFrom(someFloats).Draw(t, "v"))}
	case vector.Float64:
		return number64{f: rapid.SampledFrom(someDoubles).Draw(t, "v")}
	}
	return integer(math.MinInt64, math.MaxInt64)
}

func drawValue(t *rapid.T, typ vector.Type) value {
	if rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return value{null: true}
	}
	var v value
	n := typ.Width()
	switch typ.Kind {
	case vector.Bytes, vector.String:
		v.text = rapid.StringMatching(`[a-zé]{0,6}`).Draw(t, "text")
		return v
	case vector.Sparse, vector.Weighted:
		n = rapid.IntRange(0, 4).Draw(t, "length")
	}
	for range n {
		v.numbers = append(v.numbers, drawNumber(t, typ.Elem))
		if typ.Kind == vector.Weighted {
			v.scores = append(v.scores, drawNumber(t, typ.Score).f)
		}
	}
	return v
}

// widened returns v as a number of a wider type.
func (v value) widened(from, to vector.Type) value {
	if from.Elem.IsInteger() && !to.Elem.IsInteger() && to.Elem != vector.NoElem {
		v.numbers = slices.Clone(v.numbers)
		for i := range v.numbers {
			v.numbers[i].f = float64(v.numbers[i].i)
		}
	}
	return v
}

// appendSlot appends a value to a column.
func appendSlot(c *vector.Column, v value) {
	if v.null {
		c.AppendNulls(1)
		return
	}
	for i, n := range v.numbers {
		switch c.Type.Physical() {
		case vector.Int64Values:
			c.Ints = append(c.Ints, n.i)
		case vector.Float32Values:
			c.Floats = append(c.Floats, float32(n.f))
		case vector.Float64Values:
			c.Doubles = append(c.Doubles, n.f)
		}
		if c.Type.Score == vector.Float32 {
			c.ScoreFloats = append(c.ScoreFloats, float32(v.scores[i]))
		} else if c.Type.Score == vector.Float64 {
			c.ScoreDoubles = append(c.ScoreDoubles, v.scores[i])
		}
	}
	c.Data = append(c.Data, v.text...)
	c.AddSlot()
}

// slotColumn makes a column of slots and an inverse.
func slotColumn(t vector.Type, slots []value, inverse []int32, monotone bool) *vector.Column {
	c := vector.NewColumn(t)
	for _, v := range slots {
		appendSlot(c, v)
	}
	if inverse != nil {
		c.Inverse, c.Rows, c.Monotone = inverse, len(inverse), monotone
	}
	return c
}

type tableShape struct {
	features, segments, stripes, stripeRows int // at most
	// sessions: the last two features are a session key with few values, and the number of the row, in every segment.
	sessions bool
	// whole: every row is selected.
	whole bool
	// bare: there are no overlays.
	bare bool
}

// drawTable draws a table: its model, and segments with every layout that the format has.
func drawTable(t *rapid.T, shape tableShape) *testTable {
	out := &testTable{
		blobs:   &memoryBlobs{objects: map[string][]byte{}, far: rapid.Bool().Draw(t, "far")},
		indexes: map[string]*testIndex{},
	}
	n := rapid.IntRange(1, shape.features).Draw(t, "features")
	for i := range n {
		f := catalog.Feature{ID: catalog.FeatureID(i + 1), Name: fmt.Sprintf("f%d", i), Type: vectortest.DrawType(t)}
		f.Role = rapid.SampledFrom([]catalog.Role{
			catalog.RoleFeature, catalog.RoleFeature, catalog.RoleFeature, catalog.RoleLabel, catalog.RoleUserKey,
		}).Draw(t, "role")
		out.features = append(out.features, f)
	}
	if shape.sessions {
		key := rapid.SampledFrom([]vector.Type{{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.String}}).Draw(t,
			"key type")
		out.features = append(out.features,
			catalog.Feature{ID: 1 << 30, Name: "session", Role: catalog.RoleSessionKey, Type: key},
			catalog.Feature{ID: 1<<30 + 1, Name: "row", Role: catalog.RoleRequestKey,
				Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}})
	}
	for _, key := range []string{"ds", "hr"}[:rapid.IntRange(0, 2).Draw(t, "partition keys")] {
		out.features = append(out.features, plan.PartitionColumn(key))
	}
	if !shape.bare && rapid.IntRange(0, 2).Draw(t, "overlaid") == 0 {
		out.overlays.draw(t, out.features)
	}
	for range rapid.IntRange(0, shape.segments).Draw(t, "segments") {
		out.drawSegment(t, shape)
		out.overlays.drawLayers(t, out)
	}
	out.drawSelection(t, shape.whole)
	return out
}

func (table *testTable) drawSegment(t *rapid.T, shape tableShape) {
	number := len(table.segments)
	var stripeRows []uint32
	total := 0
	for range rapid.IntRange(1, shape.stripes).Draw(t, "stripes") {
		r := rapid.IntRange(1, shape.stripeRows).Draw(t, "rows")
		stripeRows = append(stripeRows, uint32(r))
		total += r
	}
	d := catalog.SegmentDescriptor{ID: fmt.Sprintf("%032x", number), Rows: uint64(total),
		Index: fmt.Sprintf("seg%d/index.sst", number)}
	base := len(table.rows)
	for range total {
		row := make([]value, len(table.features))
		for f := range row {
			row[f].null = true
		}
		table.rows = append(table.rows, row)
		table.slots = append(table.slots, make([]storedSlot, len(row)))
	}
	for i, row := 0, base; i < len(stripeRows); i++ {
		for range stripeRows[i] {
			for f := range table.features {
				table.slots[row][f] = storedSlot{segment: d.Index, stripe: i, inverse: missingInverse,
					stripeInverse: true}
			}
			row++
		}
	}
	var stored []int
	for f := range table.features {
		rowNumber := table.features[f].Role == catalog.RoleRequestKey
		if !rowNumber && (table.overlays.only[f] || rapid.IntRange(0, 4).Draw(t, "missing") == 0) {
			continue
		}
		if IsPartitionKey(table.features[f]) {
			v := drawPartitionValue(t, table.features[f].Name)
			d.Partition = append(d.Partition, v)
			for row := base; row < base+total; row++ {
				table.rows[row][f] = value{null: v.Null, text: v.Value}
			}
			continue
		}
		stored = append(stored, f)
	}
	table.segments = append(table.segments, table.drawFiles(t, d, stripeRows, stored, base, func(row, f int, v value,
		x storedSlot) {
		table.rows[row][f], table.slots[row][f] = v, x
	}))
}

func drawPartitionValue(t *rapid.T, key string) catalog.PartitionValue {
	if rapid.IntRange(0, 3).Draw(t, "null partition") == 0 {
		return catalog.PartitionValue{Key: key, Null: true}
	}
	return catalog.PartitionValue{Key: key, Value: rapid.SampledFrom([]string{"", "3", "2026-11-01", "über"}).Draw(t,
		"partition")}
}

// drawRuns draws a monotone inverse.
func drawRuns(t *rapid.T, rows int) ([]int32, int) {
	inverse := make([]int32, rows)
	for i := 1; i < rows; i++ {
		inverse[i] = inverse[i-1] + int32(rapid.IntRange(0, 1).Draw(t, "change"))
	}
	return inverse, int(inverse[rows-1]) + 1
}

// drawCodes draws an inverse in any order in which each slot is used.
func drawCodes(t *rapid.T, rows int) ([]int32, int) {
	slots := rapid.IntRange(1, rows).Draw(t, "slots")
	inverse := make([]int32, rows)
	for i := range inverse {
		inverse[i] = int32(rapid.IntRange(0, slots-1).Draw(t, "slot"))
	}
	for s := range slots {
		inverse[s] = int32(s)
	}
	return inverse, slots
}

// columnValue reads row r of an exact column as a model value.
func columnValue(c *vector.Column, r int) value {
	if c.Inverse != nil {
		r = int(c.Inverse[r])
	}
	if c.Present != nil && c.Present[r/64]>>(r%64)&1 == 0 {
		return value{null: true}
	}
	lo, hi := r, r+1
	switch c.Type.Kind {
	case vector.Sparse, vector.Weighted, vector.Bytes, vector.String:
		if lo = int(c.Offsets[r]); c.Lengths != nil {
			hi = lo + int(c.Lengths[r])
		} else {
			hi = int(c.Offsets[r+1])
		}
	case vector.Embedding:
		lo, hi = r*int(c.Type.Dim), (r+1)*int(c.Type.Dim)
	}
	var v value
	for k := lo; k < hi; k++ {
		switch {
		case c.Type.Kind == vector.Bytes || c.Type.Kind == vector.String:
			v.text += string(c.Data[k : k+1])
		case c.Type.Elem == vector.Float32:
			v.numbers = append(v.numbers, number64{f: float64(c.Floats[k])})
		case c.Type.Elem == vector.Float64:
			v.numbers = append(v.numbers, number64{f: c.Doubles[k]})
		default:
			v.numbers = append(v.numbers, number64{i: c.Ints[k]})
		}
		switch c.Type.Score {
		case vector.Float32:
			v.scores = append(v.scores, float64(c.ScoreFloats[k]))
		case vector.Float64:
			v.scores = append(v.scores, c.ScoreDoubles[k])
		}
	}
	return v
}

func equalValues(a, b value, t vector.Type) bool {
	if a.null || b.null {
		return a.null == b.null
	}
	same := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
	if a.text != b.text || len(a.numbers) != len(b.numbers) || !slices.EqualFunc(a.scores, b.scores, same) {
		return false
	}
	for i := range a.numbers {
		if t.Elem.IsInteger() && a.numbers[i].i != b.numbers[i].i || !t.Elem.IsInteger() &&
			!same(a.numbers[i].f, b.numbers[i].f) {
			return false
		}
	}
	return true
}

// drawSession draws the session key of a slot: neighbours are often the same.
func drawSession(t *rapid.T, typ vector.Type) value {
	switch n := rapid.SampledFrom([]int64{1, 1, 1, 0, -1}).Draw(t, "session"); {
	case n < 0:
		return value{null: true}
	case typ.Kind == vector.String:
		return value{text: fmt.Sprint(n)}
	default:
		return value{numbers: []number64{{i: n}}}
	}
}
