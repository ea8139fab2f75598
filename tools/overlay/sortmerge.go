package overlay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// A sortMerge matches rows of files with the table's where neither fit in memory:
//
//	files: (hash, row)            | key, payload ─┐
//	                                              ├─ merged by hash, keys compared
//	table: (hash, segment and row) | key ─────────┘        |
//	                                                       v
//	                                            (segment, row) | payload ──> transposer
//
// Each arrow sorts.
type sortMerge struct {
	matchedRows
	dir      func() (string, error)
	rows     sorter
	shapes   []shape
	features []*fileFeature // of the overlay
	scratch  []byte

	unknown    []unmatchedRow // the first rows that the last merge did not find, ascending
	spills     int            // of the sorters that are gone
	spillBytes int64
}

type unmatchedRow struct {
	row uint64
	key []byte
}

func newSortMerge(f *files, dir func() (string, error)) *sortMerge {
	return &sortMerge{
		matchedRows: matchedRows{files: f}, dir: dir, rows: newSorter(dir, f.opts.heldShare(), f.opts.mergeShare()),
	}
}

// shapeOf returns the number of a part's shape.
func (m *sortMerge) shapeOf(p *filePart) uint64 {
	var types []vector.Type
	for _, c := range p.columns {
		types = append(types, c.Type)
	}
	for i, s := range m.shapes {
		if slices.Equal(s.features, p.features) && slices.Equal(s.types, types) {
			return uint64(i)
		}
	}
	m.shapes = append(m.shapes, shape{p.features, types})
	return uint64(len(m.shapes) - 1)
}

// addPart takes a part over.
func (m *sortMerge) addPart(ctx context.Context, p *filePart) error {
	number := m.shapeOf(p)
	err := m.files.canonical(p, func(row int, key []byte) error {
		return m.add(ctx, p.first+uint64(row), m.files.opts.hash(key), key, number, p, row)
	})
	p.chunk.Release()
	return err
}

// add takes a row of a part over.
func (m *sortMerge) add(ctx context.Context, number, hash uint64, key []byte, shape uint64, p *filePart,
	row int) error {
	var length [binary.MaxVarintLen64]byte
	b := binary.AppendUvarint(m.scratch[:0], shape)
	for _, c := range p.columns {
		b = appendValue(b, c, row)
	}
	m.scratch = b
	return m.rows.add(ctx, hash, number, length[:binary.PutUvarint(length[:], uint64(len(key)))], key, b)
}

// rowAt is the place of a row of the table in sorters.
func rowAt(segment, row int) uint64 { return uint64(segment)<<32 | uint64(row) }

func (m *sortMerge) match(ctx context.Context, v *view, want []bool, progress func(uint64),
	visit func(int, values) error) error {
	opts := m.files.opts
	if len(m.rows.runs.All()) == 0 { // what the table's keys take is as much again
		if err := m.rows.spill(ctx); err != nil {
			return err
		}
	}
	keys := newSorter(m.dir, opts.heldShare(), opts.mergeShare())
	defer m.done(&keys)
	if err := m.readKeys(ctx, v, want, &keys, progress); err != nil {
		return err
	}
	matches := newSorter(m.dir, opts.readerShare(), opts.mergeShare())
	defer m.done(&matches)
	if err := m.merge(ctx, &keys, &matches); err != nil {
		return err
	}
	m.done(&keys)
	return m.visit(ctx, v, want, &matches, visit)
}

// done frees a sorter and adds up what it spilled.
func (m *sortMerge) done(s *sorter) {
	m.spills += s.spills
	m.spillBytes += s.spillBytes
	s.spills, s.spillBytes = 0, 0
	s.close()
}

// readKeys puts the keys of the wanted segments into a sorter.
func (m *sortMerge) readKeys(ctx context.Context, v *view, want []bool, keys *sorter, progress func(uint64)) error {
	var key []byte
	row, done := 0, uint64(0)
	return v.walk(ctx, keyNames(m.files.key), m.files.opts, want, func(p piece) error {
		s := &v.segments[p.segment]
		if p.place == 0 {
			row = 0
		}
		for i := p.lo; i < p.hi; i++ {
			row = s.nextLive(row)
			var null int
			if key, null = appendKey(key[:0], p.columns, i); null < 0 {
				if err := keys.add(ctx, m.files.opts.hash(key), rowAt(p.segment, row), key); err != nil {
					return err
				}
			}
			row++
		}
		if p.last {
			done += s.rows
			progress(done)
		}
		return nil
	})
}

// A fileRow is a row of the files at hand in a merge. Owned.
type fileRow struct {
	number       uint64
	key, payload []byte
}

// merge finds the rows of the table for each row of the files.
func (m *sortMerge) merge(ctx context.Context, keys, matches *sorter) error {
	rows, err := m.rows.sorted(ctx)
	if err != nil {
		return err
	}
	table, err := keys.sorted(ctx)
	if err != nil {
		return err
	}
	m.unknown = nil
	var same []fileRow // of one hash
	for n := 0; rows.Head() != nil; n++ {
		if n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		hash := rows.Head().hi
		same = same[:0]
		for r := rows.Head(); r != nil && r.hi == hash; r = rows.Head() {
			size, at := binary.Uvarint(r.data)
			x := fileRow{number: r.lo}
			x.key = append(x.key, r.data[at:at+int(size)]...)
			for _, o := range same {
				if bytes.Equal(o.key, x.key) {
					return m.files.twice(o.number, x.number, x.key)
				}
			}
			x.payload = append(x.payload, r.data[at+int(size):]...)
			same = append(same, x)
			if err := rows.Advance(); err != nil {
				return err
			}
		}
		for t := table.Head(); t != nil && t.hi <= hash; t = table.Head() {
			if t.hi == hash {
				i := slices.IndexFunc(same, func(x fileRow) bool { return bytes.Equal(x.key, t.data) })
				if i >= 0 {
					m.set(same[i].number)
					if err := matches.add(ctx, t.lo, 0, same[i].payload); err != nil {
						return err
					}
				}
			}
			if err := table.Advance(); err != nil {
				return err
			}
		}
		for _, x := range same {
			m.noteUnmatched(x)
		}
	}
	return nil
}

// noteUnmatched keeps a row among the first that were not found.
func (m *sortMerge) noteUnmatched(x fileRow) {
	if m.has(x.number) {
		return
	}
	i, _ := slices.BinarySearchFunc(m.unknown, x.number,
		func(u unmatchedRow, n uint64) int { return cmp.Compare(u.row, n) })
	if i == shownUnmatched {
		return
	}
	m.unknown = slices.Insert(m.unknown, i, unmatchedRow{x.number, x.key})
	m.unknown = m.unknown[:min(len(m.unknown), shownUnmatched)]
}

// visit hands the matches on, segment by segment.
func (m *sortMerge) visit(ctx context.Context, v *view, want []bool, matches *sorter,
	visit func(int, values) error) error {
	in, err := matches.sorted(ctx)
	if err != nil {
		return err
	}
	t := newTransposer(m.features, m.files.opts.encodeShare(), m.dir)
	defer t.close()
	for i := range v.segments {
		if !want[i] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		covered := make(vector.Bitmap, vector.BitmapWords(int(v.segments[i].Rows)))
		count := uint64(0)
		t.reset()
		for e := in.Head(); e != nil && int(e.hi>>32) == i; e = in.Head() {
			covered.Set(int(uint32(e.hi)))
			count++
			if err := t.add(m.shapes, e.data); err != nil {
				return err
			}
			if err := in.Advance(); err != nil {
				return err
			}
		}
		if err := visit(i, values{covered: covered, count: count,
			open: func(f int) (appender, error) { return t.read(f), nil }}); err != nil {
			return err
		}
	}
	if e := in.Head(); e != nil {
		return fmt.Errorf("a match of segment %d, which is not wanted", e.hi>>32)
	}
	return nil
}

func (m *sortMerge) unmatched() (uint64, []Row) {
	var out []Row
	for _, u := range m.unknown {
		out = append(out, Row{m.files.place(u.row), keyText(m.files.key, u.key)})
	}
	return m.left(), out
}

func (m *sortMerge) spilled() (int, int64) {
	return m.spills + m.rows.spills, m.spillBytes + m.rows.spillBytes
}
func (m *sortMerge) close() { m.rows.close() }
