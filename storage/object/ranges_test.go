package object

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
)

// TestReadRanges: every store gives the same bytes and errors for many ranges as for one, and a Counted counts each.
func TestReadRanges(t *testing.T) {
	ctx := t.Context()
	data := make([]byte, 10_000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	local, err := NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	counted := NewCounted(local)
	for name, s := range map[string]Store{"local": local, "memory": NewMemory(), "counted": counted,
		"fault": NewFault(NewMemory())} {
		if err := s.PutIfAbsent(ctx, "a/"+name, data); err != nil {
			t.Fatal(name, err)
		}
		var ranges []Range
		for i := range 40 {
			ranges = append(ranges, Range{P: make([]byte, i*5), Off: int64(i * 211)})
		}
		if err := ReadRanges(ctx, s, "a/"+name, ranges...); err != nil {
			t.Fatal(name, err)
		}
		for _, r := range ranges {
			if !bytes.Equal(r.P, data[r.Off:r.Off+int64(len(r.P))]) {
				t.Fatalf("%s: wrong bytes at %d", name, r.Off)
			}
		}
		ranges[3].Off = int64(len(data)) - 1
		if err := ReadRanges(ctx, s, "a/"+name, ranges...); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(name, err)
		}
		if err := ReadRanges(ctx, s, "a/none", ranges...); !errors.Is(err, ErrNotFound) {
			t.Fatal(name, err)
		}
		if err := ReadRanges(ctx, s, "a", ranges...); !errors.Is(err, ErrNotFound) {
			t.Fatal(name, err)
		}
		if err := ReadRanges(ctx, s, "a/"+name, Range{P: make([]byte, 1)}, Range{Off: -1}); err == nil {
			t.Fatal(name, "read at a negative offset")
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := ReadRanges(ended, s, "a/"+name, ranges[:3]...); !errors.Is(err, context.Canceled) {
			t.Fatal(name, err)
		}
	}
	if c := counted.Counts(); c.Reads < 80 {
		t.Fatalf("%+v", c)
	}
}
