package report

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format/encoding"
)

const (
	// stripesAtOnce is how many first stripes are read at once, and headBytes how much of each: what lies behind it is
	// described as far as its head says.
	stripesAtOnce = 16
	headBytes     = 1 << 20
	// checksumBytes are a stream's last.
	checksumBytes = 4
)

// encodings says of the features listed how the streams of a stripe are encoded.
func (b *builder) encodings(ctx context.Context) error {
	byID := make(map[string]*feature, len(b.c.order))
	for _, f := range b.c.order {
		byID[idText(f.ID)] = f
	}
	blobs := b.t.Store().Blobs()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(stripesAtOnce)
	for i := range b.out.Features {
		out := &b.out.Features[i]
		first := byID[out.ID].first
		if len(first.streams) == 0 {
			continue
		}
		g.Go(func() error {
			size := uint64(0)
			for _, s := range first.streams {
				size += s.Length
			}
			buf := make([]byte, min(size, headBytes))
			if err := blobs.ReadAt(ctx, first.object, buf, int64(first.offset)); err != nil {
				return err
			}
			at := uint64(0)
			for _, s := range first.streams {
				head := buf[min(at, uint64(len(buf))):min(at+s.Length-min(s.Length, checksumBytes), uint64(len(buf)))]
				out.Encodings = append(out.Encodings, StreamEncoding{s.Kind.String(), s.Length,
					encoding.Describe(head)})
				at += s.Length
			}
			return nil
		})
	}
	return g.Wait()
}
