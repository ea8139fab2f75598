package source

import (
	"context"
	"errors"
)

// Discover lists the files that the paths ("-" is stdin) hold, in a deterministic order.
func Discover(ctx context.Context, paths []string, opts Options) ([]File, error) {
	return nil, errors.New("source: not built yet")
}
