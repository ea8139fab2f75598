package reader

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// groupedFiles writes one stripe of two lists that share an inverse as a segment of the table: slot s of feature f is
// the list [base+10*f+s].
func groupedFiles(t *testing.T, table *testTable, name string, base int64, inverse []int32,
	slots int) catalog.SegmentDescriptor {
	t.Helper()
	const group = 1 << 40
	rows := len(inverse)
	index := &testIndex{stripeRows: []uint32{uint32(rows)}, entries: map[catalog.FeatureID]*segment.Entry{}}
	write := func(id catalog.FeatureID, typ vector.Type, opts format.WriterOptions, c *vector.Column) {
		var file bytes.Buffer
		w, err := format.NewWriter(&file, typ, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteStripe(c); err != nil {
			t.Fatal(err)
		}
		meta, _, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		object := fmt.Sprint(name, " ", id)
		table.blobs.objects[object] = file.Bytes()
		size := uint64(file.Len())
		index.entries[id] = &segment.Entry{Object: object, Length: size, ObjectSize: size, Meta: meta}
	}
	for f, x := range table.features {
		c := vector.NewColumn(x.Type)
		for s := range slots {
			c.Ints = append(c.Ints, base+int64(10*f+s))
			c.AddSlot()
		}
		c.Inverse, c.Rows, c.Monotone = inverse, rows, true
		write(x.ID, x.Type, format.WriterOptions{Feature: uint64(x.ID), Name: x.Name, Group: group}, c)
	}
	typ := vector.Type{Kind: vector.Inverse}
	write(group, typ, format.WriterOptions{Feature: group, Name: "group"},
		&vector.Column{Type: typ, Rows: rows, Slots: slots, Inverse: inverse, Monotone: true})
	d := catalog.SegmentDescriptor{ID: name, Rows: uint64(rows), Index: name + "/index"}
	table.indexes[name] = index
	return d
}

// mergedGroup returns a table of a segment and a layer over rows 1, 2 and 5 of its 6, with two features of the types
// that share an inverse in both.
func mergedGroup(t *testing.T, below, over []int32, types ...vector.Type) *testTable {
	t.Helper()
	table := &testTable{blobs: &memoryBlobs{objects: map[string][]byte{}}, indexes: map[string]*testIndex{}}
	for f, typ := range types {
		table.features = append(table.features, catalog.Feature{ID: catalog.FeatureID(f + 1), Name: fmt.Sprint("f", f),
			Type: typ})
	}
	table.segments = []catalog.SegmentDescriptor{groupedFiles(t, table, "segment", 100, below, int(below[5])+1)}
	layer := &catalog.OverlaySegment{Overlay: "o", Segment: "segment",
		Data:    groupedFiles(t, table, "layer", 200, over, int(over[5])+1),
		Covered: bitmap.Ref{Count: 3}}
	o := &table.overlays
	o.defined = []catalog.Overlay{{Name: "o", Features: table.features}}
	o.layers = [][]*catalog.OverlaySegment{{layer}}
	o.covers = map[*catalog.OverlaySegment]*roaring.Bitmap{layer: roaring.BitmapOf(1, 2, 5)}
	return table
}

// Features that share an inverse in the segment and in a layer over some of its rows share one where they are merged,
// and what either stores once is there once; numbers too, which else, where each row is its own slot, are copied row by
// row.
func TestMergedGroups(t *testing.T) {
	list, number := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}, vector.Type{Kind: vector.Dense,
		Elem: vector.Int64}
	// Rows:           0 of the segment, 1 and 2 of the layer, 3 and 4 of the segment, 5 of the layer.
	inverse := []int32{0, 1, 1, 2, 3, 4}
	values := [][]int64{{100, 200, 101, 102, 201}, {110, 210, 111, 112, 211}}
	next := func(table *testTable, output Output) *Batch {
		s := open(t, table.dedupLayout([]int{0, 1}, 6, output, DedupIKJT), Options{})
		defer s.Close()
		b, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := next(mergedGroup(t, []int32{0, 0, 1, 1, 2, 2}, []int32{0, 0, 0, 1, 1, 1}, list, list), OutputTensors)
	defer b.Release()
	if len(b.Tensors.Groups) != 1 {
		t.Fatalf("%d groups, want one", len(b.Tensors.Groups))
	}
	g := &b.Tensors.Groups[0]
	if !slices.Equal(g.Features, []int32{0, 1}) || g.Slots != 5 || !slices.Equal(g.Inverse, inverse) {
		t.Errorf("features %v, %d slots, inverse %v, want %v", g.Features, g.Slots, g.Inverse, inverse)
	}
	if want := slices.Concat(values...); !slices.Equal(b.Tensors.Sparse.Values, want) {
		t.Errorf("values %v, want %v", b.Tensors.Sparse.Values, want)
	}
	each := []int32{0, 1, 2, 3, 4, 5}
	values = [][]int64{{100, 201, 202, 103, 104, 205}, {110, 211, 212, 113, 114, 215}}
	c := next(mergedGroup(t, each, each, number, list), OutputColumns)
	defer c.Release()
	for f, column := range c.Columns {
		if !slices.Equal(column.Inverse, each) || !slices.Equal(column.Ints, values[f]) {
			t.Errorf("column %d: inverse %v of %v, want %v of %v", f, column.Inverse, column.Ints, each, values[f])
		}
	}
}
