package ingest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/dsistore/dsistore/tools/ingest/source"
)

// A quarantine counts what is left out and lists it in a file of JSON lines. Safe for concurrent use.
type quarantine struct {
	path string // none: only count

	// mu guards the rest.
	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	rows int64
	left []BadRowLine // of files
	err  error        // of the report, kept until close
}

// A BadRowLine is one line of the report. RowGroup is absent where there is none; Row and Column are absent where the
// whole file is left out.
type BadRowLine struct {
	File     string `json:"file"`
	RowGroup *int   `json:"row_group,omitempty"`
	Row      *int64 `json:"row,omitempty"`
	Line     int64  `json:"line,omitempty"`
	Column   string `json:"column,omitempty"`
	Reason   string `json:"reason"`
}

func (q *quarantine) badRow(place source.Place, column string, err error) {
	l := BadRowLine{File: place.File, Row: &place.Row, Line: place.Line, Column: column, Reason: err.Error()}
	if place.RowGroup >= 0 {
		l.RowGroup = &place.RowGroup
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows++
	q.write(&l)
}

func (q *quarantine) badFile(path string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := BadRowLine{File: path, Reason: err.Error()}
	q.left = append(q.left, l)
	q.write(&l)
}

// forgetRows makes the report one of the files that are left out alone: the others are read again.
func (q *quarantine) forgetRows() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows = 0
	if q.file == nil || q.err != nil {
		return q.err
	}
	if i, err := q.file.Stat(); err != nil || !i.Mode().IsRegular() {
		return err // a pipe keeps what it was given
	}
	q.out.Reset(q.file)
	if q.err = q.file.Truncate(0); q.err == nil {
		_, q.err = q.file.Seek(0, io.SeekStart)
	}
	for i := range q.left {
		q.write(&q.left[i])
	}
	if q.err != nil {
		return fmt.Errorf("bad row report: %w", q.err)
	}
	return nil
}

// write is called with mu held.
func (q *quarantine) write(l *BadRowLine) {
	if q.path == "" || q.err != nil {
		return
	}
	if q.file == nil {
		if q.file, q.err = os.Create(q.path); q.err != nil {
			return
		}
		q.out = bufio.NewWriter(q.file)
	}
	line, err := json.Marshal(l)
	if err == nil {
		_, err = q.out.Write(append(line, '\n'))
	}
	q.err = err
}

// flush puts what was reported into the file, and returns the first error that the report met.
func (q *quarantine) flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.file != nil && q.err == nil {
		q.err = q.out.Flush()
	}
	if q.err != nil {
		return fmt.Errorf("bad row report: %w", q.err)
	}
	return nil
}

func (q *quarantine) close() error {
	err := q.flush()
	if q.file != nil {
		if e := q.file.Close(); err == nil && e != nil {
			err = fmt.Errorf("bad row report: %w", e)
		}
		q.file = nil
	}
	return err
}
