package format

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// Dump writes the annotated bytes of a feature file or pack, which is the first size bytes of r: a line for each field
// and each stream with its offset, its length, its first bytes and their meaning. If bytes are damaged, it writes what
// can still be read and returns the first error, which matches ErrCorrupt or ErrUnsupported. Errors of r and w match
// neither. The text is not a stable format.
func Dump(w io.Writer, r io.ReaderAt, size int64) error {
	d := dumper{w: bufio.NewWriter(w), r: r}
	var magic [3]byte
	err := readFull(r, magic[:], 0)
	switch {
	case err != nil:
	case string(magic[:]) == packMagic:
		err = d.pack(size)
	case string(magic[:]) == fileMagic:
		err = d.file(0, size)
	default:
		err = corrupt(0, "magic %q: neither a feature file (%q) nor a pack (%q)", magic[:], fileMagic, packMagic)
	}
	if werr := d.w.Flush(); werr != nil {
		return werr
	}
	return err
}

// A dumper writes lines. The bufio.Writer keeps the first error of the writer below.
type dumper struct {
	w *bufio.Writer
	r io.ReaderAt
}

// headBytes is how many bytes of a field or a stream a line shows.
const headBytes = 8

// line writes one line for the n bytes at an offset, of which head are the first.
func (d *dumper) line(at, n int64, head []byte, text string, args ...any) {
	more := ""
	if n > headBytes {
		head, more = head[:min(len(head), headBytes)], " .."
	}
	fmt.Fprintf(d.w, "%10d %8d  %-*s  %s\n", at, n, 3*headBytes+2, fmt.Sprintf("% x%s", head, more),
		fmt.Sprintf(text, args...))
}

func (d *dumper) title(text string, args ...any) { fmt.Fprintf(d.w, text+"\n", args...) }

// pack writes a pack of size bytes and the feature files in it.
func (d *dumper) pack(size int64) error {
	d.title("pack, %d bytes", size)
	directory, err := readDirectory(d.r, 0, size, packMagic, Limits{}.withDefaults())
	if err != nil {
		d.ends(0, size)
		return err
	}
	at := size - tailLength - int64(len(directory))
	entries, err := decodePackDirectory(directory, uint64(at))
	if err != nil {
		d.ends(0, size)
		return withOffset(err, at)
	}
	d.header(0, packMagic)
	for i, e := range entries {
		d.title("\nfeature file %d of %d", i+1, len(entries))
		if ferr := d.file(int64(e.Offset), int64(e.Length)); ferr != nil && err == nil {
			err = ferr
		}
	}
	d.title("\ndirectory of the pack")
	f := fieldReader{d: d, at: at, metaReader: metaReader{src: directory}}
	f.field(func() string { return fmt.Sprintf("flags %#x", f.byte()) })
	f.field(func() string { return fmt.Sprintf("%d feature files", f.uvarint()) })
	for range entries {
		f.field(func() string { return fmt.Sprintf("feature %d", f.u64()) })
		f.field(func() string { return fmt.Sprintf("gap %d", f.uvarint()) })
		f.field(func() string { return fmt.Sprintf("length %d", f.uvarint()) })
	}
	d.tail(size - tailLength)
	return err
}

// file writes the feature file at [off, off+size).
func (d *dumper) file(off, size int64) error {
	directory, err := readDirectory(d.r, off, size, fileMagic, Limits{}.withDefaults())
	if err != nil {
		d.title("feature file, %d bytes", size)
		d.ends(off, size)
		return err
	}
	at := off + size - tailLength - int64(len(directory))
	m, err := OpenFile(d.r, off, size, Limits{})
	if err != nil {
		d.title("feature file, %d bytes", size)
		d.header(off, fileMagic)
	} else {
		d.title("feature file, %d bytes: feature %d %q, %v, %d rows in %d stripes", size, m.Feature, m.Name, m.Type,
			m.Rows, len(m.Stripes))
		d.title("all rows: %s", statsText(m.Type, &m.Stats))
		d.header(off, fileMagic)
		if serr := d.dictionary(m, off); serr != nil {
			err = serr
		}
		for i := range m.Stripes {
			if serr := d.stripe(m, i, off); serr != nil && err == nil {
				err = serr
			}
		}
	}
	d.title("directory")
	f := fieldReader{d: d, at: at, metaReader: metaReader{src: directory}}
	f.directory()
	d.tail(off + size - tailLength)
	return err
}

// ends writes the first and the last bytes of a file that cannot be opened.
func (d *dumper) ends(off, size int64) {
	head := make([]byte, max(0, min(size, headerLength)))
	if readFull(d.r, head, off) == nil {
		d.line(off, int64(len(head)), head, "start")
	}
	tail := make([]byte, max(0, min(size-headerLength, tailLength)))
	if len(tail) > 0 && readFull(d.r, tail, off+size-int64(len(tail))) == nil {
		d.line(off+size-int64(len(tail)), int64(len(tail)), tail, "end")
	}
}

// header and tail write what readDirectory has checked.
func (d *dumper) header(off int64, magic string) {
	d.line(off, headerLength, appendHeader(nil, magic), "header: magic %q, version %d", magic, formatVersion)
}

func (d *dumper) tail(at int64) {
	var b [tailLength]byte
	if readFull(d.r, b[:], at) != nil {
		return
	}
	d.title("tail")
	d.line(at, 4, b[:4], "directory length %d", binary.LittleEndian.Uint32(b[:]))
	d.line(at+4, 4, b[4:8], "checksum %08x", binary.LittleEndian.Uint32(b[4:]))
	d.line(at+8, 4, b[8:], "magic %q, version %d", b[8:11], b[11])
}

// dictionary writes the dictionary of the feature file at off, if it has one.
func (d *dumper) dictionary(m *FileMeta, off int64) error {
	at, length := m.Dictionary.Range()
	if length == 0 {
		return nil
	}
	d.title("dictionary: %d bytes, %d values", length, m.Dictionary.Values)
	src := make([]byte, length)
	if err := readFull(d.r, src, off+int64(at)); err != nil {
		return err
	}
	d.stream(off+int64(at), dictionaryStream, m.Salt, dictionaryStripe, dictionaryKind, src)
	return Locate(VerifyDictionary(m, src), "", "", off)
}

// stream writes a stream of a stripe, whose chunk and checksum src is.
func (d *dumper) stream(at int64, name string, salt uint32, stripe int, kind StreamKind, src []byte) {
	chunk, sum := src[:len(src)-checksumLength], binary.LittleEndian.Uint32(src[len(src)-checksumLength:])
	if got := newStreamContext(salt, stripe).sum(kind, chunk); got != sum {
		d.line(at, int64(len(src)), chunk, "%s: checksum %08x, want %08x", name, got, sum)
	} else {
		d.line(at, int64(len(src)), chunk, "%s: %s, checksum %08x", name, encoding.Describe(chunk), sum)
	}
}

// stripe writes the streams of stripe i of the feature file at off.
func (d *dumper) stripe(m *FileMeta, i int, off int64) error {
	s := &m.Stripes[i]
	d.title("stripe %d: %d bytes, %d rows, %d slots, %d present, %d elements", i, s.Length, s.Rows, s.Slots,
		s.Present, s.Elements)
	d.title("rows: %s", statsText(m.Type, &s.Stats))
	src := make([]byte, s.Length)
	if err := readFull(d.r, src, off+int64(s.Offset)); err != nil {
		return inStripe(err, i)
	}
	err := Locate(VerifyStripe(m, i, src), "", "", off)
	at := off + int64(s.Offset)
	for _, f := range s.Streams {
		n := int64(f.Length)
		d.stream(at, f.Kind.String(), m.Salt, i, f.Kind, src[:n])
		src = src[n:]
		at += n
	}
	return err
}

func statsText(t vector.Type, s *Stats) string {
	text := fmt.Sprintf("%d null, %d elements, %d raw bytes", s.NullRows, s.Elements, s.RawBytes)
	if s.HasMinMax {
		text += ", " + boundsText(t, s)
	}
	return text
}

func boundsText(t vector.Type, s *Stats) string {
	switch {
	case t.Elem == vector.Uint64:
		return fmt.Sprintf("min %d, max %d", uint64(s.MinInt), uint64(s.MaxInt))
	case t.Elem.IsInteger():
		return fmt.Sprintf("min %d, max %d", s.MinInt, s.MaxInt)
	}
	return fmt.Sprintf("min %v, max %v", s.MinFloat, s.MaxFloat)
}

// A fieldReader is a metaReader that writes a line for each field. It checks nothing: it shows fields that DecodeMeta
// would refuse, until the bytes end. The directory's checksum was verified.
type fieldReader struct {
	metaReader
	d  *dumper
	at int64
}

// field calls read, which reads a field and returns its text, and writes the field's line.
func (f *fieldReader) field(read func() string) {
	before := f.src
	text := read()
	if f.bad {
		return
	}
	n := len(before) - len(f.src)
	f.d.line(f.at, int64(n), before[:n], "%s", text)
	f.at += int64(n)
}

func (f *fieldReader) uvarintField(name string) (v uint64) {
	f.field(func() string {
		v = f.uvarint()
		return fmt.Sprintf("%s %d", name, v)
	})
	return v
}

func (f *fieldReader) byteField(name string) (v byte) {
	f.field(func() string {
		v = f.byte()
		return fmt.Sprintf("%s %#x", name, v)
	})
	return v
}

// directory writes the fields of SPEC.md, section 3.
func (f *fieldReader) directory() {
	var t vector.Type
	if f.byteField("version") != formatVersion {
		return
	}
	flags := f.byteField("flags")
	f.field(func() string {
		t.Kind = vector.Kind(f.byte())
		return fmt.Sprintf("kind %v", t.Kind)
	})
	switch t.Kind {
	case vector.Dense, vector.Sparse, vector.Weighted, vector.Embedding:
		f.field(func() string {
			t.Elem = vector.Elem(f.byte())
			return fmt.Sprintf("element type %v", t.Elem)
		})
	}
	switch t.Kind {
	case vector.Weighted:
		f.field(func() string {
			t.Score = vector.Elem(f.byte())
			return fmt.Sprintf("score type %v", t.Score)
		})
	case vector.Embedding:
		t.Dim = uint32(f.uvarintField("dimensions"))
	}
	f.field(func() string { return fmt.Sprintf("feature %d", f.u64()) })
	f.field(func() string { return fmt.Sprintf("salt %08x", f.u32()) })
	if flags&flagGroup != 0 {
		f.field(func() string { return fmt.Sprintf("group %d", f.u64()) })
	}
	if flags&flagDictionary != 0 {
		f.uvarintField("values of the dictionary")
		f.uvarintField("length of the dictionary")
	}
	n := f.uvarintField("name length")
	f.field(func() string { return fmt.Sprintf("name %q", f.bytes(n)) })
	n = f.uvarintField("stripes")
	for i := uint64(0); i < n && !f.bad; i++ {
		f.entry(t, i)
	}
	if flags&flagFields != 0 {
		n = f.uvarintField("fields")
		for i := uint64(0); i < n && !f.bad; i++ {
			tag := f.uvarintField("field")
			length := f.uvarintField("field length")
			if before := len(f.src); tag == foundField && length >= 2 {
				f.uvarintField("partial duplicates")
				f.uvarintField("saved bytes")
				if length -= min(uint64(before-len(f.src)), length); length == 0 {
					continue
				}
			}
			f.field(func() string { f.bytes(length); return "field value" })
		}
	}
}

// entry writes the fields of SPEC.md, section 4.
func (f *fieldReader) entry(t vector.Type, i uint64) {
	f.d.title("stripe entry %d", i)
	var s StripeMeta
	streams := uint64(0)
	f.field(func() string {
		streams = f.uvarint()
		text := "streams:"
		for k := range 64 {
			if streams>>k&1 != 0 {
				s.Streams = append(s.Streams, StreamMeta{Kind: StreamKind(k + 1)})
				text += " " + StreamKind(k+1).String() + ","
			}
		}
		return strings.TrimRight(text, ",:")
	})
	flags := byte(0)
	f.field(func() string {
		flags = f.byte()
		text := fmt.Sprintf("flags %#x:", flags)
		for i, name := range [...]string{"slots", "nulls", "all null", "rows counted", "bounds", "float64 bounds"} {
			if flags>>i&1 != 0 {
				text += " " + name + ","
			}
		}
		return strings.TrimRight(text, ",:")
	})
	f.field(func() string { return fmt.Sprintf("rows %+d", f.varint()) })
	if flags&stripeSlots != 0 {
		f.uvarintField("slots")
	}
	if flags&stripeNulls != 0 {
		f.uvarintField("null slots")
	}
	if t.IsList() && s.has(Lengths) {
		f.uvarintField("elements")
	}
	if s.hasRuns() {
		f.uvarintField("runs")
	}
	if s.has(Codes) {
		f.uvarintField("values of the stripe's own")
	}
	if flags&stripeExpanded != 0 {
		f.uvarintField("null rows")
		f.uvarintField("row elements")
	}
	if flags&stripeBounds != 0 {
		f.bound(t, flags, "min", 0)
		f.bound(t, flags, "max", 0xff)
	}
	for _, k := range s.Streams {
		f.uvarintField("length of " + k.Kind.String())
	}
}

func (f *fieldReader) bound(t vector.Type, flags byte, name string, fill byte) {
	f.field(func() string {
		switch {
		case t.Elem.IsInteger():
			v, _ := f.intBound(t.Elem != vector.Uint64, fill)
			if t.Elem == vector.Uint64 {
				return fmt.Sprintf("%s %d", name, uint64(v))
			}
			return fmt.Sprintf("%s %d", name, v)
		case flags&stripeDoubles != 0:
			return fmt.Sprintf("%s %v", name, math.Float64frombits(f.u64()))
		}
		return fmt.Sprintf("%s %v", name, math.Float32frombits(f.u32()))
	})
}
