package reader

import (
	"bytes"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// drawFiles draws the files of features for the rows from base on, and the index that has them, and tells what they
// hold. Features may be of two groups.
func (table *testTable) drawFiles(t *rapid.T, d catalog.SegmentDescriptor, stripeRows []uint32, features []int,
	base int,
	put func(row, f int, v value, x storedSlot)) catalog.SegmentDescriptor {
	source := len(table.indexes)
	index := &testIndex{stripeRows: stripeRows, entries: map[catalog.FeatureID]*segment.Entry{}}
	pack := d.Index + ".pack"
	var packed bytes.Buffer
	flush := func() {
		if packed.Len() == 0 {
			return
		}
		name := fmt.Sprintf("%s%d", pack, d.Objects)
		table.blobs.objects[name] = slices.Clone(packed.Bytes())
		table.names = append(table.names, name)
		for _, e := range index.entries {
			if e.Object == name {
				e.ObjectSize = uint64(packed.Len())
			}
		}
		d.Objects++
		packed.Reset()
	}
	place := func(id catalog.FeatureID, file []byte, meta *format.FileMeta) {
		packed.Write(make([]byte, rapid.SampledFrom([]int{0, 0, 10, 300}).Draw(t, "gap")))
		name := fmt.Sprintf("%s%d", pack, d.Objects)
		index.entries[id] = &segment.Entry{Object: name, Offset: uint64(packed.Len()), Length: uint64(len(file)),
			Meta: meta}
		packed.Write(file)
		if rapid.IntRange(0, 5).Draw(t, "new object") == 0 {
			flush()
		}
	}
	// Groups: an inverse for each stripe that some features share.
	groups := make([]testGroup, 2)
	for k := range groups {
		groups[k] = drawGroup(t, 1<<40+uint64(k), stripeRows)
	}
	for _, f := range features {
		rowNumber := table.features[f].Role == catalog.RoleRequestKey
		want := table.features[f].Type
		have := want
		if !rowNumber {
			have = drawNarrower(t, want)
		}
		opts := format.WriterOptions{Feature: uint64(table.features[f].ID), Salt: uint32(table.features[f].ID) + 1,
			Name: table.features[f].Name}
		var group *testGroup
		most := 5
		if table.overlays.defined != nil { // for groups that are merged with groups
			most = 2
		}
		if k := rapid.IntRange(0, most).Draw(t, "grouped"); k < len(groups) && !rowNumber {
			group = &groups[k]
			opts.Group, group.used = group.id, true
		}
		var file bytes.Buffer
		w, err := format.NewWriter(&file, have, opts)
		if err != nil {
			t.Fatal(err)
		}
		row := base
		var values []value // of rows
		var slotsOf []storedSlot
		some := false // stripe has an inverse
		for i, r := range stripeRows {
			var inverse []int32
			slots, monotone := int(r), true
			switch layout := rapid.IntRange(0, 2).Draw(t, "layout"); {
			case rowNumber:
			case group != nil:
				inverse, slots, monotone = group.inverse[i], group.slots[i], group.monotone
			case layout == 1:
				inverse, slots = drawRuns(t, int(r))
			case layout == 2:
				inverse, slots = drawCodes(t, int(r))
				monotone = false
			}
			slotValues := make([]value, slots)
			var c *vector.Column
			if (have.Kind == vector.Sparse || have.Kind == vector.Weighted) &&
				rapid.IntRange(0, 2).Draw(t, "partial") == 0 {
				c = drawPartial(t, have, slotValues)
				if inverse != nil {
					c.Inverse, c.Rows, c.Monotone = inverse, len(inverse), monotone
				}
			} else {
				for s := range slotValues {
					switch {
					case rowNumber:
						slotValues[s] = value{numbers: []number64{{i: int64(row + s)}}}
					case table.features[f].Role == catalog.RoleSessionKey:
						slotValues[s] = drawSession(t, have)
					default:
						slotValues[s] = drawValue(t, have)
					}
				}
				c = slotColumn(have, slotValues, inverse, monotone)
			}
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			if err := w.WriteStripe(c); err != nil {
				t.Fatal(err)
			}
			for j := range int(r) {
				s := j
				if inverse != nil {
					s = int(inverse[j])
				}
				x := storedSlot{segment: d.Index, stripe: i, slot: s,
					stripeInverse: inverse != nil && !isIdentity(inverse)}
				if x.inverse = fmt.Sprint(source, " ", f); group != nil {
					x.group = fmt.Sprint(source, " group ", group.id)
					x.inverse = x.group
				}
				some = some || x.stripeInverse
				values, slotsOf = append(values, slotValues[s].widened(have, want)), append(slotsOf, x)
			}
			row += int(r)
		}
		for j := range values {
			if !some {
				slotsOf[j].inverse = noInverse
			}
			put(base+j, f, values[j], slotsOf[j])
		}
		meta, _, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		place(table.features[f].ID, file.Bytes(), meta)
	}
	for _, group := range groups {
		if !group.used {
			continue
		}
		var file bytes.Buffer
		w, err := format.NewWriter(&file, vector.Type{Kind: vector.Inverse},
			format.WriterOptions{Feature: group.id, Salt: uint32(group.id), Name: "group"})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range stripeRows {
			c := &vector.Column{
				Type: vector.Type{Kind: vector.Inverse}, Rows: int(r), Slots: group.slots[i], Inverse: group.inverse[i],
				Monotone: group.monotone,
			}
			if err := w.WriteStripe(c); err != nil {
				t.Fatal(err)
			}
		}
		meta, _, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		place(catalog.FeatureID(group.id), file.Bytes(), meta)
	}
	flush()
	table.indexes[d.ID] = index
	return d
}
