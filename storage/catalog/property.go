package catalog

import (
	"fmt"
	"unicode/utf8"
)

// Properties say how a table is to be written; but for one of storage's own no reader needs them. Each is a name and a
// value, both UTF-8, and a commit may set some: those set last count.
const (
	maxPropertyName  = 64
	maxPropertyValue = 1024
	MaxProperties    = 16 // of one change
)

// CheckProperty returns an error when a property cannot have the name or the value.
func CheckProperty(name, value string) error {
	switch {
	case name == "" || len(name) > maxPropertyName || !utf8.ValidString(name):
		return fmt.Errorf("property %.100q: want a name of 1 to %d bytes of UTF-8", name, maxPropertyName)
	case len(value) > maxPropertyValue || !utf8.ValidString(value):
		return fmt.Errorf("property %s: value of %d bytes: want at most %d of UTF-8", name, len(value),
			maxPropertyValue)
	}
	return nil
}
