package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A footer is what Parquet's FileMetaData says: it is read once, here. What has no place in a table is refused by the name of its
// column, so that the other columns can be read.
type footer struct {
	root    *schemaElement
	columns int  // of the file: the leaves of the schema
	sealed  bool // the footer itself is encrypted: there is nothing else
	rows    int64
	groups  []rowGroup
	writer  string            // created_by
	meta    map[string]string // the writer's key-value metadata; of a key given twice the first
}

// A rowGroup is a RowGroup.
type rowGroup struct {
	rows, bytes int64 // bytes: uncompressed, encoded
	columns     int
	chunks      []byte // the list of its ColumnChunks, encoded
}

// A columnChunk is a ColumnChunk with the ColumnMetaData in it.
type columnChunk struct {
	file               string // that has the values; empty: this one
	encrypted          bool
	physical, codec    int32
	values, compressed int64 // their number; bytes of the pages
	dataPage           int64 // offset of the first data page
	dictionaryPage     int64 // and of the dictionary's; -1: there is none
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

// damagedFooter is an error about a footer that no program can read.
func damagedFooter(format string, args ...any) error {
	return fmt.Errorf("the Parquet footer is damaged, or of a program that does not follow the format: %w; "+
		"copy the file again, or write it anew", fmt.Errorf(format, args...))
}

// readFooter reads the footer of a Parquet file of the given size.
//
//	+------+-----+----------+---------------+--------+
//	| PAR1 | ... | metadata | length (4 LE) | PAR1   |
//	+------+-----+----------+---------------+--------+
//
// A file whose metadata is encrypted ends with PARE.
func readFooter(r io.ReaderAt, size int64, limits column.Limits) (*footer, error) {
	if size < 12 {
		return nil, fmt.Errorf("%d bytes are no Parquet file", size)
	}
	var tail [8]byte
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case "PARE":
		return &footer{sealed: true}, nil
	case "PAR1":
	default:
		return nil, fmt.Errorf("the file does not end with PAR1: it is cut short, or no Parquet file")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 || n > maxFooterBytes {
		return nil, damagedFooter("a footer of %d bytes in a file of %d", n, size)
	}
	raw := make([]byte, n)
	if _, err := r.ReadAt(raw, size-8-n); err != nil {
		return nil, err
	}
	f := &footer{meta: map[string]string{}}
	if err := f.parse(raw, limits); err != nil {
		return nil, damagedFooter("%w", err)
	}
	return f, nil
}

func (f *footer) parse(raw []byte, limits column.Limits) error {
	t := &thriftReader{buf: raw}
	said := map[int16]bool{}
	t.fields(1, func(id int16, typ byte) {
		said[id] = true
		switch {
		case id == footerSchema && typ == thriftList:
			var err error
			if f.root, err = f.readSchema(t, limits); err != nil {
				t.fail(err)
			}
		case id == footerRows && typ == thriftI64:
			f.rows = t.varint()
		case id == footerRowGroups && typ == thriftList:
			f.groups = make([]rowGroup, 0, 1)
			t.structs(2, func() { f.groups = append(f.groups, readRowGroup(t)) })
		case id == footerMeta && typ == thriftList:
			t.structs(2, func() { f.readMeta(t) })
		case id == footerWriter && typ == thriftBinary:
			f.writer = string(t.bytes())
		default:
			t.skip(typ, 2)
		}
	})
	if t.err != nil {
		return t.err
	}
	for _, want := range []struct {
		id   int16
		name string
	}{
		{footerVersion, "format version"}, {footerSchema, "schema"}, {footerRows, "number of rows"}, {footerRowGroups, "row groups"},
	} {
		if !said[want.id] {
			return fmt.Errorf("it does not say its %s", want.name)
		}
	}
	switch {
	case f.root == nil:
		return errors.New("its schema is no list")
	case f.groups == nil:
		return errors.New("its row groups are no list")
	case said[footerCipher]:
		return f.findEncrypted()
	}
	return nil
}

// readMeta reads a KeyValue.
func (f *footer) readMeta(t *thriftReader) {
	var pair [3]string
	t.fields(2, func(id int16, typ byte) {
		if typ == thriftBinary && (id == 1 || id == 2) {
			pair[id] = string(t.bytes())
		} else {
			t.skip(typ, 3)
		}
	})
	if _, ok := f.meta[pair[1]]; !ok {
		f.meta[pair[1]] = pair[2]
	}
}

// readRowGroup reads a RowGroup, and passes over its columns.
func readRowGroup(t *thriftReader) rowGroup {
	g := rowGroup{rows: -1, bytes: -1}
	t.fields(2, func(id int16, typ byte) {
		switch {
		case id == 1 && typ == thriftList:
			from := t.pos
			t.structs(3, func() { g.columns++; readColumnChunk(t) })
			g.chunks = t.buf[from:t.pos]
		case id == 2 && typ == thriftI64:
			g.bytes = t.varint()
		case id == 3 && typ == thriftI64:
			g.rows = t.varint()
		default:
			t.skip(typ, 3)
		}
	})
	if t.err == nil && g.chunks == nil {
		t.fail(errors.New("a row group without columns"))
	}
	return g
}

// columnChunks returns the column chunks of a row group.
func (g *rowGroup) columnChunks() ([]columnChunk, error) {
	t := &thriftReader{buf: g.chunks}
	out := make([]columnChunk, 0, g.columns)
	t.structs(3, func() { out = append(out, readColumnChunk(t)) })
	return out, t.err
}

func readColumnChunk(t *thriftReader) columnChunk {
	c := columnChunk{dictionaryPage: -1}
	described := false
	t.fields(3, func(id int16, typ byte) {
		switch {
		case id == 1 && typ == thriftBinary:
			c.file = string(t.bytes())
		case id == 3 && typ == thriftStruct:
			described = true
			c.readMeta(t)
		default:
			c.encrypted = c.encrypted || id == 8 || id == 9 // crypto_metadata, encrypted_column_metadata
			t.skip(typ, 4)
		}
	})
	if t.err == nil && !described && !c.encrypted {
		t.fail(errors.New("a column chunk without metadata"))
	}
	return c
}

// readMeta reads a ColumnMetaData.
func (c *columnChunk) readMeta(t *thriftReader) {
	const needed = 1<<1 | 1<<4 | 1<<5 | 1<<7 | 1<<9
	said := uint(0)
	t.fields(4, func(id int16, typ byte) {
		said |= 1 << uint16(id)
		switch {
		case id == 1 && typ == thriftI32:
			c.physical = t.i32()
		case id == 4 && typ == thriftI32:
			c.codec = t.i32()
		case id == 5 && typ == thriftI64:
			c.values = t.varint()
		case id == 7 && typ == thriftI64:
			c.compressed = t.varint()
		case id == 9 && typ == thriftI64:
			c.dataPage = t.varint()
		case id == 11 && typ == thriftI64:
			c.dictionaryPage = t.varint()
		default:
			t.skip(typ, 5)
		}
	})
	if t.err == nil && said&needed != needed {
		t.fail(errors.New("a column chunk that does not say its type, codec, number of values, size and offset"))
	}
}

// findEncrypted refuses the columns that are encrypted in some row group.
func (f *footer) findEncrypted() error {
	leaves := f.root.leaves(nil)
	for i := range f.groups {
		chunks, err := f.groups[i].columnChunks()
		if err != nil {
			return err
		}
		for c, chunk := range chunks[:min(len(chunks), len(leaves))] {
			if chunk.encrypted {
				leaves[c].refused, leaves[c].sealed = "it is encrypted, which this reader does not support: decrypt it first", true
			}
		}
	}
	return nil
}

// path returns the names that lead to a column of the file, with dots between them.
func (f *footer) path(leaf int) string {
	var names []string
	for e := f.root; e.group; {
		for _, k := range e.kids {
			n := len(k.leaves(nil))
			if leaf < n {
				e, names = k, append(names, k.name)
				break
			}
			leaf -= n
		}
	}
	return strings.Join(names, ".")
}
