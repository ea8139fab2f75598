package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A plan just made is opened by its hash alone, while its snapshot stands; and what is not known of it is said by no
// result.
func TestLayoutsAreKept(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	open := func(e *Engine, what string, value any) *int64 {
		h := must[*int64](t, e, "records_open", map[string]any{"uri": at["uri"], what: value})
		if h != nil {
			e.TakeRecords(*h).Release()
		}
		return h
	}
	var plans []planAnswer
	for i := range maxLayouts + 1 {
		plans = append(plans, must[planAnswer](t, e, "plan", with(at, "features", []string{"small"}, "batch_size",
			30+i)))
	}
	first, last := plans[0], plans[maxLayouts]
	if open(e, "hash", last.Hash) == nil || e.layouts.Size() != maxLayouts {
		t.Errorf("the last of %d plans is not known by its hash", e.layouts.Size())
	}
	if open(e, "hash", first.Hash) != nil || open(newEngine(t), "hash", last.Hash) != nil {
		t.Error("a plan is known that was forgotten, or that another process made")
	}
	if open(e, "plan", first.Plan) == nil || open(newEngine(t), "plan", last.Plan) == nil {
		t.Error("a plan is not read")
	}
	if err := os.RemoveAll(at["uri"].(string)); err != nil {
		t.Fatal(err)
	}
	if open(e, "hash", last.Hash) != nil {
		t.Error("a plan is opened whose snapshot is gone")
	}
	request := fmt.Sprintf(`{"method": "records_open", "params": {"uri": %q, "plan": %q}}`, at["uri"], last.Plan)
	if w := fails(t, e, request); w.Kind != "not_found" {
		t.Errorf("%+v", w)
	}
}

// What is written by hand is what encoding/json writes.
func TestAnswersAreThoseOfEncodingJSON(t *testing.T) {
	odd := "a\"b\\\u2028\n\x01"
	f := featureInfo{Name: odd, ID: "1", Kind: "dense", Elem: "int8", Score: "x", Dim: 7, Role: "label", Logical: odd,
		OriginColumn: "c", OriginKey: "k"}
	for _, x := range []written{
		snapshotInfo{Number: 1<<64 - 1, Time: "2026-01-01T00:00:00Z", Operation: odd, Rows: 3, Segments: 4, Bytes: 5,
			Features: 6},
		planAnswer{Plan: odd, Hash: "ab", Snapshot: 1, Rows: 2, Batches: 3, Features: []featureInfo{f, {}}},
		planAnswer{Features: []featureInfo{}},
		recordsAnswer(-7),
		loaderAnswer{handle{-7}, odd, 1<<64 - 1},
	} {
		want, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.appendJSON(nil); !bytes.Equal(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The text of a schema has all that the schema has.
func TestSchemaText(t *testing.T) {
	want := &reader.Schema{
		Arrays: []reader.Array{{Name: "sparse.values", Type: "int64"}, {Name: "column.3.present", Type: "uint64"}},
		Dense:  []int32{0, 7}, Labels: []int32{1}, Embeddings: []int32{2}, Widths: []int{64}, Columns: []int32{3, 4, 5},
		Sparse: reader.ListsSchema{Features: []int32{8, 9}, Dedup: []bool{true, false}},
		Floats: reader.ListsSchema{Features: []int32{10}, Dedup: []bool{true}},
	}
	text := schemaText(want)
	const is = `{"arrays":"sparse.values int64 column.3.present uint64","dense":[0,7],"labels":[1],"embeddings":[2],` +
		`"widths":[64],"columns":[3,4,5],"sparse":{"features":[8,9],"dedup":[1,0]},` +
		`"weighted":{"features":[],"dedup":[]},"floats":{"features":[10],"dedup":[1]}}`
	if text != is || !json.Valid([]byte(text)) {
		t.Errorf("%s, want %s", text, is)
	}
}

// The advice for a text keeps it in sparse: in features alone its hash would be a number of the dense matrix.
func TestSparseTextAdvice(t *testing.T) {
	p := &reader.Plan{Features: []catalog.Feature{{Name: "zip", Type: vector.Type{Kind: vector.String}}}}
	err := setSparse(p, []string{"zip"}, nil)
	if err == nil || !strings.Contains(err.Error(), `leave it in sparse, as without that`) ||
		!strings.Contains(err.Error(), `transforms={"zip": "hash(100000)"}`) {
		t.Errorf("%v", err)
	}
}
