package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/internal/spill"
	"github.com/dsistore/dsistore/storage/object"
	"golang.org/x/sync/errgroup"
)

const (
	requestBytes = 8 << 20
	// joinedGap is how many bytes that nobody asked for are read rather than make two requests.
	joinedGap = 1 << 20
	// requestsAtOnce is how many requests of one file are under way, whose bytes are in memory.
	requestsAtOnce = 2
	// endBytes are read together where some of them are: footers lie there, and all of a small file.
	endBytes = 256 << 10
)

// remote is a File that is an object.
type remote struct {
	ctx context.Context // of its Open: reads have none
	at  *bucket
	of  *described
	dir func() (string, error)

	mu  sync.Mutex // held while the end is read
	end []byte     // of the object; nil: not read

	parts []part // of the last Fetch, by offset
	disk  *spill.File
}

// A part is bytes of an object that were read: they are in memory, or in the temporary file.
type part struct {
	Range
	mem  []byte // nil: they lie at disk
	disk int64
}

func (r *remote) Size() int64 { return r.of.Size }

// read fills p with the object's bytes as they were when it was described, by one request.
func (b *bucket) read(ctx context.Context, of *described, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	err := b.in.ReadAt(ctx, of.Info, p, off)
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.Is(err, object.ErrChanged):
		err = fmt.Errorf("%w: it was replaced since it was listed; ingest it once it stays as it is", err)
	case errors.Is(err, object.ErrNotFound):
		err = fmt.Errorf("%w: it was deleted since it was listed", err)
	}
	return of.failed(fmt.Errorf("%w: %w", ErrUnread, err))
}

// ReadAt reads from what was fetched, else from the end of the object, else by a request.
func (r *remote) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= r.of.Size {
		return 0, io.EOF
	}
	var short error
	if left := r.of.Size - off; int64(len(p)) > left {
		p, short = p[:left], io.EOF
	}
	i, exact := slices.BinarySearchFunc(r.parts, off, func(a part, off int64) int { return cmp.Compare(a.Off, off) })
	if !exact {
		i--
	}
	if i >= 0 && off+int64(len(p)) <= r.parts[i].Off+r.parts[i].Len {
		at := off - r.parts[i].Off
		if r.parts[i].mem != nil {
			return copy(p, r.parts[i].mem[at:]), short
		}
		if n, err := r.disk.ReadAt(p, r.parts[i].disk+at); err != nil {
			return n, fmt.Errorf("a temporary file: %w", err)
		}
		return len(p), short
	}
	if from := max(0, r.of.Size-endBytes); off >= from {
		end, err := r.readEnd(from)
		if err != nil {
			return 0, err
		}
		return copy(p, end[off-from:]), short
	}
	if err := r.at.read(r.ctx, r.of, p, off); err != nil {
		return 0, err
	}
	return len(p), short
}

// readEnd returns the bytes from an offset on, which are read once.
func (r *remote) readEnd(from int64) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end == nil {
		end := make([]byte, r.of.Size-from)
		if err := r.at.read(r.ctx, r.of, end, from); err != nil {
			return nil, err
		}
		r.end = end
	}
	return r.end, nil
}

// joined returns what to read to have ranges of a file of a size: those with small gaps together, by offset.
func joined(ranges []Range, size int64) (out []Range) {
	byOffset := func(a, b Range) int { return cmp.Compare(a.Off, b.Off) }
	for _, r := range slices.SortedFunc(slices.Values(ranges), byOffset) {
		if r.Off < 0 || r.Off >= size || r.Len <= 0 { // damage: its reader says so
			continue
		}
		end := r.Off + min(r.Len, size-r.Off)
		if n := len(out) - 1; n >= 0 && r.Off <= out[n].Off+out[n].Len+joinedGap {
			out[n].Len = max(out[n].Len, end-out[n].Off)
		} else {
			out = append(out, Range{r.Off, end - r.Off})
		}
	}
	return out
}

// Fetch reads what holds the ranges, by requests of at most requestBytes.
func (r *remote) Fetch(ranges []Range, memory int64) error {
	r.parts = nil
	asked, total := joined(ranges, r.of.Size), int64(0)
	for _, a := range asked {
		total += a.Len
	}
	if len(asked) == 0 || r.end != nil && asked[0].Off >= r.of.Size-int64(len(r.end)) {
		return nil // all of it is at the end
	}
	inMemory := total <= memory
	if !inMemory {
		if err := r.openDisk(); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(r.ctx)
	g.SetLimit(requestsAtOnce)
	var parts []part
	for _, a := range asked {
		p := part{Range: a}
		if inMemory {
			p.mem = make([]byte, a.Len)
		} else {
			p.disk = r.disk.Claim(a.Len)
		}
		parts = append(parts, p)
		n := (a.Len + requestBytes - 1) / requestBytes
		each := (a.Len + n - 1) / n
		for at := int64(0); at < a.Len; at += each {
			g.Go(func() error { return r.fetch(ctx, &p, at, min(each, a.Len-at)) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.parts = parts
	return nil
}

// openDisk makes the temporary file empty, and makes it where there is none.
func (r *remote) openDisk() (err error) {
	if r.disk != nil {
		r.disk.Rewind()
		return nil
	}
	at, err := r.dir()
	if err == nil {
		r.disk, err = spill.Create(at)
	}
	return err
}

// fetch reads n bytes of a part from an offset in it on.
func (r *remote) fetch(ctx context.Context, p *part, at, n int64) error {
	if p.mem != nil {
		return r.at.read(ctx, r.of, p.mem[at:at+n], p.Off+at)
	}
	b := make([]byte, n)
	if err := r.at.read(ctx, r.of, b, p.Off+at); err != nil {
		return err
	}
	_, err := r.disk.WriteAt(b, p.disk+at)
	return err
}

// Spool reads the whole object into the temporary file.
func (r *remote) Spool() (*os.File, error) {
	if int64(len(r.end)) == r.of.Size { // a small file, which was read
		if err := r.openDisk(); err != nil {
			return nil, err
		}
		_, err := r.disk.Append(r.end)
		return r.disk.File, err
	}
	if err := r.Fetch([]Range{{0, r.of.Size}}, -1); err != nil {
		return nil, err
	}
	return r.disk.File, nil
}

// Close frees what was read.
func (r *remote) Close() error {
	r.parts, r.end = nil, nil
	if r.disk == nil {
		return nil
	}
	disk := r.disk
	r.disk = nil
	return disk.Close()
}
