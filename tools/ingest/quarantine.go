package ingest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/tools/ingest/source"
)

// A quarantine counts what is left out and lists it in a file of JSON lines. Safe for concurrent use.
type quarantine struct {
	path     string // none: only count
	numbered bool   // where there is a file at path, the report is another, path with a number

	// mu guards the rest.
	mu   sync.Mutex
	file *os.File
	made string // the path of file, also when that is closed
	out  *bufio.Writer
	rows int64
	some *source.RowError // one of the rows
	left []BadRowLine     // of files
	err  error            // of the report, kept until close
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
	if q.rows++; q.some == nil {
		q.some = &source.RowError{Place: place, Column: column, Err: err}
	}
	q.write(&l)
}

func (q *quarantine) badFile(path string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := BadRowLine{File: path, Reason: err.Error()}
	q.left = append(q.left, l)
	q.write(&l)
}

// check returns an error where the report cannot be made because there is a file of its name: before anything is read.
func (q *quarantine) check() error {
	if q.path == "" || q.numbered || !holdsBytes(q.path) {
		return nil
	}
	return existsError(q.path)
}

// existsError is that of a report whose name is taken. An ingest replaces no file: it may be the report of the ingest
// before, or a source.
func existsError(path string) error {
	return fmt.Errorf("bad row report: %s: there is a file of this name: move it, or name another", path)
}

// holdsBytes reports whether a path is that of a file with bytes in it. A pipe or a device is none.
func holdsBytes(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode().IsRegular() && i.Size() > 0
}

// open makes the file of the report.
func (q *quarantine) open() (err error) {
	for n := 1; ; n++ {
		q.made = q.path
		if n > 1 {
			ending := filepath.Ext(q.path)
			q.made = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(q.path, ending), n, ending)
		}
		q.file, err = os.OpenFile(q.made, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		switch {
		case !errors.Is(err, fs.ErrExist):
			return err
		case q.numbered:
		case holdsBytes(q.path): // it is there since check
			return existsError(q.path)
		default: // an empty file, a pipe or a device
			q.file, err = os.OpenFile(q.path, os.O_WRONLY, 0)
			return err
		}
	}
}

// forgetRows makes the report one of the files that are left out alone: the others are read again.
func (q *quarantine) forgetRows() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows, q.some = 0, nil
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
		if q.err = q.open(); q.err != nil {
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

// allBad is the error of an ingest all of whose rows were left out. After flush.
func (q *quarantine) allBad() error {
	if q.rows == 1 {
		return fmt.Errorf("nothing to ingest: the only row is bad: %w%s", q.some, q.see())
	}
	return fmt.Errorf("nothing to ingest: all %d rows are bad, such as %w%s", q.rows, q.some, q.see())
}

// noFile is the error of an ingest all of whose files were left out: the first reason may be that of all, such as an
// option with a typing error. After flush.
func (q *quarantine) noFile() error {
	reason := q.left[0].Reason // it begins with the file
	if len(q.left) == 1 {
		return fmt.Errorf("nothing to ingest: the only file cannot be read: %s%s", reason, q.see())
	}
	return fmt.Errorf("nothing to ingest: none of %d files can be read, such as %s%s", len(q.left), reason, q.see())
}

// see says where all that was left out is named.
func (q *quarantine) see() string {
	if q.made == "" {
		return ""
	}
	return "; see " + q.made
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

// failed returns the first error that the report met so far, so that an ingest whose report cannot be written ends
// before all is read.
func (q *quarantine) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
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
