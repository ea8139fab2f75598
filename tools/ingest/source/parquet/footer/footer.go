package footer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/thrift"
)

// A Footer is what Parquet's FileMetaData says: it is read once, here. What has no place in a table is refused by the
// name of its column, so that the other columns can be read.
type Footer struct {
	Root      *Element
	Columns   int  // of the file: the leaves of the schema
	Encrypted bool // the footer itself is encrypted: there is nothing else
	Rows      int64
	Groups    []RowGroup
	Writer    string            // created_by
	Meta      map[string]string // the writer's key-value metadata; of a key given twice the first
}

// A RowGroup is a RowGroup.
type RowGroup struct {
	Rows, Bytes int64 // bytes: uncompressed, encoded
	Columns     int
	chunks      []byte // the list of its ColumnChunks, encoded
}

// A Chunk is a ColumnChunk with the ColumnMetaData in it.
type Chunk struct {
	File               string // that has the values; empty: this one
	Encrypted          bool
	Physical, Codec    int32
	Values, Compressed int64 // their number; bytes of the pages
	DataPage           int64 // offset of the first data page
	DictionaryPage     int64 // and of the dictionary's; -1: there is none
}

// The fields of FileMetaData that are read.
const (
	footerVersion   = 1
	footerSchema    = 2
	footerRows      = 3
	footerRowGroups = 4
	footerMeta      = 5
	footerWriter    = 6
	footerCipher    = 8 // set where columns are encrypted and the footer is not
)

const maxFooterBytes = 1 << 30

// damaged returns an error about a footer that no program can read.
func damaged(format string, args ...any) error {
	return fmt.Errorf("the Parquet footer is damaged, or of a program that does not follow the format: %w; "+
		"copy the file again, or write it anew", fmt.Errorf(format, args...))
}

// Read reads the footer of a Parquet file of the given size.
//
//	+------+-----+----------+---------------+--------+
//	| PAR1 | ... | metadata | length (4 LE) | PAR1   |
//	+------+-----+----------+---------------+--------+
//
// A file whose metadata is encrypted ends with PARE.
func Read(r io.ReaderAt, size int64, limits column.Limits) (*Footer, error) {
	if size < 12 {
		return nil, fmt.Errorf("%d bytes are no Parquet file", size)
	}
	var tail [8]byte
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case "PARE":
		return &Footer{Encrypted: true}, nil
	case "PAR1":
	default:
		return nil, fmt.Errorf("the file does not end with PAR1: it is cut short, or no Parquet file")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 || n > maxFooterBytes {
		return nil, damaged("a footer of %d bytes in a file of %d", n, size)
	}
	raw := make([]byte, n)
	if _, err := r.ReadAt(raw, size-8-n); err != nil {
		return nil, err
	}
	f := &Footer{Meta: map[string]string{}}
	if err := f.parse(raw, limits); err != nil {
		return nil, damaged("%w", err)
	}
	return f, nil
}

func (f *Footer) parse(raw []byte, limits column.Limits) error {
	t := &thrift.Reader{Buf: raw}
	said := map[int16]bool{}
	t.Fields(1, func(id int16, typ byte) {
		said[id] = true
		switch {
		case id == footerSchema && typ == thrift.List:
			var err error
			if f.Root, err = f.readSchema(t, limits); err != nil {
				t.Fail(err)
			}
		case id == footerRows && typ == thrift.I64:
			f.Rows = t.Varint()
		case id == footerRowGroups && typ == thrift.List:
			f.Groups = make([]RowGroup, 0, 1)
			t.Structs(2, func() { f.Groups = append(f.Groups, readRowGroup(t)) })
		case id == footerMeta && typ == thrift.List:
			t.Structs(2, func() { f.readMeta(t) })
		case id == footerWriter && typ == thrift.Binary:
			f.Writer = string(t.Bytes())
		default:
			t.Skip(typ, 2)
		}
	})
	if t.Err != nil {
		return t.Err
	}
	for _, want := range []struct {
		id   int16
		name string
	}{
		{footerVersion, "format version"}, {footerSchema, "schema"}, {footerRows, "number of rows"},
		{footerRowGroups, "row groups"},
	} {
		if !said[want.id] {
			return fmt.Errorf("it does not say its %s", want.name)
		}
	}
	switch {
	case f.Root == nil:
		return errors.New("its schema is no list")
	case f.Groups == nil:
		return errors.New("its row groups are no list")
	case said[footerCipher]:
		return f.findEncrypted()
	}
	return nil
}

// readMeta reads a KeyValue.
func (f *Footer) readMeta(t *thrift.Reader) {
	var pair [3]string
	t.Fields(2, func(id int16, typ byte) {
		if typ == thrift.Binary && (id == 1 || id == 2) {
			pair[id] = string(t.Bytes())
		} else {
			t.Skip(typ, 3)
		}
	})
	if _, ok := f.Meta[pair[1]]; !ok {
		f.Meta[pair[1]] = pair[2]
	}
}

// readRowGroup reads a RowGroup, and passes over its columns.
func readRowGroup(t *thrift.Reader) (g RowGroup) {
	says := [4]int64{-1, -1, -1, -1}
	t.Ints(2, says[:], func(id int16, typ byte) bool {
		if id != 1 || typ != thrift.List {
			return false
		}
		from := t.Pos
		t.Structs(3, func() { g.Columns++; readColumnChunk(t) })
		g.chunks = t.Buf[from:t.Pos]
		return true
	})
	g.Bytes, g.Rows = says[2], says[3]
	if t.Err == nil && g.chunks == nil {
		t.Fail(errors.New("a row group without columns"))
	}
	return g
}

// Chunks returns the column chunks of a row group.
func (g *RowGroup) Chunks() ([]Chunk, error) {
	t := &thrift.Reader{Buf: g.chunks}
	out := make([]Chunk, 0, g.Columns)
	t.Structs(3, func() { out = append(out, readColumnChunk(t)) })
	return out, t.Err
}

func readColumnChunk(t *thrift.Reader) Chunk {
	c := Chunk{DictionaryPage: -1}
	described := false
	t.Fields(3, func(id int16, typ byte) {
		switch {
		case id == 1 && typ == thrift.Binary:
			c.File = string(t.Bytes())
		case id == 3 && typ == thrift.Struct:
			described = true
			c.readMeta(t)
		default:
			c.Encrypted = c.Encrypted || id == 8 || id == 9 // crypto_metadata, encrypted_column_metadata
			t.Skip(typ, 4)
		}
	})
	if t.Err == nil && !described && !c.Encrypted {
		t.Fail(errors.New("a column chunk without metadata"))
	}
	return c
}

// readMeta reads a ColumnMetaData.
func (c *Chunk) readMeta(t *thrift.Reader) {
	const needed = 1<<1 | 1<<4 | 1<<5 | 1<<7 | 1<<9
	says := [12]int64{11: -1}
	said := t.Ints(4, says[:], nil)
	if t.Err == nil && said&needed != needed {
		t.Fail(errors.New("a column chunk that does not say its type, codec, number of values, size and offset"))
	}
	c.Physical, c.Codec = int32(says[1]), int32(says[4])
	c.Values, c.Compressed, c.DataPage, c.DictionaryPage = says[5], says[7], says[9], says[11]
}

// findEncrypted refuses the columns that are encrypted in some row group.
func (f *Footer) findEncrypted() error {
	leaves := f.Root.Leaves(nil)
	for i := range f.Groups {
		chunks, err := f.Groups[i].Chunks()
		if err != nil {
			return err
		}
		for c, chunk := range chunks[:min(len(chunks), len(leaves))] {
			if chunk.Encrypted {
				leaves[c].Encrypted = true
				leaves[c].Refused = "it is encrypted, which this reader does not support: decrypt it first"
			}
		}
	}
	return nil
}

// Path returns the names that lead to a column of the file, with dots between them.
func (f *Footer) Path(leaf int) string {
	var names []string
	for e := f.Root; e.Group; {
		for _, k := range e.Children {
			n := len(k.Leaves(nil))
			if leaf < n {
				e, names = k, append(names, k.Name)
				break
			}
			leaf -= n
		}
	}
	return strings.Join(names, ".")
}
