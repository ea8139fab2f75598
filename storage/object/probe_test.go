package object_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// A service is a store that makes objects in parts, and may be careless: it looks whether there is an object, waits,
// and puts it.
type service struct {
	*object.Memory
	puts, parts bool // are careless
	careful     int  // uploads in parts before the first that is careless
	truncates   bool // whatever there is

	begun atomic.Int64 // uploads in parts
	put   sync.Mutex   // is held while an object takes the place of one

	unversioned, otherVersions bool // listings are
	backwards                  bool // listings of several objects are
	startsAt                   bool // the name, and not after it
}

func (s *service) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	if s.startsAt && startAfter != "" {
		startAfter = startAfter[:len(startAfter)-1]
	}
	return func(yield func(object.Info, error) bool) {
		var all []object.Info
		for info, err := range s.Memory.List(ctx, prefix, startAfter) {
			if all = append(all, info); err != nil {
				yield(info, err)
				return
			}
		}
		if s.backwards && len(all) == 3 { // the order of the first is right
			all[1], all[2] = all[2], all[1]
		}
		for _, info := range all {
			if s.unversioned {
				info.Version = ""
			}
			if s.otherVersions {
				info.Version = "list-" + info.Version
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *service) Truncate(ctx context.Context, of object.Info) error {
	if s.truncates {
		of.Version = ""
	}
	return s.Memory.Truncate(ctx, of)
}

func (s *service) replace(ctx context.Context, name string, data []byte) error {
	if _, err := s.Stat(ctx, name); err == nil {
		return fmt.Errorf("%w: %s", object.ErrExists, name)
	}
	time.Sleep(10 * time.Millisecond)
	s.put.Lock()
	defer s.put.Unlock()
	return errors.Join(s.Delete(ctx, name), s.Memory.PutIfAbsent(ctx, name, data))
}

func (s *service) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if s.puts {
		return s.replace(ctx, name, data)
	}
	return s.Memory.PutIfAbsent(ctx, name, data)
}

func (s *service) CreateInParts(ctx context.Context, name string) (object.Writer, error) {
	w, err := s.Create(ctx, name)
	if s.parts && err == nil && s.begun.Add(1) > int64(s.careful) {
		return &careless{Writer: w, s: s, name: name}, nil
	}
	return w, err
}

type careless struct {
	object.Writer
	s    *service
	name string
	data []byte
}

func (c *careless) Write(p []byte) (int, error) {
	c.data = append(c.data, p...)
	return len(p), nil
}

func (c *careless) Commit(ctx context.Context) error { return c.s.replace(ctx, c.name, c.data) }

// A service that lets several creations of a name succeed is told, also through a store that wraps it, and nothing of
// the probe stays.
func TestProbe(t *testing.T) {
	var n atomic.Int64
	name := func() string { return fmt.Sprintf("probe/%d", n.Add(1)) }
	for _, c := range []struct {
		s    *service
		want string // "": it is fit
	}{
		{&service{}, ""}, {&service{puts: true}, "32 creations by one request each"},
		{&service{parts: true}, "32 creations by uploads in parts"},
		{&service{parts: true, careful: 54}, "of 2 creations by uploads in parts"},
		{&service{truncates: true}, "(If-Match)"}, {&service{unversioned: true}, "ETag"},
		{&service{otherVersions: true}, "that a listing has"}, {&service{backwards: true}, "order of names"},
		{&service{startsAt: true}, "start-after"},
	} {
		c.s.Memory = object.NewMemory()
		err := object.Probe(t.Context(), object.NewCounted(c.s), name)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, object.ErrUnfit) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v", c.want, err)
		}
		for info := range c.s.List(t.Context(), "", "") {
			t.Errorf("%s is left", info.Name)
		}
	}
	if err := object.Probe(t.Context(), object.NewMemory(), func() string { panic("asked for a name") }); err != nil {
		t.Error(err)
	}
}
