package object

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// unsyncedPutter is a Store that has a cheaper way to put an object that need not last.
type unsyncedPutter interface {
	putUnsynced(ctx context.Context, name string, data []byte) error
}

// PutUnsynced is PutIfAbsent for an object that may be lost: where the machine loses power soon after, it may be
// absent, or be there and have other bytes, fewer or none. Who reads it then knows by a checksum. Otherwise it is seen
// whole, or not at all. Of a store that has no cheaper way it is PutIfAbsent.
func PutUnsynced(ctx context.Context, s Store, name string, data []byte) error {
	if u, ok := s.(unsyncedPutter); ok {
		return u.putUnsynced(ctx, name, data)
	}
	return s.PutIfAbsent(ctx, name, data)
}

// putUnsynced makes an object as a localWriter does, without a sync: five calls of the system where the directories are
// there.
func (l *Local) putUnsynced(ctx context.Context, name string, data []byte) error {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return err
	}
	path := l.path(name)
	dir := l.fs.PathJoin(l.root, tmpDir)
	tmp := l.fs.PathJoin(dir, temporaryName())
	var f vfs.File
	err := l.inDir(dir, func() (err error) {
		f, err = l.fs.Create(tmp, category)
		return err
	})
	if err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	defer l.fs.Remove(tmp) // one that stays behind is swept by gc
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	err = l.inDir(l.fs.PathDir(path), func() error { return l.fs.Link(tmp, path) })
	if errors.Is(err, fs.ErrExist) {
		return exists(name)
	} else if err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	return nil
}

// inDir calls f, and makes the directory first where it is not there.
func (l *Local) inDir(dir string, f func() error) error {
	err := f()
	if !isAbsent(err) {
		return err
	}
	if err := l.makeDirAnew(dir); err != nil {
		return err
	}
	return f()
}

func (c *Counted) putUnsynced(ctx context.Context, name string, data []byte) error {
	c.writes.Add(1)
	c.bytesWritten.Add(int64(len(data)))
	return c.ended.end(opWrite, PutUnsynced(ctx, c.Store, name, data))
}

func (f *Fault) putUnsynced(ctx context.Context, name string, data []byte) error {
	return f.do(func() error { return PutUnsynced(ctx, f.Store, name, data) })
}
