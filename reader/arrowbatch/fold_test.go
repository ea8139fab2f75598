package arrowbatch

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
)

// The entries of a map are added up before they are copied: offsets never wrap, and no memory is taken for what does
// not fit.
func TestFoldOfTooMuch(t *testing.T) {
	dense := vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	text := vector.Type{Kind: vector.String}
	const rows = 1<<11 + 1
	ones := &vector.Column{Type: dense, Rows: rows, Slots: 1, Ints: []int64{1}, Inverse: make([]int32, rows)}
	texts := &vector.Column{Type: text, Rows: rows, Slots: 1, Data: make([]byte, 1<<20), Offsets: []int32{0, 1 << 20},
		Inverse: make([]int32, rows)}
	long, short := vector.NewColumn(text), vector.NewColumn(text)
	if err := appendKey(long, strings.Repeat("k", 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := appendKey(short, "k"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ keys, values *vector.Column }{
		"keys":   {long, ones},
		"values": {short, texts},
	} {
		m := &mapColumn{marker: 0, positions: []int{1}, keys: c.keys, key: newLeaf(text, ""),
			value: newLeaf(c.values.Type, "")}
		_, err := m.data(&reader.Batch{Rows: rows, Columns: []*vector.Column{ones, c.values}})
		if err == nil || !strings.Contains(err.Error(), "use smaller batches") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
