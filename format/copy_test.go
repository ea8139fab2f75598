package format

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestCopyFile: from a feature file's directory and its stripes alone the same bytes are made again, and a copy with
// another salt passes for nothing but itself.
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
		_, n, err := CopyFile(&out, m, m.Salt, bytes.NewReader(body))
		if err != nil || n != int64(len(b)) || !bytes.Equal(out.Bytes(), b) {
			t.Errorf("%s: %d bytes of %d, other than they were: %v", name, n, len(b), err)
		}
		var salted bytes.Buffer
		other, n, err := CopyFile(&salted, m, m.Salt+1, bytes.NewReader(body))
		if err != nil || n != int64(len(b)) || other.Salt != m.Salt+1 {
			t.Fatalf("%s: %d bytes of %d with another salt: %v", name, n, len(b), err)
		}
		read, err := OpenFile(bytes.NewReader(salted.Bytes()), 0, n, Limits{})
		if err != nil || !reflect.DeepEqual(read, other) {
			t.Fatalf("%s: %+v, want %+v: %v", name, read, other, err)
		}
		for i, s := range m.Stripes {
			theirs := salted.Bytes()[s.Offset : s.Offset+s.Length]
			if err := VerifyStripe(other, i, theirs); err != nil {
				t.Errorf("%s with another salt: %v", name, err)
			}
			if err := VerifyStripe(m, i, theirs); s.Length > 0 && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: stripe %d of the copy passes for the original's: %v", name, i, err)
			}
		}
		if at, length := m.Dictionary.Range(); length > 0 {
			theirs := salted.Bytes()[at : at+length]
			if err := VerifyDictionary(other, theirs); err != nil {
				t.Errorf("%s with another salt: %v", name, err)
			}
			if err := VerifyDictionary(m, theirs); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: the copy's dictionary passes for the original's: %v", name, err)
			}
		}
		if len(body) == 0 {
			continue
		}
		if _, _, err := CopyFile(io.Discard, m, m.Salt, bytes.NewReader(body[:len(body)-1])); !errors.Is(err,
			io.ErrUnexpectedEOF) {
			t.Errorf("%s cut short: %v", name, err)
		}
		body = bytes.Clone(body)
		body[len(body)/2] ^= 1
		if _, _, err := CopyFile(io.Discard, m, m.Salt, bytes.NewReader(body)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s damaged: %v", name, err)
		}
	}
	if copied < 3 {
		t.Errorf("%d of %d golden files were copied", copied, len(files))
	}
}
