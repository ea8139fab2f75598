package source

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/files"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/jsonl"
	"github.com/dsistore/dsistore/tools/ingest/source/orc"
	parquetsource "github.com/dsistore/dsistore/tools/ingest/source/parquet"
	"github.com/dsistore/dsistore/tools/ingest/source/text"
)

// formats are all that can be read, in the order in which they are told apart.
var formats = []*input.Format{
	{Name: "auto"},
	parquetsource.Format,
	{Name: "hive", FilesOnly: true}, // a directory in Hive's layout
	orc.Format,
	text.Format,
	jsonl.Format,
	arrowsource.Format,
}

// formatNamed returns the format of a name, nil where there is none. csv is another name of text.
func formatNamed(name string) *input.Format {
	if name == "csv" {
		name = text.Format.Name
	}
	i := slices.IndexFunc(formats, func(f *input.Format) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return formats[i]
}

func formatNames() []string {
	var out []string
	for _, f := range formats {
		if f == text.Format {
			out = append(out, "csv")
		}
		out = append(out, f.Name)
	}
	return out
}

// sniffMagic returns the format of files that begin with head, nil where that tells none.
func sniffMagic(head []byte) *input.Format {
	if !bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' }) {
		return nil // text that begins with such letters: a column called ORCID
	}
	for _, f := range formats {
		if slices.ContainsFunc(f.Magic, func(m string) bool { return bytes.HasPrefix(head, []byte(m)) }) {
			return f
		}
	}
	return nil
}

// sniff returns the format of a file by its name, then by a guess from its first bytes; nil: nothing tells it.
func sniff(d *input.Set, path string, head []byte) (*input.Format, error) {
	name := strings.ToLower(files.Base(path))
	compressed := false
	for _, suffix := range []string{".gz", ".zst", ".bz2", ".deflate"} {
		if strings.HasSuffix(name, suffix) {
			name, compressed = strings.TrimSuffix(name, suffix), true
		}
	}
	for _, f := range formats {
		if !slices.Contains(f.Suffixes, filepath.Ext(name)) {
			continue
		}
		if compressed && f != text.Format && f != jsonl.Format {
			return nil, column.Refuse("", "%s: a compressed file of format %s, which is compressed in itself: "+
				"decompress it first", path, f.Name)
		}
		return f, nil
	}
	for _, f := range formats {
		if f.Guess != nil && f.Guess(d, head, compressed) {
			return f, nil
		}
	}
	return nil, nil
}
