package parquet

import (
	"bytes"
	"encoding/base64"
	"strings"

	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// Arrow's writers put the Arrow schema into a Parquet file, as an Arrow stream in base64 under this key. It says what
// Parquet's schema cannot: that lists all have one length, and that integers are durations.
const arrowSchemaKey = "ARROW:schema"

// refineByArrow takes over what the Arrow schema in the file, if there is one, says beyond Parquet's. A column about
// which the two disagree stays as Parquet says, and a schema that cannot be read says nothing: the values are
// Parquet's.
func refineByArrow(nodes []*column.Type, text string, opts *column.ReadOptions) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return
	}
	r, err := arrowsource.NewReader(bytes.NewReader(raw), nil, opts)
	if err != nil {
		return
	}
	defer r.Close()
	said := r.Columns()
	if len(said) != len(nodes) {
		return
	}
	for i, n := range nodes {
		if n.Name == said[i].Name && agrees(n, said[i]) {
			refine(n, said[i])
		}
	}
}

// agrees reports whether a, by the Arrow schema, can be what n is by Parquet's.
func agrees(n, a *column.Type) bool {
	if n.Shape != a.Shape && (n.Shape != column.List || a.Shape != column.FixedList) ||
		len(n.Children) != len(a.Children) {
		return false
	}
	if n.Shape == column.Number && n.Elem.Physical() != a.Elem.Physical() {
		return false
	}
	for i, c := range n.Children {
		// Parquet's writers have names of their own for the parts of lists and maps.
		if n.Shape == column.Struct && c.Name != a.Children[i].Name || !agrees(c, a.Children[i]) {
			return false
		}
	}
	return true
}

// refine gives n what a, with which it agrees, says beyond it. Other units of times than Parquet's are not taken over:
// writers convert the values.
func refine(n, a *column.Type) {
	switch {
	case a.Shape == column.FixedList && n.Shape == column.List:
		n.Dim = a.Dim
	case n.Logical == "" && strings.HasPrefix(a.Logical, "duration["), n.Logical == "" && a.Logical == "json",
		n.Logical == "fixed_size_binary[16]" && a.Logical == "uuid":
		n.Logical = a.Logical
	}
	for i, c := range n.Children {
		refine(c, a.Children[i])
	}
}
