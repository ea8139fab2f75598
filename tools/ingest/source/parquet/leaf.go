package parquet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/page"
)

// leafScratch holds what pages are decoded into, and the buffers in which open columns gather the rows of a batch. A
// worker has one.
type leafScratch struct {
	page.Values
	defs, reps []int16
	idle       []*pending
}

// maxIdle: a top-level column seldom has more leaves than this.
const maxIdle = 16

// pending is what a column has read and not handed over: whole rows, except for the last.
type pending struct {
	defs, reps []int16      // empty when the column has no such levels
	vals       column.Array // the values that are not null
}

// borrow returns an empty pending.
func (s *leafScratch) borrow(n *column.Type) *pending {
	p := &pending{}
	if last := len(s.idle) - 1; last >= 0 {
		p, s.idle = s.idle[last], s.idle[:last]
	}
	v := &p.vals
	p.defs, p.reps = p.defs[:0], p.reps[:0]
	p.vals = column.Array{Type: n, Ints: v.Ints[:0], Floats: v.Floats[:0], Doubles: v.Doubles[:0], Data: v.Data[:0],
		Offsets: v.Offsets[:0]}
	if n.Shape == column.Bytes || n.Shape == column.String {
		p.vals.Offsets = append(p.vals.Offsets, 0)
	}
	return p
}

func (s *leafScratch) giveBack(p *pending) {
	if len(s.idle) < maxIdle {
		s.idle = append(s.idle, p)
	}
}

// A leafConverter appends n values, which are in the scratch slice of the column's physical type, to dst.
type leafConverter func(dst *column.Array, s *page.Values, n int, limits *column.Limits) error

// A leafReader reads one column chunk. Its pending levels and values always begin at the start of a row. Between
// batches it holds its page, and what it had to read past the last row: nothing, unless the library decodes the page.
type leafReader struct {
	col            *schema.Column
	node           *column.Type
	maxDef, maxRep int16
	pages          *page.Reader
	cursor         page.Cursor
	library        *page.Library // of pages that cursors do not read; nil until there was one
	byLibrary      bool          // the current page is one
	convert        leafConverter
	levelsOnly     bool // there are no values: what is read is where a struct is null
	limits         *column.Limits
	most           int64 // bytes of a batch's rows, about: see fill
	held           int64 // bytes that it was counted for between batches

	levels   int // pending
	*pending     // nil between batches, when nothing is
}

const (
	levelBatch = 8192
	// cellBatch is how many strings are decoded before their bytes are counted.
	cellBatch = 512
)

// fill reads until rows whole rows are pending, or fewer that hold more bytes than most. It returns how many rows that
// are, and how many levels and values they have.
func (l *leafReader) fill(rows int, s *leafScratch) (full, levels, values int, err error) {
	if l.pending == nil {
		l.pending = s.borrow(l.node)
	}
	if l.maxRep == 0 {
		for l.levels < rows {
			if l.levels > 0 && l.pendingBytes() > l.most {
				rows = l.levels
				break
			}
			if _, err := l.read(rows-l.levels, 0, s); err != nil {
				return 0, 0, 0, err
			}
		}
		return rows, rows, l.countValues(rows), nil
	}
	begun, scan, last := 0, 0, 0
	for {
		for ; scan < l.levels; scan++ {
			if l.reps[scan] == 0 {
				if begun == rows {
					return rows, scan, l.countValues(scan), nil
				}
				begun++
				last = scan
			}
		}
		if begun > 1 && l.pendingBytes() > l.most {
			return begun - 1, last, l.countValues(last), nil
		}
		if int64(l.levels-last) > l.limits.CellValues {
			return 0, 0, 0, fmt.Errorf("a row of more than %d values", l.limits.CellValues)
		}
		if l.pages.Left == 0 && l.pages.Remaining == 0 {
			if begun != rows {
				return 0, 0, 0, fmt.Errorf("the column has %d rows too few", rows-begun)
			}
			return rows, l.levels, l.vals.Len, nil
		}
		whole, err := l.read(min(levelBatch, max(64, 4*rows)), rows-begun, s)
		if err != nil {
			return 0, 0, 0, err
		}
		if whole && scan == l.levels {
			return rows, l.levels, l.vals.Len, nil
		}
	}
}

// pendingBytes is the memory of what is pending.
func (l *leafReader) pendingBytes() int64 { return int64(4*l.levels) + l.vals.SizeBytes() }

func (l *leafReader) countValues(levels int) int {
	if l.levelsOnly {
		return 0
	}
	if l.maxDef == 0 {
		return levels
	}
	if levels == l.levels {
		return l.vals.Len
	}
	n, top := 0, l.maxDef
	for _, d := range l.defs[:levels] {
		if d == top {
			n++
		}
	}
	return n
}

// read appends up to n levels with their values to what is pending, all from one page. Where the column repeats and a
// cursor reads the page, it stops before the level that would begin one row more than starts, and returns true.
func (l *leafReader) read(n, starts int, s *leafScratch) (stopped bool, err error) {
	if err := l.pages.Restore(); err != nil {
		return false, err
	}
	if l.pages.Left == 0 {
		if err := l.nextPage(); err != nil {
			return false, err
		}
	}
	most := int64(levelBatch)
	if l.node.Shape == column.String || l.node.Shape == column.Bytes {
		most = cellBatch
	}
	n = int(min(int64(n), l.pages.Left, most))
	s.defs, s.reps = column.Resize(s.defs, n), column.Resize(s.reps, n)
	var defs, reps []int16
	if l.maxDef > 0 {
		defs = s.defs
	}
	if l.maxRep > 0 {
		reps = s.reps
	}
	levels, values := n, 0
	if l.byLibrary {
		var read int64
		if read, values, err = l.library.Decode(n, defs, reps, &s.Values); err != nil {
			return false, err
		}
		if levels = int(read); levels <= 0 || levels > n {
			return false, page.ErrShortPage
		}
	} else if levels, err = l.decode(n, starts, defs, reps); err != nil {
		return false, err
	}
	stopped = levels < n
	if levels == 0 {
		return true, nil
	}
	l.pages.Left -= int64(levels)
	present, err := l.check(defs, reps, levels)
	if err != nil {
		return false, err
	}
	if l.byLibrary && values != present {
		return false, page.ErrShortPage
	}
	if defs != nil {
		l.defs = append(l.defs, defs[:levels]...)
	}
	if reps != nil {
		l.reps = append(l.reps, reps[:levels]...)
	}
	l.levels += levels
	if l.levelsOnly {
		return stopped, nil
	}
	if !l.byLibrary {
		if err := l.cursor.Values(l.pages.Buf, &l.pages.Dict, l.pages.Value, present, &s.Values); err != nil {
			return false, err
		}
	}
	if err := l.convert(&l.vals, &s.Values, present, l.limits); err != nil {
		return false, err
	}
	if l.pendingBytes() > l.limits.BatchBytes {
		return false, fmt.Errorf("%d rows hold more than %d bytes", l.levels, l.limits.BatchBytes)
	}
	return stopped && !l.byLibrary, nil
}

func (l *leafReader) nextPage() error {
	if err := l.pages.Next(); err != nil {
		if err == io.EOF {
			return errors.New("the column ends before its last row")
		}
		return err
	}
	l.byLibrary = !l.levelsOnly && !page.CursorReads(&l.pages.Head, l.pages.Value)
	if l.byLibrary {
		h := &l.pages.Head
		if _, known := page.EncodingNames[h.Encoding]; !known {
			return fmt.Errorf("a page in encoding %d of Parquet's, which is unknown to this reader", h.Encoding)
		}
		if h.Typ == page.Data && (l.maxDef > 0 && h.DefEncoding != page.EncodingRLE || l.maxRep > 0 &&
			h.RepEncoding != page.EncodingRLE) {
			return column.Refuse("", "a page of %s values has levels in Parquet's deprecated BIT_PACKED encoding: "+
				"write it with a newer writer", page.EncodingNames[h.Encoding])
		}
		if l.library == nil || l.library.Fixed != page.FixedAsBytes(l.col, h.Encoding) {
			var err error
			if l.library, err = page.NewLibrary(l.col, h.Encoding); err != nil {
				return err
			}
		}
		return l.library.Begin(h, l.pages.Buf)
	}
	var err error
	if l.cursor, err = page.NewCursor(&l.pages.Head, l.pages.Buf, l.maxDef, l.maxRep, l.pages.Quirks); err != nil ||
		l.levelsOnly {
		return err
	}
	return l.cursor.BeginValues(&l.pages.Head, l.pages.Buf, l.pages.Value)
}

// decode decodes n levels, or fewer where a row too many begins.
func (l *leafReader) decode(n, starts int, defs, reps []int16) (levels int, err error) {
	buf, c := l.pages.Buf, &l.cursor
	if reps != nil {
		before := c.Reps
		if err := page.RleDecode(&c.Reps, buf, reps); err != nil {
			return 0, err
		}
		for i, r := range reps {
			if r != 0 {
				continue
			}
			if starts == 0 {
				c.Reps, n = before, i
				if err := page.RleDecode(&c.Reps, buf, reps[:n]); err != nil {
					return 0, err
				}
				break
			}
			starts--
		}
	}
	if defs == nil {
		return n, nil
	}
	return n, page.RleDecode(&c.Defs, buf, defs[:n])
}

// check verifies levels against the column's schema, and returns how many have a value.
func (l *leafReader) check(defs, reps []int16, levels int) (present int, err error) {
	present = levels
	if defs != nil {
		present = 0
		top := l.maxDef
		for _, d := range defs[:levels] {
			if d < 0 || d > top {
				return 0, fmt.Errorf("a definition level of %d, the greatest is %d", d, top)
			}
			if d == top {
				present++
			}
		}
	}
	if reps != nil {
		top := l.maxRep
		for _, r := range reps[:levels] {
			if r < 0 || r > top {
				return 0, fmt.Errorf("a repetition level of %d, the greatest is %d", r, top)
			}
		}
		if l.levels == 0 && reps[0] != 0 {
			return 0, errors.New("the column does not begin with the start of a row")
		}
	}
	return present, nil
}

// take returns the entries of the first levels pending levels, which hold the first values pending values. The caller
// owns them: they are copied at their size. An entry begins where the definition level is at least slot.
func (l *leafReader) take(levels, values int, slot int16) *column.Array {
	a := &column.Array{Type: l.node, Len: levels}
	if l.maxDef > 0 {
		n := 0
		for _, d := range l.defs[:levels] {
			if d >= slot {
				n++
			}
		}
		a.Len = n
		if n != values {
			a.Valid = make(vector.Bitmap, vector.BitmapWords(n))
			i := 0
			for _, d := range l.defs[:levels] {
				if d == l.maxDef {
					a.Valid.Set(i)
				}
				if d >= slot {
					i++
				}
			}
		}
	}
	a.FillFrom(&l.vals, values)
	return a
}

// forget drops pending levels and values, and gives the buffer back when nothing is left.
func (l *leafReader) forget(levels, values int, s *leafScratch) {
	all := l.pending
	l.levels -= levels
	if l.levels == 0 {
		l.pending = nil
	} else {
		rest := column.NewArray(l.node)
		rest.AppendFrom(&all.vals, values, all.vals.Len)
		l.pending = &pending{vals: *rest}
		if l.maxDef > 0 {
			l.defs = slices.Clone(all.defs[levels:])
		}
		if l.maxRep > 0 {
			l.reps = slices.Clone(all.reps[levels:])
		}
	}
	s.giveBack(all)
}

// done says whether the column chunk has been read to its end.
func (l *leafReader) done() bool { return l.levels == 0 && l.pages.Left == 0 && l.pages.Remaining == 0 }

// rest decides what the column holds until the next batch: its page and dictionary, unless it needs neither again, or
// the open columns hold more than limit already. Pages that the library decodes stay.
func (l *leafReader) rest(held *atomic.Int64, limit int64) {
	if l.pages.Left == 0 && !l.byLibrary {
		l.pages.Buf = nil
	}
	size := l.pages.SizeBytes()
	if l.done() || !l.byLibrary && held.Load()-l.held+size > limit {
		l.pages.Drop()
		l.library = nil
		size = 0
	}
	held.Add(size - l.held)
	l.held = size
}
