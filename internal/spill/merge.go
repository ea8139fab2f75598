package spill

import "io"

// A Stream gives entries in order. Head is the next one, nil at the end. It is borrowed until Advance, which is not
// called at the end.
type Stream[T any] interface {
	Head() *T
	Advance() error
}

// A Merge merges streams into one: a binary heap by head.
type Merge[T any] struct {
	heap    []Stream[T] // none at its end
	compare func(a, b *T) int
}

// NewMerge returns the entries of all streams in the order of compare, which finds no two equal.
func NewMerge[T any](compare func(a, b *T) int, streams []Stream[T]) *Merge[T] {
	m := &Merge[T]{compare: compare}
	for _, s := range streams {
		if s.Head() != nil {
			m.heap = append(m.heap, s)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

// Head implements Stream.
func (m *Merge[T]) Head() *T {
	if len(m.heap) == 0 {
		return nil
	}
	return m.heap[0].Head()
}

// Advance implements Stream.
func (m *Merge[T]) Advance() error {
	if err := m.heap[0].Advance(); err != nil {
		return err
	}
	if m.heap[0].Head() == nil {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
	return nil
}

func (m *Merge[T]) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heap); c++ {
			if m.compare(m.heap[c].Head(), m.heap[least].Head()) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// Runs are the sorted runs of an external sort, by level: how many merges their entries have been through. The zero
// value is empty.
//
//	level 0   run run run    fan-in runs of a level are merged into one of the next, so that an entry is
//	level 1   run run        written log(runs) / log(fan-in) times, and less than fan-in runs a level are open
//	level 2   run
type Runs[R io.Closer] struct{ levels [][]R }

// Add takes a run over. Where fanIn runs of a level are there, merge makes one of them, which takes their place; what
// merge gets stays open while it runs, and stays when it fails.
func (r *Runs[R]) Add(run R, fanIn int, merge func([]R) (R, error)) error {
	for level := 0; ; level++ {
		if level == len(r.levels) {
			r.levels = append(r.levels, nil)
		}
		r.levels[level] = append(r.levels[level], run)
		if len(r.levels[level]) < fanIn {
			return nil
		}
		merged, err := merge(r.levels[level])
		if err != nil {
			return err
		}
		closeAll(r.levels[level])
		r.levels[level], run = nil, merged
	}
}

// All returns the runs, those of level 0 first.
func (r *Runs[R]) All() []R {
	var all []R
	for _, level := range r.levels {
		all = append(all, level...)
	}
	return all
}

// Close closes the runs. There are none then.
func (r *Runs[R]) Close() {
	closeAll(r.All())
	r.levels = nil
}

func closeAll[R io.Closer](runs []R) {
	for _, run := range runs {
		_ = run.Close()
	}
}
