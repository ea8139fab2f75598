package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A method answers a request. raw are the parameters.
type method func(e *Engine, ctx context.Context, raw json.RawMessage) (any, error)

// withParams returns the method that reads its parameters into a P.
func withParams[P any](f func(*Engine, context.Context, *P) (any, error)) method {
	return func(e *Engine, ctx context.Context, raw json.RawMessage) (any, error) {
		p := new(P)
		if err := params(raw, p); err != nil {
			return nil, err
		}
		return f(e, ctx, p)
	}
}

// none are no parameters.
type none struct{}

// params reads parameters into a struct, whose tags have their names, and refuses unknown ones. They are the arguments
// of a Python function: a parameter of a wrong type is the caller's mistake.
//
// Each member is read into its field, and not the object into the struct: a method that opens a table is waited for in
// a process that has just begun, where what encoding/json learns of a struct's fields the first time takes as long as
// the rest of such a call.
func params(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return fmt.Errorf("engine: parameters: %w", err)
	}
	fields := map[string]any{}
	addFields(fields, reflect.ValueOf(into).Elem())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		to := fields[name]
		if to == nil {
			return fmt.Errorf("engine: parameters: unknown field %q", name)
		}
		err := strict(members[name], to)
		var mistyped *json.UnmarshalTypeError
		switch {
		case errors.As(err, &mistyped):
			if mistyped.Field != "" { // a part of it
				name = mistyped.Field[strings.LastIndexByte(mistyped.Field, '.')+1:]
			}
			return usageError{fmt.Errorf("%s: %s: want %v", name, mistyped.Value, mistyped.Type)}
		case err != nil:
			return fmt.Errorf("engine: parameters: %w", err)
		}
	}
	return nil
}

// addFields adds pointers to the fields of a struct by name, those of embedded structs among them.
func addFields(to map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous {
			addFields(to, v.Field(i))
		} else {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			to[name] = v.Field(i).Addr().Interface()
		}
	}
}

// strict reads JSON that has no other fields than into's.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
