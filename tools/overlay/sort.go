package overlay

import (
	"bufio"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/dsistore/dsistore/internal/spill"
)

// An entry is what a sorter sorts: by hi, then lo. No two of a sorter have both in common.
type entry struct {
	hi, lo uint64
	data   []byte
}

// comparePlaces compares by the first numbers of two, then by their second.
func comparePlaces(hi, lo, otherHi, otherLo uint64) int {
	if hi != otherHi {
		return cmp.Compare(hi, otherHi)
	}
	return cmp.Compare(lo, otherLo)
}

// A sorter sorts entries in bounded memory: what is full is sorted and written as a run, and runs are merged.
//
//	add ──> buffer ──(full)── sort ──> run on disk ──(many)── merged into one
//	          └── sorted in memory ─────┴──> sorted: one stream, any number of times
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
	runs   []*os.File
	count  uint64

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

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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
	s.count++
	return nil
}

func (s *sorter) sortBuffer() {
	slices.SortFunc(s.buffer, func(a, b bufferedEntry) int { return comparePlaces(a.hi, a.lo, b.hi, b.lo) })
}

// spill writes what is buffered as a run.
func (s *sorter) spill(ctx context.Context) error {
	s.sortBuffer()
	if err := s.writeRun(ctx, &bufferStream{s: s}); err != nil {
		return err
	}
	s.buffer, s.held, s.slab = s.buffer[:0], 0, 0
	for i := range s.slabs {
		s.slabs[i] = s.slabs[i][:0]
	}
	if len(s.runs) < s.fanIn() {
		return nil
	}
	// Many runs would each want a block of memory and a file: one takes their place.
	before := s.runs
	in, err := mergeRuns(before)
	if err != nil {
		return err
	}
	s.runs = nil
	if err := s.writeRun(ctx, in); err != nil {
		s.runs = append(s.runs, before...)
		return err
	}
	closeAll(before)
	return nil
}

// fanIn returns how many runs are merged at once.
func (s *sorter) fanIn() int { return int(min(max(s.merge/(2*blockBytes), 4), maxFanIn)) }

// writeRun writes what a stream gives as a run.
func (s *sorter) writeRun(ctx context.Context, in stream) (err error) {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	f, err := spill.Create(dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	w := bufio.NewWriterSize(f, 4*blockBytes)
	block := make([]byte, 8, blockBytes+1024)
	flush := func() error {
		if len(block) == 8 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(block, uint32(len(block)-8))
		binary.LittleEndian.PutUint32(block[4:], crc32.Checksum(block[8:], castagnoli))
		s.spillBytes += int64(len(block))
		_, err := w.Write(block)
		block = block[:8]
		return err
	}
	var e entry
	for {
		ok, err := in.next(&e)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		block = binary.LittleEndian.AppendUint64(block, e.hi)
		block = binary.LittleEndian.AppendUint64(block, e.lo)
		block = binary.AppendUvarint(block, uint64(len(e.data)))
		block = append(block, e.data...)
		if len(block) >= blockBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(flush(), w.Flush()); err != nil {
		return err
	}
	s.spills++
	s.runs = append(s.runs, f)
	return nil
}

// sorted returns all entries in order. Nothing is added afterwards; it may be called again, once the stream before is done with.
func (s *sorter) sorted(ctx context.Context) (stream, error) {
	if len(s.runs) == 0 {
		s.sortBuffer()
		return &bufferStream{s: s}, nil
	}
	if len(s.buffer) > 0 {
		if err := s.spill(ctx); err != nil {
			return nil, err
		}
		s.buffer, s.slabs = nil, nil
	}
	return mergeRuns(s.runs)
}

// close frees the runs. The sorter is empty then.
func (s *sorter) close() {
	closeAll(s.runs)
	s.runs, s.buffer, s.slabs, s.slab, s.held, s.count = nil, nil, nil, 0, 0, 0
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// A stream gives entries in order. An entry's data is borrowed until the next call.
type stream interface {
	next(e *entry) (bool, error)
}

// A bufferStream gives what a sorter has in memory.
type bufferStream struct {
	s *sorter
	i int
}

func (b *bufferStream) next(e *entry) (bool, error) {
	if b.i == len(b.s.buffer) {
		return false, nil
	}
	x := &b.s.buffer[b.i]
	b.i++
	e.hi, e.lo, e.data = x.hi, x.lo, b.s.slabs[x.slab][x.from:x.from+x.n]
	return true, nil
}

// A runStream gives a run.
type runStream struct {
	file  *os.File
	at    int64
	block []byte
	rest  []byte
	e     entry // the current one
}

var errSpill = errors.New("a spill file is not what was written to it: check the disk that holds it")

func (r *runStream) advance() (bool, error) {
	if len(r.rest) == 0 {
		var head [8]byte
		n, err := r.file.ReadAt(head[:], r.at)
		if n == 0 && errors.Is(err, io.EOF) {
			return false, nil
		}
		if n < len(head) {
			return false, errors.Join(errSpill, err)
		}
		size := int(binary.LittleEndian.Uint32(head[:]))
		if st, err := r.file.Stat(); err != nil || int64(size) > st.Size()-r.at-8 {
			return false, errors.Join(errSpill, err)
		}
		r.block = slices.Grow(r.block[:0], size)[:size]
		if n, err := r.file.ReadAt(r.block, r.at+8); n < size {
			return false, errors.Join(errSpill, err)
		}
		if crc32.Checksum(r.block, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			return false, errSpill
		}
		r.at += int64(8 + size)
		r.rest = r.block
	}
	r.e.hi, r.e.lo = binary.LittleEndian.Uint64(r.rest), binary.LittleEndian.Uint64(r.rest[8:])
	n, size := binary.Uvarint(r.rest[16:])
	r.e.data = r.rest[16+size : 16+size+int(n)]
	r.rest = r.rest[16+size+int(n):]
	return true, nil
}

// A mergeStream merges runs.
type mergeStream struct {
	runs []*runStream // a heap by their current entries
	// The first one's entry was given, and is moved on before the next: until then its data is borrowed.
	given bool
}

func mergeRuns(files []*os.File) (stream, error) {
	m := &mergeStream{}
	for _, f := range files {
		r := &runStream{file: f}
		ok, err := r.advance()
		if err != nil {
			return nil, err
		}
		if ok {
			m.runs = append(m.runs, r)
		}
	}
	heap.Init(m)
	return m, nil
}

func (m *mergeStream) next(e *entry) (bool, error) {
	if m.given {
		ok, err := m.runs[0].advance()
		if err != nil {
			return false, err
		}
		if ok {
			heap.Fix(m, 0)
		} else {
			heap.Pop(m)
		}
	}
	m.given = len(m.runs) > 0
	if m.given {
		*e = m.runs[0].e
	}
	return m.given, nil
}

func (m *mergeStream) Len() int { return len(m.runs) }
func (m *mergeStream) Less(i, j int) bool {
	return comparePlaces(m.runs[i].e.hi, m.runs[i].e.lo, m.runs[j].e.hi, m.runs[j].e.lo) < 0
}
func (m *mergeStream) Swap(i, j int) { m.runs[i], m.runs[j] = m.runs[j], m.runs[i] }
func (m *mergeStream) Push(x any)    { m.runs = append(m.runs, x.(*runStream)) }
func (m *mergeStream) Pop() any {
	last := m.runs[len(m.runs)-1]
	m.runs = m.runs[:len(m.runs)-1]
	return last
}
