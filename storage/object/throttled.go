package object

import (
	"context"
	"sync"
	"time"
)

// Throttled is a Store through which no more than a number of bytes a second are read, and as many written, on average:
// what works in the background leaves the rest of the machine's to others.
type Throttled struct {
	Store
	reads, writes pace
}

// NewThrottled returns a Throttled over s; the rate must be above 0.
func NewThrottled(s Store, bytesPerSecond int64) *Throttled {
	t := &Throttled{Store: s}
	for _, p := range []*pace{&t.reads, &t.writes} {
		*p = pace{rate: float64(bytesPerSecond), now: time.Now, sleep: sleep}
	}
	return t
}

// Unwrap returns the store under it.
func (t *Throttled) Unwrap() Store { return t.Store }

// A pace lets bytes pass at a rate. Safe for concurrent use.
type pace struct {
	rate  float64 // bytes a second
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	mu   sync.Mutex
	free time.Time // when all that was let through has passed; guarded by mu
}

// pass waits until n bytes may pass, or returns ctx.Err().
func (p *pace) pass(ctx context.Context, n int) error {
	p.mu.Lock()
	now := p.now()
	if p.free.Before(now) {
		p.free = now
	}
	wait := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	p.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return p.sleep(ctx, wait)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Throttled) First(ctx context.Context, prefix, startAfter string) (Info, bool, error) {
	return First(ctx, t.Store, prefix, startAfter)
}

func (t *Throttled) DeleteAll(ctx context.Context, names []string) error {
	return DeleteAll(ctx, t.Store, names)
}

func (t *Throttled) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	if err := t.reads.pass(ctx, len(p)); err != nil {
		return err
	}
	return t.Store.ReadAt(ctx, name, p, off)
}

// ReadWhole passes when it is known how much was read.
func (t *Throttled) ReadWhole(ctx context.Context, name string, most int64) ([]byte, int64, error) {
	b, size, err := ReadWhole(ctx, t.Store, name, most)
	if err == nil {
		err = t.reads.pass(ctx, len(b))
	}
	return b, size, err
}

func (t *Throttled) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if err := t.writes.pass(ctx, len(data)); err != nil {
		return err
	}
	return t.Store.PutIfAbsent(ctx, name, data)
}

func (t *Throttled) Create(ctx context.Context, name string) (Writer, error) {
	w, err := t.Store.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &throttledWriter{Writer: w, ctx: ctx, writes: &t.writes}, nil
}

type throttledWriter struct {
	Writer
	ctx    context.Context // of Create
	writes *pace
}

func (w *throttledWriter) Write(p []byte) (int, error) {
	if err := w.writes.pass(w.ctx, len(p)); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
