package terminal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// A ForceFlag is embedded in commands that write a file.
type ForceFlag struct {
	Force bool `help:"Replace a file of this name."`
}

// WriteFile gives write a file beside path, which takes the path's name when write and everything else went well, so
// that path never holds half a file. A file that is there is only replaced with Force. What is no plain file (a device,
// a pipe) is written in place.
func (f ForceFlag) WriteFile(path string, write func(io.Writer) error) (size int64, err error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return 0, Usagef("%s: is a directory", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err == nil && info.Mode().IsRegular() && !f.Force {
		return 0, existsError(path)
	}
	inPlace := err == nil && !info.Mode().IsRegular()
	name, flags := path, os.O_WRONLY
	if !inPlace {
		// Not os.CreateTemp, whose files are for their owner alone.
		name = filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%016x", filepath.Base(path), rand.Uint64()))
		flags |= os.O_CREATE | os.O_EXCL
	}
	file, err := os.OpenFile(name, flags, 0o666)
	if opening := (*fs.PathError)(nil); errors.As(err, &opening) {
		return 0, fmt.Errorf("%s: %w", path, opening.Err) // not the temporary name
	} else if err != nil {
		return 0, err
	}
	defer func() {
		file.Close()
		if err != nil && !inPlace {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	counted := &countingWriter{w: file}
	if err := write(counted); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if inPlace {
		return counted.n, file.Close()
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return 0, err
	}
	if _, err := os.Stat(path); err == nil && !f.Force { // it was made meanwhile
		return 0, existsError(path)
	}
	return counted.n, os.Rename(name, path)
}

func existsError(path string) error {
	return Usagef("%s: there is a file of this name: give another one, or replace it with --force", path)
}

// countingWriter counts the bytes that went through.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
