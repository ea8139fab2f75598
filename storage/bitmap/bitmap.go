package bitmap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage/wire"
)

// Row bitmaps are stored as Roaring bitmaps in the portable form that github.com/RoaringBitmap/RoaringFormatSpec
// describes. Numbers are little-endian.
//
//	cookie 3a 30 00 00 | containers (4)            or, where some container is of runs,
//	cookie 3b 30 | containers - 1 (2) | a bit a container: is it of runs
//	for each container: the upper 16 bits of its rows (2) | rows - 1 (2)
//	for each container: where it begins (4)        left out with the second cookie and fewer than 4 containers
//	the containers: of runs: count (2), then first (2) and length - 1 (2) of each
//	                of more than 4,096 rows: 65,536 bits
//	                else: the lower 16 bits of each row (2)
//
// The library trusts what it reads, so Check looks at all of it first.
const (
	cookieBits = 0x303a
	RunsCookie = 0x303b
	// allOffsets: with so many containers their places are stored with the second cookie too.
	allOffsets    = 4
	arrayRows     = 4096 // at most, of a container that lists its rows
	containerRows = 1 << 16
)

// MaxRows bounds a segment that a row bitmap can speak of.
const MaxRows = 1 << 32

// MaxBytes bounds the stored form of a row bitmap of a segment: each container is in the smallest of its forms, of
// which bits take 8,192 bytes.
func MaxBytes(rows uint64) uint64 {
	containers := (min(rows, MaxRows) + containerRows - 1) / containerRows
	return 8 + containers*(8+1+containerRows/8)
}

// Append appends the portable form of a set. The same rows give the same bytes.
func Append(dst []byte, rows *roaring.Bitmap) ([]byte, error) {
	smallest := rows.Clone()
	smallest.RunOptimize()
	b, err := smallest.ToBytes()
	if err != nil {
		return dst, fmt.Errorf("set of rows: %w", err)
	}
	return append(dst, b...), nil
}

// Decode decodes the portable form of count rows, each below limit; the reason is empty when it is right. The set is
// the caller's and holds none of b.
func Decode(b []byte, count, limit uint64) (*roaring.Bitmap, string) {
	got, reason := Check(b, limit)
	if reason == "" && got != count {
		reason = fmt.Sprintf("%d rows: its entry says %d", got, count)
	}
	if reason != "" {
		return nil, "set of rows: " + reason
	}
	out := roaring.New()
	if _, err := out.ReadFrom(bytes.NewReader(b)); err != nil {
		return nil, "set of rows: " + err.Error()
	}
	return out, ""
}

// Check returns how many rows the portable form of a set holds. Whatever the specification does not allow is a reason.
func Check(b []byte, limit uint64) (rows uint64, reason string) {
	d := wire.Decoder{Rest: b}
	le := binary.LittleEndian
	cookie := d.U32()
	var runs []byte // a bit a container; nil: none is of runs
	var containers, offsets uint64
	switch {
	case cookie == cookieBits:
		containers = uint64(d.U32())
		offsets = containers
	case cookie&0xffff == RunsCookie:
		containers = uint64(cookie>>16) + 1
		runs = d.Take((containers + 7) / 8)
		if containers >= allOffsets {
			offsets = containers
		}
	case d.Reason == "":
		d.Fail("no Roaring bitmap")
	}
	if containers > containerRows {
		d.Fail("containers out of range")
		containers, offsets = 0, 0
	}
	heads := d.Take(4 * containers)
	places := d.Take(4 * offsets)
	if d.Reason != "" {
		return 0, d.Reason
	}
	last := -1
	for i := range containers {
		high, n := uint64(le.Uint16(heads[4*i:])), uint64(le.Uint16(heads[4*i+2:]))+1
		if int(high) <= last {
			return 0, "containers out of order"
		}
		last = int(high)
		if offsets > 0 && uint64(le.Uint32(places[4*i:])) != uint64(len(b)-len(d.Rest)) {
			return 0, "a container is not where it is said to be"
		}
		var top uint64
		switch {
		case runs != nil && runs[i/8]&(1<<(i%8)) != 0:
			top = runContainer(&d, n)
		case n > arrayRows:
			top = bitsContainer(&d, n)
		default:
			top = arrayContainer(&d, n)
		}
		if d.Reason != "" {
			return 0, d.Reason
		}
		if high<<16|top >= limit {
			return 0, fmt.Sprintf("row %d: the segment has %d", high<<16|top, limit)
		}
		rows += n
	}
	d.End()
	if d.Reason == "" && uint64(len(b)) > MaxBytes(limit) {
		return 0, "larger than it needs to be"
	}
	return rows, d.Reason
}

// runContainer takes a container of runs of n rows together and returns the last.
func runContainer(d *wire.Decoder, n uint64) (last uint64) {
	count := uint64(d.U16())
	next, sum := uint64(0), uint64(0) // the first row that may come, rows so far
	for range count {
		first, more := uint64(d.U16()), uint64(d.U16())
		if d.Reason != "" {
			return 0
		}
		if first < next || first+more >= containerRows {
			d.Fail("runs out of order")
			return 0
		}
		last = first + more
		next = last + 1
		sum += more + 1
	}
	if sum != n {
		d.Fail("a container of another number of rows")
	}
	return last
}

func bitsContainer(d *wire.Decoder, n uint64) (last uint64) {
	words := d.Take(containerRows / 8)
	sum := uint64(0)
	for i := 0; i+8 <= len(words); i += 8 {
		if w := binary.LittleEndian.Uint64(words[i:]); w != 0 {
			sum += uint64(bits.OnesCount64(w))
			last = uint64(i*8 + bits.Len64(w) - 1)
		}
	}
	if sum != n {
		d.Fail("a container of another number of rows")
	}
	return last
}

func arrayContainer(d *wire.Decoder, n uint64) (last uint64) {
	b := d.Take(2 * n)
	for i := 0; i < len(b); i += 2 {
		row := uint64(binary.LittleEndian.Uint16(b[i:]))
		if i > 0 && row <= last {
			d.Fail("rows out of order")
			return 0
		}
		last = row
	}
	return last
}
