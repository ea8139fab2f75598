package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/catalog"
)

// ParsePartition parses a predicate over partition values. It returns a function that is true for the selected
// partitions. keys are the partition keys of the table. Every error is an *Error.
//
// A partition value is text. It is compared as a number with a number (03 equals 3), as true or false with TRUE
// or FALSE, and character by character with a string; a value that is no number is neither equal nor unequal to
// one. Two keys are compared as numbers when both are. Null, Hive's default partition, is SQL's null, and so is
// a key that a partition does not have.
func ParsePartition(text string, keys []string) (func(catalog.Partition) bool, error) {
	f, err := ParseFilter(text, func(names []string) ([]Field, error) {
		out := make([]Field, len(names))
		for i, name := range names {
			if out[i].Partition = slices.Contains(keys, name); !out[i].Partition {
				out[i].Err = unknownKey(name, keys)
			}
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	return func(p catalog.Partition) bool { return f.Prune(p, nil) == Always }, nil
}

func unknownKey(name string, keys []string) error {
	hint := suggest.Hint(name, keys)
	switch {
	case len(keys) == 0:
		hint = ": the table has no partitions"
	case hint == "":
		hint = ": the keys are " + strings.Join(keys, ", ")
	}
	return fmt.Errorf("unknown partition key %q%s", name, hint)
}
