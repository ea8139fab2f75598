//go:build unix

package diskcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/objecttest"
)

const mib = 1 << 20

var must = objecttest.Must

func openCache(t testing.TB, dir string, bytes int64) *Cache {
	t.Helper()
	c, err := Open(dir, bytes)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func TestConformance(t *testing.T) {
	objecttest.Conformance(t, func(t *testing.T) object.Store {
		return NewStore(object.NewMemory(), openCache(t, t.TempDir(), 64*mib))
	})
}

// remote is a store of objects of segments whose bytes follow from name and position, so that processes agree on them.
type remote struct {
	object.Store
	sizes map[string]int64
	delay time.Duration
	fails func() error // nil: never

	requests, bytes atomic.Int64
}

func objectName(table names.TableID, i int) string {
	var id names.ID
	id[0] = byte(i + 1)
	copy(id[8:], table[:])
	return id.ObjectName(names.PackObject, uint64(i))
}

var table = names.TableID{1, 2, 3, 4, 5, 6, 7, 9}

func newRemote(sizes ...int64) *remote {
	r := &remote{Store: object.NewMemory(), sizes: map[string]int64{}}
	for i, n := range sizes {
		r.sizes[objectName(table, i)] = n
	}
	return r
}

// pattern is what the bytes of objects are pieces of: its length shares no factor with that of a block.
var pattern = sync.OnceValue(func() []byte {
	p := make([]byte, mib+7)
	_, _ = rand.NewChaCha8([32]byte{}).Read(p) // it never fails
	return p
})

// fill fills p with the bytes of an object from off on. It copies: under the race detector a loop over them would take
// longer than what is tested.
func fill(name string, p []byte, off int64) {
	seed := uint64(len(name))
	for _, c := range []byte(name) {
		seed = seed*1099511628211 + uint64(c)
	}
	for at := (seed%mib + uint64(off)) % uint64(len(pattern())); len(p) > 0; at = 0 {
		p = p[copy(p, pattern()[at:]):]
	}
}

func (r *remote) ReadUpTo(ctx context.Context, name string, p []byte, off int64) (int, error) {
	r.requests.Add(1)
	size, ok := r.sizes[name]
	if !ok {
		return 0, fmt.Errorf("%w: %s", object.ErrNotFound, name)
	}
	select {
	case <-time.After(r.delay):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if r.fails != nil {
		if err := r.fails(); err != nil {
			return 0, err
		}
	}
	n := int(max(0, min(int64(len(p)), size-off)))
	r.bytes.Add(int64(n))
	fill(name, p[:n], off)
	return n, nil
}

func (r *remote) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	n, err := r.ReadUpTo(ctx, name, p, off)
	if err == nil && n < len(p) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// check reads a range and compares it.
func check(s object.Store, name string, size, off int64, n int) error {
	p, want := make([]byte, n), make([]byte, n)
	err := s.ReadAt(context.Background(), name, p, off)
	if off+int64(n) > size {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s: %d bytes at %d of %d: %w", name, n, off, size, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if fill(name, want, off); !bytes.Equal(p, want) {
		return fmt.Errorf("%s: %d bytes at %d: others", name, n, off)
	}
	return nil
}

// readSome makes random reads, a few beyond the end.
func readSome(s object.Store, r *remote, random *rand.Rand, reads int) error {
	for range reads {
		i := random.IntN(len(r.sizes))
		name := objectName(table, i)
		size := r.sizes[name]
		off := random.Int64N(size + 10)
		n := 1 + random.IntN(1<<random.IntN(22))
		if random.IntN(4) > 0 {
			n = int(max(1, min(int64(n), size-off)))
		}
		if random.IntN(3) == 0 {
			off = off / sumBytes * sumBytes
		}
		if err := check(s, name, size, off, n); err != nil {
			return err
		}
	}
	return nil
}

var manySizes = []int64{1, 100, sumBytes, mib - 1, mib, mib + 1, 3 * mib, 10*mib + 12345, 30*mib + 7}

// Many readers over one directory that is smaller than the objects read what the store has.
func TestReads(t *testing.T) {
	for _, blocks := range []int64{18, 64} {
		dir, r := t.TempDir(), newRemote(manySizes...)
		var all sync.WaitGroup
		for i := range 4 {
			s := NewStore(r, openCache(t, dir, blocks*mib)) // each as a process would: its own maps
			for j := range 2 {
				all.Go(func() {
					if err := readSome(s, r, rand.New(rand.NewPCG(uint64(i), uint64(j))), 400); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		st, err := openCache(t, dir, 0).Stat()
		must(t, err)
		if st.Damaged != 0 || st.Files > blocks*mib || st.Hits == 0 {
			t.Errorf("%d MiB: %+v", blocks, st)
		}
	}
}

// Again nothing is requested, and small objects of unknown size are read whole.
func TestSecondEpoch(t *testing.T) {
	r := newRemote(manySizes...)
	dir := t.TempDir()
	for epoch := range 2 {
		s := NewStore(r, openCache(t, dir, 80*mib))
		for name, size := range r.sizes {
			for off := int64(0); off < size; off += 5 * mib {
				must(t, check(s, name, size, off, int(min(5*mib, size-off))))
			}
			if size < mib {
				b, n, err := s.ReadWhole(t.Context(), name, mib)
				must(t, err)
				want := make([]byte, size)
				if fill(name, want, 0); n != size || !bytes.Equal(b, want) {
					t.Errorf("%s of %d bytes: %d", name, size, n)
				}
				if b, n, err := s.ReadWhole(t.Context(), name, size-1); b != nil || n != size || err != nil {
					t.Errorf("%s with too small a bound: %d bytes of %d, %v", name, len(b), n, err)
				}
			}
		}
		if epoch == 0 {
			r.requests.Store(0)
		}
	}
	if n := r.requests.Load(); n != 0 {
		t.Errorf("%d requests in the second epoch", n)
	}
}

// What is read by many at once is fetched once, and in requests of several blocks.
func TestOneFetch(t *testing.T) {
	dir, r := t.TempDir(), newRemote(24*mib)
	r.delay = 30 * time.Millisecond
	name := objectName(table, 0)
	var all sync.WaitGroup
	for range 4 {
		s := NewStore(r, openCache(t, dir, 64*mib))
		for range 4 {
			all.Go(func() {
				for off := int64(0); off < 24*mib; off += 8 * mib {
					if err := check(s, name, 24*mib, off, 8*mib); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if r.bytes.Load() != 24*mib || r.requests.Load() != 3 {
		t.Errorf("%d requests for %d bytes", r.requests.Load(), r.bytes.Load())
	}
}

// A fetch that fails or is given up leaves the block to others, and errors are the store's.
func TestFailingFetches(t *testing.T) {
	dir, r := t.TempDir(), newRemote(manySizes...)
	refused := errors.New("refused")
	var n atomic.Int64
	r.fails = func() error {
		if n.Add(1)%3 == 0 {
			return refused
		}
		return nil
	}
	s := NewStore(r, openCache(t, dir, 64*mib))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			for range 300 {
				if err := readSome(s, r, random, 1); err != nil && !errors.Is(err, refused) {
					t.Error(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(300))*time.Microsecond)
				p := make([]byte, 100)
				err := s.ReadAt(ctx, objectName(table, 8), p, random.Int64N(29*mib))
				if err != nil && !errors.Is(err, refused) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	r.fails = nil
	must(t, readSome(s, r, rand.New(rand.NewPCG(1, 2)), 200))
	s.cache.x.h.dirty = 0
	for i := range s.cache.x.entries {
		if s.cache.x.entries[i].state() == stateClaimed {
			t.Errorf("block %d is claimed by nobody", i)
		}
	}
	if err := s.ReadAt(t.Context(), objectName(table, 99), make([]byte, 1), 0); !errors.Is(err, object.ErrNotFound) {
		t.Errorf("no such object: %v", err)
	}
}

// Other objects than those of segments go past the cache: they change.
func TestOnlySegments(t *testing.T) {
	m := object.NewMemory()
	s := NewStore(m, openCache(t, t.TempDir(), 32*mib))
	id := names.NewID(table)
	for _, name := range []string{"tables/t/table", id.Dir() + names.ClockFile, id.Dir() + names.CondemnedPrefix +
		names.NewID(table).String()} {
		must(t, m.PutIfAbsent(t.Context(), name, []byte("before")))
		p := make([]byte, 6)
		must(t, s.ReadAt(t.Context(), name, p, 0))
		must(t, m.Delete(t.Context(), name))
		must(t, m.PutIfAbsent(t.Context(), name, []byte("after.")))
		if must(t, s.ReadAt(t.Context(), name, p, 0)); string(p) != "after." {
			t.Errorf("%s: %q", name, p)
		}
	}
}

// Damage anywhere in the directory costs fetches, and never gives other bytes.
func TestDamage(t *testing.T) {
	r := newRemote(manySizes...)
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		c, err := Open(dir, 40*mib)
		must(t, err)
		must(t, readSome(NewStore(r, c), r, random, 60))
		must(t, c.Close())
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		must(t, err)
		for range 1 + random.IntN(200) {
			damage(t, files[random.IntN(len(files))], random)
		}
		if c, err = Open(dir, 40*mib); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := readSome(NewStore(r, c), r, random, 120); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		must(t, c.Clear())
		must(t, readSome(NewStore(r, c), r, random, 60))
		must(t, c.Close())
		must(t, os.RemoveAll(dir)) // 30 of them at once would be 1.2 GB
	}
}

func damage(t *testing.T, path string, random *rand.Rand) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	st, err := f.Stat()
	must(t, err)
	if st.Size() == 0 {
		return
	}
	p := make([]byte, 1+random.IntN(16))
	off := random.Int64N(st.Size())
	if filepath.Base(path) == "index" && random.IntN(2) == 0 {
		off = random.Int64N(headerSize)
	}
	if random.IntN(2) == 0 {
		for i := range p {
			p[i] = byte(random.Uint32())
		}
	}
	p = p[:min(int64(len(p)), st.Size()-off)]
	_, err = f.WriteAt(p, off)
	must(t, err)
}

// A directory that stops working leaves reads as they would be without it.
func TestBrokenDirectory(t *testing.T) {
	r := newRemote(manySizes...)
	dir := t.TempDir()
	s := NewStore(r, openCache(t, dir, 40*mib))
	must(t, os.Mkdir(filepath.Join(dir, "blocks-0000"), 0o700))
	must(t, readSome(s, r, rand.New(rand.NewPCG(3, 3)), 100))
	for i := range s.cache.x.entries {
		if st := s.cache.x.entries[i].state(); st != stateFree {
			t.Fatalf("block %d: state %d", i, st)
		}
	}
}

// What every job reads stays, while an epoch goes over a table that is ten times larger than the cache.
func TestScans(t *testing.T) {
	const hot, cold = 20, 1000
	r := newRemote(hot*mib, cold*mib)
	c := openCache(t, t.TempDir(), 101*mib)
	s := NewStore(r, c)
	ago := uint32(0)
	later := func() { // another job, after a while
		ago += 2 * apart
		for i := range c.x.entries {
			e := &c.x.entries[i]
			e.usedAt.Store(e.usedAt.Load() - 2*apart)
		}
	}
	read := func(i, n int) {
		for at := range n {
			must(t, check(s, objectName(table, i), r.sizes[objectName(table, i)], int64(at)*mib, 1000))
		}
		later()
	}
	for range 3 {
		read(0, hot)
	}
	read(1, cold)
	before := r.requests.Load()
	read(0, hot)
	if n := r.requests.Load() - before; n > hot/10 {
		t.Errorf("after a scan %d of %d blocks were fetched again", n, hot)
	}
}

// TestMain runs this program as a process of TestProcesses.
func TestMain(m *testing.M) {
	if dir := os.Getenv("DISKCACHE_TEST"); dir != "" {
		process(dir)
	}
	os.Exit(m.Run())
}

func process(dir string) {
	seed, _ := strconv.ParseUint(os.Getenv("DISKCACHE_SEED"), 10, 64)
	c, err := Open(dir, 0)
	if err == nil {
		r := newRemote(manySizes...)
		r.delay = time.Millisecond
		s := NewStore(r, c)
		random := rand.New(rand.NewPCG(seed, 9))
		var errs [4]error
		var all sync.WaitGroup
		for i := range errs {
			own := rand.New(rand.NewPCG(random.Uint64(), 9))
			all.Go(func() { errs[i] = readSome(s, r, own, 150) })
		}
		all.Wait()
		err = errors.Join(errs[:]...)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Processes share a directory. Some of them are killed, at any moment; the others read what the store has, none waits
// for ever, and the quota holds.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	openCache(t, dir, 30*mib)
	const processes = 24
	var all sync.WaitGroup
	atOnce := make(chan struct{}, 8)
	for i := range processes {
		all.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "DISKCACHE_TEST="+dir, fmt.Sprintf("DISKCACHE_SEED=%d", i))
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			killed := i%3 == 0
			if killed {
				time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
				_ = cmd.Process.Kill()
			}
			if err := cmd.Wait(); err != nil && !killed {
				t.Errorf("process %d: %v\n%s", i, err, out.String())
			}
		})
	}
	all.Wait()
	c := openCache(t, dir, 0)
	r := newRemote(manySizes...)
	must(t, readSome(NewStore(r, c), r, rand.New(rand.NewPCG(5, 5)), 200))
	st, err := c.Stat()
	must(t, err)
	if st.Files > 30*mib || st.Used > st.Bytes || st.Hits == 0 {
		t.Errorf("%+v", st)
	}
}

// A claim of a process that is gone is taken over.
func TestDeadClaim(t *testing.T) {
	r := newRemote(mib)
	c := openCache(t, t.TempDir(), 32*mib)
	k := keyOf(objectName(table, 0), 0)
	_, err := c.claims([]key{k})
	must(t, err)
	cmd := exec.Command("true")
	must(t, cmd.Run())
	e := &c.x.entries[c.x.find(k)]
	e.pid = uint32(cmd.Process.Pid)
	c.flights.Delete(k)
	must(t, check(NewStore(r, c), objectName(table, 0), mib, 0, 10))
	e.pid, e.since = uint32(os.Getpid()), time.Now().Add(-2*claimed).UnixNano()
	must(t, check(NewStore(r, c), objectName(table, 0), mib, 0, 10))
}

// What was being fetched when the cache was let alone is fetched again, and not waited for.
func TestClaimsOfABrokenCache(t *testing.T) {
	r := newRemote(mib, mib)
	c := openCache(t, t.TempDir(), 32*mib)
	keys := []key{keyOf(objectName(table, 0), 0), keyOf(objectName(table, 1), 0)}
	claims, err := c.claims(keys)
	must(t, err)
	c.broken.Store(int64(time.Since(began) + time.Hour))
	c.put(keys[0], claims[0].block, make([]byte, mib))
	c.forget(keys[1], func(state int) bool { return state == stateClaimed })
	for _, k := range keys {
		c.flights.Delete(k)
	}
	c.broken.Store(0)
	begin := time.Now()
	for i := range keys {
		must(t, check(NewStore(r, c), objectName(table, i), mib, 0, 10))
	}
	if took := time.Since(begin); took > claimed/4 {
		t.Errorf("took %v", took)
	}
}

// A claim stands for as long as its fetch takes, and its process is not stopped.
func TestLongFetch(t *testing.T) {
	defer func(d time.Duration) { claimed = d }(claimed)
	claimed = 400 * time.Millisecond
	dir, r := t.TempDir(), newRemote(mib)
	r.delay = 5 * claimed
	var all sync.WaitGroup
	for range 3 { // each as a process of its own would have it open
		s := NewStore(r, openCache(t, dir, 32*mib))
		all.Go(func() {
			if err := check(s, objectName(table, 0), mib, 0, 10); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := r.requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestSizes(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, 0); err == nil || !strings.HasSuffix(err.Error(),
		"(cache_size, --cache-size or DSISTORE_CACHE_SIZE)") {
		t.Errorf("without a size: %v", err)
	}
	if _, err := Open(dir, mib); err == nil || !strings.Contains(err.Error(), "at least") {
		t.Errorf("too small: %v", err)
	}
	c := openCache(t, dir, 100*mib)
	st, err := c.Stat()
	must(t, err)
	if st.Bytes > 100*mib || st.Bytes < 98*mib {
		t.Errorf("%d bytes of 100 MiB", st.Bytes)
	}
	other, err := openCache(t, dir, 500*mib).Stat()
	must(t, err)
	if other.Bytes != st.Bytes {
		t.Errorf("opened with another size: %d bytes, was %d", other.Bytes, st.Bytes)
	}
	r := newRemote(90 * mib)
	must(t, check(NewStore(r, c), objectName(table, 0), 90*mib, 0, 90*mib))
	must(t, os.WriteFile(filepath.Join(dir, "index"), []byte("damaged"), 0o600))
	small := openCache(t, dir, 30*mib)
	must(t, check(NewStore(r, small), objectName(table, 0), 90*mib, 0, 90*mib))
	st, err = small.Stat()
	must(t, err)
	if st.Files > 30*mib {
		t.Errorf("a new cache of 30 MiB takes %d bytes", st.Files)
	}
}

// A lock that somebody holds who was stopped makes reads slower, and nothing else.
func TestStuckLock(t *testing.T) {
	r, dir := newRemote(manySizes...), t.TempDir()
	s := NewStore(r, openCache(t, dir, 40*mib))
	must(t, check(s, objectName(table, 6), 3*mib, 0, mib))
	f, err := os.Open(filepath.Join(dir, "index"))
	must(t, err)
	defer f.Close()
	must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	read := func(s object.Store) time.Duration {
		begin := time.Now()
		var all sync.WaitGroup
		for i := range uint64(32) {
			all.Go(func() {
				if err := readSome(s, r, rand.New(rand.NewPCG(3, i)), 20); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return time.Since(begin)
	}
	free := read(r) // of this machine, without a cache
	if took := read(s); took > 10*patience+3*free {
		t.Errorf("took %s, without a cache %s", took, free)
	}
	must(t, check(s, objectName(table, 6), 3*mib, 0, mib))
	if st := s.cache.x.h.failed.Load(); st == 0 {
		t.Error("no failure was counted")
	}
}

// Only an empty directory, or a cache's, becomes one, and only one that others cannot write to.
func TestForeignDirectories(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "index"), []byte("mine"), 0o600))
	if _, err := Open(dir, 64*mib); err == nil || !strings.Contains(err.Error(), "no cache") {
		t.Errorf("a directory with files: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "index")); err != nil || string(b) != "mine" {
		t.Errorf("the file is %q, %v", b, err)
	}
	shared := t.TempDir()
	must(t, os.Chmod(shared, 0o777))
	if _, err := Open(shared, 64*mib); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("a directory of all: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none"), 0); err == nil {
		t.Error("no size, and no error")
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory was made without a size")
	}
	if _, err := Open(t.TempDir(), 1<<59); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("larger than the disk: %v", err)
	}
	// What looks like a pattern, and files that look like those of blocks.
	parent := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(parent, "c1"), 0o700))
	must(t, os.WriteFile(filepath.Join(parent, "c1", "blocks-0000"), nil, 0o600))
	openCache(t, filepath.Join(parent, "c[1]"), 64*mib)
	if _, err := os.Stat(filepath.Join(parent, "c1", "blocks-0000")); err != nil {
		t.Error(err)
	}
	link := t.TempDir()
	c := openCache(t, link, 64*mib)
	victim := filepath.Join(parent, "victim")
	must(t, os.WriteFile(victim, []byte("mine"), 0o600))
	must(t, os.Symlink(victim, filepath.Join(link, "blocks-0000")))
	r := newRemote(mib)
	must(t, check(NewStore(r, c), objectName(table, 0), mib, 0, mib))
	if b, err := os.ReadFile(victim); err != nil || string(b) != "mine" {
		t.Errorf("what a link leads to was written: %d bytes, %v", len(b), err)
	}
}

// What was fetched before Clear is not written after it.
func TestClearKeepsNothing(t *testing.T) {
	c := openCache(t, t.TempDir(), 64*mib)
	k := keyOf(objectName(table, 0), 0)
	claimed, err := c.claims([]key{k})
	must(t, err)
	must(t, c.Clear())
	c.put(k, claimed[0].block, bytes.Repeat([]byte("erased"), 1000))
	st, err := c.Stat()
	must(t, err)
	if _, total := sizes(c.x.h.blocks); st.Blocks != 0 || st.Files != int64(total) {
		t.Errorf("%+v", st)
	}
}

// A directory that was made anew has another cache: who has the old one open reads past it.
func TestDirectoryMadeAnew(t *testing.T) {
	r, dir := newRemote(manySizes...), filepath.Join(t.TempDir(), "cache")
	old := NewStore(r, openCache(t, dir, 40*mib))
	must(t, os.RemoveAll(dir))
	c := openCache(t, dir, 40*mib)
	anew := NewStore(r, c)
	for i := range uint64(20) {
		must(t, readSome(anew, r, rand.New(rand.NewPCG(1, i)), 20))
		must(t, readSome(old, r, rand.New(rand.NewPCG(2, i)), 20))
	}
	if st, err := c.Stat(); err != nil || st.Damaged != 0 || st.Hits == 0 {
		t.Errorf("%+v, %v", st, err)
	}
}
