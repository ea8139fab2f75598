package overlay

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/internal/spill"
)

// An entry is what a sorter sorts: by hi, then lo. No two of a sorter have both in common.
type entry struct {
	hi, lo uint64
	data   []byte
}

func compareEntries(a, b *entry) int { return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo)) }

// A sorter sorts entries in bounded memory: what is full is sorted and written as a run, and runs are merged.
//
//	add ──> buffer ──(full)── sort ──> run on disk (spill.Runs) ─┬── spill.Merge ──> sorted: one stream, any
//	          └── sorted in memory ──────────────────────────────┘                   number of times
//
// A run is a file of blocks, which has no name:
//
//	length (4 LE) | CRC-32C (4 LE) of what follows | entries: (hi (8 LE) | lo (8 LE) | length (varint) | data)...
type sorter struct {
	dir    func() (string, error)
	memory int64 // of the buffer
	merge  int64 // of blocks of runs that are merged

	buffer []bufferedEntry
	slabs  [][]byte // memory of the entries' data
	slab   int      // the one that is being filled
	held   int64
	runs   spill.Runs[*spill.File]

	spills     int
	spillBytes int64
}

// A bufferedEntry is an entry whose data lies in sorter.slabs.
type bufferedEntry struct {
	hi, lo     uint64
	slab, from uint32
	n          uint32
}

const (
	bufferedBytes = 48 // of an entry, and what its slice has to spare
	slabBytes     = 1 << 20
	blockBytes    = 64 << 10
	maxFanIn      = 64
)

// leastBuffer keeps runs from being so short that merging them is all that happens.
const leastBuffer = 32 << 10

// newSorter returns a sorter whose buffer takes so much memory, and merge the blocks of the runs that it merges.
func newSorter(dir func() (string, error), memory, merge int64) sorter {
	return sorter{dir: dir, memory: max(memory, leastBuffer), merge: merge}
}

// add copies an entry.
func (s *sorter) add(ctx context.Context, hi, lo uint64, data ...[]byte) error {
	n := 0
	for _, d := range data {
		n += len(d)
	}
	if len(s.buffer) > 0 && s.held+int64(n)+bufferedBytes > s.memory {
		if err := s.spill(ctx); err != nil {
			return err
		}
	}
	for s.slab < len(s.slabs) && len(s.slabs[s.slab])+n > cap(s.slabs[s.slab]) {
		s.slab++
	}
	if s.slab == len(s.slabs) {
		s.slabs = append(s.slabs, make([]byte, 0, max(n, int(min(slabBytes, s.memory/4)))))
	}
	slab := &s.slabs[s.slab]
	from := len(*slab)
	for _, d := range data {
		*slab = append(*slab, d...)
	}
	s.buffer = append(s.buffer, bufferedEntry{hi: hi, lo: lo, slab: uint32(s.slab), from: uint32(from), n: uint32(n)})
	s.held += int64(n) + bufferedBytes
	return nil
}

func (s *sorter) sortBuffer() {
	slices.SortFunc(s.buffer, func(a, b bufferedEntry) int {
		return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo))
	})
}

// spill writes what is buffered as a run.
func (s *sorter) spill(ctx context.Context) error {
	s.sortBuffer()
	run, err := s.writeRun(ctx, &bufferStream{s: s})
	if err != nil {
		return err
	}
	s.buffer, s.held, s.slab = s.buffer[:0], 0, 0
	for i := range s.slabs {
		s.slabs[i] = s.slabs[i][:0]
	}
	// Many runs would each want a block of memory and a file: one takes their place.
	return s.runs.Add(run, s.fanIn(), func(level []*spill.File) (*spill.File, error) {
		in, err := mergeRuns(level)
		if err != nil {
			return nil, err
		}
		return s.writeRun(ctx, in)
	})
}

// fanIn returns how many runs are merged at once.
func (s *sorter) fanIn() int { return int(min(max(s.merge/(2*blockBytes), 4), maxFanIn)) }

// writeRun writes what a stream gives as a run.
func (s *sorter) writeRun(ctx context.Context, in stream) (_ *spill.File, err error) {
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	f, err := spill.Create(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	block := make([]byte, 8, blockBytes+1024)
	flush := func() error {
		if len(block) == 8 {
			return nil
		}
		binary.LittleEndian.PutUint32(block, uint32(len(block)-8))
		binary.LittleEndian.PutUint32(block[4:], spill.Checksum(block[8:]))
		_, err := f.Append(block)
		block = block[:8]
		return errors.Join(ctx.Err(), err)
	}
	for e := in.Head(); e != nil; e = in.Head() {
		block = binary.LittleEndian.AppendUint64(block, e.hi)
		block = binary.LittleEndian.AppendUint64(block, e.lo)
		block = binary.AppendUvarint(block, uint64(len(e.data)))
		block = append(block, e.data...)
		if len(block) >= blockBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		if err := in.Advance(); err != nil {
			return nil, err
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	s.spills++
	s.spillBytes += f.Size()
	return f, nil
}

// sorted returns all entries in order. Nothing is added afterwards; it may be called again, once the stream before is
// done with.
func (s *sorter) sorted(ctx context.Context) (stream, error) {
	if len(s.runs.All()) == 0 {
		s.sortBuffer()
		return &bufferStream{s: s}, nil
	}
	if len(s.buffer) > 0 {
		if err := s.spill(ctx); err != nil {
			return nil, err
		}
		s.buffer, s.slabs = nil, nil
	}
	return mergeRuns(s.runs.All())
}

// close frees the runs. The sorter is empty then.
func (s *sorter) close() {
	s.runs.Close()
	s.buffer, s.slabs, s.slab, s.held = nil, nil, 0, 0
}

// A stream gives entries in order. An entry's data is borrowed until Advance.
type stream = spill.Stream[entry]

// A bufferStream gives what a sorter has in memory.
type bufferStream struct {
	s *sorter
	i int
	e entry
}

func (b *bufferStream) Head() *entry {
	if b.i == len(b.s.buffer) {
		return nil
	}
	x := &b.s.buffer[b.i]
	b.e = entry{x.hi, x.lo, b.s.slabs[x.slab][x.from : x.from+x.n]}
	return &b.e
}

func (b *bufferStream) Advance() error { b.i++; return nil }

// A runStream gives a run.
type runStream struct {
	file  *spill.File
	at    int64
	block []byte
	rest  []byte
	e     entry // the current one
	end   bool
}

func (r *runStream) Head() *entry {
	if r.end {
		return nil
	}
	return &r.e
}

func (r *runStream) Advance() error {
	if len(r.rest) == 0 {
		if r.at == r.file.Size() {
			r.end = true
			return nil
		}
		var head [8]byte
		if _, err := r.file.ReadAt(head[:], r.at); err != nil {
			return fmt.Errorf("reading a spill file: %w", errors.Join(spill.ErrDamaged, err))
		}
		size := int64(binary.LittleEndian.Uint32(head[:]))
		if size == 0 || size > r.file.Size()-r.at-8 {
			return fmt.Errorf("reading a spill file: %w", spill.ErrDamaged)
		}
		r.block = slices.Grow(r.block[:0], int(size))[:size]
		if err := r.file.ReadBlock(r.block, r.at+8, binary.LittleEndian.Uint32(head[4:])); err != nil {
			return err
		}
		r.at += 8 + size
		r.rest = r.block
	}
	r.e.hi, r.e.lo = binary.LittleEndian.Uint64(r.rest), binary.LittleEndian.Uint64(r.rest[8:])
	n, size := binary.Uvarint(r.rest[16:])
	r.e.data = r.rest[16+size : 16+size+int(n)]
	r.rest = r.rest[16+size+int(n):]
	return nil
}

// mergeRuns returns the entries of runs in order.
func mergeRuns(files []*spill.File) (stream, error) {
	streams := make([]stream, len(files))
	for i, f := range files {
		r := &runStream{file: f}
		if err := r.Advance(); err != nil {
			return nil, err
		}
		streams[i] = r
	}
	return spill.NewMerge(compareEntries, streams), nil
}
