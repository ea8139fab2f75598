package object

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
)

// TestThrottled: by a clock that only sleeping moves, so many bytes take their time, reads and writes each by
// themselves, and no longer.
func TestThrottled(t *testing.T) {
	ctx := t.Context()
	s := NewThrottled(NewMemory(), 1000)
	clock := time.Unix(0, 0)
	var slept time.Duration
	for _, p := range []*pace{&s.reads, &s.writes} {
		p.now = func() time.Time { return clock }
		p.sleep = func(ctx context.Context, d time.Duration) error {
			clock, slept = clock.Add(d), slept+d
			return ctx.Err()
		}
	}
	for i, want := range []time.Duration{0, 500 * time.Millisecond, time.Second} {
		if err := s.PutIfAbsent(ctx, "a/"+string(rune('a'+i)), make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
		if slept != want {
			t.Fatalf("slept %v before the end of put %d: want %v", slept, i, want)
		}
	}
	w, err := s.Create(ctx, "b/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte{7}, 2000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if slept != 1500*time.Millisecond {
		t.Fatalf("slept %v before the write: want 1.5 s", slept)
	}
	p := make([]byte, 2000)
	if err := s.ReadAt(ctx, "b/b", p, 0); err != nil || p[1999] != 7 || slept != 1500*time.Millisecond {
		t.Fatalf("a first read slept until %v: %v", slept, err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.ReadAt(done, "b/b", p, 0); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
