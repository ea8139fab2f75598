package spill

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"sync/atomic"
)

// A File is a spill file: bytes that are appended, and read back while it is open. Several goroutines may use it at
// once.
type File struct {
	*os.File
	end atomic.Int64
}

// Create makes a spill file in dir. Closing it frees it.
func Create(dir string) (*File, error) {
	f, err := os.CreateTemp(dir, Prefix+"*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = f.Close()
		return nil, err
	}
	return &File{File: f}, nil
}

// Claim reserves the next n bytes, which the caller writes, and returns their offset.
func (f *File) Claim(n int64) int64 { return f.end.Add(n) - n }

// Append writes b to bytes of its own and returns their offset.
func (f *File) Append(b []byte) (int64, error) {
	at := f.Claim(int64(len(b)))
	_, err := f.WriteAt(b, at)
	return at, err
}

// Size returns how many bytes were claimed.
func (f *File) Size() int64 { return f.end.Load() }

// Rewind forgets what was written, so that its bytes are written again.
func (f *File) Rewind() { f.end.Store(0) }

// ErrDamaged is matched when bytes that are read are not those that were written.
var ErrDamaged = errors.New("what was read is not what was written: check the disk that holds it")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// ReadBlock fills b with what was written at an offset, whose checksum is given. Any error matches ErrDamaged or that
// of the disk.
func (f *File) ReadBlock(b []byte, at int64, checksum uint32) error {
	if _, err := f.ReadAt(b, at); err != nil {
		return fmt.Errorf("reading a spill file: %w", errors.Join(ErrDamaged, err))
	}
	if Checksum(b) != checksum {
		return fmt.Errorf("reading a spill file: %w", ErrDamaged)
	}
	return nil
}
