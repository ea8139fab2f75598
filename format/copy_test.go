package format

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestCopyFile: from a feature file's directory and its stripes alone the same bytes are made again.
func TestCopyFile(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*/*")
	if err != nil {
		t.Fatal(err)
	}
	copied := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // a directory
		}
		m, err := OpenFile(bytes.NewReader(b), 0, int64(len(b)), Limits{})
		if err != nil {
			continue // a pack, or what is no feature file
		}
		copied++
		body := b[headerLength:m.End()]
		var out bytes.Buffer
		n, err := CopyFile(&out, m, bytes.NewReader(body), make([]byte, 7))
		if err != nil || n != int64(len(b)) || !bytes.Equal(out.Bytes(), b) {
			t.Errorf("%s: %d bytes of %d, other than they were: %v", name, n, len(b), err)
		}
		if len(body) == 0 {
			continue
		}
		if _, err := CopyFile(io.Discard, m, bytes.NewReader(body[1:]), nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s cut short: %v", name, err)
		}
	}
	if copied < 3 {
		t.Errorf("%d of %d golden files were copied", copied, len(files))
	}
}
