// Package format is the bytes of a feature file and a pack.
package format

// STUB: the signatures that storage, reader and ingest code against; the format owner replaces this file.

import (
	"errors"
	"io"

	"github.com/dsistore/dsistore/format/vector"
)

var errStub = errors.New("format: not built yet")

// StreamMeta locates one stream of a stripe.
type StreamMeta struct {
	Kind   StreamKind
	Length uint64 // bytes, its checksum included
}

// StreamKind tells the streams of a stripe apart.
type StreamKind uint8

// StripeMeta says where a stripe is and what it holds. The streams are contiguous, in order, from Offset.
type StripeMeta struct {
	Offset   uint64 // from the start of the feature file
	Length   uint64 // of all streams
	Rows     uint32
	Slots    uint32
	Present  uint32 // slots that are not null
	Elements uint64 // values held: ids, bytes, or numbers
	Streams  []StreamMeta
	Stats    Stats
}

// Stats of a stripe or a whole file, over rows.
type Stats struct {
	NullRows uint64
	Elements uint64 // over rows: what an expanded reader would see
	RawBytes uint64 // the expanded values in their source width
	// HasMinMax: Min and Max bound the present numbers (list elements too); NaN is left out. Ints or floats as the type says.
	HasMinMax          bool
	MinInt, MaxInt     int64
	MinFloat, MaxFloat float64
}

// FileMeta is a feature file's directory: its footer holds it, and the segment's index too.
type FileMeta struct {
	Type    vector.Type
	Feature uint64 // feature id
	Name    string // the feature's name when it was written
	Group   uint64 // the feature id of the dedup group's inverse file, or 0
	Rows    uint64
	Stripes []StripeMeta
	Stats   Stats // over all stripes
}

// Limits bound what stored metadata may claim, so that damaged or hostile bytes cannot size an allocation. Zero fields
// take defaults: 1<<24 rows a stripe, 1 GiB decoded bytes a stripe, 1<<20 stripes a file.
type Limits struct {
	StripeRows  uint64
	StripeBytes uint64
	FileStripes uint64
}

// AppendMeta appends the byte form of m. DecodeMeta reads it back, checking every field against limits.
func AppendMeta(dst []byte, m *FileMeta) []byte               { return dst }
func DecodeMeta(src []byte, limits Limits) (*FileMeta, error) { return nil, errStub }

// WriterOptions: the zero value works.
type WriterOptions struct {
	Feature uint64
	Name    string
	Group   uint64
	// MeasureOnly and profile knobs come here.
}

// A Writer writes one feature file.
type Writer struct{}

// NewWriter returns a Writer of a feature file of type t to w.
func NewWriter(w io.Writer, t vector.Type, opts WriterOptions) (*Writer, error) { return nil, errStub }

// WriteStripe appends one stripe: the column's Inverse, Lengths (windows) and Present are stored as they are. When
// opts.Group is set the column's Inverse is left out: the group's file holds it. c is borrowed for the call.
func (w *Writer) WriteStripe(c *vector.Column) error { return errStub }

// Finish writes footer and tail and returns the directory and the file's length.
func (w *Writer) Finish() (*FileMeta, int64, error) { return nil, 0, errStub }

// OpenFile reads the directory of a feature file that stands alone at [off, off+size) of r.
func OpenFile(r io.ReaderAt, off, size int64, limits Limits) (*FileMeta, error) { return nil, errStub }

// A StripeDecoder decodes stripes; it holds scratch memory. Not safe for concurrent use.
type StripeDecoder struct{}

// NewStripeDecoder returns a StripeDecoder that refuses stripes over limits.
func NewStripeDecoder(limits Limits) *StripeDecoder { return nil }

// DecodeStripe decodes stripe i of m from src, its m.Stripes[i].Length bytes, into dst, whose memory is reused. The
// result is a valid Column for any src that passes the checksums. For a feature of a group, inverse is the group's
// decoded stripe; else nil.
func (d *StripeDecoder) DecodeStripe(dst *vector.Column, m *FileMeta, i int, src []byte, inverse *vector.Column) error {
	return errStub
}

// VerifyStripe checks the checksums of stripe i without decoding.
func VerifyStripe(m *FileMeta, i int, src []byte) error { return errStub }

// PackEntry is one feature file in a pack.
type PackEntry struct {
	Feature        uint64
	Offset, Length uint64
}

// A PackWriter concatenates feature files into one object, with a directory at the end so that it can be read alone.
type PackWriter struct{}

func NewPackWriter(w io.Writer) (*PackWriter, error) { return nil, errStub }

// Add appends a whole feature file and returns its offset in the pack.
func (p *PackWriter) Add(feature uint64, file []byte) (offset uint64, err error) { return 0, errStub }
func (p *PackWriter) Size() int64                                                { return 0 }
func (p *PackWriter) Finish() (size int64, err error)                            { return 0, errStub }

// OpenPack reads a pack's directory.
func OpenPack(r io.ReaderAt, size int64, limits Limits) ([]PackEntry, error) { return nil, errStub }

// Dump writes annotated bytes of a feature file or a pack.
func Dump(w io.Writer, r io.ReaderAt, size int64) error { return errStub }
