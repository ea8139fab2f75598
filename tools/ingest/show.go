package ingest

import (
	"context"

	"github.com/dsistore/dsistore/tools/ingest/source"
)

// ShowSchema returns, as the text of a mapping file, what Run would make of the columns of what paths hold. It reads
// the files' schemas, or all of those whose values have to tell, and no store.
func ShowSchema(ctx context.Context, paths []string, opts Options) ([]byte, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	files, err := source.Discover(ctx, paths, sourceOptions(&opts, &quarantine{}))
	if err != nil {
		return nil, err
	}
	return source.InferMapping(ctx, files)
}
