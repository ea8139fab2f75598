// Package keytext reads keys as people write them down: a line each, or a column of comma or tab separated text.
//
//	.csv, .tsv  ──> first line of several columns? ──> the column of the feature's name
//	all others  ──> each line is a key                  (it has to have a header: else which column is meant?)
//
// The first line is no key where it is the feature's name. Quotes around a key, or a column, are taken off, and doubled
// ones in it halved; a key does not span lines.
package keytext

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// maxLine bounds a line, in bytes.
const maxLine = 64 << 20

// A Reader reads the keys of a text.
type Reader struct {
	path, feature string
	lines         *bufio.Scanner
	separator     byte // 0: lines are whole
	columns, at   int  // how many there are, and which has the keys; 0 columns: not known yet
	line          int
}

// New returns a reader of a text from a path, whose ending says what it is, with keys of a feature.
func New(r io.Reader, path, feature string) *Reader {
	t := &Reader{path: path, feature: feature, lines: bufio.NewScanner(r)}
	t.lines.Buffer(nil, maxLine)
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		t.separator = ','
	case ".tsv":
		t.separator = '\t'
	}
	return t
}

// Line returns the number of the line that the last key was on, from 1.
func (t *Reader) Line() int { return t.line }

// Next returns the next key, borrowed until the next call; it is empty where the line is, or the column in it. io.EOF:
// there are no more. Errors say where.
func (t *Reader) Next() ([]byte, error) {
	for t.lines.Scan() {
		t.line++
		line := bytes.TrimSuffix(t.lines.Bytes(), []byte("\r"))
		if t.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		key, header, err := t.key(line)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", t.path, t.line, err)
		}
		if !header {
			return key, nil
		}
	}
	if err := t.lines.Err(); err != nil {
		return nil, fmt.Errorf("%s, line %d: %w", t.path, t.line+1, err)
	}
	return nil, io.EOF
}

// key returns the key of a line; header: it names what follows.
func (t *Reader) key(line []byte) (key []byte, header bool, err error) {
	if t.separator == 0 {
		key = unquoted(line)
		return key, t.line == 1 && string(key) == t.feature, nil
	}
	columns, err := split(line, t.separator)
	if err != nil {
		return nil, false, err
	}
	if t.columns == 0 {
		t.columns = len(columns)
		for i, c := range columns {
			if string(c) == t.feature {
				t.at = i
				return nil, true, nil
			}
		}
		if len(columns) > 1 {
			return nil, false, fmt.Errorf("%d columns, and none of them is named %q: name the columns in the first "+
				"line, or give a text with a key a line (.txt)",
				len(columns), t.feature)
		}
	}
	if len(columns) != t.columns && len(line) > 0 {
		return nil, false, fmt.Errorf("%d columns, and %d in the first line", len(columns), t.columns)
	}
	if len(columns) <= t.at {
		return nil, false, nil // an empty line
	}
	return columns[t.at], false, nil
}

// split returns the columns of a line, without their quotes.
func split(line []byte, separator byte) (columns [][]byte, err error) {
	for {
		end := bytes.IndexByte(line, separator)
		if len(line) > 0 && line[0] == '"' {
			if end, err = closing(line); err != nil {
				return nil, err
			}
			if end++; end < len(line) && line[end] != separator {
				return nil, fmt.Errorf("column %d: text after the closing quote", len(columns)+1)
			}
		}
		if end < 0 || end == len(line) {
			return append(columns, unquoted(line)), nil
		}
		columns = append(columns, unquoted(line[:end]))
		line = line[end+1:]
	}
}

// closing returns where the quote is that closes the one which a text begins with.
func closing(text []byte) (int, error) {
	for i := 1; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		if i+1 == len(text) || text[i+1] != '"' {
			return i, nil
		}
		i++
	}
	return 0, errors.New("a quote is not closed: a key does not span lines")
}

// unquoted returns a text without the quotes around it.
func unquoted(text []byte) []byte {
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		return bytes.ReplaceAll(text[1:n-1], []byte(`""`), []byte(`"`))
	}
	return text
}
