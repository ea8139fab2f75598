package format

import (
	"fmt"
	"io"
)

// CopyFile writes a feature file from its directory m and the rest of its bytes: body begins with the dictionary or the
// first stripe, behind the header, and is read up to the end of the last stripe. Header and tail are made anew. buf is
// what is copied at once. It returns the bytes written.
func CopyFile(w io.Writer, m *FileMeta, body io.Reader, buf []byte) (int64, error) {
	if _, err := w.Write(appendHeader(nil, fileMagic)); err != nil {
		return 0, err
	}
	n, err := io.CopyBuffer(w, io.LimitReader(body, int64(m.End()-headerLength)), buf)
	if err == nil && uint64(n) != m.End()-headerLength {
		err = fmt.Errorf("feature file ends after %d of %d bytes: %w", headerLength+n, m.End(), io.ErrUnexpectedEOF)
	}
	if err != nil {
		return headerLength + n, err
	}
	tail, err := w.Write(appendTail(AppendMeta(nil, m), 0, fileMagic))
	return headerLength + n + int64(tail), err
}
