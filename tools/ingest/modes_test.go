package ingest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/writer"
)

// bitsOf prints one row of a column bit by bit.
func bitsOf(c *vector.Column, row int) string {
	if c.IsNull(row) {
		return ""
	}
	lo, hi := c.RowRange(row)
	var b strings.Builder
	b.WriteString("=")
	doubles := func(v []float64) {
		for _, x := range v {
			fmt.Fprintf(&b, "%x ", math.Float64bits(x))
		}
	}
	floats := func(v []float32) {
		for _, x := range v {
			fmt.Fprintf(&b, "%x ", math.Float32bits(x))
		}
	}
	switch c.Type.Physical() {
	case vector.Int64Values:
		fmt.Fprint(&b, c.Ints[lo:hi])
	case vector.Float32Values:
		floats(c.Floats[lo:hi])
	case vector.Float64Values:
		doubles(c.Doubles[lo:hi])
	case vector.ByteValues:
		fmt.Fprintf(&b, "%q", c.Data[lo:hi])
	}
	if c.Type.Kind == vector.Weighted {
		b.WriteString(":")
		if c.Type.Score == vector.Float64 {
			doubles(c.ScoreDoubles[lo:hi])
		} else {
			floats(c.ScoreFloats[lo:hi])
		}
	}
	return b.String()
}

// storedBits decodes a table's newest snapshot: its features by name, row by row, and a hash of all their files.
func storedBits(t *testing.T, s *storage.Store) (map[string][]string, []string, [32]byte) {
	t.Helper()
	ctx := t.Context()
	table, err := s.Table(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	out := map[string][]string{}
	rows := 0
	var problems []string
	for _, d := range segments {
		g, err := snap.OpenSegment(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := g.Entries(ctx)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(entries, func(a, b *segment.Entry) int {
			return strings.Compare(a.Meta.Name,
				b.Meta.Name)
		})
		inverses := map[catalog.FeatureID][]*vector.Column{}
		for _, kind := range []bool{true, false} { // inverses first
			for _, e := range entries {
				if (e.Meta.Type.Kind == vector.Inverse) != kind {
					continue
				}
				file := make([]byte, e.Length)
				if err := s.Blobs().ReadAt(ctx, e.Object, file, int64(e.Offset)); err != nil {
					t.Fatal(err)
				}
				fmt.Fprint(hash, e.Meta.Name, e.Length, e.Offset)
				// The salt is of the segment, and its id random.
				if _, _, err := format.CopyFile(hash, e.Meta, 0, bytes.NewReader(file[4:])); err != nil {
					t.Fatal(err)
				}
				decoder := format.NewStripeDecoder(format.Limits{})
				if at, length := e.Meta.Dictionary.Range(); length > 0 {
					dictionary := new(format.Dictionary)
					if err := decoder.DecodeDictionary(dictionary, e.Meta, file[at:at+length]); err != nil {
						t.Fatal(err)
					}
					decoder.Use(dictionary)
				}
				if !kind {
					v := out[e.Meta.Name]
					out[e.Meta.Name] = append(v, make([]string, rows-len(v))...)
				}
				for i, st := range e.Meta.Stripes {
					var inverse *vector.Column
					if e.Meta.Group != 0 {
						inverse = inverses[catalog.FeatureID(e.Meta.Group)][i]
					}
					c := vector.NewColumn(e.Meta.Type)
					if err := decoder.DecodeStripe(c, e.Meta, i, file[st.Offset:st.Offset+st.Length],
						inverse); err != nil {
						t.Fatalf("%s stripe %d: %v", e.Meta.Name, i, err)
					}
					if err := c.Validate(); err != nil {
						problems = append(problems, fmt.Sprintf("%s stripe %d: %v", e.Meta.Name, i, err))
					}
					if kind {
						id := catalog.FeatureID(e.Meta.Feature)
						inverses[id] = append(inverses[id], c)
						continue
					}
					for row := range c.Rows {
						out[e.Meta.Name] = append(out[e.Meta.Name], bitsOf(c, row))
					}
				}
			}
		}
		rows += int(d.Rows)
	}
	for name, v := range out {
		out[name] = append(v, make([]string, rows-len(v))...)
	}
	return out, problems, [32]byte(hash.Sum(nil))
}

// A modeColumn makes one column of a random table: a value of a session is kept, or varied a little, or new.
type modeColumn struct {
	name  string
	typ   arrow.DataType
	keep  float64
	files int // a bit for each file that has it
	last  any
	like  *modeColumn // changes when that one does
	moved bool
}

var modeTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int8, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Float32,
	arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
	arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.ListOf(arrow.PrimitiveTypes.Float32),
	arrow.ListOf(arrow.PrimitiveTypes.Uint64),
	arrow.ListOf(arrow.StructOf(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "w",
		Type: arrow.PrimitiveTypes.Float32})),
	arrow.ListOf(arrow.StructOf(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: "w",
		Type: arrow.PrimitiveTypes.Float64})),
	arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32),
}

// floatBits are what is equal as numbers but not as bits, and the other way round.
var floatBits = []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xfff8000000000000),
	math.Float64frombits(0x7ff8000000000002),
	math.Float64frombits(0x7ff8000020000000), math.Inf(1), 1.5, 5e-324}

// next returns the value of the next row: nil, an int64, a float64, a string, or a []modeItem.
func (c *modeColumn) next(rng *rand.Rand) any {
	if c.like != nil {
		c.moved = c.like.moved
	} else {
		c.moved = rng.Float64() >= c.keep
	}
	if !c.moved {
		return c.last
	}
	items := func() []modeItem {
		n := rng.IntN(40)
		if rng.IntN(2000) == 0 {
			n = 5_000
		}
		if fixed, ok := c.typ.(*arrow.FixedSizeListType); ok {
			n = int(fixed.Len())
		}
		out := make([]modeItem, n)
		for i := range out {
			out[i] = newItem(rng)
		}
		return out
	}
	old, isList := c.last.([]modeItem)
	switch k := rng.IntN(10); {
	case k == 0:
		c.last = nil
	case c.name[0] == 'n': // null throughout
	case c.name[0] == 'e': // empty throughout
		c.last = []modeItem{}
		if !isListType(c.typ) {
			c.last = ""
		}
	case !isListType(c.typ):
		c.last = newItem(rng)
	case !isList || k < 4 || len(old) == 0:
		c.last = items()
	case k < 6 && c.typ.ID() == arrow.LIST: // a shift
		c.last = append([]modeItem{newItem(rng)}, old[:len(old)-rng.IntN(2)]...)
	case k < 7 && c.typ.ID() == arrow.LIST:
		c.last = append(slices.Clone(old[rng.IntN(len(old)):]), newItem(rng))
	default: // the last id, or one weight, is another
		next := slices.Clone(old)
		if i := rng.IntN(len(next)); k == 7 {
			next[len(next)-1].id++
		} else {
			next[i].x = floatBits[rng.IntN(len(floatBits))]
		}
		c.last = next
	}
	return c.last
}

func isListType(t arrow.DataType) bool {
	return t.ID() == arrow.LIST || t.ID() == arrow.FIXED_SIZE_LIST
}

type modeItem struct {
	id int64
	x  float64
}

func newItem(rng *rand.Rand) modeItem {
	return modeItem{rng.Int64N(1 << (1 + rng.IntN(40))), floatBits[rng.IntN(len(floatBits))]}
}

func appendMode(b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	x, _ := v.(modeItem)
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(x.id)
	case *array.Int32Builder:
		b.Append(int32(x.id))
	case *array.Uint64Builder:
		b.Append(uint64(-x.id))
	case *array.Int8Builder:
		b.Append(int8(x.id))
	case *array.BooleanBuilder:
		b.Append(x.id%2 == 0)
	case *array.Float32Builder:
		b.Append(math.Float32frombits(uint32(math.Float64bits(x.x)>>32) | uint32(math.Float64bits(x.x))))
	case *array.Float64Builder:
		b.Append(x.x)
	case *array.StringBuilder:
		b.Append(modeText(v))
	case *array.BinaryBuilder:
		b.Append([]byte(modeText(v)))
	case *array.StructBuilder:
		b.Append(true)
		appendMode(b.FieldBuilder(0), v)
		appendMode(b.FieldBuilder(1), v)
	case array.ListLikeBuilder:
		b.Append(true)
		for _, item := range v.([]modeItem) {
			appendMode(b.ValueBuilder(), item)
		}
	}
}

func modeText(v any) string {
	if x, ok := v.(modeItem); ok {
		return strings.Repeat("t", int(x.id%50)) + fmt.Sprint(x.id%7)
	}
	return ""
}

// writeModes writes a random table of some files and returns their paths.
func writeModes(t *testing.T, rng *rand.Rand, files, rows int) []string {
	t.Helper()
	var columns []*modeColumn
	for i := range 26 {
		typ := modeTypes[i%len(modeTypes)]
		c := &modeColumn{name: fmt.Sprintf("f%02d", i), typ: typ, keep: []float64{0, .5, .9, .99, 1}[rng.IntN(5)],
			files: -1}
		switch rng.IntN(8) {
		case 0:
			c.name = "n" + c.name
		case 1:
			if typ.ID() != arrow.FIXED_SIZE_LIST {
				c.name = "e" + c.name
			}
		case 2:
			c.files = 1 + rng.IntN(1<<files-1)
		case 3, 4, 5:
			if i > 0 {
				c.like = columns[rng.IntN(i)]
			}
		}
		columns = append(columns, c)
	}
	dir := t.TempDir()
	var paths []string
	row := 0
	for k := range files {
		fields := []arrow.Field{{Name: "session", Type: arrow.PrimitiveTypes.Int64}, {Name: "time",
			Type: arrow.PrimitiveTypes.Int64}}
		var has []*modeColumn
		for _, c := range columns {
			if c.files>>k&1 != 0 {
				fields = append(fields, arrow.Field{Name: c.name, Type: c.typ, Nullable: true})
				has = append(has, c)
			}
		}
		schema := arrow.NewSchema(fields, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		path := filepath.Join(dir, fmt.Sprintf("%d.arrow", k))
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			b.Field(0).(*array.Int64Builder).Append(int64(row / 11 % 97))
			b.Field(1).(*array.Int64Builder).Append(int64(row))
			row++
			for _, c := range columns {
				c.next(rng)
			}
			for j, c := range has {
				appendMode(b.Field(j+2), c.last)
			}
			if i%100 == 99 || i == rows-1 {
				r := b.NewRecordBatch()
				if err := w.Write(r); err != nil {
					t.Fatal(err)
				}
				r.Release()
			}
		}
		b.Release()
		if err := errors.Join(w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// Every step of finding duplicates, in any memory, stripes and segments, holds the same rows bit by bit; neither the
// bytes of the files nor the report depend on how many workers wrote them.
func TestModesHoldTheSameRows(t *testing.T) {
	if testing.Short() {
		t.Skip("dozens of ingests")
	}
	seeds := uint64(3)
	if race.Enabled {
		seeds = 1 // ten times slower
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		paths := writeModes(t, rng, 1+rng.IntN(3), 100+rng.IntN(200))
		layout := Options{
			SessionKey: "session", TimeKey: "time",
			Options: writer.Options{StripeRows: []int{1, 7, 100}[seed], SegmentRows: []int{60, 0, 100}[seed],
				Memory: []int64{200_000, 0, 2 << 20}[seed]},
		}
		var want map[string][]string
		for _, d := range append(slices.Clone(dedupSteps), writer.DedupAuto) {
			var first [32]byte
			var firstReport Report
			for i, workers := range []int{1, 3} {
				o := layout
				o.Dedup, o.Workers = d, workers
				s := openStore(t, t.TempDir())
				report, err := Run(t.Context(), s, "ads", paths, o)
				if err != nil {
					t.Fatalf("seed %d, %s, %+v: %v", seed, d, layout, err)
				}
				got, problems, hash := storedBits(t, s)
				if len(problems) > 0 {
					t.Fatalf("seed %d, %s: %v", seed, d, problems)
				}
				if want == nil {
					want = got
				}
				if len(got) != len(want) {
					t.Errorf("seed %d, %s: %d features, want %d", seed, d, len(got), len(want))
				}
				for name, rows := range want {
					for r := range rows {
						if len(got[name]) != len(rows) || got[name][r] != rows[r] {
							t.Errorf("seed %d, %s, %+v: %s row %d is %.100s, want %.100s", seed, d, layout, name, r,
								got[name][r], rows[r])
							break
						}
					}
				}
				if i == 0 {
					first, firstReport = hash, report
					u := report.Duplicates
					if u.Factor < 1 || u.Slots > u.RowSlots || u.Partial > u.Slots || d == writer.DedupOff &&
						(u.Factor != 1 || u.Slots != u.RowSlots || u.Partial+int64(u.Groups) != 0 ||
							u.BytesSaved != 0) {
						t.Errorf("seed %d, %s: %+v", seed, d, u)
					}
					continue
				}
				if f := firstReport; report.Duplicates != f.Duplicates || report.Stripes != f.Stripes ||
					report.Segments != f.Segments {
					t.Errorf("seed %d, %s, %d workers: the report says %+v, said %+v", seed, d, workers,
						report.Duplicates, f.Duplicates)
				}
				if hash != first {
					t.Errorf("seed %d, %s, %d workers, %+v: the files hold other bytes than before", seed, d, workers,
						layout)
				}
			}
		}
	}
}
