package plan

import (
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/internal/suggest"
)

// nameOf returns the name of a value of an enumeration. Names are written into plans.
func nameOf[T ~uint8](kind string, names []string, v T) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, uint8(v))
}

// parseName returns the value of a name.
func parseName[T ~uint8](kind string, names []string, s string) (T, error) {
	if i := slices.Index(names, s); i >= 0 && s != "" {
		return T(i), nil
	}
	return 0, fmt.Errorf("%s %q: want %s", kind, s, oneOf(names))
}

// oneOf lists names for an error message.
func oneOf(names []string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
	return suggest.OneOf(names, "or")
}
