package page

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A Cursor is where a column is in its current page. It holds offsets, no bytes: the page may be dropped from memory
// and read again.
//
//	data page     +-------------------+-------------------+--------+
//	              | repetition levels | definition levels | values |
//	              +-------------------+-------------------+--------+
//
//	values: PLAIN, or indices into the dictionary page, or bools in runs
type Cursor struct {
	Reps, Defs rleCursor
	pos        int       // PLAIN: of the next value; of bools, in bits
	index      rleCursor // other encodings
	encoding   int32
}

// A valueType is what a column chunk stores.
type valueType struct {
	phys parquet.Type
	size int // bytes of a value; 0: byte arrays, which say it, and bools
}

// NewValueType returns what a column of a physical type stores. typeLength is that of fixed-length byte arrays.
func NewValueType(phys parquet.Type, typeLength int) valueType {
	v := valueType{phys: phys}
	switch phys {
	case parquet.Types.Int32, parquet.Types.Float:
		v.size = 4
	case parquet.Types.Int64, parquet.Types.Double:
		v.size = 8
	case parquet.Types.Int96:
		v.size = 12
	case parquet.Types.FixedLenByteArray:
		v.size = typeLength
	}
	return v
}

// CursorReads says whether a Cursor reads the page: the library reads those in rarer encodings.
func CursorReads(h *Header, v valueType) bool {
	switch h.Encoding {
	case encodingPlain, encodingPlainDictionary, encodingRLEDictionary:
		return true
	case EncodingRLE:
		return v.phys == parquet.Types.Boolean
	}
	return false
}

// NewCursor returns the place of the page's first levels. BeginValues has to follow where its values are read.
func NewCursor(h *Header, page []byte, maxDef, maxRep int16, q Quirks) (c Cursor, err error) {
	repEncoding, defEncoding, repSize, defSize := h.RepEncoding, h.DefEncoding, -1, -1
	if h.Typ == DataV2 {
		repEncoding, defEncoding, repSize, defSize = EncodingRLE, EncodingRLE, int(h.repBytes), int(h.defBytes)
	}
	n := int(h.values)
	if c.Reps, c.pos, err = levelCursor(page, 0, n, maxRep, repEncoding, repSize, q.lowLevels); err != nil {
		return c, err
	}
	if c.Defs, c.pos, err = levelCursor(page, c.pos, n, maxDef, defEncoding, defSize, q.lowLevels); err != nil {
		return c, err
	}
	if c.pos > len(page) {
		return c, ErrShortPage
	}
	return c, nil
}

// BeginValues goes to the page's first value, which is behind its levels.
func (c *Cursor) BeginValues(h *Header, page []byte, v valueType) error {
	pos := c.pos
	c.encoding = h.Encoding
	switch h.Encoding {
	case encodingPlain:
		if v.phys == parquet.Types.Boolean {
			c.pos *= 8
		}
	case EncodingRLE:
		if len(page)-pos < 4 {
			// A page of nulls may hold no values at all.
			c.index = rleCursor{pos: len(page), end: len(page), width: 1}
			break
		}
		size := int(binary.LittleEndian.Uint32(page[pos:]))
		if size > len(page)-pos-4 {
			return ErrShortPage
		}
		c.index = rleCursor{pos: pos + 4, end: pos + 4 + size, width: 1}
	default:
		c.index = rleCursor{pos: len(page), end: len(page)}
		if pos < len(page) {
			if page[pos] > maxRLEWidth {
				return fmt.Errorf("dictionary indices of %d bits", page[pos])
			}
			c.index = rleCursor{pos: pos + 1, end: len(page), width: page[pos]}
		}
	}
	return nil
}

// A dictionary is the values that indices stand for: numbers in the slice of their type; byte arrays as the dictionary
// page has them.
type dictionary struct {
	loaded  bool // else there is none, or it was dropped
	n       int
	numbers *Values
	bytes   []byte
	offsets []int32 // of byte arrays: where the length of each is, and the end
}

var errIndex = errors.New("an index outside the dictionary")

func newDictionary(b []byte, n int, v valueType) (dictionary, error) {
	d := dictionary{loaded: true, n: n}
	switch {
	case v.phys == parquet.Types.Boolean:
		return d, errors.New("a dictionary of bools")
	case v.phys != parquet.Types.ByteArray:
		if n > len(b)/max(1, v.size) {
			return d, ErrShortPage
		}
		if v.phys != parquet.Types.FixedLenByteArray {
			d.numbers = &Values{}
			return d, plain(b, v, n, d.numbers)
		}
		d.bytes = b
		return d, nil
	}
	if n > len(b)/4 || len(b) > math.MaxInt32 {
		return d, ErrShortPage
	}
	d.bytes, d.offsets = b, make([]int32, 1, n+1)
	for pos := 0; len(d.offsets) <= n; {
		if _, err := byteArray(b, &pos); err != nil {
			return d, err
		}
		d.offsets = append(d.offsets, int32(pos))
	}
	return d, nil
}

// byteArray returns the byte array at *pos of b, and moves *pos behind it.
func byteArray(b []byte, pos *int) ([]byte, error) {
	if len(b)-*pos < 4 {
		return nil, ErrShortPage
	}
	size := int(binary.LittleEndian.Uint32(b[*pos:]))
	if size > len(b)-*pos-4 {
		return nil, ErrShortPage
	}
	*pos += 4 + size
	return b[*pos-size : *pos], nil
}

func (d *dictionary) sizeBytes() int64 {
	n := cap(d.bytes) + 4*cap(d.offsets)
	if v := d.numbers; v != nil {
		n += 4*(cap(v.I32)+cap(v.F32)) + 8*(cap(v.I64)+cap(v.F64)) + 12*cap(v.I96)
	}
	return int64(n)
}

// Values decodes the next n values of the page into the scratch slice of their type. Byte arrays are borrowed from the
// page or the dictionary. Hot: it allocates nothing once the scratch has grown.
func (c *Cursor) Values(page []byte, d *dictionary, v valueType, n int, s *Values) error {
	if n == 0 {
		return nil
	}
	if v.phys == parquet.Types.Boolean {
		return c.boolValues(page, n, s)
	}
	if c.encoding != encodingPlain {
		if !d.loaded {
			return errors.New("indices without a dictionary")
		}
		s.index = column.Resize(s.index, n)
		if err := RleDecode(&c.index, page, s.index); err != nil {
			return err
		}
		for _, i := range s.index {
			if uint(uint32(i)) >= uint(d.n) {
				return errIndex
			}
		}
		return d.gather(v, s)
	}
	if v.phys == parquet.Types.ByteArray {
		s.Bytes = column.Resize(s.Bytes, n)
		for i := range s.Bytes {
			v, err := byteArray(page, &c.pos)
			if err != nil {
				return err
			}
			s.Bytes[i] = v
		}
		return nil
	}
	if n > (len(page)-c.pos)/max(1, v.size) {
		return ErrShortPage
	}
	b := page[c.pos : c.pos+n*v.size]
	c.pos += len(b)
	return plain(b, v, n, s)
}

func (c *Cursor) boolValues(page []byte, n int, s *Values) error {
	s.index = column.Resize(s.index, n)
	switch c.encoding {
	case encodingPlain:
		if n > len(page)*8-c.pos {
			return ErrShortPage
		}
		unpackLow(page, c.pos, 1, s.index)
		c.pos += n
	case EncodingRLE:
		if err := RleDecode(&c.index, page, s.index); err != nil {
			return err
		}
	default:
		return errors.New("a dictionary of bools")
	}
	s.Bools = column.Resize(s.Bools, n)
	for i, v := range s.index {
		s.Bools[i] = v != 0
	}
	return nil
}

// plain takes n values from b, which holds them whole.
func plain(b []byte, v valueType, n int, s *Values) error {
	switch v.phys {
	case parquet.Types.Int32:
		s.I32 = column.Resize(s.I32, n)
		for i := range s.I32 {
			s.I32[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case parquet.Types.Float:
		s.F32 = column.Resize(s.F32, n)
		for i := range s.F32 {
			s.F32[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case parquet.Types.Int64:
		s.I64 = column.Resize(s.I64, n)
		for i := range s.I64 {
			s.I64[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case parquet.Types.Double:
		s.F64 = column.Resize(s.F64, n)
		for i := range s.F64 {
			s.F64[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case parquet.Types.Int96:
		s.I96 = column.Resize(s.I96, n)
		for i := range s.I96 {
			s.I96[i] = parquet.Int96(b[12*i : 12*i+12])
		}
	case parquet.Types.FixedLenByteArray:
		s.Fixed = column.Resize(s.Fixed, n)
		for i := range s.Fixed {
			s.Fixed[i] = b[v.size*i : v.size*(i+1)]
		}
	default:
		return fmt.Errorf("no reader of physical type %v", v.phys)
	}
	return nil
}

// gather takes the values that s.index names; the caller has checked that they are there.
func (d *dictionary) gather(v valueType, s *Values) error {
	switch v.phys {
	case parquet.Types.Int32:
		s.I32 = gather(s.I32, d.numbers.I32, s.index)
	case parquet.Types.Float:
		s.F32 = gather(s.F32, d.numbers.F32, s.index)
	case parquet.Types.Int64:
		s.I64 = gather(s.I64, d.numbers.I64, s.index)
	case parquet.Types.Double:
		s.F64 = gather(s.F64, d.numbers.F64, s.index)
	case parquet.Types.Int96:
		s.I96 = gather(s.I96, d.numbers.I96, s.index)
	case parquet.Types.FixedLenByteArray:
		s.Fixed = column.Resize(s.Fixed, len(s.index))
		for i, x := range s.index {
			s.Fixed[i] = d.bytes[v.size*int(x) : v.size*(int(x)+1)]
		}
	case parquet.Types.ByteArray:
		s.Bytes = column.Resize(s.Bytes, len(s.index))
		for i, x := range s.index {
			s.Bytes[i] = d.bytes[d.offsets[x]+4 : d.offsets[x+1]]
		}
	default:
		return fmt.Errorf("no reader of physical type %v", v.phys)
	}
	return nil
}

func gather[T any](dst, values []T, index []int32) []T {
	dst = column.Resize(dst, len(index))
	for i, x := range index {
		dst[i] = values[x]
	}
	return dst
}
