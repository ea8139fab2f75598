//go:build unix

package diskcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A file has at least so many blocks, and there are at most so many files: each is open.
	leastInFile, mostFiles = 256, 64
	// least is the fewest blocks of a cache.
	least = 16
	// patience is how long the lock is waited for: who holds it may have been stopped.
	patience = time.Second
	// openPatience is how long Open waits for it: a cache that other processes fill is busy.
	openPatience = 30 * time.Second
	// pause is how long the cache is let alone after it did not work.
	pause = 10 * time.Second
	// marker is a file that makes a directory a cache's.
	marker = "dsistore-cache"
)

// claimed is how long a claim stands that is not renewed: then other processes take it over. Tests make it shorter.
var claimed = time.Minute

// errBroken is returned while the cache is let alone.
var errBroken = errors.New("the cache did not work a moment ago")

// A Cache is an open directory. Safe for concurrent use, of any number of processes.
type Cache struct {
	dir    string
	x      *index
	inFile int          // blocks of a file
	broken atomic.Int64 // until when the cache is let alone, nanoseconds after began

	mu      sync.Mutex // one goroutine changes the index; the lock of its file keeps out other processes
	left    []key      // of blocks that this process has claimed and could not release; guarded by mu
	files   sync.Map   // *os.File by number
	flights sync.Map   // chan struct{} by key: of fetches by this process, closed when they end
}

// Open opens the cache in a directory, and makes it where there is none: in a directory that is empty or not there.
// bytes is how much of the disk it may take, the index included; a directory that is there keeps its size, and 0 means
// that one. The directory and its files are readable by this user alone, who must own it.
func Open(dir string, bytes int64) (*Cache, error) {
	for {
		c, again, err := open(dir, bytes)
		if err != nil {
			return nil, fmt.Errorf("cache %s: %w", dir, err)
		}
		if !again {
			return c, nil
		}
	}
}

// prepare makes the directory of a cache, or checks that it is one.
func prepare(dir string, bytes int64) error {
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if bytes == 0 {
			return errNone
		}
		err = os.MkdirAll(dir, 0o700)
		if err == nil {
			st, err = os.Stat(dir)
		}
	}
	if err != nil {
		return err
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() || st.Mode().Perm()&0o022 != 0 {
		return errors.New("it belongs to another user, or others may write to it: its files would not be safe")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(files, func(f fs.DirEntry) bool { return f.Name() == marker }) {
		switch {
		case len(files) > 0:
			return errors.New("the directory has files and is no cache: name an empty one, or a new one")
		case bytes == 0:
			return errNone
		}
		return os.WriteFile(filepath.Join(dir, marker), []byte("A cache of dsistore: dsi cache stat\n"), 0o600)
	}
	return nil
}

var errNone = errors.New("there is none: say how large it may become " +
	"(cache_size, --cache-size or DSISTORE_CACHE_SIZE)")

// open is Open, once. again: another process has put a new index in place of the one that was opened.
func open(dir string, bytes int64) (c *Cache, again bool, err error) {
	if err := prepare(dir, bytes); err != nil {
		return nil, false, err
	}
	path := filepath.Join(dir, "index")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if c == nil {
			_ = f.Close() // nothing was written through it
		}
	}()
	if err := lockFile(f, openPatience); err != nil {
		return nil, false, err
	}
	defer unlockFile(f)
	st, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(st, now) {
		return nil, true, nil
	}
	blocks := blocksOf(f, st.Size())
	if blocks == 0 { // new, or damaged: other processes may have mapped it, so it stays as it is for them
		if bytes == 0 {
			return nil, false, errNone
		}
		if blocks = blocksIn(bytes); blocks < least {
			return nil, false, fmt.Errorf("%d bytes hold %d blocks: want at least %d MiB", bytes, blocks, least+1)
		}
		if free := freeBytes(dir); free < bytes {
			return nil, false, fmt.Errorf("%d bytes do not fit: the disk has %d free", bytes, free)
		}
		return nil, true, makeIndex(dir, blocks)
	}
	x, err := mapIndex(f, blocks)
	if err != nil {
		return nil, false, err
	}
	if !x.sound(blocks) {
		x.rebuild()
	}
	return &Cache{dir: dir, x: x, inFile: max(leastInFile, (int(blocks)+mostFiles-1)/mostFiles)}, false, nil
}

// blocksOf returns how many blocks an index has; 0: the file is none.
func blocksOf(f *os.File, size int64) uint64 {
	var h [16]byte
	if _, err := f.ReadAt(h[:], 0); err != nil || binary.NativeEndian.Uint64(h[:8]) != magic {
		return 0
	}
	n := binary.NativeEndian.Uint64(h[8:])
	if n < least || n > largest {
		return 0
	}
	if _, total := sizes(n); int64(total) != size {
		return 0
	}
	return n
}

// blocksIn returns how many blocks fit into a number of bytes, with their index.
func blocksIn(bytes int64) uint64 {
	n := uint64(min(bytes/blockBytes, largest))
	for n > 0 {
		if _, total := sizes(n); int64(n)*blockBytes+int64(total) <= bytes {
			return n
		}
		n--
	}
	return 0
}

// makeIndex puts an empty index in place of what has the name. Files of blocks go: they may be of another size.
func makeIndex(dir string, blocks uint64) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if blocksFile.MatchString(f.Name()) {
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				return err
			}
		}
	}
	path := filepath.Join(dir, "index")
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() // what matters was flushed, or is not renamed
	_, total := sizes(blocks)
	whole, err := allocate(f, int64(total))
	if err != nil {
		return err
	}
	if !whole { // it is mapped: a page of a full disk would end the process
		zeros := make([]byte, min(total, blockBytes))
		for at := 0; at < total; at += len(zeros) {
			if _, err := f.WriteAt(zeros[:min(total-at, len(zeros))], int64(at)); err != nil {
				return err
			}
		}
	}
	var h [16]byte
	binary.NativeEndian.PutUint64(h[:8], magic)
	binary.NativeEndian.PutUint64(h[8:], blocks)
	if _, err := f.WriteAt(h[:], 0); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

var blocksFile = regexp.MustCompile(`^blocks-[0-9]{4,}$`)

// Close unmaps the index. No other method may be running.
func (c *Cache) Close() error {
	c.files.Range(func(_, f any) bool {
		_ = f.(*os.File).Close() // only read from, or written as a cache
		return true
	})
	return errors.Join(c.x.close(), c.x.file.Close())
}

// change calls f while no other process changes the index. Where that fails, the cache is let alone for a while.
func (c *Cache) change(f func(x *index)) error {
	if c.resting() {
		return errBroken
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting() { // since it was waited for: each of those who wait would try the lock in turn
		return errBroken
	}
	if err := lockFile(c.x.file, patience); err != nil {
		c.rest()
		return err
	}
	defer unlockFile(c.x.file)
	if c.x.h.dirty != 0 {
		c.x.rebuild()
	}
	c.x.h.dirty = 1
	for _, k := range c.left {
		if block := c.x.find(k); block >= 0 && c.x.entries[block].state() == stateClaimed &&
			c.x.entries[block].pid == uint32(os.Getpid()) {
			c.x.drop(block)
		}
	}
	c.left = c.left[:0]
	f(c.x)
	c.x.h.dirty = 0
	return nil
}

// release is change for f that ends the claim of a block. Where that fails the next change does it: else the block's
// next readers would wait for it until the claim runs out.
func (c *Cache) release(k key, f func(x *index)) {
	if c.change(f) != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.left = append(c.left, k)
	}
}

// rest lets the cache alone for a while, after it did not work: every read would try it again.
func (c *Cache) rest() {
	c.x.h.failed.Add(1)
	c.broken.Store(int64(time.Since(began) + pause))
}

// resting reports whether the cache is let alone.
func (c *Cache) resting() bool { return int64(time.Since(began)) < c.broken.Load() }

// began is when this process began, by a clock that does not go back.
var began = time.Now()

// lockFile takes the lock of a file, or gives up.
func lockFile(f *os.File, patience time.Duration) error {
	for begin, wait := time.Now(), 50*time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		busy := errors.Is(err, unix.EWOULDBLOCK)
		switch late := time.Since(begin) > patience; {
		case busy && late:
			return fmt.Errorf("lock %s: another process has held it for %v: %w", f.Name(), patience, err)
		case !busy && !errors.Is(err, unix.EINTR) || late:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		time.Sleep(wait)
	}
}

func unlockFile(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // the end of the process would do as well
}

// file returns the file of a block, and where in it the block is. If write is set, the file is there, and the block
// allocated; the lock is held then.
func (c *Cache) file(block int, write bool) (f *os.File, off int64, err error) {
	n := block / c.inFile
	off = int64(block%c.inFile) * blockBytes
	if known, ok := c.files.Load(n); ok {
		f = known.(*os.File)
	} else if f, err = c.openFile(n, write); err != nil {
		return nil, 0, err
	}
	if !write {
		return f, off, nil
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if was := st.Size(); was < off+blockBytes {
		most := int64(min(c.inFile, int(c.x.h.blocks)-n*c.inFile)) * blockBytes
		if _, err := allocate(f, min(off/step*step+step, most)); err != nil {
			return nil, 0, errors.Join(err, f.Truncate(was)) // a disk may keep what it had allocated
		}
	}
	return f, off, nil
}

// step is by how much a file of blocks grows.
const step = 64 << 20

// openFile opens a file of blocks, once for the process.
func (c *Cache) openFile(n int, make bool) (*os.File, error) {
	// Where the directory was made anew, or the index, the files are another cache's.
	st, err := c.x.file.Stat()
	if err != nil {
		return nil, err
	}
	if now, err := os.Stat(filepath.Join(c.dir, "index")); err != nil || !os.SameFile(st, now) {
		return nil, errors.New("the directory has another cache by now")
	}
	flags := os.O_RDWR | unix.O_NOFOLLOW
	if make {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(c.fileName(n), flags, 0o600)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = f.Close() // it was not written
		return nil, fmt.Errorf("%s is no file", f.Name())
	}
	if was, loaded := c.files.LoadOrStore(n, f); loaded {
		_ = f.Close() // the other is as good
		f = was.(*os.File)
	}
	return f, nil
}

func (c *Cache) fileName(n int) string { return filepath.Join(c.dir, fmt.Sprintf("blocks-%04d", n)) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksums returns the CRCs of a block's bytes.
func checksums(p []byte) (out [sums]uint32) {
	for i := 0; i*sumBytes < len(p); i++ {
		out[i] = crc32.Checksum(p[i*sumBytes:min((i+1)*sumBytes, len(p))], castagnoli)
	}
	return out
}

// parts are 64 KiB that are read to be checked.
var parts = sync.Pool{New: func() any { return new([sumBytes]byte) }}

// A hit says what get found.
type hit int

const (
	miss hit = iota
	found
	damaged // the block is the key's, and its bytes are not what was written
)

// get fills p from offset off of a block, if it is there: n is how many bytes of p the block has.
func (c *Cache) get(k key, p []byte, off int) (n int, got hit) {
	block := c.x.find(k)
	if block < 0 {
		return 0, miss
	}
	e := &c.x.entries[block]
	number := e.number.Load()
	length := e.length()
	if number&1 != 0 || e.keyOf() != k || length > blockBytes {
		return 0, miss
	}
	if state := e.state(); state != stateSmall && state != stateMain {
		return 0, miss
	}
	var crcs [sums]uint32
	for i := range crcs {
		crcs[i] = e.sums[i].Load()
	}
	n = max(0, min(len(p), length-off))
	if checkOf(k, length, &crcs) != e.check.Load() {
		got = damaged
	} else if got = found; n > 0 {
		got = c.read(block, length, &crcs, p[:n], off)
	}
	if e.number.Load() != number {
		return 0, miss
	}
	if got != found {
		return 0, got
	}
	e.touch(time.Now())
	return n, found
}

// read fills p from off of a block. A block whose file cannot be opened is a miss, and says nothing of the block.
func (c *Cache) read(block, length int, crcs *[sums]uint32, p []byte, off int) hit {
	f, at, err := c.file(block, false)
	if err != nil {
		return miss
	}
	for len(p) > 0 {
		part := off / sumBytes
		begin, end := part*sumBytes, min((part+1)*sumBytes, length)
		if off == begin && len(p) >= end-begin { // whole parts: as many as there are
			whole := (len(p) + off) / sumBytes * sumBytes
			if len(p)+off >= length {
				whole = length
			}
			to := p[:whole-off]
			if _, err := f.ReadAt(to, at+int64(off)); err != nil {
				return damaged
			}
			for len(to) > 0 {
				one := to[:min(sumBytes, len(to))]
				if crc32.Checksum(one, castagnoli) != crcs[part] {
					return damaged
				}
				to, part = to[len(one):], part+1
			}
			p, off = p[whole-off:], whole
			continue
		}
		scratch := parts.Get().(*[sumBytes]byte)
		_, err := f.ReadAt(scratch[:end-begin], at+int64(begin))
		ok := err == nil && crc32.Checksum(scratch[:end-begin], castagnoli) == crcs[part]
		if ok {
			n := copy(p, scratch[off-begin:end-begin])
			p, off = p[n:], off+n
		}
		parts.Put(scratch)
		if !ok {
			return damaged
		}
	}
	return found
}

// A claim is what became of the wish to fetch a block.
type claim struct {
	block  int           // to fill; -1: not kept
	flight chan struct{} // to be closed when it was filled, or given up
	wait   bool          // another read fetches it
}

// claims claims the blocks of keys, which are missing. Those that are there by now are not claimed: wait is set for
// them too, which costs another look.
func (c *Cache) claims(keys []key) ([]claim, error) {
	out := make([]claim, len(keys))
	now, pid := time.Now().UnixNano(), uint32(os.Getpid())
	err := c.change(func(x *index) {
		for i, k := range keys {
			out[i].block = -1
			block := x.find(k)
			switch {
			case block >= 0 && (x.entries[block].state() != stateClaimed || c.owned(k, &x.entries[block])):
				out[i].wait = true
				continue
			case block < 0:
				if block = x.take(); block < 0 {
					continue
				}
				x.claim(k, block)
			}
			x.entries[block].since, x.entries[block].pid = now, pid
			out[i].block, out[i].flight = block, make(chan struct{})
			c.flights.Store(k, out[i].flight)
		}
	})
	return out, err
}

// renew keeps claims of this process for as long as their fetch takes, until end is called.
func (c *Cache) renew(keys []key, of []claim) (end func()) {
	done, ended, every := make(chan struct{}), make(chan struct{}), claimed/4
	timer := time.AfterFunc(every, func() {
		defer close(ended)
		for {
			_ = c.change(func(x *index) { // else others take the claims over
				for i, k := range keys {
					if of[i].flight == nil {
						continue
					}
					e := &x.entries[of[i].block]
					if e.state() == stateClaimed && e.keyOf() == k && e.pid == uint32(os.Getpid()) {
						e.since = time.Now().UnixNano()
					}
				}
			})
			select {
			case <-done:
				return
			case <-time.After(every):
			}
		}
	})
	return func() {
		close(done)
		if !timer.Stop() {
			<-ended
		}
	}
}

// owned reports whether somebody fetches the block of a claimed entry: this process, or another that lives and goes on
// with it. The lock is held.
func (c *Cache) owned(k key, e *entry) bool {
	if _, own := c.flights.Load(k); own {
		return true
	}
	since := time.Duration(time.Now().UnixNano() - e.since) // the clock may have gone back
	return alive(e.pid) && since < claimed && since > -claimed
}

// alive reports whether a process of this machine lives, or one that has its number now.
func alive(pid uint32) bool { return !errors.Is(syscall.Kill(int(pid), 0), syscall.ESRCH) }

// put writes what a claimed block holds, and says so, if the claim stands. Where that fails the block is free again. It
// writes under the lock: after Clear nothing is written that was fetched before.
func (c *Cache) put(k key, block int, p []byte) {
	crcs := checksums(p)
	c.release(k, func(x *index) {
		e := &x.entries[block]
		if e.state() != stateClaimed || e.keyOf() != k {
			return
		}
		f, off, err := c.file(block, true)
		if err == nil {
			_, err = f.WriteAt(p, off)
		}
		if err != nil {
			x.drop(block)
			c.rest()
			return
		}
		x.fill(block, len(p), crcs)
		x.h.bytesFetched.Add(uint64(len(p)))
	})
}

// forget drops a block of a key: one that is damaged, or that could not be fetched.
func (c *Cache) forget(k key, state func(int) bool) {
	c.release(k, func(x *index) {
		if block := x.find(k); block >= 0 && state(x.entries[block].state()) {
			x.drop(block)
		}
	})
}

// Clear forgets all blocks, and gives their bytes back to the disk.
func (c *Cache) Clear() error {
	return c.change(func(x *index) {
		for block := range int(x.h.used) {
			e := &x.entries[block]
			e.begin()
			e.setKey(key{})
			e.end()
		}
		clear(x.ghost)
		x.rebuild()
		for n := 0; n*c.inFile < int(x.h.blocks); n++ {
			_ = os.Truncate(c.fileName(n), 0) // one that is not there has none
		}
	})
}

// Stat returns what the cache holds and did.
func (c *Cache) Stat() (Stat, error) {
	h := c.x.h
	_, indexBytes := sizes(h.blocks)
	s := Stat{
		Dir: c.dir, Bytes: int64(h.blocks)*blockBytes + int64(indexBytes), Files: int64(indexBytes),
		Hits: h.hits.Load(), Misses: h.misses.Load(), HitBytes: h.bytesHit.Load(), FetchedBytes: h.bytesFetched.Load(),
		Evicted: h.evicted.Load(), Damaged: h.damaged.Load(), Waited: h.waited.Load(), Failed: h.failed.Load(),
	}
	err := c.change(func(x *index) {
		for block := range int(h.used) {
			e := &x.entries[block]
			if (e.state() == stateSmall || e.state() == stateMain) && e.keyOf() != (key{}) {
				s.Blocks++
				s.Used += int64(e.length())
			}
		}
	})
	for n := 0; n*c.inFile < int(h.blocks); n++ {
		st, serr := os.Stat(c.fileName(n))
		if errors.Is(serr, fs.ErrNotExist) {
			continue
		}
		if serr != nil {
			return s, errors.Join(err, serr)
		}
		s.Files += st.Size()
	}
	return s, err
}
