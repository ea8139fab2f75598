package storage

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Properties say how a table is to be written; no reader needs them. Each is a name and a value, both UTF-8, and a commit may set
// some: those set last count.
const (
	maxPropertyName  = 64
	maxPropertyValue = 1024
	maxProperties    = 16 // of one change
)

// ProfileProperty is what ingest stores feature files for: speed, balanced or size.
const ProfileProperty = "profile"

func checkProperty(name, value string) error {
	switch {
	case name == "" || len(name) > maxPropertyName || !utf8.ValidString(name):
		return fmt.Errorf("property %.100q: want a name of 1 to %d bytes of UTF-8", name, maxPropertyName)
	case len(value) > maxPropertyValue || !utf8.ValidString(value):
		return fmt.Errorf("property %s: value of %d bytes: want at most %d of UTF-8", name, len(value), maxPropertyValue)
	}
	return nil
}

// Property returns the value of a table's property, empty where it has none. Its cost is one look-up.
func (s *Snapshot) Property(ctx context.Context, name string) (string, error) {
	values, err := s.t.s.get(ctx, s.m.schema, propertyKey(name))
	if err != nil || values[0] == nil {
		return "", err
	}
	if err := checkProperty(name, string(values[0])); err != nil {
		return "", corrupt(s.treeName(s.m.schema), err.Error())
	}
	return string(values[0]), nil
}

// properties sets those of the change that differ.
func (e *edit) properties(ctx context.Context, c Change) error {
	names := make([]string, 0, len(c.Properties))
	for name := range c.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		old, err := e.base.Property(ctx, name)
		if err != nil {
			return err
		}
		if value := c.Properties[name]; value != old {
			e.schema = append(e.schema, treeEntry{propertyKey(name), []byte(value)})
		}
	}
	return nil
}
