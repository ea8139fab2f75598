package object_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/storage/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func local(t *testing.T) object.Store {
	l, err := object.NewLocal(filepath.Join(t.TempDir(), "deep", "root"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLocalFiles holds the local store to ordinary permissions and to leaving nothing behind.
func TestLocalFiles(t *testing.T) {
	l := local(t).(*object.Local)
	if err := l.PutIfAbsent(t.Context(), "a/b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := l.PutIfAbsent(t.Context(), "a/b", []byte("y")); !errors.Is(err, object.ErrExists) {
		t.Fatal(err)
	}
	if _, err := l.Stat(t.Context(), "a/b/below"); !errors.Is(err, object.ErrNotFound) {
		t.Fatal(err)
	}
	var files []string
	err := filepath.WalkDir(l.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		if d.IsDir() {
			want = 0o755
		} else {
			files = append(files, path)
		}
		// The umask may take bits away, and never the owner's.
		if got := info.Mode().Perm(); got&^want != 0 || got&0o600 != 0o600 {
			t.Errorf("%s: mode %o, want %o but for the umask", path, got, want)
		}
		return nil
	})
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
}

func TestLocalTemporary(t *testing.T) {
	l := local(t).(*object.Local)
	w, err := l.Create(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("12345")); err != nil {
		t.Fatal(err)
	}
	tmp, err := l.Temporary(t.Context())
	if err != nil || len(tmp) != 1 || tmp[0].Size != 5 || !strings.HasPrefix(tmp[0].Name, "_tmp/") {
		t.Fatal(tmp, err)
	}
	for _, bad := range []string{"x", "_tmp/", "_tmp/..", "_tmp/../x", "_tmp/a/b"} {
		if err := l.RemoveTemporary(t.Context(), bad); err == nil {
			t.Errorf("removed %q", bad)
		}
	}
	if err := l.RemoveTemporary(t.Context(), tmp[0].Name); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err == nil {
		t.Fatal("committed a file that was swept")
	}
}

// TestLocalCrash holds the local store to its promise under power loss: what PutIfAbsent or Commit has returned from is
// there whole, what it has not is there whole or not at all.
func TestLocalCrash(t *testing.T) {
	for percent := 0; percent <= 100; percent += 20 {
		mem := vfs.NewCrashableMem()
		l := object.NewLocalFS(mem, "/deep/root")
		ctx := context.Background()
		big := bytes.Repeat([]byte("abcdefgh"), 5000)
		if err := l.PutIfAbsent(ctx, "t/1/done", big); err != nil {
			t.Fatal(err)
		}
		w, err := l.Create(ctx, "t/2/written")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(big); err != nil {
			t.Fatal(err)
		}
		after := object.NewLocalFS(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
			RNG: rand.New(rand.NewPCG(1, uint64(percent)))}), "/deep/root")
		b := make([]byte, len(big))
		if err := after.ReadAt(ctx, "t/1/done", b, 0); err != nil || !bytes.Equal(b, big) {
			t.Fatalf("%d %%: what was put is lost: %v", percent, err)
		}
		if _, err := after.Stat(ctx, "t/2/written"); !errors.Is(err, object.ErrNotFound) {
			t.Fatalf("%d %%: what was not committed is there: %v", percent, err)
		}
		w.Abort()
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for uri, want := range map[string]string{
		dir: dir, "file://" + dir: dir, "file://localhost" + dir: dir,
	} {
		s, err := object.Open(uri)
		if err != nil || s.URI() != want {
			t.Errorf("%s: %v %v", uri, s, err)
		}
	}
	for uri, want := range map[string]string{
		"s3://bucket/x": "no support for s3:// stores; want a path or file://, or import _ " +
			`"github.com/dsistore/dsistore/storage/object/s3"`,
		"gs://user:secret@bucket":    `no support for gs:// stores; want a path or file://, or import _ "github.com/`,
		"abfss://a@b/x":              "object/azure",
		"ftp://host/x":               "no support for ftp:// stores; want a path or file://",
		"s3://bucket/x?secret=1":     "no support",
		"file://host/x":              "host",
		"":                           "empty",
		"s3://key:secret@bucket/a@b": "s3://bucket/a@b",
		"s3:/key:secret@bucket/a":    "store s3://bucket/a: the URI of a store has two slashes",
		"gs:bucket":                  "store gs://bucket: the URI of a store has two slashes",
		"s3:/key:sec/ret@bucket":     "store s3://bucket: the URI of a store has two slashes",
		"S3:/key:secret@bucket":      "store s3://bucket: the URI of a store has two slashes",
		"s3:///key:secret@bucket":    "store s3:///bucket: no support",
		"S3://key:se@cret@bucket":    "store S3://bucket: no support for S3://",
	} {
		for _, options := range []map[string]string{nil, {"key": "secret"}} {
			if options != nil && !strings.HasPrefix(strings.ToLower(uri), "s3:/") {
				continue
			}
			_, err := object.OpenWith(uri, options)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %q", uri, err, want)
			}
		}
	}
	for scheme, want := range map[string]string{"s3a": "object/s3", "http": "want a path"} {
		if _, err := object.OpenBucket(scheme, "b", nil); err == nil ||
			!strings.HasSuffix(strings.TrimRight(err.Error(), `"`), want) || strings.Contains(err.Error(), " ://") {
			t.Errorf("a bucket at %s://: %v, want %q at the end", scheme, err, want)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := object.Open(file); err == nil {
		t.Error("opened a file as a store")
	}
}

func TestFault(t *testing.T) {
	ctx := t.Context()
	f := object.NewFault(object.NewMemory())
	f.FailAt(2, object.FailBefore)
	if err := f.PutIfAbsent(ctx, "a", nil); err != nil {
		t.Fatal(err)
	}
	if err := f.PutIfAbsent(ctx, "b", nil); !errors.Is(err, object.ErrInjected) {
		t.Fatal(err)
	}
	if _, err := f.Stat(ctx, "b"); !errors.Is(err, object.ErrNotFound) {
		t.Fatal(err)
	}
	f.FailAt(1, object.FailAfter)
	if err := f.PutIfAbsent(ctx, "b", nil); !errors.Is(err, object.ErrInjected) {
		t.Fatal(err)
	}
	if _, err := f.Stat(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	f.DieAt(1, object.FailBefore)
	for range 3 {
		if _, err := f.Stat(ctx, "b"); !errors.Is(err, object.ErrInjected) {
			t.Fatal(err)
		}
	}
	if f.Operations() != 8 {
		t.Fatal(f.Operations())
	}
}

func TestCounted(t *testing.T) {
	ctx := t.Context()
	c := object.NewCounted(object.NewMemory())
	if err := c.PutIfAbsent(ctx, "a", make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	before := c.Counts()
	if err := c.ReadAt(ctx, "a", make([]byte, 40), 5); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stat(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for range c.List(ctx, "", "") {
	}
	got := c.Counts().Sub(before)
	if want := (object.Counts{Reads: 1, BytesRead: 40, Stats: 1, Lists: 1}); got != want || got.Requests() != 3 {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if before != (object.Counts{Writes: 1, BytesWritten: 100}) {
		t.Fatalf("%+v", before)
	}
}

// batches deletes seven objects a request.
type batches struct{ object.Store }

func (b batches) DeletesAtOnce() int { return 7 }

// Deletions are counted as the store makes them, which others may wrap.
func TestCountedDeletes(t *testing.T) {
	names := strings.Fields(strings.Repeat("a ", 20))
	for want, s := range map[int64]object.Store{
		20: object.NewMemory(), 3: batches{object.NewMemory()},
	} {
		c := object.NewCounted(object.NewThrottled(s, 1<<40))
		if err := object.DeleteAll(t.Context(), c, names); err != nil || c.Counts().Deletes != want {
			t.Errorf("%d requests, want %d: %v", c.Counts().Deletes, want, err)
		}
	}
}

// A Counted says of each kind of request how it ended.
func TestCountedEndings(t *testing.T) {
	ctx := t.Context()
	over, end := context.WithCancel(ctx)
	end()
	faulty := object.NewFault(object.NewMemory())
	c := object.NewCounted(faulty)
	_ = c.PutIfAbsent(ctx, "a", make([]byte, 100))
	_ = c.PutIfAbsent(ctx, "a", nil)
	w, err := c.Create(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	_ = c.ReadAt(ctx, "a", make([]byte, 100), 0)
	_ = c.ReadAt(ctx, "a", make([]byte, 100), 1)
	_ = c.ReadAt(ctx, "z", make([]byte, 1), 0)
	_ = c.ReadAt(over, "a", make([]byte, 1), 0)
	_ = object.ReadRanges(ctx, c, "a", object.Range{P: make([]byte, 1)}, object.Range{P: make([]byte, 2), Off: 9})
	_ = object.ReadRanges(ctx, c, "z", object.Range{P: make([]byte, 1)}, object.Range{P: make([]byte, 2), Off: 9})
	_, _ = c.Stat(ctx, "z")
	for range c.List(ctx, "", "") {
	}
	_ = c.Delete(ctx, "b")
	faulty.FailAt(1, object.FailBefore)
	_ = c.Delete(ctx, "a")
	want := []object.Ending{
		{Op: "read", Code: "ok", N: 3}, {Op: "read", Code: "not_found", N: 2}, {Op: "read", Code: "short",
			N: 1}, {Op: "read", Code: "canceled", N: 1},
		{Op: "stat", Code: "not_found", N: 1}, {Op: "list", Code: "ok", N: 1},
		{Op: "write", Code: "ok", N: 2}, {Op: "write", Code: "exists", N: 1},
		{Op: "delete", Code: "ok", N: 1}, {Op: "delete", Code: "error", N: 1},
	}
	if got := c.Endings(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A store whose directory somebody removes is made anew by the next write, as it was by the first.
func TestLocalRemovedAndMadeAgain(t *testing.T) {
	l := local(t).(*object.Local)
	for i, name := range []string{"a/b/c", "a/b/d", "a/b/d"} {
		if err := l.PutIfAbsent(t.Context(), name, []byte(name)); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			break
		}
		if err := os.RemoveAll(l.Root()); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Stat(t.Context(), name); !errors.Is(err, object.ErrNotFound) {
			t.Fatal(err)
		}
	}
	// Removed between Create and Commit, what was written is lost, and said to be.
	w, err := l.Create(t.Context(), "a/e")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(l.Root()); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// A directory below the root that somebody removes is made anew where an object in it is committed.
func TestLocalDirectoryRemoved(t *testing.T) {
	l := local(t).(*object.Local)
	if err := l.PutIfAbsent(t.Context(), "a/b/c", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(l.Root(), "a")); err != nil {
		t.Fatal(err)
	}
	if err := l.PutIfAbsent(t.Context(), "a/b/c", []byte("y")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	if err := l.ReadAt(t.Context(), "a/b/c", got, 0); err != nil || got[0] != 'y' {
		t.Fatal(got, err)
	}
}

// TestPutUnsynced: an object that may be lost is there whole until the machine loses power, in whatever store; nothing
// is left beside it, and no other of its name is touched.
func TestPutUnsynced(t *testing.T) {
	l := local(t).(*object.Local)
	counted := object.NewCounted(object.NewFault(l))
	for _, s := range []object.Store{l, counted, object.NewMemory(), object.NewDelayed(local(t), 0)} {
		for _, name := range []string{"a/b/one", "a/b/two", "a/c/three"} {
			if err := object.PutUnsynced(t.Context(), s, name, []byte(name)); s == counted {
				if !errors.Is(err, object.ErrExists) {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if err := object.PutUnsynced(t.Context(), s, name, []byte("another")); !errors.Is(err, object.ErrExists) {
				t.Fatal(err)
			}
			b := make([]byte, len(name))
			if err := s.ReadAt(t.Context(), name, b, 0); err != nil || string(b) != name {
				t.Fatalf("%s: %q, %v", s.URI(), b, err)
			}
		}
		if err := object.PutUnsynced(t.Context(), s, "../x", nil); err == nil {
			t.Error("a name that leaves the store")
		}
	}
	if c := counted.Counts(); c.Writes != 7 {
		t.Errorf("%+v", c)
	}
	if tmp, err := l.Temporary(t.Context()); err != nil || len(tmp) > 0 {
		t.Error(tmp, err)
	}
	faulty := object.NewFault(l)
	faulty.FailAt(1, object.FailBefore)
	if err := object.PutUnsynced(t.Context(), faulty, "x", nil); !errors.Is(err, object.ErrInjected) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := object.PutUnsynced(ctx, l, "y", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// A store that was removed is made again.
	if err := os.RemoveAll(l.Root()); err != nil {
		t.Fatal(err)
	}
	if err := object.PutUnsynced(t.Context(), l, "a/b/one", []byte("x")); err != nil {
		t.Error(err)
	}

	// Nobody waits for the disk: that is what it is for. What is durable stays so.
	mem := vfs.NewCrashableMem()
	crashing := object.NewLocalFS(mem, "/deep/root")
	if err := crashing.PutIfAbsent(t.Context(), "t/1", []byte("lasts")); err != nil {
		t.Fatal(err)
	}
	if err := object.PutUnsynced(t.Context(), crashing, "t/2", []byte("may be lost")); err != nil {
		t.Fatal(err)
	}
	after := object.NewLocalFS(mem.CrashClone(vfs.CrashCloneCfg{}), "/deep/root")
	if _, err := after.Stat(t.Context(), "t/1"); err != nil {
		t.Error(err)
	}
	if info, err := after.Stat(t.Context(), "t/2"); err == nil && info.Size > 0 {
		t.Error("it was synced")
	}
}
