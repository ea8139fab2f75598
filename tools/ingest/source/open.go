package source

import (
	"context"
	"fmt"
	"os"
)

// open opens the reader of a file's format. stdin is what "-" reads.
func (d *discovery) open(ctx context.Context, f *File, stdin *hashingReader) (batchReader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch f.Format {
	case formatParquet:
		return orNil(openParquet(f.Path, d.opts))
	case formatArrow:
		if stdin != nil {
			return orNil(newArrowReader(stdin, nil, d.opts))
		}
		in, err := os.Open(f.Path)
		if err != nil {
			return nil, err
		}
		return orNil(newArrowReader(in, in, d.opts))
	}
	return nil, fmt.Errorf("format %q", f.Format)
}

// orNil keeps a nil pointer from becoming a batchReader that is not nil.
func orNil[R interface {
	comparable
	batchReader
}](r R, err error) (batchReader, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}
