package compaction

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

// A testRow is a row as a model knows it.
type testRow struct {
	Day     string  `json:"day"`
	Session string  `json:"session"`
	Time    int64   `json:"time"`
	ID      int64   `json:"id"`
	History []int64 `json:"history"`
	Name    *string `json:"name"`
}

// text is the row without its partition, as decode prints it. A merged overlay gives it a label.
func (r testRow) text(label *int64) string {
	name, l := "null", "null"
	if r.Name != nil {
		name = fmt.Sprintf("%q", *r.Name)
	}
	if label != nil {
		l = fmt.Sprint(*label)
	}
	return fmt.Sprintf("%s session %q time %d history %v name %s label %s", r.Day, r.Session, r.Time, r.History, name,
		l)
}

// A tester is a table and a model of it that shares no code.
type tester struct {
	testing.TB
	blobs object.Store
	store *storage.Store
	table *storage.Table
	rand  *rand.Rand
	dir   string
	next  int64
	// keyless: the table has no session key. Its rows stay in the order in which they were ingested, which is that of
	// their ids.
	keyless bool

	rows     map[int64]testRow // by id
	lists    map[string]map[int64]bool
	overlays map[string]map[int64]int64 // label by id, of the rows that are covered
	layered  map[string]map[int64]bool  // rows of segments that have a layer of it
	labels   map[int64]int64            // of the feature label, once an overlay is merged
	dumps    int
	keyRows  uint64 // storage.Options.KeyRows
}

func newTester(t testing.TB, blobs object.Store, seed uint64) *tester {
	x := &tester{TB: t, blobs: blobs, rand: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(),
		rows: map[int64]testRow{}, lists: map[string]map[int64]bool{},
		overlays: map[string]map[int64]int64{}, layered: map[string]map[int64]bool{},
		labels: map[int64]int64{}, keyRows: 1}
	x.open()
	return x
}

func (x *tester) open() {
	s, err := storage.Create(context.Background(), x.blobs, storage.Options{MinKeyTableRows: x.keyRows})
	x.check(err)
	x.store = s
	x.table, err = s.NewTable(context.Background(), "ads")
	x.check(err)
}

func (x *tester) check(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func writeOptions() ingest.Options {
	return ingest.Options{SessionKey: "session", TimeKey: "time", PartitionBy: "day",
		Options: writer.Options{Memory: 16 << 20, Workers: 2, StripeRows: 16}}
}

const mapping = `{"columns": {"day": {"type": "string"}, "session": {"type": "string"}, "time": {"type": "bigint"},
	"id": {"type": "bigint"}, "history": {"type": "array<bigint>"}, "name": {"type": "string"}}}`

// newRows makes rows of a few sessions, which come back in later ingests.
func (x *tester) newRows(n, days int) []testRow {
	out := make([]testRow, n)
	for i := range out {
		x.next++
		r := testRow{Day: fmt.Sprint("d", x.rand.IntN(days)), Session: fmt.Sprintf("session %d", x.rand.IntN(n)),
			Time: int64(x.rand.IntN(1000)), ID: x.next}
		for range x.rand.IntN(4) {
			r.History = append(r.History, x.rand.Int64N(50))
		}
		if x.rand.IntN(3) > 0 {
			name := fmt.Sprint("name ", x.rand.IntN(5))
			r.Name = &name
		}
		out[i] = r
	}
	return out
}

// ingest adds rows to the table and the model.
func (x *tester) ingest(rows []testRow) {
	x.Helper()
	x.dumps++
	path := filepath.Join(x.dir, fmt.Sprintf("dump-%d.jsonl", x.dumps))
	f, err := os.Create(path)
	x.check(err)
	out := json.NewEncoder(f)
	for i := range rows {
		r := rows[i]
		if r.History == nil {
			r.History = []int64{}
		}
		x.check(out.Encode(r))
		x.rows[r.ID] = rows[i]
	}
	x.check(f.Close())
	opts := writeOptions()
	if x.keyless {
		opts.SessionKey, opts.TimeKey = "", ""
	}
	opts.MappingFile = filepath.Join(x.dir, "mapping.json")
	x.check(os.WriteFile(opts.MappingFile, []byte(mapping), 0o666))
	_, err = ingest.Run(context.Background(), x.store, "ads", []string{path}, opts)
	x.check(err)
}

// branch makes the branch b at a snapshot through a handle of its own, as another process does.
func (x *tester) branch(s *storage.Snapshot) {
	x.Helper()
	other, err := x.store.NewTable(x.Context(), "ads")
	x.check(err)
	_, err = other.Commit(x.Context(), commit.Change{Operation: "branch", Base: s.Info().Number,
		Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: s.Info().Number}}}})
	x.check(err)
}

func (x *tester) latest() *storage.Snapshot {
	x.Helper()
	s, err := x.table.Latest(context.Background())
	x.check(err)
	return s
}

// A place is where a row is.
type place struct {
	segment catalog.SegmentDescriptor
	row     uint32
}

// where finds the live rows by id.
func (x *tester) where(s *storage.Snapshot) map[int64]place {
	x.Helper()
	out := map[int64]place{}
	for _, d := range x.segments(s) {
		deleted := x.readSet(x.first(s.DeletionVectors(context.Background(), d)))
		for i, r := range x.decode(d) {
			if !deleted.Contains(uint32(i)) {
				out[r.id] = place{d, uint32(i)}
			}
		}
	}
	return out
}

func (x *tester) segments(s *storage.Snapshot) []catalog.SegmentDescriptor {
	x.Helper()
	out, err := s.Segments(context.Background(), nil)
	x.check(err)
	return out
}

func (x *tester) first(sets []bitmap.Ref, err error) bitmap.Ref {
	x.Helper()
	x.check(err)
	return sets[0]
}

func (x *tester) readSet(r bitmap.Ref) *roaring.Bitmap {
	x.Helper()
	out, err := x.store.Bitmaps().Read(context.Background(), r)
	x.check(err)
	return out
}

// A decodedRow is a stored row.
type decodedRow struct {
	id     int64
	text   string // without label
	label  *int64
	values map[string]string
}

// decode decodes a segment, feature by feature.
func (x *tester) decode(d catalog.SegmentDescriptor) []decodedRow {
	x.Helper()
	ctx := context.Background()
	g, err := x.store.Segments().Open(ctx, d)
	x.check(err)
	entries, err := g.Entries(ctx)
	x.check(err)
	out := make([]decodedRow, d.Rows)
	for i := range out {
		out[i].values = map[string]string{}
	}
	decoder := format.NewStripeDecoder(format.Limits{})
	stripe := func(e *segment.Entry, i int, inverse *vector.Column) *vector.Column {
		st := e.Meta.Stripes[i]
		raw := make([]byte, st.Length)
		x.check(x.blobs.ReadAt(ctx, e.Object, raw, int64(e.Offset+st.Offset)))
		decoder.Use(nil)
		if at, length := e.Meta.Dictionary.Range(); length > 0 {
			src, dictionary := make([]byte, length), new(format.Dictionary)
			x.check(x.blobs.ReadAt(ctx, e.Object, src, int64(e.Offset+at)))
			x.check(decoder.DecodeDictionary(dictionary, e.Meta, src))
			decoder.Use(dictionary)
		}
		col := vector.NewColumn(e.Meta.Type)
		x.check(decoder.DecodeStripe(col, e.Meta, i, raw, inverse))
		return col
	}
	for _, e := range entries {
		if e.Meta.Type.Kind == vector.Inverse {
			continue
		}
		group, err := g.Lookup(ctx, catalog.FeatureID(e.Meta.Group))
		x.check(err)
		at := 0
		for i := range e.Meta.Stripes {
			var inverse *vector.Column
			if e.Meta.Group != 0 {
				inverse = stripe(group[0], i, nil)
			}
			col := stripe(e, i, inverse)
			for row := range col.Rows {
				if col.IsNull(row) {
					continue
				}
				lo, hi := col.RowRange(row)
				to := &out[at+row]
				switch {
				case col.Type.Physical() == vector.ByteValues:
					to.values[e.Meta.Name] = fmt.Sprintf("%q", col.Data[lo:hi])
				case col.Type.IsList():
					to.values[e.Meta.Name] = fmt.Sprint(append([]int64{}, col.Ints[lo:hi]...))
				default:
					to.values[e.Meta.Name] = fmt.Sprint(col.Ints[lo])
					if e.Meta.Name == "id" {
						to.id = col.Ints[lo]
					}
					if e.Meta.Name == "label" {
						v := col.Ints[lo]
						to.label = &v
					}
				}
			}
			at += col.Rows
		}
	}
	for i := range out {
		v := out[i].values
		name := v["name"]
		if name == "" {
			name = "null"
		}
		history := v["history"]
		out[i].text = fmt.Sprintf("%s session %s time %s history %s name %s", d.Partition[0].Value, v["session"],
			v["time"], history, name)
	}
	return out
}

// verify compares the newest snapshot with the model, and verifies the store.
func (x *tester) verify(what string) {
	x.Helper()
	ctx := context.Background()
	s := x.latest()
	overlays, err := s.Overlays(ctx)
	x.check(err)
	seen := map[int64]bool{}
	last := map[string]int64{} // row by day
	lists := map[string]map[int64]bool{}
	covered := map[string]map[int64]int64{}
	for _, d := range x.segments(s) {
		rows := x.decode(d)
		deleted := x.readSet(x.first(s.DeletionVectors(ctx, d)))
		labels := map[int]*int64{} // that merged overlays give
		layers, err := s.OverlaySegments(ctx, overlays, d)
		x.check(err)
		for j, l := range layers[0] {
			o := overlays[j]
			if o.Merged == 0 && o.MissingLayers != o.MissingRows {
				for i, r := range rows {
					if !deleted.Contains(uint32(i)) && x.layered[o.Name][r.id] != (l != nil) {
						x.Fatalf("%s: overlay %s: row %d is of a segment with a layer: %v", what, o.Name, r.id,
							l != nil)
					}
				}
			}
			if l == nil {
				continue
			}
			cover := x.readSet(l.Covered)
			for i, r := range x.decode(l.Data) {
				in := l.All || cover.Contains(uint32(i))
				switch {
				case o.Merged != 0 && (in || o.MissingRows == catalog.Null):
					if labels[i] = nil; in {
						labels[i] = r.label
					}
				case o.Merged == 0 && in && !deleted.Contains(uint32(i)):
					if covered[o.Name] == nil {
						covered[o.Name] = map[int64]int64{}
					}
					if r.label == nil {
						x.Fatalf("%s: overlay %s: row %d has no label", what, o.Name, rows[i].id)
					}
					covered[o.Name][rows[i].id] = *r.label
				}
			}
		}
		for i, r := range rows {
			if deleted.Contains(uint32(i)) {
				continue
			}
			want, ok := x.rows[r.id]
			if !ok || seen[r.id] {
				x.Fatalf("%s: row %d is there, known %v, seen %v", what, r.id, ok, seen[r.id])
			}
			seen[r.id] = true
			if day := d.Partition.String(); x.keyless && r.id < last[day] {
				x.Fatalf("%s: row %d stands behind row %d, and was ingested before it", what, r.id, last[day])
			} else {
				last[day] = r.id
			}
			label := r.label
			if over, ok := labels[i]; ok {
				label = over
			}
			var model *int64
			if v, ok := x.labels[r.id]; ok {
				model = &v
			}
			l := "null"
			if label != nil {
				l = fmt.Sprint(*label)
			}
			if got := r.text + " label " + l; got != want.text(model) {
				x.Fatalf("%s: row %d is\n%s\nwant\n%s", what, r.id, got, want.text(model))
			}
		}
		all, err := s.SampleLists(ctx)
		x.check(err)
		for _, l := range all {
			set := x.readSet(x.first(s.ListedRows(ctx, l.Name, d)))
			for i, r := range rows {
				if set.Contains(uint32(i)) && !deleted.Contains(uint32(i)) {
					if lists[l.Name] == nil {
						lists[l.Name] = map[int64]bool{}
					}
					lists[l.Name][r.id] = true
				}
			}
		}
	}
	if len(seen) != len(x.rows) {
		x.Fatalf("%s: %d rows, want %d", what, len(seen), len(x.rows))
	}
	for name, want := range x.lists {
		if len(want) != len(lists[name]) {
			x.Fatalf("%s: list %s has %d rows, want %d", what, name, len(lists[name]), len(want))
		}
		for id := range want {
			if !lists[name][id] {
				x.Fatalf("%s: list %s has not row %d", what, name, id)
			}
		}
	}
	for name, want := range x.overlays {
		if len(want) != len(covered[name]) {
			x.Fatalf("%s: overlay %s covers %d rows, want %d", what, name, len(covered[name]), len(want))
		}
		for id, v := range want {
			if got, ok := covered[name][id]; !ok || got != v {
				x.Fatalf("%s: overlay %s: row %d has %d, covered %v: want %d", what, name, id, got, ok, v)
			}
		}
	}
	keys, err := x.latest().KeyFeatures(ctx)
	x.check(err)
	if x.keyRows == 1 && slices.ContainsFunc(keys,
		func(f catalog.Feature) bool { return f.Role == catalog.RoleSessionKey }) {
		for _, d := range x.segments(x.latest()) {
			if d.KeysSize == 0 {
				x.Fatalf("segment %s has no table of keys", d.ID)
			}
		}
	}
	r, err := x.store.Verify(ctx, "", true, nil)
	if err != nil || r.DamageCount > 0 {
		x.Fatalf("%s: verify: %v %v", what, err, r.Damage)
	}
}

// some draws about one in n of the ids that are live, in order.
func (x *tester) some(n int) []int64 {
	var out []int64
	for id := range x.rows {
		out = append(out, id)
	}
	slices.Sort(out)
	return slices.DeleteFunc(out, func(int64) bool { return x.rand.IntN(n) != 0 })
}

// commit commits a change made against the newest snapshot.
func (x *tester) commit(s *storage.Snapshot, c commit.Change) {
	x.Helper()
	c.Operation, c.Base = cmp.Or(c.Operation, "test"), s.Info().Number
	_, err := x.table.Commit(context.Background(), c)
	x.check(err)
}

// bySegment groups rows by segment.
func bySegment(ids []int64, where map[int64]place) map[string]*roaring.Bitmap {
	out := map[string]*roaring.Bitmap{}
	for _, id := range ids {
		p := where[id]
		if out[p.segment.ID] == nil {
			out[p.segment.ID] = roaring.New()
		}
		out[p.segment.ID].Add(p.row)
	}
	return out
}

func (x *tester) put(d catalog.SegmentDescriptor, rows *roaring.Bitmap) bitmap.Ref {
	x.Helper()
	set, err := x.store.Bitmaps().Put(context.Background(), d.ID, d.Rows, rows)
	x.check(err)
	return set
}

func (x *tester) delete(ids []int64) {
	x.Helper()
	x.deleteBy("", ids)
}

// deleteBy is delete by a commit of an operation.
func (x *tester) deleteBy(operation string, ids []int64) {
	x.Helper()
	s := x.latest()
	sets := bySegment(ids, x.where(s))
	c := commit.Change{Operation: operation}
	for _, d := range x.segments(s) {
		if sets[d.ID] != nil {
			c.Set(append(commit.Op[commit.DeleteRows](&c),
				commit.DeletionVector{Segment: d.ID, Rows: x.put(d, sets[d.ID])}))
		}
	}
	x.commit(s, c)
	for _, id := range ids {
		delete(x.rows, id)
		delete(x.labels, id)
		for _, l := range x.lists {
			delete(l, id)
		}
		for _, o := range x.overlays {
			delete(o, id)
		}
	}
}

func (x *tester) list(name string, ids []int64) {
	x.Helper()
	s := x.latest()
	sets := bySegment(ids, x.where(s))
	c := commit.Change{Ops: []commit.Operation{commit.DefineLists{{Name: name}}}}
	for _, d := range x.segments(s) {
		if sets[d.ID] != nil {
			c.Set(append(commit.Op[commit.SetListRows](&c),
				commit.ListRows{List: name, Segment: d.ID, Rows: x.put(d, sets[d.ID])}))
		}
	}
	x.commit(s, c)
	x.lists[name] = map[int64]bool{}
	for _, id := range ids {
		x.lists[name][id] = true
	}
}

var int64Type = vector.Type{Kind: vector.Dense, Elem: vector.Int64}

// overlay makes an overlay of the feature label over the segments that pick says.
func (x *tester) overlay(name string, missingRows, missingLayers catalog.MissingPolicy, pick func(i int) bool) {
	x.Helper()
	x.overlayOn("", x.latest(), name, missingRows, missingLayers, pick)
}

// overlayOn makes an overlay, of a branch unless that is empty, over segments of a snapshot. It returns its layers.
func (x *tester) overlayOn(branch string, s *storage.Snapshot, name string,
	missingRows, missingLayers catalog.MissingPolicy, pick func(i int) bool) (layers []catalog.SegmentDescriptor) {
	x.Helper()
	ctx := context.Background()
	label := catalog.Feature{ID: catalog.NewFeatureID("label", 0), Name: "label", Type: int64Type,
		Role: catalog.RoleLabel}
	c := commit.Change{Ops: []commit.Operation{
		commit.DefineOverlays{{Name: name, Branch: branch, Features: []catalog.Feature{label}, MissingRows: missingRows,
			MissingLayers: missingLayers}},
	}}
	x.overlays[name], x.layered[name] = map[int64]int64{}, map[int64]bool{}
	for i, d := range x.segments(s) {
		if !pick(i) {
			continue
		}
		l := catalog.OverlaySegment{Overlay: name, Segment: d.ID, All: x.rand.IntN(3) == 0}
		none := x.rand.IntN(4) == 0
		cover := roaring.New()
		var values []int64
		deleted := x.readSet(x.first(s.DeletionVectors(ctx, d)))
		for row, r := range x.decode(d) {
			v := x.rand.Int64N(1 << 40)
			values = append(values, v)
			x.layered[name][r.id] = true
			if !l.All && (none || x.rand.IntN(3) == 0) {
				continue
			}
			cover.Add(uint32(row))
			if !deleted.Contains(uint32(row)) {
				x.overlays[name][r.id] = v
			}
		}
		if !l.All {
			l.Covered = x.put(d, cover)
		}
		g, err := x.store.Segments().Open(ctx, d)
		x.check(err)
		stripes := g.StripeRows()
		w, err := x.table.NewOverlaySegment(ctx, d, segment.Options{})
		x.check(err)
		x.check(w.AddFeature(ctx, 0, label, func(f *format.Writer) error {
			for _, n := range stripes {
				col := vector.NewColumn(int64Type)
				for range n {
					col.Ints = append(col.Ints, values[0])
					col.AddSlot()
					values = values[1:]
				}
				if err := f.WriteStripe(col); err != nil {
					return err
				}
			}
			return nil
		}))
		l.Data, err = w.Finish(ctx)
		x.check(err)
		layers = append(layers, l.Data)
		c.Set(append(commit.Op[commit.SetOverlaySegments](&c), l))
	}
	x.commit(x.latest(), c)
	return layers
}

// merge makes an overlay part of the table.
func (x *tester) merge(name string) {
	x.Helper()
	ctx := context.Background()
	s := x.latest()
	o, err := s.Overlay(ctx, name)
	x.check(err)
	if o.MissingRows == catalog.Null {
		where := x.where(s)
		x.check(s.EachOverlaySegment(ctx, o, func(l catalog.OverlaySegment) error {
			for id, p := range where {
				if p.segment.ID == l.Segment {
					delete(x.labels, id)
				}
			}
			return nil
		}))
	}
	for id, v := range x.overlays[name] {
		x.labels[id] = v
	}
	delete(x.overlays, name)
	x.commit(s, commit.Change{Ops: []commit.Operation{commit.MergeOverlays{name}}})
}

func (x *tester) options() Options {
	w := writeOptions()
	return Options{SegmentRows: 100, Write: writer.Options{Memory: w.Memory, Workers: w.Workers,
		StripeRows: w.StripeRows}}
}

// compact plans and runs.
func (x *tester) compact(opts Options) (*Plan, *Report) {
	x.Helper()
	p, err := NewPlan(context.Background(), x.table, opts)
	x.check(err)
	r, err := Run(context.Background(), x.table, p, opts)
	x.check(err)
	return p, r
}
