package object

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const tmpDir = "_tmp"

// category is how vfs accounts for our writes.
const category = vfs.WriteCategoryUnspecified

// Local is a Store in a directory. doc.go says how an object is written. The directory is made by the first write.
type Local struct {
	root string
	fs   vfs.FS

	mu sync.Mutex
	// durable holds the directories that this process knows to exist durably. Guarded by mu.
	durable map[string]bool
	// missing holds the directories above the root that this process found missing, and so may have made. Guarded by
	// mu.
	missing map[string]bool
}

// NewLocal returns the store in the directory root of the machine's file system.
func NewLocal(root string) (*Local, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", root, err)
	}
	if info, err := os.Stat(abs); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("store %s: this is a file; name the directory of a store, or a new directory", root)
	}
	return NewLocalFS(vfs.Default, abs), nil
}

// NewLocalFS returns the store in the directory root of fs. Tests pass a file system that crashes.
func NewLocalFS(fs vfs.FS, root string) *Local {
	return &Local{root: root, fs: fs, durable: map[string]bool{}, missing: map[string]bool{}}
}

// FS returns the file system under the store and Root its directory in it, for those who keep files of their own beside
// the objects under a name that begins with "_".
func (l *Local) FS() vfs.FS   { return l.fs }
func (l *Local) Root() string { return l.root }
func (l *Local) URI() string  { return l.root }

// Path returns the file that holds, or would hold, an object.
func (l *Local) Path(name string) (string, error) {
	if err := ValidateName(name); err != nil {
		return "", err
	}
	return l.path(name), nil
}

func (l *Local) path(name string) string {
	if l.fs == vfs.Default && filepath.Separator == '/' && name != "" {
		return l.root + "/" + name
	}
	return l.fs.PathJoin(append([]string{l.root}, strings.Split(name, "/")...)...)
}

// open returns the file of an object.
func (l *Local) open(name string) (vfs.File, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	// Asked first: to open a named pipe waits for ever.
	if _, err := l.plain(name); err != nil {
		return nil, err
	}
	f, err := l.fs.Open(l.path(name))
	if isAbsent(err) {
		return nil, notFound(name)
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", name, err)
	}
	return f, nil
}

// plain describes the plain file of an object, whose name is valid, or the one that a symbolic link in its place leads
// to.
func (l *Local) plain(name string) (Info, error) {
	info, err := l.fs.Stat(l.path(name))
	switch {
	case isAbsent(err) || err == nil && info.IsDir():
		return Info{}, notFound(name)
	case err != nil:
		return Info{}, fmt.Errorf("object %s: %w", name, err)
	case !info.Mode().IsRegular():
		return Info{}, fmt.Errorf("object %s: %s is no plain file (%v)", name, l.path(name), info.Mode().Type())
	}
	return Info{Name: name, Size: info.Size(), ModTime: info.ModTime().UnixNano()}, nil
}

func (l *Local) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	return l.readRanges(ctx, name, []Range{{p, off}})
}

func (l *Local) Stat(ctx context.Context, name string) (Info, error) {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return Info{}, err
	}
	return l.plain(name)
}

func (l *Local) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if _, err := l.Stat(ctx, name); err == nil {
		return l.exists(name)
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	w, err := l.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Commit(ctx)
}

// exists makes sure that an object that was found in its place is durable, and returns ErrExists. Who put it there may
// not have come to the sync of its directory, or had it fail.
func (l *Local) exists(name string) error {
	if err := l.syncDir(l.fs.PathDir(l.path(name))); err != nil {
		return err
	}
	return exists(name)
}

func (l *Local) Create(ctx context.Context, name string) (Writer, error) {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return nil, err
	}
	dir := l.fs.PathJoin(l.root, tmpDir)
	if err := l.makeDir(dir); err != nil {
		return nil, err
	}
	tmp := l.fs.PathJoin(dir, temporaryName())
	f, err := l.fs.Create(tmp, category)
	if isAbsent(err) { // somebody has removed the store, and may make another in its place
		if err := l.makeDirAnew(dir); err != nil {
			return nil, err
		}
		f, err = l.fs.Create(tmp, category)
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", name, err)
	}
	return &localWriter{l: l, ctx: ctx, f: f, name: name, tmp: tmp}, nil
}

// localWriter is the Writer of a Local. f is nil once it has ended.
type localWriter struct {
	l         *Local
	ctx       context.Context // of Create
	f         vfs.File
	name, tmp string
	err       error
}

func (w *localWriter) Write(p []byte) (int, error) {
	if w.f == nil {
		return 0, fmt.Errorf("object %s: write after the end", w.name)
	}
	if err := checkUpload(w.ctx, w.name); err != nil {
		return 0, err
	}
	n, err := w.f.Write(p)
	if err != nil {
		w.err = fmt.Errorf("object %s: %w", w.name, err)
		return n, w.err
	}
	return n, nil
}

func (w *localWriter) Commit(ctx context.Context) error {
	if w.f == nil {
		return fmt.Errorf("object %s: commit after the end", w.name)
	}
	defer w.Abort()
	if err := cmp.Or(w.err, checkUpload(w.ctx, w.name), ctx.Err()); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("object %s: %w", w.name, err)
	}
	path := w.l.path(w.name)
	dir := w.l.fs.PathDir(path)
	if err := w.l.makeDir(dir); err != nil {
		return err
	}
	err := w.l.fs.Link(w.tmp, path)
	if isAbsent(err) {
		if err := w.l.makeDirAnew(dir); err != nil {
			return err
		}
		err = w.l.fs.Link(w.tmp, path)
	}
	if errors.Is(err, fs.ErrExist) {
		return w.l.exists(w.name)
	} else if err != nil {
		return fmt.Errorf("object %s: %w", w.name, err)
	}
	return w.l.syncDir(dir)
}

func (w *localWriter) Abort() {
	if w.f == nil {
		return
	}
	w.f.Close()
	w.f = nil
	// A temporary file that stays behind is swept by gc.
	_ = w.l.fs.Remove(w.tmp)
}

// makeDir makes dir, which is the root or below it, and its missing parents, and makes their entries durable. Every
// level from the root down is synced once even when it was there: another process may have made it and not synced it
// yet.
func (l *Local) makeDir(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.durable[dir] {
		return nil
	}
	var levels []string // from dir up, those that must be synced
	above := false      // above the root
	for d := dir; !l.durable[d]; d = l.fs.PathDir(d) {
		if above {
			if _, err := l.fs.Stat(d); err == nil && !l.missing[d] {
				break
			}
			l.missing[d] = true
		}
		levels = append(levels, d)
		above = above || d == l.root
		if l.fs.PathDir(d) == d {
			break
		}
	}
	if err := l.fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("store %s: %w", l.root, err)
	}
	for _, d := range levels {
		err := l.syncDir(l.fs.PathDir(d))
		// The parent of a root that was there may be closed to us; everything else is ours.
		if err != nil && !(d == l.root && errors.Is(err, fs.ErrPermission)) {
			return err
		}
	}
	for _, d := range levels {
		l.durable[d] = true
	}
	return nil
}

// makeDirAnew is makeDir where a directory that this process knew is gone.
func (l *Local) makeDirAnew(dir string) error {
	l.mu.Lock()
	clear(l.durable)
	l.mu.Unlock()
	return l.makeDir(dir)
}

func (l *Local) syncDir(dir string) error {
	d, err := l.fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("store %s: %w", l.root, err)
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("store %s: sync %s: %w", l.root, dir, err)
	}
	return nil
}

func (l *Local) Delete(ctx context.Context, name string) error {
	if _, err := l.Stat(ctx, name); errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if err := l.fs.Remove(l.path(name)); err != nil && !isAbsent(err) {
		return fmt.Errorf("object %s: %w", name, err)
	}
	return nil
}

// Truncate puts an empty file in the place of the object's, so that who has that open reads on.
func (l *Local) Truncate(ctx context.Context, of Info) error {
	name := of.Name
	w, err := l.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	f := w.(*localWriter)
	path := l.path(name)
	dir := l.fs.PathDir(path)
	if err := errors.Join(f.f.Sync(), l.makeDir(dir)); err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	err = l.fs.Rename(f.tmp, path)
	if isAbsent(err) { // somebody has removed the directory
		if err := l.makeDirAnew(dir); err != nil {
			return err
		}
		err = l.fs.Rename(f.tmp, path)
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	return l.syncDir(dir)
}

func (l *Local) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		w := listing{l: l, ctx: ctx, prefix: prefix, after: startAfter, yield: yield}
		// Nothing is yielded from above the last directory that the prefix names.
		dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
		if dir != "" && ValidateName(dir[:len(dir)-1]) != nil {
			return
		}
		w.dir(dir)
	}
}

// listing is one walk of List.
type listing struct {
	l             *Local
	ctx           context.Context
	prefix, after string
	yield         func(Info, error) bool
}

// dir yields what is under name, which is empty or ends in a slash, and reports whether to go on.
func (w *listing) dir(name string) bool {
	if err := w.ctx.Err(); err != nil {
		w.yield(Info{}, err)
		return false
	}
	path := w.l.path(strings.TrimSuffix(name, "/"))
	entries, err := w.l.fs.List(path)
	if isAbsent(err) {
		return true
	}
	if err != nil {
		if info, serr := w.l.fs.Stat(path); serr == nil && !info.IsDir() {
			return true // an object, which has nothing under it
		}
		w.yield(Info{}, fmt.Errorf("store %s: list %s: %w", w.l.root, name, err))
		return false
	}
	entries = w.sort(name, entries)
	for len(entries) > 0 {
		e := entries[0]
		entries = entries[1:]
		full := name + strings.TrimSuffix(e, "/")
		if ValidateName(full) != nil || !w.wanted(full) {
			continue
		}
		info, err := w.l.fs.Stat(w.l.path(full))
		switch {
		case isAbsent(err) && w.l.isLink(full):
			continue // it leads nowhere
		case isAbsent(err):
			// It was deleted since the names were read. What was made before that, and is there, may be missing among
			// them: as a page of a listing that begins here, the names are read again.
			again, err := w.l.fs.List(path)
			if err != nil && !isAbsent(err) {
				w.yield(Info{}, fmt.Errorf("store %s: list %s: %w", w.l.root, name, err))
				return false
			}
			entries = slices.DeleteFunc(w.sort(name, again), func(other string) bool { return other <= e })
		case err != nil:
			w.yield(Info{}, fmt.Errorf("object %s: %w", full, err))
			return false
		case info.IsDir() && w.l.isLink(full):
			w.yield(Info{}, fmt.Errorf(
				"store %s: %s is a symbolic link to a directory: a store's directories are its own", w.l.root, full))
			return false
		case info.IsDir():
			if !w.dir(full + "/") {
				return false
			}
		case info.Mode().IsRegular() && strings.HasPrefix(full, w.prefix) && full > w.after:
			if !w.yield(Info{Name: full, Size: info.Size(), ModTime: info.ModTime().UnixNano()}, nil) {
				return false
			}
		}
	}
	return true
}

// isLink reports whether there is a symbolic link in the place of a name. Only the machine's file system has any.
func (l *Local) isLink(name string) bool {
	if l.fs != vfs.Default {
		return false
	}
	info, err := os.Lstat(l.path(name))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// wanted reports whether name, a file or a directory, may hold an object that the walk yields.
func (w *listing) wanted(name string) bool {
	dir := name + "/"
	if !strings.HasPrefix(name, w.prefix) && !strings.HasPrefix(w.prefix, dir) && !strings.HasPrefix(dir, w.prefix) {
		return false
	}
	return name > w.after || dir > w.after || strings.HasPrefix(w.after, dir)
}

// sort orders a directory's entries so that the walk yields names in byte order: a directory sorts as its name and a
// slash. Only an entry that is followed by itself and a byte below the slash ("a", "a-b") need be told apart.
func (w *listing) sort(name string, entries []string) []string {
	slices.Sort(entries)
	changed := false
	for i, e := range entries[:max(0, len(entries)-1)] {
		next := entries[i+1]
		if strings.HasPrefix(next, e) && next[len(e)] < '/' {
			if info, err := w.l.fs.Stat(w.l.path(name + e)); err == nil && info.IsDir() {
				entries[i], changed = e+"/", true
			}
		}
	}
	if changed {
		slices.Sort(entries)
	}
	return entries
}

// temporaryName returns a new name of a temporary file, and isTemporary reports whether a name is one: 32 lower-case
// hexadecimal digits.
func temporaryName() string {
	var r [16]byte
	rand.Read(r[:])
	return hex.EncodeToString(r[:])
}

func isTemporary(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 16 && hex.EncodeToString(b) == name
}

// Temporary lists the temporary files that writers of any process left or are writing, oldest or not.
func (l *Local) Temporary(ctx context.Context) ([]Info, error) {
	if l.isLink(tmpDir) {
		return nil, fmt.Errorf("store %s: %s is a symbolic link: what it leads to may be somebody else's",
			l.root, tmpDir)
	}
	dir := l.fs.PathJoin(l.root, tmpDir)
	entries, err := l.fs.List(dir)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: list %s: %w", l.root, tmpDir, err)
	}
	slices.Sort(entries)
	var out []Info
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !isTemporary(e) {
			continue // somebody else's, who calls a directory so too
		}
		info, err := l.fs.Stat(l.fs.PathJoin(dir, e))
		if isAbsent(err) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", l.root, err)
		}
		out = append(out, Info{Name: tmpDir + "/" + e, Size: info.Size(), ModTime: info.ModTime().UnixNano()})
	}
	return out, nil
}

// RemoveTemporary removes a file that Temporary listed.
func (l *Local) RemoveTemporary(_ context.Context, name string) error {
	base, ok := strings.CutPrefix(name, tmpDir+"/")
	if !ok || !isTemporary(base) {
		return fmt.Errorf("store %s: %q is no temporary file", l.root, name)
	}
	if err := l.fs.Remove(l.fs.PathJoin(l.root, tmpDir, base)); err != nil && !isAbsent(err) {
		return fmt.Errorf("store %s: %w", l.root, err)
	}
	return nil
}

// Holds returns the name of something that the root holds, a file of whatever name or a directory, or "" when it is
// empty or not there.
func (l *Local) Holds() (string, error) {
	entries, err := l.fs.List(l.root)
	if err != nil && !isAbsent(err) {
		return "", fmt.Errorf("store %s: %w", l.root, err)
	}
	slices.Sort(entries)
	for _, e := range entries {
		if e != tmpDir {
			return e, nil
		}
	}
	return "", nil
}

// SyncDir makes durable what was made and removed directly under a name prefix; nothing where there is no such
// directory.
func (l *Local) SyncDir(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return err
	}
	if err := l.syncDir(l.path(name)); !isAbsent(err) {
		return err
	}
	return nil
}

// RemoveEmptyDir removes the directory of a name prefix when nothing is in it. Nobody may be about to write there.
func (l *Local) RemoveEmptyDir(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	path := l.path(name)
	entries, err := l.fs.List(path)
	if isAbsent(err) || len(entries) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store %s: list %s: %w", l.root, name, err)
	}
	delete(l.durable, path)
	// Who filled it meanwhile keeps it: Remove refuses a directory that is not empty.
	_ = l.fs.Remove(path)
	return nil
}

func isAbsent(err error) bool {
	// ENOTDIR: a component of the name is a file.
	return err != nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR))
}
