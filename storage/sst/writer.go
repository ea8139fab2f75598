package sst

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
)

const (
	// BlockSize is the size at which a data block ends, and an index partition. Keys that are looked up together lie
	// anywhere, so that each costs a block and a partition: SPEC.md has the measurements.
	BlockSize      = 1 << 10
	indexBlockSize = 1 << 10
	// MaxEntry bounds key and value together.
	MaxEntry = 16 << 20
	// maxBlock bounds a stored block: the last entry may take a block past BlockSize.
	maxBlock = MaxEntry + 1<<20
)

// A Writer writes a sorted table. Not safe for concurrent use.
type Writer struct {
	w    *sstable.Writer
	sink *sink
}

// NewWriter returns a Writer to w, which the caller ends after Finish.
func NewWriter(w io.Writer) *Writer {
	s := &sink{w: w}
	return &Writer{sink: s, w: sstable.NewWriter(s, sstable.WriterOptions{
		TableFormat:          sstable.TableFormatPebblev2,
		BlockSize:            BlockSize,
		IndexBlockSize:       indexBlockSize,
		BlockRestartInterval: restartInterval,
		Compression:          sstable.NoCompression,
		Checksum:             block.ChecksumTypeCRC32c,
	})}
}

// Add appends an entry. Keys must come in strictly increasing order of their bytes. key and value are borrowed for the
// call.
func (w *Writer) Add(key, value []byte) error {
	if len(key)+len(value) > MaxEntry {
		return fmt.Errorf("table entry of %d bytes: want at most %d", len(key)+len(value), MaxEntry)
	}
	return w.w.Set(key, value)
}

// Finish writes what remains and returns the size of the table in bytes. It must be called, after an error too.
func (w *Writer) Finish() (int64, error) {
	err := w.w.Close()
	return w.sink.n, errors.Join(w.sink.err, err)
}

// sink is the objstorage.Writable over an io.Writer.
type sink struct {
	w   io.Writer
	n   int64
	err error
}

func (s *sink) Write(p []byte) error {
	n, err := s.w.Write(p)
	s.n += int64(n)
	if s.err == nil {
		s.err = err
	}
	return err
}

func (s *sink) Finish() error { return nil }
func (s *sink) Abort()        {}
