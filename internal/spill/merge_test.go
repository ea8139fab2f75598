package spill

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A memoryRun is a run in memory.
type memoryRun struct {
	values []int
	closed *int
}

func (r *memoryRun) Close() error { *r.closed++; return nil }

type memoryStream struct{ left []int }

func (s *memoryStream) Head() *int {
	if len(s.left) == 0 {
		return nil
	}
	return &s.left[0]
}
func (s *memoryStream) Advance() error { s.left = s.left[1:]; return nil }

func merged(t *rapid.T, runs []*memoryRun) []int {
	var streams []Stream[int]
	for _, r := range runs {
		streams = append(streams, &memoryStream{r.values})
	}
	m := NewMerge(func(a, b *int) int { return cmp.Compare(*a, *b) }, streams)
	var out []int
	for m.Head() != nil {
		out = append(out, *m.Head())
		if err := m.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestRuns: runs that are merged as they come hold what was added, in order; few are open; all are closed, also after a
// merge failed.
func TestRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fanIn := rapid.IntRange(2, 5).Draw(t, "fan-in")
		var runs Runs[*memoryRun]
		var want []int
		made, closed, merges, failed := 0, 0, 0, false
		for !failed && made < 200 && rapid.IntRange(0, 30).Draw(t, "more") > 0 {
			values := rapid.SliceOfN(rapid.Int(), 0, 5).Draw(t, "values")
			slices.Sort(values)
			want = append(want, values...)
			made++
			err := runs.Add(&memoryRun{values, &closed}, fanIn, func(of []*memoryRun) (*memoryRun, error) {
				if len(of) != fanIn {
					t.Fatalf("%d runs merged, want %d", len(of), fanIn)
				}
				if merges++; rapid.IntRange(0, 50).Draw(t, "merge fails") == 0 {
					return nil, errors.New("disk full")
				}
				made++
				return &memoryRun{merged(t, of), &closed}, nil
			})
			failed = err != nil
			if open := made - closed; !failed && open >= fanIn*len(runs.levels) {
				t.Fatalf("%d runs of %d levels are open", open, len(runs.levels))
			}
		}
		if !failed {
			slices.Sort(want)
			if got := merged(t, runs.All()); !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
		if runs.Close(); closed != made {
			t.Fatalf("%d of %d runs are closed", closed, made)
		}
	})
}

// TestReadBlock: a byte that changed, and bytes that are not there, are damage.
func TestReadBlock(t *testing.T) {
	f, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Append([]byte("before")); err != nil {
		t.Fatal(err)
	}
	block := []byte("some bytes")
	at, err := f.Append(block)
	if err != nil || at != 6 || f.Size() != 16 {
		t.Fatalf("at %d of %d: %v", at, f.Size(), err)
	}
	got := make([]byte, len(block))
	if err := f.ReadBlock(got, at, Checksum(block)); err != nil || string(got) != string(block) {
		t.Fatalf("%q, %v", got, err)
	}
	if err := f.ReadBlock(got, at+1, Checksum(block)); !errors.Is(err, ErrDamaged) {
		t.Fatalf("beyond the end: %v", err)
	}
	if _, err := f.WriteAt([]byte{'S'}, at); err != nil {
		t.Fatal(err)
	}
	if err := f.ReadBlock(got, at, Checksum(block)); !errors.Is(err, ErrDamaged) {
		t.Fatalf("changed: %v", err)
	}
}
