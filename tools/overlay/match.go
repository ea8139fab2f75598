package overlay

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/segment"
)

// A joined is the rows of files, once all were read, for the table's to be matched with.
type joined interface {
	// match calls visit for every segment that is wanted, in order, with the values of its covered rows, which are
	// borrowed for the call. It may be called again, for other segments.
	match(ctx context.Context, v *view, want []bool, progress func(rows uint64),
		visit func(segment int, vals values) error) error
	// unmatched returns how many rows no call of match has found in the table, and the first of them.
	unmatched() (uint64, []Row)
	// spilled returns how many runs went to disk, and their bytes.
	spilled() (runs int, bytes int64)
	close()
}

// A joiner takes the rows of files as they come: they are held while they fit in memory.
type joiner struct {
	files  *files
	dir    func() (string, error)
	held   *held      // nil once they do not fit
	sorted *sortMerge // nil before
	bytes  int64      // of held.parts
}

func newJoiner(f *files, dir func() (string, error)) *joiner {
	return &joiner{files: f, dir: dir, held: &held{files: f}}
}

// add takes a part over.
func (j *joiner) add(ctx context.Context, p *filePart) error {
	if h := j.held; h != nil {
		j.bytes += p.bytes()
		if len(h.positions)+p.rows <= maxHeldRows && j.bytes+h.bytes(p.rows) <= j.files.opts.heldShare() {
			return h.add(p)
		}
		if err := j.moveOut(ctx); err != nil {
			return err
		}
	}
	return j.sorted.addPart(ctx, p)
}

// moveOut hands the rows that are held to a sorter.
func (j *joiner) moveOut(ctx context.Context) error {
	j.sorted = newSortMerge(j.files, j.dir)
	h := j.held
	j.held = nil
	defer h.release()
	row := uint64(0)
	h.table = nil
	for _, p := range h.parts {
		number := j.sorted.shapeOf(p)
		for i := range p.rows {
			if err := j.sorted.add(ctx, row, j.files.opts.hash(h.key(row)), h.key(row), number, p, i); err != nil {
				return err
			}
			row++
		}
		p.columns = nil
		p.chunk.Release()
	}
	return nil
}

// finish ends the adding: features are what the files turned out to have.
func (j *joiner) finish(features []*fileFeature) (joined, error) {
	if j.held != nil {
		if err := j.held.seal(features); err != nil {
			return nil, err
		}
		return &heldMatch{held: j.held, matchedRows: newMatchedRows(j.files)}, nil
	}
	j.sorted.features = features
	j.sorted.matchedRows = newMatchedRows(j.files)
	return j.sorted, nil
}

func (j *joiner) close() {
	if j.held != nil {
		j.held.release()
	}
	if j.sorted != nil {
		j.sorted.close()
	}
}

// matchedRows are the rows of files that the table has the key of.
type matchedRows struct {
	files *files
	rows  vector.Bitmap
}

func newMatchedRows(f *files) matchedRows {
	return matchedRows{f, make(vector.Bitmap, (f.rows+63)/64)}
}

func (m *matchedRows) set(row uint64)      { m.rows[row>>6] |= 1 << (row & 63) }
func (m *matchedRows) has(row uint64) bool { return m.rows[row>>6]>>(row&63)&1 != 0 }
func (m *matchedRows) left() uint64        { return m.files.rows - uint64(m.rows.Count()) }

// shownUnmatched is how many rows without a row of the table are named.
const shownUnmatched = 5

// A heldMatch matches the table with rows that are held: its keys are looked up as they come.
type heldMatch struct {
	*held
	matchedRows
}

func (h *heldMatch) match(ctx context.Context, v *view, want []bool, progress func(uint64),
	visit func(int, values) error) error {
	f := h.held.files
	var keys keyBatch
	var found []int64
	var rows []uint32 // of the files, of each covered row of the segment
	var covered, live vector.Bitmap
	row, done := 0, uint64(0)
	all := v.segments
	v, err := h.candidates(ctx, v)
	if err != nil {
		return err
	}
	begin := func(segment int) {
		covered = cleared(covered, int(all[segment].Rows))
		rows, row, live = rows[:0], 0, nil
	}
	end := func(segment int) error {
		done += all[segment].rows
		progress(done)
		segmentRows := rows
		return visit(segment, values{
			covered: covered, count: uint64(len(rows)),
			open: func(f int) (appender, error) { return h.gather(f, segmentRows), nil },
		})
	}
	read := slices.Clone(want)
	for i := range v.segments {
		read[i] = want[i] && v.segments[i].rows > 0
	}
	next := 0 // the first segment that was not begun
	// What is wanted before the given segment has no row to read.
	upTo := func(segment int) error {
		for ; next < segment; next++ {
			if want[next] {
				begin(next)
				if err := end(next); err != nil {
					return err
				}
			}
		}
		next = segment + 1
		return nil
	}
	err = v.walk(ctx, keyNames(f.key), f.opts, read, func(p piece) error {
		s := &v.segments[p.segment]
		if p.place == 0 {
			if err := upTo(p.segment); err != nil {
				return err
			}
			begin(p.segment)
			if s.dead != nil || v.read[s.ID] != nil {
				live = v.live(p.segment)
			}
		}
		keys.reset()
		for i := p.lo; i < p.hi; i++ {
			for live != nil && !live.Get(row) {
				row++
			}
			var null int
			if keys.keys, null = appendKey(keys.keys, p.columns, i); null < 0 {
				keys.add(row)
			}
			row++
		}
		keys.hash(f.opts.hash)
		found = h.findAll(found, &keys)
		for i, r := range found {
			if r >= 0 {
				covered.Set(int(keys.rows[i]))
				rows = append(rows, uint32(r))
			}
		}
		if !p.last {
			return nil
		}
		for _, r := range rows {
			h.set(uint64(r))
		}
		return end(p.segment)
	})
	if err != nil {
		return err
	}
	return upTo(len(all))
}

// candidates returns the view of the rows that may have one of the keys, where the segments' key tables say it.
func (h *heldMatch) candidates(ctx context.Context, v *view) (*view, error) {
	key := h.held.files.key
	if len(key) != 1 {
		return v, nil
	}
	hashes := make([]uint64, len(h.positions))
	for row := range hashes {
		if k := h.key(uint64(row)); key[0].class == integerKey {
			hashes[row] = segment.HashInt(int64(binary.BigEndian.Uint64(k[1:])))
		} else {
			hashes[row] = segment.HashText(k)
		}
	}
	return v.within(ctx, key[0].Feature, hashes)
}

func keyNames(key []keyPart) []string {
	var out []string
	for _, k := range key {
		out = append(out, k.Name)
	}
	return out
}

func (h *heldMatch) unmatched() (uint64, []Row) {
	n := h.left()
	var out []Row
	for r := uint64(0); len(out) < int(min(n, shownUnmatched)); r++ {
		if !h.has(r) {
			out = append(out, Row{h.held.files.place(r), keyText(h.held.files.key, h.key(r))})
		}
	}
	return n, out
}

func (h *heldMatch) spilled() (int, int64) { return 0, 0 }
func (h *heldMatch) close()                { h.release() }
