package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

func TestNewAnswer(t *testing.T) {
	for _, c := range []struct {
		length     int64
		header     string
		from, size int64
	}{
		{10, "", 0, 10}, {-1, "", 0, -1}, {5, "bytes 5-9/10", 5, 10}, {5, "bytes 5-9/*", 5, -1},
		{5, "bytes */10", -1, 10}, {5, "bytes -5-9/-10", -1, -1}, {5, "nonsense", -1, -1},
	} {
		a := NewAnswer(io.NopCloser(strings.NewReader("")), c.length, c.header, "")
		if a.From != c.from || a.Size != c.size || a.Length != c.length {
			t.Errorf("%d, %q: %+v", c.length, c.header, a)
		}
	}
}

// service has one object, and answers with at most so many bytes of what it says it sends; -1: all.
type service struct {
	data  []byte
	sends []int
	asked int
}

func (s *service) get(_ context.Context, _, _ string, off, n int64) (Answer, error) {
	if off >= int64(len(s.data)) {
		return Answer{}, io.EOF
	}
	part := s.data[off:min(off+n, int64(len(s.data)))]
	body := part
	if s.asked < len(s.sends) && s.sends[s.asked] >= 0 {
		body = part[:min(s.sends[s.asked], len(part))]
	}
	s.asked++
	header := fmt.Sprintf("bytes %d-%d/%d", off, off+int64(len(part))-1, len(s.data))
	return NewAnswer(io.NopCloser(bytes.NewReader(body)), int64(len(part)), header, ""), nil
}

func TestReadAt(t *testing.T) {
	data := []byte("0123456789")
	for _, c := range []struct {
		off, n int
		sends  []int
		asked  int
		err    error
	}{
		{0, 10, nil, 1, nil}, {3, 4, []int{1, 0, 2}, 4, nil}, {8, 2, nil, 1, nil},
		{8, 3, nil, 1, io.ErrUnexpectedEOF}, {8, 3, []int{1}, 2, io.ErrUnexpectedEOF},
		{10, 1, nil, 0, io.ErrUnexpectedEOF},
		{0, 10, []int{0, 0, 0, 0}, 5, nil}, {0, 10, []int{0, 0, 0, 0, 0}, 5, errBody},
		{0, 10, []int{0, 0, 0, 0, 1, 0, 0, 0, 0}, 10, nil}, // while it goes on it is asked
	} {
		s := &service{data: data, sends: c.sends}
		got := make([]byte, c.n)
		err := (&Reader{Get: s.get}).ReadAt(t.Context(), "a", got, int64(c.off))
		if !errors.Is(err, c.err) || s.asked != c.asked || err == nil && !bytes.Equal(got, data[c.off:c.off+c.n]) {
			t.Errorf("%+v: asked %d times: %q, %v", c, s.asked, got, err)
		}
	}
	if err := (&Reader{Get: (&service{}).get}).ReadAt(t.Context(), "a", make([]byte, 1), -1); err == nil {
		t.Error("a negative offset")
	}
}

func TestMade(t *testing.T) {
	denied := fmt.Errorf("object a: %w", object.ErrDenied)
	lost, missing := errors.New("lost"), fmt.Errorf("%w: a", object.ErrNotFound)
	for _, c := range []struct {
		err    error
		exists bool
		id     string
		idErr  error
		want   error
	}{
		{nil, false, "other", nil, nil}, {lost, false, "mine", nil, nil}, {lost, true, "mine", nil, nil},
		{lost, false, "other", nil, object.ErrExists}, {lost, true, "", nil, object.ErrExists},
		{lost, false, "", missing, lost}, {lost, false, "", denied, lost}, {lost, true, "", denied, object.ErrDenied},
	} {
		err := Made("a", "mine", c.err, c.exists, func() (string, error) { return c.id, c.idErr })
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	err := Made("a", "mine", lost, true, func() (string, error) { return "", missing })
	if err == nil || errors.Is(err, object.ErrNotFound) || errors.Is(err, object.ErrExists) {
		t.Errorf("deleted meanwhile: %v", err)
	}
}

// A service may answer a range by its first part (RFC 9110, 15.3.7): the rest is asked for.
func TestPartsOfRanges(t *testing.T) {
	all := bytes.Repeat([]byte("0123456789"), 10)
	requests := 0
	r := &Reader{Get: func(_ context.Context, _, _ string, off, n int64) (Answer, error) {
		requests++
		if off >= int64(len(all)) {
			return Answer{}, io.EOF
		}
		part := all[off:min(off+min(n, 40), int64(len(all)))]
		return NewAnswer(io.NopCloser(bytes.NewReader(part)), int64(len(part)),
			fmt.Sprintf("bytes %d-%d/%d", off, off+int64(len(part))-1, len(all)), ""), nil
	}}
	b, size, err := r.ReadWhole(t.Context(), "a", 1000)
	if err != nil || size != 100 || !bytes.Equal(b, all) || requests != 3 {
		t.Errorf("whole: %d of %d bytes by %d requests, %v", len(b), size, requests, err)
	}
	p := make([]byte, 120)
	if n, err := r.ReadUpTo(t.Context(), "a", p, 0); n != 100 || err != nil || !bytes.Equal(p[:n], all) {
		t.Errorf("up to the end: %d bytes, %v", n, err)
	}
	if err := r.ReadAt(t.Context(), "a", p, 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("beyond the end: %v", err)
	}
}

// What follows the beginning of an object is of the same version: one that is truncated meanwhile has no bytes.
func TestTruncatedMeanwhile(t *testing.T) {
	all, version := bytes.Repeat([]byte("x"), 2*whole), "1"
	var asked []string
	r := &Reader{Get: func(_ context.Context, _, want string, off, n int64) (Answer, error) {
		asked = append(asked, want)
		if want != "" && want != version {
			return Answer{}, object.Changed("a")
		}
		if off >= int64(len(all)) {
			return Answer{}, io.EOF
		}
		part, of := all[off:min(off+n, int64(len(all)))], version
		header := fmt.Sprintf("bytes %d-%d/%d", off, off+int64(len(part))-1, len(all))
		all, version = nil, "2"
		return NewAnswer(io.NopCloser(bytes.NewReader(part)), int64(len(part)), header, of), nil
	}}
	b, size, err := r.ReadWhole(t.Context(), "a", 1<<30)
	if err != nil || size != 0 || len(b) != 0 || !slices.Equal(asked, []string{"", "1", ""}) {
		t.Errorf("%d bytes of %d, %v, versions asked for %q", len(b), size, err, asked)
	}
}

// A service that takes no notice of the condition answers with another version.
func TestOtherVersion(t *testing.T) {
	r := &Reader{Get: func(context.Context, string, string, int64, int64) (Answer, error) {
		return NewAnswer(io.NopCloser(strings.NewReader("x")), 1, "", "2"), nil
	}}
	err := r.ReadVersion(t.Context(), object.Info{Name: "any key?", Version: "1"}, make([]byte, 1), 0)
	if !errors.Is(err, object.ErrChanged) {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	var r Refusals
	if r.Err() != nil {
		t.Error(r.Err())
	}
	for i := range 15 {
		name := fmt.Sprintf("o%d", i)
		r.Add(name, fmt.Errorf("object %s: %w", name, object.ErrDenied))
	}
	err := r.Err()
	want := "object o0: " + object.ErrDenied.Error() +
		"; refused too: o1, o2, o3, o4, o5, o6, o7, o8, o9, o10 and 4 more"
	if !errors.Is(err, object.ErrDenied) || err.Error() != want {
		t.Error(err)
	}
}

// ending is an upload whose context a test ends.
type ending struct {
	begin, atOnce func()
	completed     bool
}

func (e *ending) Put(context.Context, []byte) error { return nil }
func (e *ending) Begin(context.Context) error       { e.begin(); return nil }
func (e *ending) AtOnce() int                       { e.atOnce(); return 4 }
func (e *ending) Part(ctx context.Context, _ int, _ []byte) error {
	return ctx.Err()
}
func (e *ending) Complete(context.Context, int, []byte) error { e.completed = true; return nil }
func (e *ending) Abort(context.Context)                       {}

// A context that ends while no part is under way ends the upload: Write returns, and Commit leaves out no part.
func TestUploadEndsWithItsContext(t *testing.T) {
	for what, commits := range map[string]bool{"written": false, "committed": true} {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		e := &ending{begin: func() {}, atOnce: func() {}}
		if commits {
			e.atOnce = func() {
				if asked++; asked == 2 { // the first is of Begin, this of the end
					cancel()
				}
			}
		} else {
			e.begin = cancel
		}
		w, err := NewUploadWriter(ctx, what, e)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write(make([]byte, PartBytes+1))
		if commits {
			if err != nil {
				t.Fatal(err)
			}
			err = w.Commit(t.Context())
		}
		if !errors.Is(err, context.Canceled) || e.completed {
			t.Errorf("%s: %v, completed: %v", what, err, e.completed)
		}
		w.Abort()
	}
}
