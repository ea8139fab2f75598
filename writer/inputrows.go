package writer

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/spill"
)

// inputRows is the rowSource of a Rewrite: the live rows of its inputs. Deleted rows are skipped and never held in
// memory.
//
// An opened column holds a decoded stripe of its input, which successive output stripes reuse. When the decoded stripes
// of all inputs exceed the memory of a feature (rewriting.spills), open reads one input after the other and spills its
// rows to a file, sorted by output stripe. Then each input stripe is still decoded once, but only one is in memory.
// Beside these it holds the rows of one output stripe, however many inputs the segment has.
type inputRows struct {
	ctx context.Context // of the one Run that the rows are read for
	r   *rewriting

	opened  []RewriteColumn // by position in the segment's ranges; nil: null in every row
	inputs  []*RewriteInput
	columns stripeColumns
	typ     vector.Type
	sample  bool
	spilled *spilledRows // nil: columns are read as stripes are made
}

func (r *inputRows) open(number int, t vector.Type, s *segmentPlan, sample bool) (present bool, err error) {
	r.close()
	r.typ, r.sample = t, sample
	for _, g := range s.ranges {
		c, err := r.r.Open(r.ctx, int(g.run), number)
		if err != nil {
			return false, err
		}
		r.opened = append(r.opened, c)
		r.inputs = append(r.inputs, &r.r.Inputs[g.run])
		present = present || c != nil && c.MayHave(int(g.lo), int(g.hi))
	}
	if !present || sample || !r.r.spills(r.r.features[number]) {
		return present, nil
	}
	return true, r.spill(s)
}

func (r *inputRows) done(keep int64) {
	r.close()
	r.columns.trim(keep)
}

// close closes the columns.
func (r *inputRows) close() {
	for _, c := range r.opened {
		if c != nil {
			c.Close()
		}
	}
	r.opened, r.inputs = r.opened[:0], r.inputs[:0]
	if r.spilled != nil {
		r.spilled.close()
		r.spilled = nil
	}
}

func (r *inputRows) stripe(st *stripePlan) ([]*vector.Column, error) {
	cols := r.columns.begin(st.runs)
	for i, g := range st.ranges {
		c := r.opened[g.run]
		if c == nil {
			continue
		}
		to := r.columns.column(i, r.typ)
		var err error
		if r.spilled != nil {
			err = r.spilled.read(to, st, i)
		} else {
			err = r.take(to, c, g)
		}
		if err != nil {
			return nil, err
		}
	}
	return cols, nil
}

// take appends the live rows of a range to a column.
func (r *inputRows) take(to *vector.Column, c RewriteColumn, g runRange) error {
	err := r.inputs[g.run].eachLive(g.lo, g.hi, func(lo, hi int) error { return c.Append(to, lo, hi) })
	if r.sample {
		c.Close() // the next stripe of a sample is far away
	}
	return err
}

// spilledRows holds the rows of one feature of a segment in a file, as a block for each range of each output stripe.
type spilledRows struct {
	file    *spill.File
	end     int64  // of what is in the file
	out     []byte // blocks to be written at end
	blocks  map[*stripePlan][]spilledBlock
	raw     []byte
	decoder blockReader
}

// A spilledBlock says where a block is. rows 0: it is empty and not stored.
type spilledBlock struct {
	at       int64
	length   uint32
	checksum uint32
	rows     uint32
}

// spill reads the opened columns one after the other into r.spilled, and closes them.
func (r *inputRows) spill(s *segmentPlan) error {
	type position struct{ stripe, i int }
	positions := make([][]position, len(s.ranges))
	a := &spilledRows{blocks: make(map[*stripePlan][]spilledBlock, len(s.stripes)), out: make([]byte, 0, spillBufBytes)}
	for k := range s.stripes {
		st := &s.stripes[k]
		a.blocks[st] = make([]spilledBlock, len(st.ranges))
		for i, g := range st.ranges {
			positions[g.run] = append(positions[g.run], position{k, i})
		}
	}
	var err error
	if a.file, err = spill.Create(r.r.dir); err != nil {
		return err
	}
	r.spilled = a
	for run, c := range r.opened {
		if c == nil {
			continue
		}
		for _, p := range positions[run] {
			if err := r.ctx.Err(); err != nil {
				return err
			}
			st := &s.stripes[p.stripe]
			r.columns.begin(1)
			rows := r.columns.column(0, r.typ)
			if err := r.take(rows, c, st.ranges[p.i]); err != nil {
				return err
			}
			if a.blocks[st][p.i], err = a.add(rows); err != nil {
				return err
			}
		}
		c.Close()
	}
	return a.flush()
}

// add appends a block.
func (a *spilledRows) add(c *vector.Column) (spilledBlock, error) {
	start := len(a.out)
	a.out = appendBlock(a.out, c)
	b := a.out[start:]
	at := spilledBlock{at: a.end + int64(start), length: uint32(len(b)), checksum: spill.Checksum(b),
		rows: uint32(c.Rows)}
	if int64(len(b)) > int64(at.length) {
		return at, fmt.Errorf("spilling: %d rows of a stripe take %d bytes, want less than 4 GiB: use smaller stripes",
			c.Rows, len(b))
	}
	if len(a.out) < spillBufBytes-blockBytes {
		return at, nil
	}
	return at, a.flush()
}

func (a *spilledRows) flush() error {
	if _, err := a.file.WriteAt(a.out, a.end); err != nil {
		return fmt.Errorf("spilling: %w", err)
	}
	a.end += int64(len(a.out))
	a.out = a.out[:0]
	return nil
}

// read appends the rows of range i of a stripe to dst.
func (a *spilledRows) read(dst *vector.Column, st *stripePlan, i int) error {
	b := a.blocks[st][i]
	if b.rows == 0 {
		return nil
	}
	a.raw = vector.Resize(a.raw, int(b.length))
	if err := a.file.ReadBlock(a.raw, b.at, b.checksum); err != nil {
		return err
	}
	a.decoder.reset(dst.Type, a.raw, int(b.rows))
	a.decoder.appendRows(dst, int(b.rows))
	return nil
}

func (a *spilledRows) close() { _ = a.file.Close() }
