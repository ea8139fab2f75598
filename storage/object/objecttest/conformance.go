// Package objecttest holds every object.Store to its contract: one suite, run by each store's tests.
package objecttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// Conformance tests the store that open returns, a new and empty one each time. Tests named by but are left out.
func Conformance(t *testing.T, open func(t *testing.T) object.Store, but ...string) {
	for _, c := range [...]struct {
		name string
		test func(*testing.T, object.Store)
	}{
		{"PutAndRead", putAndRead}, {"PutIfAbsent", putIfAbsent}, {"Race", race}, {"Writer", writer},
		{"WriterRace", writerRace}, {"List", list}, {"Delete", deleteObject}, {"Names",
			names}, {"Cancelled", cancelled},
		{"NotFound", notFound}, {"Folder", folder}, {"Truncate", truncate}, {"TruncateVersion", truncateVersion},
		{"Whole", whole}, {"Upload", upload},
	} {
		if !slices.Contains(but, c.name) {
			t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
		}
	}
}

// Must ends the test with an error, if there is one.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want checks that err matches target and names the object.
func want(t *testing.T, err, target error, name string) {
	t.Helper()
	if !errors.Is(err, target) || name != "" && !strings.Contains(err.Error(), name) {
		t.Fatalf("got %v, want %v naming %q", err, target, name)
	}
}

// Content returns what an object holds.
func Content(t testing.TB, s object.Store, name string) []byte {
	t.Helper()
	info, err := s.Stat(t.Context(), name)
	Must(t, err)
	b := make([]byte, info.Size)
	Must(t, s.ReadAt(t.Context(), name, b, 0))
	return b
}

func putAndRead(t *testing.T, s object.Store) {
	ctx := t.Context()
	data := []byte("0123456789")
	Must(t, s.PutIfAbsent(ctx, "a/b/c", data))
	data[0] = 'x' // the store has copied
	info, err := s.Stat(ctx, "a/b/c")
	Must(t, err)
	if info.Name != "a/b/c" || info.Size != 10 || info.ModTime == 0 {
		t.Fatalf("%+v", info)
	}
	if got := Content(t, s, "a/b/c"); string(got) != "0123456789" {
		t.Fatalf("%q", got)
	}
	p := make([]byte, 3)
	Must(t, s.ReadAt(ctx, "a/b/c", p, 7))
	if string(p) != "789" {
		t.Fatalf("%q", p)
	}
	Must(t, s.ReadAt(ctx, "a/b/c", nil, 10))
	want(t, s.ReadAt(ctx, "a/b/c", p, 8), io.ErrUnexpectedEOF, "a/b/c")
	want(t, s.ReadAt(ctx, "a/b/c", p, 100), io.ErrUnexpectedEOF, "a/b/c")
	if err := s.ReadAt(ctx, "a/b/c", p, -1); err == nil {
		t.Fatal("read at a negative offset")
	}
	Must(t, s.PutIfAbsent(ctx, "empty", nil))
	if got := Content(t, s, "empty"); len(got) != 0 {
		t.Fatalf("%q", got)
	}
	if s.URI() == "" {
		t.Fatal("no uri")
	}
}

func putIfAbsent(t *testing.T, s object.Store) {
	ctx := t.Context()
	Must(t, s.PutIfAbsent(ctx, "a", []byte("first")))
	want(t, s.PutIfAbsent(ctx, "a", []byte("second, longer")), object.ErrExists, "a")
	if got := Content(t, s, "a"); string(got) != "first" {
		t.Fatalf("%q", got)
	}
}

func race(t *testing.T, s object.Store) {
	const writers, rounds = 8, 20
	for round := range rounds {
		name := fmt.Sprintf("race/%d", round)
		errs := make([]error, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() { errs[w] = s.PutIfAbsent(t.Context(), name, bytes.Repeat([]byte{byte(w)}, 1000)) })
		}
		wg.Wait()
		winner := -1
		for w, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("writers %d and %d both won", winner, w)
			case err == nil:
				winner = w
			default:
				want(t, err, object.ErrExists, name)
			}
		}
		if winner < 0 {
			t.Fatal("nobody won")
		}
		if got := Content(t, s, name); !bytes.Equal(got, bytes.Repeat([]byte{byte(winner)}, 1000)) {
			t.Fatalf("not the winner's bytes: %x", got[:10])
		}
	}
}

func writer(t *testing.T, s object.Store) {
	ctx := t.Context()
	w, err := s.Create(ctx, "w/1")
	Must(t, err)
	var all []byte
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		p := make([]byte, r.IntN(5000))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		all = append(all, p...)
		n, err := w.Write(p)
		Must(t, err)
		if n != len(p) {
			t.Fatal(n, len(p))
		}
	}
	_, err = s.Stat(ctx, "w/1")
	want(t, err, object.ErrNotFound, "w/1")
	Must(t, w.Commit(ctx))
	w.Abort() // does nothing
	if !bytes.Equal(Content(t, s, "w/1"), all) {
		t.Fatal("other bytes")
	}
	if err := w.Commit(ctx); err == nil {
		t.Fatal("committed twice")
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Fatal("written after commit")
	}
	w, err = s.Create(ctx, "w/2")
	Must(t, err)
	_, err = w.Write([]byte("dropped"))
	Must(t, err)
	w.Abort()
	w.Abort()
	_, err = s.Stat(ctx, "w/2")
	want(t, err, object.ErrNotFound, "w/2")
	for info, err := range s.List(ctx, "", "") {
		Must(t, err)
		if info.Name != "w/1" {
			t.Fatalf("left %s", info.Name)
		}
	}
}

func writerRace(t *testing.T, s object.Store) {
	ctx := t.Context()
	a, err := s.Create(ctx, "same")
	Must(t, err)
	b, err := s.Create(ctx, "same")
	Must(t, err)
	_, err = a.Write([]byte("a"))
	Must(t, err)
	_, err = b.Write([]byte("b"))
	Must(t, err)
	Must(t, b.Commit(ctx))
	want(t, a.Commit(ctx), object.ErrExists, "same")
	if got := Content(t, s, "same"); string(got) != "b" {
		t.Fatalf("%q", got)
	}
}

// list has names whose order as paths is not their order as bytes.
func list(t *testing.T, s object.Store) {
	ctx := t.Context()
	all := []string{
		"a", "a-b/x", "a.b", "a0", "aa/b", "b/1", "b/10", "b/2", "b/2.x", "b-/q", "b-c", "t/0/s/00001", "t/0/s/00002",
		"t/0/s/00003",
		"t/0-/s/00001", "t/00/s/1", "t/1/s/00001", "z%2F", "z+",
	}
	for _, n := range all {
		Must(t, s.PutIfAbsent(ctx, n, []byte(n)))
	}
	slices.Sort(all)
	froms := append([]string{"", "b/", "b0", "t/0/", "t/00", "t/0/s/00002", "t/0/s/000021", "zz", "a-", "t"}, all...)
	prefixes := append([]string{"", "b", "b/", "t/0", "t/0/", "t/0/s/", "t/0/s/0000", "nothing", "a-", "t/0/s/00001/"},
		all...)
	// A service takes milliseconds for a listing: of those with both a prefix and a name it is asked for every fourth.
	_, service := object.As[interface {
		CreateInParts(ctx context.Context, name string) (object.Writer, error)
	}](s)
	for p, prefix := range prefixes {
		for f, from := range froms {
			if service && prefix != "" && from != "" && (p+f)%4 > 0 {
				continue
			}
			var expect, got []string
			for _, n := range all {
				if strings.HasPrefix(n, prefix) && n > from {
					expect = append(expect, n)
				}
			}
			for info, err := range s.List(ctx, prefix, from) {
				Must(t, err)
				if info.Size != int64(len(info.Name)) || info.ModTime == 0 {
					t.Fatalf("%+v", info)
				}
				got = append(got, info.Name)
			}
			if !slices.Equal(got, expect) {
				t.Fatalf("list %q after %q: %q, want %q", prefix, from, got, expect)
			}
			first, ok, err := object.First(ctx, s, prefix, from)
			if Must(t, err); ok != (len(expect) > 0) || ok && first.Name != expect[0] {
				t.Fatalf("the first of %q after %q: %v, %q, want %q", prefix, from, ok, first.Name, expect)
			}
		}
	}
	n := 0
	for range s.List(ctx, "", "") {
		if n++; n == 3 {
			break
		}
	}
}

func deleteObject(t *testing.T, s object.Store) {
	ctx := t.Context()
	Must(t, s.PutIfAbsent(ctx, "d/1", []byte("x")))
	Must(t, s.Delete(ctx, "d/1"))
	_, err := s.Stat(ctx, "d/1")
	want(t, err, object.ErrNotFound, "d/1")
	Must(t, s.Delete(ctx, "d/1"))
	Must(t, s.PutIfAbsent(ctx, "d/1", []byte("y")))
	if got := Content(t, s, "d/1"); string(got) != "y" {
		t.Fatalf("%q", got)
	}
}

func names(t *testing.T, s object.Store) {
	ctx := t.Context()
	bad := []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", "./a", "_tmp/x", "_index", "a\x00b", "a\nb",
		`a\b`, "a b", "a:b",
		strings.Repeat("a", 256), strings.Repeat("a/", 600) + "a", "caf\u00e9",
	}
	for _, n := range bad {
		if err := s.PutIfAbsent(ctx, n, nil); err == nil {
			t.Errorf("put %q", n)
		}
		if _, err := s.Create(ctx, n); err == nil {
			t.Errorf("created %q", n)
		}
		if _, err := s.Stat(ctx, n); err == nil || errors.Is(err, object.ErrNotFound) {
			t.Errorf("stat %q: %v", n, err)
		}
		if err := s.ReadAt(ctx, n, nil, 0); err == nil || errors.Is(err, object.ErrNotFound) {
			t.Errorf("read %q: %v", n, err)
		}
		if err := s.Delete(ctx, n); err == nil || errors.Is(err, object.ErrNotFound) {
			t.Errorf("delete %q: %v", n, err)
		}
	}
	good := []string{"a=b/c%2F", strings.Repeat("n", 255), "x/.hidden", "A-b_c.d+e@f,g~h"}
	for _, n := range good {
		Must(t, s.PutIfAbsent(ctx, n, []byte(n)))
		if got := Content(t, s, n); string(got) != n {
			t.Errorf("%q: %q", n, got)
		}
	}
}

func cancelled(t *testing.T, s object.Store) {
	Must(t, s.PutIfAbsent(t.Context(), "c", []byte("x")))
	w, err := s.Create(t.Context(), "cw")
	Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, s.ReadAt(ctx, "c", make([]byte, 1), 0), context.Canceled, "")
	_, err = s.Stat(ctx, "c")
	want(t, err, context.Canceled, "")
	want(t, s.PutIfAbsent(ctx, "c2", nil), context.Canceled, "")
	_, err = s.Create(ctx, "c3")
	want(t, err, context.Canceled, "")
	want(t, w.Commit(ctx), context.Canceled, "")
	w.Abort()
	want(t, s.Delete(ctx, "c"), context.Canceled, "")
	for _, err := range s.List(ctx, "", "") {
		want(t, err, context.Canceled, "")
	}
	if got := Content(t, s, "c"); string(got) != "x" {
		t.Fatalf("%q", got)
	}
	for _, n := range []string{"c2", "c3", "cw"} {
		_, err := s.Stat(t.Context(), n)
		want(t, err, object.ErrNotFound, n)
	}
}

// upload holds a Writer to living as long as the context of its Create, and no longer: the context of Commit does not
// replace it.
func upload(t *testing.T, s object.Store) {
	ctx := t.Context()
	create := func(name string) (object.Writer, context.CancelFunc) {
		t.Helper()
		of, end := context.WithCancel(ctx)
		t.Cleanup(end)
		w, err := s.Create(of, name)
		Must(t, err)
		_, err = w.Write([]byte("some"))
		Must(t, err)
		return w, end
	}
	gone := func(name string) {
		t.Helper()
		_, err := s.Stat(ctx, name)
		want(t, err, object.ErrNotFound, name)
	}
	w, end := create("u/commit")
	end()
	want(t, w.Commit(ctx), context.Canceled, "u/commit")
	w.Abort()
	gone("u/commit")
	w, end = create("u/write")
	end()
	_, err := w.Write([]byte("more"))
	want(t, err, context.Canceled, "u/write")
	if err := w.Commit(ctx); err == nil {
		t.Fatal("committed without what could not be written")
	}
	w.Abort()
	gone("u/write")
	w, end = create("u/abort")
	end()
	w.Abort()
	gone("u/abort")
	for range s.List(ctx, "u/", "") {
		t.Fatal("left something")
	}
	// The name is free, and an upload under another context is whole.
	w, end = create("u/commit")
	of, other := context.WithCancel(ctx)
	Must(t, w.Commit(of))
	other()
	end()
	if got := Content(t, s, "u/commit"); string(got) != "some" {
		t.Fatalf("%q", got)
	}
}

func notFound(t *testing.T, s object.Store) {
	Must(t, s.PutIfAbsent(t.Context(), "dir/file", []byte("x")))
	none(t, s, "none", "dir/none")
	for range s.List(t.Context(), "none/", "") {
		t.Fatal("listed something")
	}
}

// folder tests that what names of objects begin with is no object.
func folder(t *testing.T, s object.Store) {
	Must(t, s.PutIfAbsent(t.Context(), "dir/file", []byte("x")))
	none(t, s, "dir")
}

// none tests that no objects have the names.
func none(t *testing.T, s object.Store, names ...string) {
	t.Helper()
	ctx := t.Context()
	for _, n := range names {
		_, err := s.Stat(ctx, n)
		want(t, err, object.ErrNotFound, n)
		want(t, s.ReadAt(ctx, n, make([]byte, 1), 0), object.ErrNotFound, n)
		Must(t, s.Delete(ctx, n))
	}
}

// truncate tests that a truncated object has no bytes, is listed, and that its name stays taken; twice is as once, and
// of a name without an object one is made.
func truncate(t *testing.T, s object.Store) {
	ctx := t.Context()
	Must(t, s.PutIfAbsent(ctx, "t/a", []byte("bytes")))
	Must(t, s.PutIfAbsent(ctx, "t/b", []byte("others")))
	for range 2 {
		for _, name := range []string{"t/a", "t/new/c"} {
			Must(t, s.Truncate(ctx, object.Info{Name: name}))
			if got := Content(t, s, name); len(got) != 0 {
				t.Fatalf("%s holds %q", name, got)
			}
			want(t, s.ReadAt(ctx, name, make([]byte, 1), 0), io.ErrUnexpectedEOF, name)
			want(t, s.PutIfAbsent(ctx, name, []byte("again")), object.ErrExists, name)
			w, err := s.Create(ctx, name)
			Must(t, err)
			_, err = w.Write([]byte("again"))
			Must(t, err)
			want(t, w.Commit(ctx), object.ErrExists, name)
		}
	}
	if got := Content(t, s, "t/b"); string(got) != "others" {
		t.Fatalf("another object holds %q", got)
	}
	var names []string
	for info, err := range s.List(ctx, "t/", "") {
		Must(t, err)
		names = append(names, info.Name)
	}
	if !slices.Equal(names, []string{"t/a", "t/b", "t/new/c"}) {
		t.Fatal(names)
	}
	if err := s.Truncate(ctx, object.Info{Name: "_tmp/x"}); err == nil {
		t.Fatal("a name of the store's own")
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	want(t, s.Truncate(cancelled, object.Info{Name: "t/b"}), context.Canceled, "")
	Must(t, s.Delete(ctx, "t/a"))
	Must(t, s.PutIfAbsent(ctx, "t/a", []byte("x"))) // Delete frees even the name of a truncated one
}

// truncateVersion tests that an object is truncated by the version that a listing has, and that this has no effect on
// another object of its name.
func truncateVersion(t *testing.T, s object.Store) {
	ctx := t.Context()
	Must(t, s.PutIfAbsent(ctx, "v/a", []byte("first")))
	first, err := s.Stat(ctx, "v/a")
	Must(t, err)
	for listed, err := range s.List(ctx, "v/", "") {
		if Must(t, err); listed != first {
			t.Fatalf("listed as %+v, and is %+v", listed, first)
		}
	}
	if first.Version == "" {
		t.Skip("it tells no versions")
	}
	Must(t, s.Delete(ctx, "v/a"))
	want(t, s.Truncate(ctx, first), object.ErrChanged, "v/a")
	if _, err := s.Stat(ctx, "v/a"); !errors.Is(err, object.ErrNotFound) {
		t.Fatalf("an object was made: %v", err)
	}
	Must(t, s.PutIfAbsent(ctx, "v/a", []byte("other")))
	want(t, s.Truncate(ctx, first), object.ErrChanged, "v/a")
	if got := Content(t, s, "v/a"); string(got) != "other" {
		t.Fatalf("another object holds %q", got)
	}
	other, err := s.Stat(ctx, "v/a")
	Must(t, err)
	if other.Version == first.Version {
		t.Fatalf("two objects have version %s", first.Version)
	}
	for range 2 { // as a request that is sent again
		Must(t, s.Truncate(ctx, other))
		if got := Content(t, s, "v/a"); len(got) != 0 {
			t.Fatalf("it holds %q", got)
		}
	}
	Must(t, s.Truncate(ctx, first)) // it has none already
}

// whole tests that an object of any size is read without its size being known, but for one that is too large.
func whole(t *testing.T, s object.Store) {
	ctx := t.Context()
	for _, size := range []int{0, 1, 255 << 10, 256 << 10, 256<<10 + 1, 1 << 20} {
		name, data := fmt.Sprintf("w/%d", size), bytes.Repeat([]byte{byte(size >> 10), 1, 2, 3, 5}, size/5+1)[:size]
		Must(t, s.PutIfAbsent(ctx, name, bytes.Clone(data))) // Pebble's file system of tests writes into it
		for _, most := range []int{size, size + 1, 2 << 20} {
			got, n, err := object.ReadWhole(ctx, s, name, int64(most))
			if Must(t, err); n != int64(size) || !bytes.Equal(got, data) {
				t.Fatalf("of %d bytes, at most %d: %d, and %d given", size, most, n, len(got))
			}
		}
		if size > 0 {
			got, n, err := object.ReadWhole(ctx, s, name, int64(size-1))
			if Must(t, err); n != int64(size) || got != nil {
				t.Fatalf("of %d bytes, at most %d: %d, and %d given", size, size-1, n, len(got))
			}
		}
	}
	_, _, err := object.ReadWhole(ctx, s, "w/none", 10)
	want(t, err, object.ErrNotFound, "w/none")
	if _, _, err := object.ReadWhole(ctx, s, "../w", 10); err == nil {
		t.Fatal("a name that no object has")
	}
}
