package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A footer is what we read of Parquet's FileMetaData ourselves, before the library does: the schema, to refuse by name what has no
// place in a table and to bound what the library allocates.
//
// The library makes no schema of a file of which one column has a type that it does not know. It gets plain columns in the place of
// those, so that the others can be read.
type footer struct {
	raw    []byte // as the library takes it
	root   *schemaElement
	sealed bool // the footer itself is encrypted: there is nothing else
	edited bool // raw is not what the file has

	fields  []footerField
	columns int
}

// A footerField is a field of FileMetaData: its value is bytes [from, to) of raw.
type footerField struct {
	id       int16
	typ      byte
	from, to int
}

// The fields of Parquet's FileMetaData that are read here.
const (
	footerVersion   = 1
	footerSchema    = 2
	footerRows      = 3
	footerRowGroups = 4
	footerCipher    = 8 // and the one after it: set where columns are encrypted and the footer is not
	footerSignedBy  = 9
)

const maxFooterBytes = 1 << 30

// damagedFooter is an error about a footer that no program can read.
func damagedFooter(format string, args ...any) error {
	return fmt.Errorf("the Parquet footer is damaged, or of a program that does not follow the format: %w; copy the file again, or write it anew", fmt.Errorf(format, args...))
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
	f := &footer{raw: make([]byte, n)}
	if _, err := r.ReadAt(f.raw, size-8-n); err != nil {
		return nil, err
	}
	if err := f.parse(limits); err != nil {
		return nil, damagedFooter("%w", err)
	}
	return f, f.rewrite()
}

func (f *footer) parse(limits column.Limits) error {
	t := &thriftReader{buf: f.raw}
	var err error
	t.fields(1, func(id int16, typ byte) {
		from := t.pos
		if id == footerSchema && typ == thriftList {
			if f.root, err = f.readSchema(t, limits); err != nil {
				t.fail(err)
			}
		} else {
			t.skip(typ, 2)
		}
		f.fields = append(f.fields, footerField{id, typ, from, t.pos})
	})
	if t.err != nil {
		return t.err
	}
	for _, want := range []struct {
		id   int16
		name string
	}{{footerVersion, "format version"}, {footerSchema, "schema"}, {footerRows, "number of rows"}, {footerRowGroups, "row groups"}} {
		if f.field(want.id) == nil {
			return fmt.Errorf("it does not say its %s", want.name)
		}
	}
	if f.root == nil {
		return errors.New("its schema is no list")
	}
	if f.field(footerCipher) != nil {
		return f.findEncrypted()
	}
	return nil
}

func (f *footer) field(id int16) *footerField {
	i := slices.IndexFunc(f.fields, func(x footerField) bool { return x.id == id })
	if i < 0 {
		return nil
	}
	return &f.fields[i]
}

// findEncrypted refuses the columns that are encrypted in some row group.
func (f *footer) findEncrypted() error {
	f.edited = true // the library would want keys, or look for them
	groups := f.field(footerRowGroups)
	if groups.typ != thriftList {
		return errors.New("its row groups are no list")
	}
	leaves := f.root.leaves(nil)
	t := &thriftReader{buf: f.raw, pos: groups.from}
	n, elem := t.list()
	for g := 0; g < n && t.err == nil && elem == thriftStruct; g++ {
		t.fields(2, func(id int16, typ byte) {
			if id != 1 || typ != thriftList {
				t.skip(typ, 3)
				return
			}
			chunks, elem := t.list()
			for c := 0; c < chunks && t.err == nil && elem == thriftStruct; c++ {
				t.fields(3, func(id int16, typ byte) {
					const cryptoMetadata, encryptedMetadata = 8, 9
					if (id == cryptoMetadata || id == encryptedMetadata) && c < len(leaves) {
						leaves[c].refused, leaves[c].sealed = "it is encrypted, which this reader does not support: decrypt it first", true
					}
					t.skip(typ, 4)
				})
			}
		})
	}
	return t.err
}

// metadata gives the footer to the library. A column with which it makes no schema is refused, and it gets the footer again.
func (f *footer) metadata() (*metadata.FileMetaData, error) {
	meta, err := parseMetadata(f.raw)
	var defect *column.DefectError
	if err == nil || errors.As(err, &defect) && f.root == nil {
		return meta, err
	}
	for _, e := range f.root.kids {
		f.isolate(e)
	}
	if !f.edited {
		if errors.As(err, &defect) {
			return nil, err
		}
		return nil, damagedFooter("%w", err)
	}
	if err := f.rewrite(); err != nil {
		return nil, err
	}
	if meta, err = parseMetadata(f.raw); err != nil && !errors.As(err, &defect) {
		err = damagedFooter("%w", err)
	}
	return meta, err
}

// isolate refuses the elements under e of which the library makes no schema, each tried in a footer of its own.
func (f *footer) isolate(e *schemaElement) {
	if e.refused != "" {
		return
	}
	for _, k := range e.kids {
		f.isolate(k)
	}
	alone := *e
	if alone.group {
		alone.kids = []*schemaElement{{name: "x", repetition: repetitionRequired, converted: -1, scale: -1, precision: -1, fieldID: -1}}
	}
	root := &schemaElement{name: "schema", group: true, physical: -1, repetition: -1, converted: -1, scale: -1, precision: -1, fieldID: -1, kids: []*schemaElement{&alone}}
	raw, last := []byte(nil), int16(0)
	raw = appendThriftI32(appendThriftHeader(raw, &last, footerVersion, thriftI32), 1)
	raw = root.appendSchema(appendThriftHeader(raw, &last, footerSchema, thriftList))
	raw = append(appendThriftHeader(raw, &last, footerRows, thriftI64), 0)
	raw = appendThriftList(appendThriftHeader(raw, &last, footerRowGroups, thriftList), 0, thriftStruct)
	if _, err := parseMetadata(append(raw, thriftStop)); err != nil {
		e.refused, f.edited = fmt.Sprintf("what the footer says of its type makes no sense (%s)", strings.Join(strings.Fields(err.Error()), " ")), true
	}
}

// parseMetadata has the library parse a footer. It panics on some that are damaged.
func parseMetadata(raw []byte) (meta *metadata.FileMetaData, err error) {
	defer func() {
		if p := recover(); p != nil {
			meta, err = nil, column.Recovered(p)
		}
	}()
	return metadata.NewFileMetaData(raw, nil)
}

// rewrite makes raw what the library takes, where that is not what the file has.
func (f *footer) rewrite() error {
	if !f.edited {
		return nil
	}
	out := make([]byte, 0, len(f.raw))
	last := int16(0)
	for _, x := range f.fields {
		switch x.id {
		case footerCipher, footerSignedBy:
			continue
		}
		out = appendThriftHeader(out, &last, x.id, x.typ)
		if x.id == footerSchema {
			out = f.root.appendSchema(out)
		} else {
			out = append(out, f.raw[x.from:x.to]...)
		}
	}
	f.raw, f.edited = append(out, thriftStop), false
	// The spans are those of the new bytes.
	t := &thriftReader{buf: f.raw}
	f.fields = f.fields[:0]
	t.fields(1, func(id int16, typ byte) {
		from := t.pos
		t.skip(typ, 2)
		f.fields = append(f.fields, footerField{id, typ, from, t.pos})
	})
	return t.err
}
