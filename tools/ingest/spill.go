package ingest

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"os"
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
	"golang.org/x/sync/errgroup"
)

// A run is a buffer's rows, sorted, in a spill file:
//
//	+---------+---------------------------------------------------------------+
//	| records | blocks and block indexes of features, in no particular order  |
//	+---------+---------------------------------------------------------------+
//
// Block i of a feature holds its rows [i*blockRows, (i+1)*blockRows), so that a range of rows of one feature is one range of
// the file. What stays in memory is a section for each feature that the buffer had.
type run struct {
	file     *os.File
	rows     int
	size     int64
	sections []section // by feature number; what is past the end has no section
}

// A section says where a feature is in a run. Without blocks it is null in every row.
type section struct {
	typ       vector.Type
	blockRows uint32
	blocks    uint32
	index     int64 // offset of the block index: blocks entries of indexEntryBytes
}

// indexEntryBytes is the size of a block's entry in the index: offset (8), length (4), CRC-32C (4). Length 0: every row is
// null, and nothing is stored.
const indexEntryBytes = 16

const (
	// spillGrain: blocks hold a multiple of so many rows, so that the pieces of a run are cut once for all features.
	spillGrain    = 64
	blockBytes    = 64 << 10 // about
	maxBlockRows  = 1 << 16
	spillBufBytes = 1 << 20 // a worker's write buffer
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r *run) section(number int) section {
	if number < len(r.sections) {
		return r.sections[number]
	}
	return section{}
}

func (r *run) close() error { return r.file.Close() }

// spill writes the buffer, which is sorted, to a spill file in dir. types gives the type of each feature number.
func spill(ctx context.Context, b *buffer, types []vector.Type, dir string, workers int) (_ *run, err error) {
	file, err := createSpill(dir)
	if err != nil {
		return nil, err
	}
	r := &run{file: file, rows: len(b.records), sections: make([]section, len(b.columns))}
	defer func() {
		if err != nil {
			err = fmt.Errorf("spilling to %s: %w", dir, err)
			_ = r.close()
		}
	}()
	pieces := b.appendPieces(nil, 0, r.rows, spillGrain)
	s := &spiller{run: r, buf: b, types: types, pieces: pieces, grains: grainStarts(pieces)}
	s.end.Store(int64(r.rows) * recordBytes)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.writeRecords(ctx) })
	for range workers {
		g.Go(func() error { return s.writeFeatures(ctx) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	r.size = s.end.Load()
	return r, nil
}

// grainStarts returns, for each multiple of spillGrain rows, the first piece from there, and the number of pieces at the end.
func grainStarts(pieces []piece) []int32 {
	starts := make([]int32, 0, len(pieces)/spillGrain+2)
	rows := 0
	for i, p := range pieces {
		if rows%spillGrain == 0 {
			starts = append(starts, int32(i))
		}
		rows += int(p.n)
	}
	return append(starts, int32(len(pieces)))
}

type spiller struct {
	run    *run
	buf    *buffer
	types  []vector.Type
	pieces []piece
	grains []int32
	end    atomic.Int64 // of what the file's writers have claimed
	next   atomic.Int64 // feature number to write
}

func (s *spiller) writeRecords(ctx context.Context) error {
	out := make([]byte, 0, spillBufBytes)
	at := int64(0)
	for i := range s.buf.records {
		out = appendRecord(out, &s.buf.records[i])
		if len(out)+recordBytes > cap(out) || i == len(s.buf.records)-1 {
			if _, err := s.run.file.WriteAt(out, at); err != nil {
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
	w := spillWriter{spiller: s, out: make([]byte, 0, spillBufBytes)}
	for {
		number := int(s.next.Add(1)) - 1
		if number >= len(s.buf.columns) {
			return w.flush()
		}
		if !s.buf.has(number) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.writeFeature(number); err != nil {
			return err
		}
	}
}

// A spillWriter is one worker's. It collects blocks and claims their place in the file when it writes them.
type spillWriter struct {
	*spiller
	gatherer gatherer
	col      vector.Column
	sources  []*vector.Column
	out      []byte
	index    []byte
	pending  []int // where in index entries are whose offset is yet relative to out
}

func (w *spillWriter) writeFeature(number int) (err error) {
	t := w.types[number]
	if w.sources, err = w.buf.sources(w.sources, number, t); err != nil {
		return err
	}
	rows := w.run.rows
	blockRows := w.chooseBlockRows(number, rows)
	w.col = vector.Column{Type: t, Offsets: w.col.Offsets, Ints: w.col.Ints, Floats: w.col.Floats, Doubles: w.col.Doubles,
		Data: w.col.Data, ScoreFloats: w.col.ScoreFloats, ScoreDoubles: w.col.ScoreDoubles}
	w.index = w.index[:0]
	w.pending = w.pending[:0]
	for lo := 0; lo < rows; lo += blockRows {
		hi := min(lo+blockRows, rows)
		pieces := w.pieces[w.grains[lo/spillGrain]:w.grains[(hi+spillGrain-1)/spillGrain]]
		present, err := w.gatherer.gather(&w.col, w.sources, pieces, hi-lo)
		if err != nil {
			return err
		}
		if err := w.addBlock(present); err != nil {
			return err
		}
	}
	blocks := len(w.index) / indexEntryBytes
	// The index follows its blocks; it is whole only once their places are known.
	if err := w.flush(); err != nil {
		return err
	}
	at := w.end.Add(int64(len(w.index))) - int64(len(w.index))
	if _, err := w.run.file.WriteAt(w.index, at); err != nil {
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
		binary.LittleEndian.PutUint64(entry[:], uint64(start))
		binary.LittleEndian.PutUint32(entry[8:], uint32(len(block)))
		binary.LittleEndian.PutUint32(entry[12:], crc32.Checksum(block, castagnoli))
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
	base := w.end.Add(int64(len(w.out))) - int64(len(w.out))
	if _, err := w.run.file.WriteAt(w.out, base); err != nil {
		return err
	}
	for _, at := range w.pending {
		e := w.index[at:]
		binary.LittleEndian.PutUint64(e, binary.LittleEndian.Uint64(e)+uint64(base))
	}
	w.out, w.pending = w.out[:0], w.pending[:0]
	return nil
}

// chooseBlockRows returns how many rows of a feature make about blockBytes: a power of two.
func (w *spillWriter) chooseBlockRows(number, rows int) int {
	size := 0
	for _, e := range w.buf.columns[number] {
		size += e.col.SizeBytes()
	}
	n := blockBytes * rows / max(size, 1)
	return min(max(1<<bits.Len(uint(n))>>1, spillGrain), maxBlockRows)
}

// A runReader reads a range of rows of one feature of a run, in order. It may be used again for another.
type runReader struct {
	run     *run
	sec     section
	row     int // next
	index   []byte
	first   int // block of index[0]
	loaded  int // block in raw, or -1
	raw     []byte
	decoder blockReader
}

// reset makes r read rows [lo, hi) of the feature, which has a section.
func (r *runReader) reset(src *run, sec section, lo, hi int) error {
	r.run, r.sec, r.row, r.loaded = src, sec, lo, -1
	r.first = lo / int(sec.blockRows)
	last := (hi + int(sec.blockRows) - 1) / int(sec.blockRows)
	r.index = resize(r.index, (last-r.first)*indexEntryBytes)
	if _, err := src.file.ReadAt(r.index, sec.index+int64(r.first)*indexEntryBytes); err != nil {
		return fmt.Errorf("reading a spill file: %w", err)
	}
	return nil
}

// load makes the block that holds the next row current. It reports whether the block has any present row, and how many
// of its rows are left.
func (r *runReader) load() (stored bool, left int, err error) {
	per := int(r.sec.blockRows)
	block := r.row / per
	rows := min(per, r.run.rows-block*per)
	left = block*per + rows - r.row
	e := r.index[(block-r.first)*indexEntryBytes:]
	length := int(binary.LittleEndian.Uint32(e[8:]))
	if length == 0 {
		return false, left, nil
	}
	if block == r.loaded {
		return true, left, nil
	}
	r.raw = resize(r.raw, length)
	if _, err := r.run.file.ReadAt(r.raw, int64(binary.LittleEndian.Uint64(e))); err != nil {
		return false, 0, fmt.Errorf("reading a spill file: %w", err)
	}
	if crc32.Checksum(r.raw, castagnoli) != binary.LittleEndian.Uint32(e[12:]) {
		return false, 0, fmt.Errorf("reading a spill file: what was read is not what was written")
	}
	r.decoder.reset(r.sec.typ, r.raw, rows)
	if skip := r.row - block*per; skip > 0 {
		r.decoder.skip(skip)
	}
	r.loaded = block
	return true, left, nil
}

// appendRows appends the next n rows to dst, a plain column of the section's type.
func (r *runReader) appendRows(dst *vector.Column, n int) error {
	for n > 0 {
		stored, left, err := r.load()
		if err != nil {
			return err
		}
		k := min(n, left)
		if stored {
			r.decoder.appendRows(dst, k)
		} else {
			dst.AppendNulls(k)
		}
		r.row += k
		n -= k
	}
	return nil
}

// seek makes row, at or after the next one, the next one.
func (r *runReader) seek(row int) {
	if r.loaded >= 0 && row/int(r.sec.blockRows) == r.loaded && row > r.row {
		r.decoder.skip(row - r.row)
	}
	r.row = row
}

// anyPresent reports whether one of the next n rows is not null. The reader must be reset afterwards.
func (r *runReader) anyPresent(n int) (bool, error) {
	for n > 0 {
		stored, left, err := r.load()
		if err != nil {
			return false, err
		}
		k := min(n, left)
		if stored {
			if r.decoder.anyPresent(k) {
				return true, nil
			}
			r.decoder.skip(k)
		}
		r.row += k
		n -= k
	}
	return false, nil
}
