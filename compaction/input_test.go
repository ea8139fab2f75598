package compaction

import (
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/writer"
)

// entriesOf returns the index of a segment of stripes of 10 rows with one feature, of so many values in each stripe.
func entriesOf(id catalog.FeatureID, t vector.Type, values ...uint64) map[catalog.FeatureID]*segment.Entry {
	m := &format.FileMeta{Type: t}
	for _, n := range values {
		m.Stripes = append(m.Stripes, format.StripeMeta{Rows: 10, Stats: format.Stats{Elements: n}})
	}
	return map[catalog.FeatureID]*segment.Entry{id: {Meta: m}}
}

// TestLayersCount: the size of a row is that of all that gets the new stripes: the segment's features, those of merged
// overlays, and those of overlays that stay.
func TestLayersCount(t *testing.T) {
	dense := vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	list := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	embedding := vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 4096}
	with := &input{
		stripes:  []uint32{10, 10},
		entries:  entriesOf(1, dense, 10, 10),
		merged:   []*layer{{entries: entriesOf(2, list, 1000, 0)}},
		separate: []*layer{nil, {entries: entriesOf(3, embedding, 10*4096, 0)}},
	}
	without := &input{stripes: []uint32{10}, entries: entriesOf(1, dense, 10), separate: []*layer{nil, nil}}
	inputs := []writer.RewriteInput{with.rewriteInput(), without.rewriteInput()}
	const vectorBytes = 4 * 4096
	for i, want := range [][]writer.RewriteStripe{
		{{Rows: 10, RowBytes: 8 + 804 + vectorBytes, MostBytes: vectorBytes},
			{Rows: 10, RowBytes: 8 + 4 + vectorBytes, MostBytes: vectorBytes}},
		{{Rows: 10, RowBytes: 8, MostBytes: 8}},
	} {
		for k, s := range inputs[i].Stripes {
			if s != want[k] {
				t.Errorf("input %d, stripe %d: %+v, want %+v", i, k, s, want[k])
			}
		}
	}
}
