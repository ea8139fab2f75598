package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A pageCursor is where a column is in its current page. It holds offsets, no bytes: the page may be dropped from memory
// and read again.
//
//	data page     +-------------------+-------------------+--------+
//	              | repetition levels | definition levels | values |
//	              +-------------------+-------------------+--------+
//
//	values: PLAIN, or indices into the dictionary page, or bools in runs
type pageCursor struct {
	reps, defs rleCursor
	pos        int       // PLAIN: of the next value; of bools, in bits
	index      rleCursor // other encodings
	encoding   int32
}

// A valueType is what a column chunk stores.
type valueType struct {
	phys parquet.Type
	size int // bytes of a value; 0: byte arrays, which say it, and bools
}

func newValueType(phys parquet.Type, typeLength int) valueType {
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

// cursorReads says whether a pageCursor reads the page: the library reads those in rarer encodings.
func cursorReads(h *pageHeader, v valueType) bool {
	switch h.encoding {
	case encodingPlain, encodingPlainDictionary, encodingRLEDictionary:
		return true
	case encodingRLE:
		return v.phys == parquet.Types.Boolean
	}
	return false
}

// newPageCursor returns the place of the page's first levels. beginValues has to follow where its values are read.
func newPageCursor(h *pageHeader, page []byte, maxDef, maxRep int16, q quirks) (c pageCursor, err error) {
	repEncoding, defEncoding, repSize, defSize := h.repEncoding, h.defEncoding, -1, -1
	if h.typ == pageDataV2 {
		repEncoding, defEncoding, repSize, defSize = encodingRLE, encodingRLE, int(h.repBytes), int(h.defBytes)
	}
	pos := 0
	if maxRep > 0 {
		if c.reps, pos, err = levelCursor(page, pos, int(h.values), maxRep, repEncoding, repSize, q.lowLevels); err != nil {
			return c, err
		}
	} else if repSize > 0 {
		pos += repSize
	}
	if maxDef > 0 {
		if c.defs, pos, err = levelCursor(page, pos, int(h.values), maxDef, defEncoding, defSize, q.lowLevels); err != nil {
			return c, err
		}
	} else if defSize > 0 {
		pos += defSize
	}
	if pos > len(page) {
		return c, errShortPage
	}
	c.pos = pos
	return c, nil
}

// beginValues goes to the page's first value, which is behind its levels.
func (c *pageCursor) beginValues(h *pageHeader, page []byte, v valueType) error {
	pos := c.pos
	c.encoding = h.encoding
	switch h.encoding {
	case encodingPlain:
		if v.phys == parquet.Types.Boolean {
			c.pos *= 8
		}
	case encodingRLE:
		if len(page)-pos < 4 {
			// A page of nulls may hold no values at all.
			c.index = rleCursor{pos: len(page), end: len(page), width: 1}
			break
		}
		size := int(binary.LittleEndian.Uint32(page[pos:]))
		if size > len(page)-pos-4 {
			return errShortPage
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

// A dictionary is the values that indices stand for, as the dictionary page holds them. There is none where bytes is nil.
type dictionary struct {
	bytes   []byte
	n       int
	offsets []int32 // of byte arrays: where the length of each is, and the end
}

var errIndex = errors.New("an index outside the dictionary")

func newDictionary(b []byte, n int, v valueType) (dictionary, error) {
	d := dictionary{bytes: b, n: n}
	switch {
	case v.phys == parquet.Types.Boolean:
		return d, errors.New("a dictionary of bools")
	case v.phys != parquet.Types.ByteArray:
		if n > len(b)/max(1, v.size) {
			return d, errShortPage
		}
		return d, nil
	}
	if n > len(b)/4 || len(b) > math.MaxInt32 {
		return d, errShortPage
	}
	d.offsets = make([]int32, 1, n+1)
	pos := 0
	for range n {
		if len(b)-pos < 4 {
			return d, errShortPage
		}
		size := int(binary.LittleEndian.Uint32(b[pos:]))
		if size > len(b)-pos-4 {
			return d, errShortPage
		}
		pos += 4 + size
		d.offsets = append(d.offsets, int32(pos))
	}
	return d, nil
}

func (d *dictionary) sizeBytes() int64 { return int64(cap(d.bytes) + 4*cap(d.offsets)) }

// values decodes the next n values of the page into the scratch slice of their type. Byte arrays are borrowed from the
// page or the dictionary. Hot: it allocates nothing once the scratch has grown.
func (c *pageCursor) values(page []byte, d *dictionary, v valueType, n int, s *pageValues) error {
	if n == 0 {
		return nil
	}
	if v.phys == parquet.Types.Boolean {
		return c.boolValues(page, n, s)
	}
	if c.encoding != encodingPlain {
		if d.bytes == nil {
			return errors.New("indices without a dictionary")
		}
		s.index = column.Resize(s.index, n)
		if err := rleDecode(&c.index, page, s.index); err != nil {
			return err
		}
		for _, i := range s.index {
			if uint(uint32(i)) >= uint(d.n) {
				return errIndex
			}
		}
		return gather(d.bytes, d.offsets, s.index, v, n, s)
	}
	if v.phys == parquet.Types.ByteArray {
		s.bytes = column.Resize(s.bytes, n)
		for i := range s.bytes {
			if len(page)-c.pos < 4 {
				return errShortPage
			}
			size := int(binary.LittleEndian.Uint32(page[c.pos:]))
			if size > len(page)-c.pos-4 {
				return errShortPage
			}
			c.pos += 4 + size
			s.bytes[i] = page[c.pos-size : c.pos]
		}
		return nil
	}
	if n > (len(page)-c.pos)/max(1, v.size) {
		return errShortPage
	}
	b := page[c.pos : c.pos+n*v.size]
	c.pos += len(b)
	return plain(b, v, n, s)
}

func (c *pageCursor) boolValues(page []byte, n int, s *pageValues) error {
	s.index = column.Resize(s.index, n)
	switch c.encoding {
	case encodingPlain:
		if n > len(page)*8-c.pos {
			return errShortPage
		}
		unpackLow(page, c.pos, 1, s.index)
		c.pos += n
	case encodingRLE:
		if err := rleDecode(&c.index, page, s.index); err != nil {
			return err
		}
	default:
		return errors.New("a dictionary of bools")
	}
	s.bools = column.Resize(s.bools, n)
	for i, v := range s.index {
		s.bools[i] = v != 0
	}
	return nil
}

// plain takes n values from b, which holds them whole.
func plain(b []byte, v valueType, n int, s *pageValues) error {
	switch v.phys {
	case parquet.Types.Int32:
		s.i32 = column.Resize(s.i32, n)
		for i := range s.i32 {
			s.i32[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case parquet.Types.Float:
		s.f32 = column.Resize(s.f32, n)
		for i := range s.f32 {
			s.f32[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case parquet.Types.Int64:
		s.i64 = column.Resize(s.i64, n)
		for i := range s.i64 {
			s.i64[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case parquet.Types.Double:
		s.f64 = column.Resize(s.f64, n)
		for i := range s.f64 {
			s.f64[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case parquet.Types.Int96:
		s.i96 = column.Resize(s.i96, n)
		for i := range s.i96 {
			s.i96[i] = parquet.Int96(b[12*i : 12*i+12])
		}
	case parquet.Types.FixedLenByteArray:
		s.fixed = column.Resize(s.fixed, n)
		for i := range s.fixed {
			s.fixed[i] = b[v.size*i : v.size*(i+1)]
		}
	default:
		return fmt.Errorf("no reader of physical type %v", v.phys)
	}
	return nil
}

// gather takes the n values of a dictionary that index names; the caller has checked that they are there.
func gather(b []byte, offsets, index []int32, v valueType, n int, s *pageValues) error {
	switch v.phys {
	case parquet.Types.Int32:
		s.i32 = column.Resize(s.i32, n)
		for i, x := range index {
			s.i32[i] = int32(binary.LittleEndian.Uint32(b[4*int(x):]))
		}
	case parquet.Types.Float:
		s.f32 = column.Resize(s.f32, n)
		for i, x := range index {
			s.f32[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*int(x):]))
		}
	case parquet.Types.Int64:
		s.i64 = column.Resize(s.i64, n)
		for i, x := range index {
			s.i64[i] = int64(binary.LittleEndian.Uint64(b[8*int(x):]))
		}
	case parquet.Types.Double:
		s.f64 = column.Resize(s.f64, n)
		for i, x := range index {
			s.f64[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*int(x):]))
		}
	case parquet.Types.Int96:
		s.i96 = column.Resize(s.i96, n)
		for i, x := range index {
			s.i96[i] = parquet.Int96(b[12*int(x) : 12*int(x)+12])
		}
	case parquet.Types.FixedLenByteArray:
		s.fixed = column.Resize(s.fixed, n)
		for i, x := range index {
			s.fixed[i] = b[v.size*int(x) : v.size*(int(x)+1)]
		}
	case parquet.Types.ByteArray:
		s.bytes = column.Resize(s.bytes, n)
		for i, x := range index {
			s.bytes[i] = b[offsets[x]+4 : offsets[x+1]]
		}
	default:
		return fmt.Errorf("no reader of physical type %v", v.phys)
	}
	return nil
}
