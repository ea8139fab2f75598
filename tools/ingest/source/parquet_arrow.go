package source

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// Arrow's writers put the Arrow schema into a Parquet file, as an Arrow stream in base64 under this key. It says what
// Parquet's schema cannot: that lists all have one length, and that integers are durations.
const arrowSchemaKey = "ARROW:schema"

// refineByArrow takes over what the Arrow schema in the file, if there is one, says beyond Parquet's. A column about
// which the two disagree stays as Parquet says, and a schema that cannot be read says nothing: the values are Parquet's.
func refineByArrow(nodes []*node, meta *metadata.FileMetaData, opts *ReadOptions) {
	kv := meta.KeyValueMetadata()
	if kv == nil {
		return
	}
	text := kv.FindValue(arrowSchemaKey)
	if text == nil {
		return
	}
	raw, err := base64.StdEncoding.DecodeString(*text)
	if err != nil {
		return
	}
	r, err := newArrowReader(bytes.NewReader(raw), nil, opts)
	if err != nil {
		return
	}
	defer r.close()
	said := r.columns()
	if len(said) != len(nodes) {
		return
	}
	for i, n := range nodes {
		if n.name == said[i].name && agrees(n, said[i]) {
			refine(n, said[i])
		}
	}
}

// agrees reports whether a, by the Arrow schema, can be what n is by Parquet's.
func agrees(n, a *node) bool {
	if n.shape != a.shape && (n.shape != shapeList || a.shape != shapeFixedList) || len(n.children) != len(a.children) {
		return false
	}
	if n.shape == shapeNumber && n.elem.Physical() != a.elem.Physical() {
		return false
	}
	for i, c := range n.children {
		// Parquet's writers have names of their own for the parts of lists and maps.
		if n.shape == shapeStruct && c.name != a.children[i].name || !agrees(c, a.children[i]) {
			return false
		}
	}
	return true
}

// refine gives n what a, with which it agrees, says beyond it. Other units of times than Parquet's are not taken over:
// writers convert the values.
func refine(n, a *node) {
	switch {
	case a.shape == shapeFixedList && n.shape == shapeList:
		n.dim = a.dim
	case n.logical == "" && strings.HasPrefix(a.logical, "duration["), n.logical == "" && a.logical == "json",
		n.logical == "fixed_size_binary[16]" && a.logical == "uuid":
		n.logical = a.logical
	}
	for i, c := range n.children {
		refine(c, a.children[i])
	}
}
