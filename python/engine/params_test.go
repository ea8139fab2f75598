package engine

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Parameters are read as encoding/json reads the struct, and refused with the same kinds of errors.
func TestParameters(t *testing.T) {
	const ref = `"uri": "u", "table": "t", "snapshot": 18446744073709551615, "time": "x", "branch": "b",
		"overlays": [{"name": "o", "snapshot": 3}], "list": {"name": "l", "snapshot": 4}`
	const read = `"workers": 2, "memory": 3, "prefetch": 4, "presence": true, "no_lease": true, "job": "j",
		"no_usage": true`
	for _, c := range []struct {
		got, want any
		text      string
	}{
		{new(tableRef), new(tableRef), "{" + ref + "}"},
		{new(planParams), new(planParams), "{" + ref + `, "features": ["a", "b"], "overlay": ["o"], "partitions": "p",
			"filter": "c = 1", "sample_list": "s", "downsample": "d", "batch_size": 7, "labels": ["c"],
			"integers": ["a"], "sparse": ["s"],
			"output": "tensors", "dedup": "ikjt", "expand": ["b"], "shuffle": {"unit": "row", "buffer_stripes": 3,
			"seed": 18446744073709551615}, "transforms": {"a": "first(3)"}}`},
		{new(recordsParams), new(recordsParams), `{"uri": "u", "plan": "p", "hash": "h", "fold": true, ` + read + "}"},
		{new(loaderParams), new(loaderParams),
			`{"uri": "u", "plan": "p", "rank": 1, "world": 2, "worker": 3, "rank_workers": 4,
			"shards": 5, "drop_last": true, "epoch": 6, "batch": 7, "begin": 8,
			"keep_slots": true, "page_locked": true, ` + read + "}"},
	} {
		if err := params(json.RawMessage(c.text), c.got); err != nil {
			t.Fatal(err)
		}
		if err := strict([]byte(c.text), c.want); err != nil {
			t.Fatal(err)
		}
		fields := map[string]any{}
		addFields(fields, reflect.ValueOf(c.got).Elem())
		var members map[string]any
		if err := json.Unmarshal([]byte(c.text), &members); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(c.got, c.want) || len(members) != len(fields) {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
		if err := params(json.RawMessage(`{"uri": "u", "colour": 1}`), c.got); err == nil ||
			!strings.Contains(err.Error(), `"colour"`) {
			t.Errorf("an unknown parameter: %v", err)
		}
		var usage usageError
		err := params(json.RawMessage(`{"uri": 7}`), c.got)
		if !errors.As(err, &usage) || err.Error() != "uri: number: want string" {
			t.Errorf("a parameter of a wrong type: %v", err)
		}
		if err := params(nil, c.got); err != nil {
			t.Errorf("no parameters: %v", err)
		}
	}
	err := params(json.RawMessage(`{"shuffle": {"unit": 7}}`), new(planParams))
	if err == nil || err.Error() != "unit: number: want string" {
		t.Errorf("a part of a wrong type: %v", err)
	}
	err = params(json.RawMessage(`{"shuffle": {"unit": "row", "colour": 1}}`), new(planParams))
	if err == nil || !strings.Contains(err.Error(), `"colour"`) {
		t.Errorf("an unknown part: %v", err)
	}
}

// Each parameter of each method has a name of its own, in a tag.
func TestParameterNames(t *testing.T) {
	for _, p := range []any{new(tableRef), new(planParams), new(recordsParams), new(loaderParams),
		new(takeParams),
		new(ingestParams), new(overlayParams), new(selectionParams), new(createParams), new(lookupParams),
		new(listParams), new(callParams)} {
		v := reflect.ValueOf(p).Elem()
		fields := map[string]any{}
		addFields(fields, v)
		if fields[""] != nil || len(fields) != leaves(v.Type()) {
			t.Errorf("%T: %d names for %d fields", p, len(fields), leaves(v.Type()))
		}
	}
}

func leaves(of reflect.Type) (n int) {
	for i := range of.NumField() {
		if f := of.Field(i); f.Anonymous {
			n += leaves(f.Type)
		} else {
			n++
		}
	}
	return n
}
