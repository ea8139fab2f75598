package format

import (
	"errors"
	"io"
)

// Dump writes annotated bytes of a feature file or a pack.
func Dump(w io.Writer, r io.ReaderAt, size int64) error {
	return errors.New("dump: not built yet")
}
