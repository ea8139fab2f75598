package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/storage/object"
)

// A Request is one request of an I/O task.
type Request struct {
	Task  *ioplan.IOTask
	Index int // in Task.Requests
}

// Load executes all requests of I/O tasks, several objects at a time, and decodes the dictionaries of tasks that lead.
func (x *Executor) Load(ctx context.Context, tasks ...*ioplan.IOTask) error {
	var names []string
	jobs := map[string][]Request{}
	for _, u := range tasks {
		x.Stats.CountTask(u)
		for i := range u.Requests {
			name := u.Ranges[u.Requests[i].Range].Object
			if jobs[name] == nil {
				names = append(names, name)
			}
			jobs[name] = append(jobs[name], Request{u, i})
		}
	}
	err := Parallel(len(names), x.opts.Requests, func(i int) error {
		select {
		case x.reads <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-x.reads }()
		return x.ReadRequests(ctx, names[i], jobs[names[i]]...)
	})
	if err != nil {
		return err
	}
	for _, u := range tasks {
		if u.Leads {
			if err := x.DecodeDictionaries(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// DecodeDictionaries decodes the dictionaries of u, which leads and whose bytes have been read.
func (x *Executor) DecodeDictionaries(u *ioplan.IOTask) error {
	w := x.scratches.Get()
	defer x.scratches.Put(w)
	return u.DecodeDictionaries(w.decoder)
}

// ReadRequests executes requests of one object together.
func (x *Executor) ReadRequests(ctx context.Context, name string, jobs ...Request) error {
	defer metering.Since(time.Now(), &x.Stats.Read)
	x.Stats.Requests.Add(uint64(len(jobs)))
	for _, j := range jobs {
		if err := x.allocate(ctx, j.Task, j.Task.Requests[j.Index].Range); err != nil {
			return err
		}
	}
	if len(jobs) > 1 {
		ranges := make([]object.Range, len(jobs))
		for i, j := range jobs {
			ranges[i].P, ranges[i].Off = j.target()
		}
		err := object.ReadRanges(ctx, x.src.Blobs, name, ranges...)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	for _, j := range jobs { // one by one, to find out which one fails
		buf, off := j.target()
		if err := x.src.Blobs.ReadAt(ctx, name, buf, off); err != nil {
			if damage := missing(name, off, off+int64(len(buf)), err); damage != nil {
				return damage
			}
			return fmt.Errorf("read of %s at %d: %w", name, off, err)
		}
	}
	return nil
}

// target returns the buffer of a request, and the offset in its object.
func (j Request) target() ([]byte, int64) {
	q := &j.Task.Requests[j.Index]
	r := &j.Task.Ranges[q.Range]
	return r.Bytes[q.From-r.From : q.To-r.From], int64(q.From)
}

// missing returns the ErrCorrupt of an object that is missing or ends before offset end, or nil where err says neither.
// The place is offset from; -1: none.
func missing(name string, from, end int64, err error) error {
	corrupt := &format.CorruptError{Object: name, Stripe: -1, Offset: from}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		corrupt.Reason = fmt.Sprintf("the object ends before offset %d", end)
	case errors.Is(err, object.ErrNotFound):
		corrupt.Reason = "object is missing"
	default:
		return nil
	}
	return corrupt
}

// checkObject checks that an object has all ranges of u in it. What it finds holds for all of them, also an error: else
// each would wait for a request of its own, one after the other.
func (x *Executor) checkObject(ctx context.Context, u *ioplan.IOTask, name string) error {
	end := uint64(0)
	for i := range u.Ranges {
		if r := &u.Ranges[i]; r.Object == name {
			end = max(end, r.To)
		}
	}
	err := object.CheckEnd(ctx, x.src.Blobs, name, end)
	if err != nil {
		if damage := missing(name, -1, int64(end), err); damage != nil {
			err = damage
		} else {
			err = fmt.Errorf("size of %s: %w", name, err)
		}
	}
	for i := range u.Ranges {
		if r := &u.Ranges[i]; r.Object == name {
			r.Checked, r.Err = true, err
		}
	}
	return err
}

// allocate allocates the buffer of a range of u, unless another request has done so.
func (x *Executor) allocate(ctx context.Context, u *ioplan.IOTask, rng int32) error {
	u.Mu.Lock()
	defer u.Mu.Unlock()
	f := &u.Ranges[rng]
	if f.Bytes != nil {
		return nil
	}
	// Damaged metadata must not allocate what the objects do not have, however many ranges it is. What a task may have
	// anyway needs no request.
	if u.Stored > uint64(u.Sizes.Memory) && !f.Checked {
		if err := x.checkObject(ctx, u, f.Object); err != nil {
			return err
		}
	}
	if f.Err != nil {
		return f.Err
	}
	f.Bytes = x.buffers.Get(int(f.To - f.From))
	return nil
}
