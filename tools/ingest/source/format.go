package source

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A format is a kind of file. What differs between formats is in its fields.
type format struct {
	name string
	// magic is how its files begin, suffixes how their names end: the two tell the format of a file, magic first.
	magic, suffixes []string
	// filesOnly: it is read at any offset, which neither stdin nor a pipe allows.
	filesOnly bool
	// guess reports whether a file whose first bytes and name tell nothing is in the format; nil: none is.
	guess func(d *inputSet, head []byte, compressed bool) bool
	// begin returns what opens the files of a dump. nil: files are in any format, which each of them tells.
	begin func(d *inputSet) opener
	// ranges returns what the timestamps of a file are that have no unit yet; nil: its rows are read for that.
	ranges func(path string) ([]momentLeaf, error)
}

// An opener opens the reader of an input.
type opener func(ctx context.Context, in input) (column.Reader, error)

// An input is a file or a stream.
type input struct {
	path   string
	size   int64 // -1: a stream
	format string
	stream io.ReadCloser // what stdin or a pipe gives; nil: a file, or not there
}

// formats are all that can be read, in the order in which they are told apart.
var formats = []*format{
	{name: "auto"},
	parquetFormat,
	{name: "hive", filesOnly: true}, // a directory in Hive's layout
	orcFormat,
	textFormat,
	jsonFormat,
	arrowFormat,
}

// formatNamed returns the format of a name, nil where there is none.
func formatNamed(name string) *format {
	i := slices.IndexFunc(formats, func(f *format) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return formats[i]
}

func formatNames() []string {
	var out []string
	for _, f := range formats {
		out = append(out, f.name)
	}
	return out
}

// sniffMagic returns the format of files that begin with head, nil where that tells none.
func sniffMagic(head []byte) *format {
	for _, f := range formats {
		if slices.ContainsFunc(f.magic, func(m string) bool { return bytes.HasPrefix(head, []byte(m)) }) {
			return f
		}
	}
	return nil
}

// sniff returns the format of a file by its first bytes, then by its name, then by a guess; nil: nothing tells it.
func sniff(d *inputSet, path string, head []byte) *format {
	name := strings.ToLower(filepath.Base(path))
	compressed := false
	for _, suffix := range []string{".gz", ".zst", ".bz2", ".deflate"} {
		if strings.HasSuffix(name, suffix) {
			name, compressed = strings.TrimSuffix(name, suffix), true
		}
	}
	for _, f := range formats {
		if slices.Contains(f.suffixes, filepath.Ext(name)) {
			return f
		}
	}
	for _, f := range formats {
		if f.guess != nil && f.guess(d, head, compressed) {
			return f
		}
	}
	return nil
}

// A momentLeaf is a part of a column whose timestamps are of any unit.
type momentLeaf struct {
	path   string
	node   *column.Type
	column int // that it is in
}
