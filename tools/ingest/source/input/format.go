package input

import (
	"context"
	"io"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/files"
)

// A Format is a kind of file. What differs between formats is in its fields.
type Format struct {
	Name string
	// Magic is how its files begin, Suffixes how their names end: the two tell the format of a file, magic first.
	Magic, Suffixes []string
	// FilesOnly: it is read at any offset, which neither stdin nor a pipe allows.
	FilesOnly bool
	// Guess reports whether a file whose first bytes and name tell nothing is in the format; nil: none is.
	Guess func(d *Set, head []byte, compressed bool) bool
	// Begin returns what opens the files of a dump. nil: files are in any format, which each of them tells.
	Begin func(d *Set) Opener
	// Ranges returns what the timestamps of a file are that have no unit yet; nil: its rows are read for that.
	Ranges func(ctx context.Context, d *Set, in File) ([]TimestampLeaf, error)
}

// An Opener opens the reader of an input.
type Opener func(ctx context.Context, in File) (column.Reader, error)

// Opened returns what opening a reader gave, as an Opener returns it.
func Opened[R column.Reader](r R, err error) (column.Reader, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// A File is a file or a stream.
type File struct {
	Path   string
	Size   int64 // -1: a stream
	Format string
	Stream io.ReadCloser // what stdin or a pipe gives; nil: a file, or not there
	From   *files.System // that has the path
}

// Open opens a file for reads at offsets. It lives under ctx.
func (f File) Open(ctx context.Context) (files.File, error) { return f.From.Open(ctx, f.Path) }

// Read opens a file to be read from its beginning, or returns the stream. It lives under ctx.
func (f File) Read(ctx context.Context) (io.ReadCloser, error) {
	if f.Stream != nil {
		return f.Stream, nil
	}
	return f.From.Read(ctx, f.Path)
}

// A TimestampLeaf is a part of a column whose timestamps are of any unit.
type TimestampLeaf struct {
	Path   string
	Node   *column.Type
	Column int // that it is in
}
