package engine

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Parameters that are bound are read as encoding/json reads the struct, and refused with the same kinds of errors.
func TestBoundParameters(t *testing.T) {
	const place = `"uri": "u", "table": "t", "snapshot": 18446744073709551615, "time": "x", "branch": "b",
		"overlays": [{"name": "o", "snapshot": 3}], "list": {"name": "l", "snapshot": 4}`
	for _, c := range []struct {
		bound, plain any
		text         string
	}{
		{new(tableParams), new(tableParams), "{" + place + "}"},
		{new(planParams), new(planParams), "{" + place + `, "features": ["a", "b"], "overlay": ["o"], "partitions": "p", "filter": "c = 1", "sample_list": "s", "downsample": "d", "batch_size": 7, "labels": ["c"], "integers": ["a"],
			"output": "tensors", "dedup": "ikjt", "expand": ["b"], "shuffle": {"unit": "row", "buffer_stripes": 3, "seed": 18446744073709551615},
			"transforms": {"a": "first(3)"}}`},
		{new(recordsParams), new(recordsParams), `{"uri": "u", "plan": "p", "workers": 2, "memory": 3, "prefetch": 4, "hash": "h", "fold": true, "job": "j", "no_usage": true, "no_lease": true}`},
	} {
		if err := params(json.RawMessage(c.text), c.bound); err != nil {
			t.Fatal(err)
		}
		if err := strict([]byte(c.text), c.plain); err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal([]byte(c.text), &members); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(c.bound, c.plain) || len(members) != len(c.bound.(bound).fields()) {
			t.Errorf("%+v, want %+v", c.bound, c.plain)
		}
		if err := params(json.RawMessage(`{"uri": "u", "colour": 1}`), c.bound); err == nil || !strings.Contains(err.Error(), `"colour"`) {
			t.Errorf("an unknown parameter: %v", err)
		}
		var usage usageError
		if err := params(json.RawMessage(`{"uri": 7}`), c.bound); !errors.As(err, &usage) || err.Error() != "uri: number: want string" {
			t.Errorf("a parameter of a wrong type: %v", err)
		}
		if err := params(nil, c.bound); err != nil {
			t.Errorf("no parameters: %v", err)
		}
		if _, ok := c.plain.(*recordsParams); ok {
			continue // has what a loader has, of which it takes a part
		}
		for _, name := range parameterNames(reflect.TypeOf(c.plain).Elem()) {
			if members[name] == nil || c.bound.(bound).fields()[name] == nil {
				t.Errorf("%T: parameter %s is not bound, or not tested", c.bound, name)
			}
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

// parameterNames returns the names that encoding/json knows the fields of a struct by.
func parameterNames(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous {
			names = append(names, parameterNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
