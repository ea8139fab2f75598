package stream

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Fingerprint returns the fingerprint of a file: two 64-bit xxHashes of its bytes with the seeds 0 and 1, in hex, so
// that the same bytes under another name are the same source. It guards against mistakes (a dump ingested twice), not
// against forgery. Reading the file is what it costs.
func Fingerprint(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, buf := NewReader(f), make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if _, err := r.Read(buf); err == io.EOF {
			return r.Sum()
		} else if err != nil {
			return "", err
		}
	}
}

// A Reader hashes what is read through it.
type Reader struct {
	r io.ReadCloser

	mu   sync.Mutex // guards what follows
	a, b *xxhash.Digest
	done bool
}

// NewReader returns a Reader over r.
func NewReader(r io.ReadCloser) *Reader {
	return &Reader{r: r, a: xxhash.NewWithSeed(0), b: xxhash.NewWithSeed(1)}
}

// Read reads and hashes.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.a.Write(p[:n])
	r.b.Write(p[:n])
	r.done = r.done || err == io.EOF
	return n, err
}

// Close closes what it reads.
func (r *Reader) Close() error { return r.r.Close() }

// Sum returns the fingerprint of all that was read, once it was read to its end.
func (r *Reader) Sum() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		return "", errors.New("the stream's fingerprint is known once it was read to its end")
	}
	return hex.EncodeToString(r.b.Sum(r.a.Sum(nil))), nil
}

// A Pipe is a named pipe, opened by the first Read: that waits for its writer. It can be read once.
type Pipe struct {
	Path string
	f    *os.File
}

// Read opens the pipe where it is not open, and reads.
func (p *Pipe) Read(b []byte) (n int, err error) {
	if p.f == nil {
		if p.f, err = os.Open(p.Path); err != nil {
			return 0, err
		}
	}
	return p.f.Read(b)
}

// Close closes the pipe, if it was opened.
func (p *Pipe) Close() error {
	if p.f == nil {
		return nil
	}
	return p.f.Close()
}
