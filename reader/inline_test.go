package reader

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
)

// TestInline: where one small batch is left it is made without a run, and else by one, which looks no segment up again.
func TestInline(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		shape  plainShape
		batch  int
		from   uint64 // batch
		opts   Options
		inline bool
	}{
		{"a small table", plainShape{dense: 2, sparse: 1, segments: 1, stripes: 3, stripeRows: 10}, 30, 0, Options{},
			true},
		{"the rest of one", plainShape{dense: 2, sparse: 1, segments: 1, stripes: 3, stripeRows: 10}, 20, 1, Options{},
			true},
		{"two batches", plainShape{dense: 2, segments: 1, stripes: 3, stripeRows: 10}, 29, 0, Options{}, false},
		{"two segments", plainShape{dense: 2, segments: 2, stripes: 3, stripeRows: 10}, 100, 0, Options{}, false},
		{"much to read", plainShape{sparse: 4, segments: 1, stripes: 4, stripeRows: 2000}, 10000, 0, Options{}, false},
		{"little memory", plainShape{dense: 2, segments: 1, stripes: 3, stripeRows: 10}, 30, 0,
			Options{MemoryBudget: 1}, false},
	} {
		table := plainTable(t, c.shape)
		l := table.layout(indices(len(table.features)), c.batch, OutputColumns)
		opened := 0
		under := l.open
		l.open = countOpens(&opened, under)
		s := open(t, l, c.opts)
		if err := s.Seek(Position{Batch: c.from}); err != nil {
			t.Fatal(err)
		}
		rows := uint64(0)
		for {
			b, err := s.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if (s.run == nil) != c.inline {
				t.Errorf("%s: a run: %v", c.name, s.run != nil)
			}
			if b.Index != c.from+rows/uint64(c.batch) || b.FirstRow != c.from*uint64(c.batch)+rows {
				t.Errorf("%s: batch %d at row %d after %d rows", c.name, b.Index, b.FirstRow, rows)
			}
			rows += uint64(b.Rows)
			b.Release()
		}
		if want := l.Rows() - c.from*uint64(c.batch); rows != want {
			t.Errorf("%s: %d rows, want %d", c.name, rows, want)
		}
		if opened != c.shape.segments {
			t.Errorf("%s: %d segments looked up", c.name, opened)
		}
		s.Close()
	}
}

// TestInlineGoesOnAfterCancel: a caller who gives up before a slow store answers finds a run the next time.
func TestInlineGoesOnAfterCancel(t *testing.T) {
	table := plainTable(t, plainShape{dense: 2, segments: 1, stripes: 3, stripeRows: 10})
	ctx, cancel := context.WithCancel(context.Background())
	table.blobs.hook = func(inner context.Context, _ string, _ []byte, _ int64) error {
		cancel()
		return inner.Err()
	}
	s := open(t, table.layout([]int{0, 1}, 30, OutputColumns), Options{})
	defer s.Close()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	table.blobs.hook = nil
	b, err := s.Next(context.Background())
	if err != nil || b.Rows != 30 || s.run == nil {
		t.Fatal(err, s.run)
	}
	b.Release()
}

func countOpens(n *int, under func(context.Context, catalog.SegmentDescriptor) (segmentIndex, error),
) func(context.Context, catalog.SegmentDescriptor) (segmentIndex, error) {
	var mu sync.Mutex
	return func(ctx context.Context, d catalog.SegmentDescriptor) (segmentIndex, error) {
		mu.Lock()
		*n++
		mu.Unlock()
		return under(ctx, d)
	}
}
