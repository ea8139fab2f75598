package ingest

import (
	"bufio"
	"fmt"
	"io"
)

// A recordStream gives records in order. Head is the next one, nil at the end; it is borrowed until advance.
type recordStream interface {
	head() *record
	advance() error
}

// A bufferStream is the records of a sorted buffer.
type bufferStream struct {
	records []record
	at      int
}

func (s *bufferStream) head() *record {
	if s.at == len(s.records) {
		return nil
	}
	return &s.records[s.at]
}

func (s *bufferStream) advance() error { s.at++; return nil }

// A runStream is the records of a run. Their chunk is the run's number and their row the row in the run.
type runStream struct {
	in   *bufio.Reader
	left int
	rec  record
	raw  [recordBytes]byte
}

// runStreamBytes is what each run's records are read ahead by.
const runStreamBytes = 64 << 10

func newRunStream(r *run, number int) (*runStream, error) {
	s := &runStream{
		in:   bufio.NewReaderSize(io.NewSectionReader(r.file, 0, int64(r.rows)*recordBytes), runStreamBytes),
		left: r.rows + 1,
	}
	s.rec.chunk, s.rec.row = uint32(number), ^uint32(0)
	return s, s.advance()
}

func (s *runStream) head() *record {
	if s.left == 0 {
		return nil
	}
	return &s.rec
}

func (s *runStream) advance() error {
	s.left--
	if s.left == 0 {
		return nil
	}
	if _, err := io.ReadFull(s.in, s.raw[:]); err != nil {
		return fmt.Errorf("reading a spill file: %w", err)
	}
	decodeRecord(&s.rec, s.raw[:])
	s.rec.row++
	return nil
}

// A mergedStream merges streams into one: a binary heap by head.
type mergedStream struct {
	heap []recordStream // none at its end
}

func newMergedStream(streams []recordStream) *mergedStream {
	m := &mergedStream{}
	for _, s := range streams {
		if s.head() != nil {
			m.heap = append(m.heap, s)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

func (m *mergedStream) head() *record {
	if len(m.heap) == 0 {
		return nil
	}
	return m.heap[0].head()
}

func (m *mergedStream) advance() error {
	if err := m.heap[0].advance(); err != nil {
		return err
	}
	if m.heap[0].head() == nil {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
	return nil
}

func (m *mergedStream) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heap); c++ {
			if compareRecords(m.heap[c].head(), m.heap[least].head()) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}
