package writer

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/spill"
	"golang.org/x/sync/errgroup"
)

// A sequence is sorted rows in a spill file, as one run or, when merged from other sequences, several. All rows of a
// run sort before those of the next.
//
//	+---------------------------------+---------------------------------+
//	| run: records | blocks, indexes  | run: records | blocks, indexes  | ...
//	+---------------------------------+---------------------------------+
//
// Blocks and block indexes of a run's features are in no particular order. Block i of a feature holds its rows
// [i*blockRows, (i+1)*blockRows). Only a section for each feature of a run stays in memory.
type sequence struct {
	file *spill.File
	runs []*run
}

// A run holds the rows that were in memory at once when it was written, from a buffer or a merge.
type run struct {
	file     *spill.File // the sequence's
	records  int64       // offset
	rows     int
	sections []section // by feature number; features past the end are null in every row
}

func newSequence(dir string) (*sequence, error) {
	file, err := spill.Create(dir)
	if err != nil {
		return nil, err
	}
	return &sequence{file: file}, nil
}

// Close frees the file.
func (q *sequence) Close() error { return q.file.Close() }

// A section locates a feature in a run. With blocks 0 the feature is null in every row.
type section struct {
	typ       vector.Type
	blockRows uint32
	blocks    uint32
	index     int64 // offset of the block index: blocks entries of indexEntryBytes
}

// indexEntryBytes is the size of a block's entry in the index: offset (8), length (4), CRC-32C (4). Length 0: every row
// is null, and nothing is stored.
const indexEntryBytes = 16

const (
	// The rows of a block are a multiple of a run's grain, except in the last block. Pieces are cut at these multiples
	// once, for all features. The grain is spillGrain, and less where so many rows take more than blockBytes in their
	// largest features: who reads a few rows holds the block.
	spillGrain    = 64
	blockBytes    = 64 << 10 // approximate
	maxBlockRows  = 1 << 16
	maxBlockBytes = 1 << 30 // of rows that are larger than usual
	spillBufBytes = 1 << 20 // a worker's write buffer
)

// A runInput is rows in order, to be written as a run.
type runInput struct {
	records []record
	grain   int
	plan    *segmentPlan     // one stripe, no piece of it across a multiple of grain rows
	types   []vector.Type    // by number, of all features that may have a value
	newRows func() rowSource // makes one for each worker
}

// append writes a run. Its rows sort after those of the runs before.
func (q *sequence) append(ctx context.Context, in runInput, workers int) error {
	r := &run{file: q.file, rows: len(in.records), sections: make([]section, len(in.types))}
	r.records = q.file.Claim(int64(r.rows) * recordBytes)
	s := &spiller{sequence: q, run: r, in: in, grains: grainStarts(in.plan.pieces, in.grain)}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.writeRecords(ctx) })
	for range workers {
		g.Go(func() error { return s.writeFeatures(ctx) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("spilling: %w", err)
	}
	q.runs = append(q.runs, r)
	return nil
}

// spillInput returns the run of a sorted buffer.
func spillInput(b *buffer, types []vector.Type) runInput {
	rows, grain := len(b.records), grainOf(b.records)
	pieces := b.appendPieces(nil, 0, rows, grain)
	return runInput{
		records: b.records, grain: grain, types: types,
		plan: &segmentPlan{rows: rows, pieces: pieces, ranges: b.allChunks(),
			stripes: []stripePlan{{rows: rows, to: len(pieces)}}},
		newRows: func() rowSource { return &bufferRows{buf: b} },
	}
}

// grainOf returns the grain of a run of these rows, a power of two.
func grainOf(records []record) int {
	_, all := rowSizes(records)
	n := blockBytes * int64(len(records)) / max(all, 1)
	return min(max(1<<bits.Len64(uint64(n))>>1, 1), spillGrain)
}

// grainStarts returns the index of the piece that starts at each multiple of grain rows, then the number of pieces.
func grainStarts(pieces []piece, grain int) []int32 {
	starts := make([]int32, 0, len(pieces)/grain+2)
	rows := 0
	for i, p := range pieces {
		if rows%grain == 0 {
			starts = append(starts, int32(i))
		}
		rows += int(p.n)
	}
	return append(starts, int32(len(pieces)))
}

// A spiller writes one run.
type spiller struct {
	*sequence
	run    *run
	in     runInput
	grains []int32
	next   atomic.Int64 // feature number to write
}

func (s *spiller) writeRecords(ctx context.Context) error {
	out := make([]byte, 0, spillBufBytes)
	at := s.run.records
	for i := range s.in.records {
		out = appendRecord(out, &s.in.records[i])
		if len(out)+recordBytes > cap(out) || i == len(s.in.records)-1 {
			if _, err := s.file.WriteAt(out, at); err != nil {
				return err
			}
			at += int64(len(out))
			out = out[:0]
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFeatures writes features until none is left.
func (s *spiller) writeFeatures(ctx context.Context) error {
	w := spillWriter{spiller: s, rows: s.in.newRows(), out: make([]byte, 0, spillBufBytes)}
	for {
		number := int(s.next.Add(1)) - 1
		if number >= len(s.in.types) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.writeFeature(number); err != nil {
			return err
		}
	}
}

// A spillWriter is the state of one worker of a spiller. It collects blocks in out; flush writes them and learns their
// offset in the file.
type spillWriter struct {
	*spiller
	rows     rowSource
	gatherer gatherer
	col      vector.Column
	out      []byte
	index    []byte
	pending  []int // offsets in index of the entries whose block offset is still relative to out
}

func (w *spillWriter) writeFeature(number int) error {
	t := w.in.types[number]
	if t.Kind == 0 {
		return nil // a feature of the table that no source has
	}
	defer w.rows.done(math.MaxInt64) // a feature of a merged run takes no more than any other: mergeLimits
	present, err := w.rows.open(number, t, w.in.plan, false)
	if err != nil || !present {
		return err
	}
	sources, err := w.rows.stripe(&w.in.plan.stripes[0])
	if err != nil {
		return err
	}
	rows := w.run.rows
	grain := w.in.grain
	blockRows := chooseBlockRows(sources, rows, grain)
	w.col.Type = t
	w.index = w.index[:0]
	w.pending = w.pending[:0]
	for lo := 0; lo < rows; lo += blockRows {
		hi := min(lo+blockRows, rows)
		pieces := w.in.plan.pieces[w.grains[lo/grain]:w.grains[(hi+grain-1)/grain]]
		present, err := w.gatherer.gather(&w.col, sources, pieces, hi-lo)
		if err != nil {
			return err
		}
		if err := w.addBlock(present); err != nil {
			return err
		}
	}
	blocks := len(w.index) / indexEntryBytes
	// The index is written after its blocks, when their offsets are known.
	if err := w.flush(); err != nil {
		return err
	}
	at, err := w.file.Append(w.index)
	if err != nil {
		return err
	}
	w.run.sections[number] = section{typ: t, blockRows: uint32(blockRows), blocks: uint32(blocks), index: at}
	return nil
}

// addBlock appends the block of w.col, and its index entry.
func (w *spillWriter) addBlock(present int) error {
	entry := [indexEntryBytes]byte{}
	if present > 0 {
		start := len(w.out)
		w.out = appendBlock(w.out, &w.col)
		block := w.out[start:]
		if uint64(len(block)) > math.MaxUint32 {
			return fmt.Errorf("%d rows of a feature take %d bytes: want less than 4 GiB", w.col.Rows, len(block))
		}
		binary.LittleEndian.PutUint64(entry[:], uint64(start))
		binary.LittleEndian.PutUint32(entry[8:], uint32(len(block)))
		binary.LittleEndian.PutUint32(entry[12:], spill.Checksum(block))
		w.pending = append(w.pending, len(w.index))
	}
	w.index = append(w.index, entry[:]...)
	if len(w.out) >= spillBufBytes-blockBytes {
		return w.flush()
	}
	return nil
}

// flush writes the collected blocks and makes their index entries' offsets absolute.
func (w *spillWriter) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	base, err := w.file.Append(w.out)
	if err != nil {
		return err
	}
	for _, at := range w.pending {
		e := w.index[at:]
		binary.LittleEndian.PutUint64(e, binary.LittleEndian.Uint64(e)+uint64(base))
	}
	w.out, w.pending = w.out[:0], w.pending[:0]
	return nil
}

// chooseBlockRows returns the power of two of rows of a feature that take about blockBytes, at least the grain.
func chooseBlockRows(sources []*vector.Column, rows, grain int) int {
	size := 0
	for _, c := range sources {
		if c != nil {
			size += c.SizeBytes()
		}
	}
	n := blockBytes * rows / max(size, 1)
	return min(max(1<<bits.Len(uint(n))>>1, grain), maxBlockRows)
}
