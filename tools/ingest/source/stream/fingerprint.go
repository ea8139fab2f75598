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

// A fingerprint is two 64-bit xxHashes of a file's bytes with the seeds 0 and 1, in hex: the same bytes under another
// name are the same source. It guards against mistakes (a dump ingested twice), not against forgery. Reading the file
// is what it costs.

type contentHash struct{ a, b *xxhash.Digest }

func newContentHash() *contentHash {
	return &contentHash{xxhash.NewWithSeed(0), xxhash.NewWithSeed(1)}
}

func (h *contentHash) write(p []byte) {
	h.a.Write(p)
	h.b.Write(p)
}

func (h *contentHash) hex() string { return hex.EncodeToString(h.b.Sum(h.a.Sum(nil))) }

// Fingerprint returns the fingerprint of a file.
func Fingerprint(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := newContentHash()
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		h.write(buf[:n])
		if err == io.EOF {
			return h.hex(), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// A Reader hashes what is read through it.
type Reader struct {
	mu   sync.Mutex // guards what follows
	r    io.ReadCloser
	h    *contentHash
	done bool
}

// NewReader returns a Reader over r.
func NewReader(r io.ReadCloser) *Reader {
	return &Reader{r: r, h: newContentHash()}
}

// Read reads and hashes.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.write(p[:n])
	if err == io.EOF {
		r.done = true
	}
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
	return r.h.hex(), nil
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
