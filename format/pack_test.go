package format_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector/vectortest"
)

// Feature files come out of a pack as they went in, found by its own directory.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		w, err := format.NewPackWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		var files [][]byte
		var entries []format.PackEntry
		for range rapid.IntRange(0, 4).Draw(t, "files") {
			ty := vectortest.DrawType(t)
			feature := rapid.Uint64().Draw(t, "feature")
			file, _ := writeFile(t, ty, format.WriterOptions{Feature: feature}, drawColumn(t, ty))
			offset, err := w.Add(feature, file)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
			entries = append(entries, format.PackEntry{Feature: feature, Offset: offset, Length: uint64(len(file))})
		}
		if _, err := w.Add(1, []byte("no feature file, this")); err == nil {
			t.Fatal("added what is no feature file")
		}
		size, err := w.Finish()
		if err != nil || size != int64(b.Len()) || w.Size() != size {
			t.Fatalf("%d bytes of %d: %v", size, b.Len(), err)
		}
		got, err := format.OpenPack(bytes.NewReader(b.Bytes()), size, format.Limits{})
		if err != nil || len(got) != len(entries) {
			t.Fatalf("%v, %v", got, err)
		}
		for i, e := range got {
			if e != entries[i] {
				t.Fatalf("entry %d is %v, want %v", i, e, entries[i])
			}
			if !bytes.Equal(b.Bytes()[e.Offset:e.Offset+e.Length], files[i]) {
				t.Fatalf("feature file %d differs", i)
			}
			m, err := format.OpenFile(bytes.NewReader(b.Bytes()), int64(e.Offset), int64(e.Length), format.Limits{})
			if err != nil || m.Feature != e.Feature {
				t.Fatalf("%v, %v", m, err)
			}
		}
	})
}

// smallPack returns a pack of two feature files.
func smallPack(t testing.TB) []byte {
	var b bytes.Buffer
	w, err := format.NewPackWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	file, _ := smallFile(t)
	other := makeMonotone(10)
	second, _ := writeFile(fatal{t}, other.Type, format.WriterOptions{Feature: 2, Name: "n"}, other)
	for i, f := range [][]byte{file, second} {
		if _, err := w.Add(uint64(i+1), f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPackDamage(t *testing.T) {
	pack := smallPack(t)
	for n := range pack {
		if _, err := format.OpenPack(bytes.NewReader(pack[:n]), int64(n), format.Limits{}); !errors.Is(err,
			format.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	// Flips in header, directory and tail are found; those in a feature file are that file's to find.
	directory := len(pack) - 12 - int(binary.LittleEndian.Uint32(pack[len(pack)-12:]))
	for i := range len(pack) {
		if i >= 4 && i < directory {
			continue
		}
		for bit := range 8 {
			bad := bytes.Clone(pack)
			bad[i] ^= 1 << bit
			if _, err := format.OpenPack(bytes.NewReader(bad), int64(len(bad)), format.Limits{}); !errors.Is(err,
				format.ErrCorrupt) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}
