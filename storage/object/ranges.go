package object

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
)

// A Range is a part of an object to read: P is filled from offset Off on.
type Range struct {
	P   []byte
	Off int64
}

// LargeRead is the size from which on a length that was read from stored bytes is checked with CheckEnd before it sizes
// a buffer. What is shorter is cheaper to allocate in vain than to ask for. A scan has many buffers, and so checks by
// their sum instead.
const LargeRead = 8 << 20

// CheckEnd returns io.ErrUnexpectedEOF unless an object has at least end bytes: one Stat.
func CheckEnd(ctx context.Context, s Store, name string, end uint64) error {
	info, err := s.Stat(ctx, name)
	if err == nil && end > uint64(info.Size) {
		err = fmt.Errorf("object %s of %d bytes: it should have %d: %w", name, info.Size, end, io.ErrUnexpectedEOF)
	}
	return err
}

// parallelRanges is how many reads of one ReadRanges are under way at once.
const parallelRanges = 64

// rangeReader is a Store that reads several ranges of one object better than by a ReadAt each.
type rangeReader interface {
	readRanges(ctx context.Context, name string, ranges []Range) error
}

// ReadRanges fills all ranges of one object, several at a time. Each is a request of its own; its errors are ReadAt's.
// After an error any of the ranges may have been written.
func ReadRanges(ctx context.Context, s Store, name string, ranges ...Range) error {
	if len(ranges) == 1 {
		return s.ReadAt(ctx, name, ranges[0].P, ranges[0].Off)
	}
	if r, ok := s.(rangeReader); ok {
		return r.readRanges(ctx, name, ranges)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelRanges)
	for _, r := range ranges {
		g.Go(func() error { return s.ReadAt(gctx, name, r.P, r.Off) })
	}
	return g.Wait()
}

// readRanges opens the file once, tells the system of all ranges, so that it fetches them together, and then takes
// each: as quick from a cold disk as many threads, and without them.
func (l *Local) readRanges(ctx context.Context, name string, ranges []Range) error {
	for _, r := range ranges {
		if err := checkRange(name, r.Off); err != nil {
			return err
		}
	}
	if tried, err := l.readPlain(ctx, name, ranges); tried {
		return err
	}
	f, err := l.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(ranges) > 1 {
		for _, r := range ranges {
			// Advice only: what comes of it, the reads show.
			_ = f.Prefetch(r.Off, int64(len(r.P)))
		}
	}
	for _, r := range ranges {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.ReadAt(r.P, r.Off)
		switch {
		case n == len(r.P):
		case err == nil || errors.Is(err, io.EOF):
			return shortRead(name, len(r.P), r.Off, r.Off+int64(n))
		default:
			if info, serr := f.Stat(); serr == nil && info.IsDir() {
				return notFound(name)
			}
			return fmt.Errorf("object %s: %w", name, err)
		}
	}
	return nil
}

func (c *Counted) readRanges(ctx context.Context, name string, ranges []Range) error {
	for _, r := range ranges {
		c.reads.Add(1)
		c.bytesRead.Add(int64(len(r.P)))
	}
	err := ReadRanges(ctx, c.Store, name, ranges...)
	if err != nil {
		// How many of the others were made, and how they ended, nobody knows.
		return c.ended.end(opRead, err)
	}
	for range ranges {
		c.ended.end(opRead, nil)
	}
	return nil
}
