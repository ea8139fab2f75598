package writer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/dsistore/dsistore/internal/spill"
)

// An Origin is N consecutive rows of an input of a Rewrite, from Row on.
type Origin struct{ Input, Row, N uint32 }

// An OriginSpan locates the origins of one segment in the file of origins.
type OriginSpan struct {
	at    int64 // in origins
	count int64
}

// An originFile is a temporary file with the origins of all written rows, in writing order. Consecutive rows of an
// input make one entry of 12 bytes, little-endian. Closing frees the file.
//
//	+-----------+---------+-------+
//	| input (4) | row (4) | n (4) |
//	+-----------+---------+-------+
type originFile struct {
	file    *spill.File
	out     *bufio.Writer
	now     Origin // not yet written; N 0: none
	begun   int64  // value of written where the current segment starts
	written int64  // in origins
	err     error  // of writing
}

const originBytes = 12

func newOriginFile(dir string) (*originFile, error) {
	file, err := spill.Create(dir)
	if err != nil {
		return nil, err
	}
	return &originFile{file: file, out: bufio.NewWriterSize(file, 64<<10)}, nil
}

// add adds the next row.
func (f *originFile) add(input, row uint32) {
	if f.now.N > 0 && f.now.Input == input && f.now.Row+f.now.N == row {
		f.now.N++
		return
	}
	f.flush()
	f.now = Origin{input, row, 1}
}

// flush writes now.
func (f *originFile) flush() {
	if f.now.N == 0 {
		return
	}
	var b [originBytes]byte
	binary.LittleEndian.PutUint32(b[:], f.now.Input)
	binary.LittleEndian.PutUint32(b[4:], f.now.Row)
	binary.LittleEndian.PutUint32(b[8:], f.now.N)
	_, err := f.out.Write(b[:])
	f.err = errors.Join(f.err, err)
	f.written++
	f.now = Origin{}
}

// end ends a segment and returns its span.
func (f *originFile) end() (OriginSpan, error) {
	f.flush()
	s := OriginSpan{f.begun, f.written - f.begun}
	f.begun = f.written
	if err := errors.Join(f.err, f.out.Flush()); err != nil {
		return s, fmt.Errorf("writing a spill file: %w", err)
	}
	return s, nil
}

// each visits the origins of a segment in order; at is the row of the segment. It is safe for concurrent use.
func (f *originFile) each(s OriginSpan, visit func(at uint32, o Origin) error) error {
	in := bufio.NewReaderSize(io.NewSectionReader(f.file, s.at*originBytes, s.count*originBytes), 64<<10)
	var b [originBytes]byte
	at := uint32(0)
	for range s.count {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return fmt.Errorf("reading a spill file: %w", err)
		}
		o := Origin{binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:]),
			binary.LittleEndian.Uint32(b[8:])}
		if err := visit(at, o); err != nil {
			return err
		}
		at += o.N
	}
	return nil
}

func (f *originFile) close() error { return f.file.Close() }
