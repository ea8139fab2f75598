package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/storage/object"
)

// A fetchJob is one request of a unit.
type fetchJob struct {
	unit  *load.IOTask
	index int // of the request
}

// load reads all requests of units, several objects at a time, and decodes the dictionaries that the units lead.
func (x *executor) load(ctx context.Context, units ...*load.IOTask) error {
	var names []string
	jobs := map[string][]fetchJob{}
	for _, u := range units {
		x.stats.count(u)
		for i := range u.Requests {
			name := u.Ranges[u.Requests[i].Range].Object
			if jobs[name] == nil {
				names = append(names, name)
			}
			jobs[name] = append(jobs[name], fetchJob{u, i})
		}
	}
	read := func(name string) error {
		select {
		case x.reads <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-x.reads }()
		return x.readRequests(ctx, name, jobs[name]...)
	}
	if len(names) == 1 {
		if err := read(names[0]); err != nil {
			return err
		}
	} else {
		errs := make([]error, len(names))
		var g errgroup.Group
		g.SetLimit(x.opts.Requests)
		for i, name := range names {
			g.Go(func() error {
				errs[i] = read(name)
				return nil
			})
		}
		_ = g.Wait()
		if err := firstError(errs); err != nil {
			return err
		}
	}
	d := x.decoder()
	defer x.decoders.put(d)
	for _, u := range units {
		if u.Leads {
			if err := u.DecodeDictionaries(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// readRequests does requests of one object, together.
func (x *executor) readRequests(ctx context.Context, name string, jobs ...fetchJob) error {
	start := time.Now()
	defer func() { x.stats.read.Add(int64(time.Since(start))) }()
	x.stats.requests.Add(uint64(len(jobs)))
	for _, j := range jobs {
		if err := x.allocate(ctx, j.unit, j.unit.Requests[j.index].Range); err != nil {
			return err
		}
	}
	if len(jobs) > 1 {
		ranges := make([]object.Range, len(jobs))
		for i, j := range jobs {
			ranges[i].P, ranges[i].Off = j.target()
		}
		err := object.ReadRanges(ctx, x.layout.blobs, name, ranges...)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	for _, j := range jobs { // one by one, to know where reading fails
		buf, off := j.target()
		if err := x.layout.blobs.ReadAt(ctx, name, buf, off); err != nil {
			return readError(name, off, off+int64(len(buf)), err)
		}
	}
	return nil
}

// target returns the buffer of a request, and the offset in its object.
func (j fetchJob) target() ([]byte, int64) {
	q := &j.unit.Requests[j.index]
	r := &j.unit.Ranges[q.Range]
	return r.Bytes[q.From-r.From : q.To-r.From], int64(q.From)
}

// readError returns the error of a read of bytes [from, end) of an object.
func readError(name string, from, end int64, err error) error {
	corrupt := func(reason string) error {
		return &format.CorruptError{Object: name, Stripe: -1, Offset: from, Reason: reason}
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return corrupt(fmt.Sprintf("the object ends before offset %d", end))
	case errors.Is(err, object.ErrNotFound):
		return corrupt("object is missing")
	}
	return fmt.Errorf("read of %s at %d: %w", name, from, err)
}

// allocate gives a range of u its buffer, unless another request has.
func (x *executor) allocate(ctx context.Context, u *load.IOTask, rng int32) error {
	u.Mu.Lock()
	defer u.Mu.Unlock()
	f := &u.Ranges[rng]
	if f.Bytes != nil {
		return nil
	}
	if f.To-f.From > object.LargeRead { // damaged metadata must not allocate what the object does not have
		err := object.CheckEnd(ctx, x.layout.blobs, f.Object, f.To)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return &format.CorruptError{Object: f.Object, Stripe: -1, Offset: -1, Reason: fmt.Sprintf("the object ends before offset %d", f.To)}
		case err != nil:
			return fmt.Errorf("size of %s: %w", f.Object, err)
		}
	}
	f.Bytes = x.buffers.Get(int(f.To - f.From))
	return nil
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
