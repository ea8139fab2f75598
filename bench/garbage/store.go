package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// A store is a service in memory: requests take some time, a listing so long for each page of 1,000 names, and one
// request deletes up to 1,000 objects.
type store struct {
	tables *object.Memory
	data   [256]*object.Memory // by the two digits that names begin with
	page   time.Duration
	pages  atomic.Int64
	wait   bool // requests take time
}

func newStore(page time.Duration) *store {
	s := &store{tables: object.NewMemory(), page: page}
	for i := range s.data {
		s.data[i] = object.NewMemory()
	}
	return s
}

const pageNames = 1000

func (s *store) URI() string       { return "memory" }
func (s *store) HighLatency() bool { return true }

// of returns the part that has a name, after the time that a request takes.
func (s *store) of(name string) *object.Memory {
	if s.wait {
		time.Sleep(s.page)
	}
	return s.part(name)
}

func (s *store) part(name string) *object.Memory {
	var i int
	if n, err := fmt.Sscanf(name[:min(len(name), 3)], "%02x/", &i); n == 1 && err == nil {
		return s.data[i]
	}
	return s.tables
}

func (s *store) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	return s.of(name).ReadAt(ctx, name, p, off)
}

func (s *store) Stat(ctx context.Context, name string) (object.Info, error) {
	return s.of(name).Stat(ctx, name)
}

func (s *store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return s.of(name).PutIfAbsent(ctx, name, data)
}

func (s *store) Create(ctx context.Context, name string) (object.Writer, error) {
	return s.of(name).Create(ctx, name)
}

func (s *store) Delete(ctx context.Context, name string) error { return s.of(name).Delete(ctx, name) }

func (s *store) Truncate(ctx context.Context, of object.Info) error {
	return s.of(of.Name).Truncate(ctx, of)
}

// DeleteAll deletes 1,000 objects by each request.
func (s *store) DeleteAll(ctx context.Context, names []string) error {
	requests := (len(names) + pageNames - 1) / pageNames
	return object.Parallel(ctx, object.RequestsAtOnce, requests, func(ctx context.Context, i int) error {
		time.Sleep(s.page)
		for _, name := range names[i*pageNames : min((i+1)*pageNames, len(names))] {
			if err := s.part(name).Delete(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// List takes its time for each page.
func (s *store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		n := 0
		parts := []*object.Memory{s.part(prefix)}
		if parts[0] == s.tables && len(prefix) < 2 {
			parts = nil
			for i, part := range s.data {
				if strings.HasPrefix(fmt.Sprintf("%02x", i), prefix) {
					parts = append(parts, part)
				}
			}
			parts = append(parts, s.tables)
		}
		for _, part := range parts {
			for info, err := range part.List(ctx, prefix, startAfter) {
				if n%pageNames == 0 && s.wait {
					s.pages.Add(1)
					time.Sleep(s.page)
				}
				if n++; !yield(info, err) {
					return
				}
			}
		}
		if n == 0 && s.wait {
			time.Sleep(s.page)
		}
	}
}
