package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// pictureRunes is how many characters of a long line Picture shows on each side of the error.
const pictureRunes = 60

// An Error says what is wrong with an expression, and where.
type Error struct {
	Text   string // the whole expression
	Offset int    // of the error in Text, in bytes
	Reason string
	// Cause is the underlying error, if there is one.
	Cause error
}

// Unwrap returns Cause.
func (e *Error) Unwrap() error { return e.Cause }

func (e *Error) Error() string {
	line, column := e.place()
	if line > 1 {
		return fmt.Sprintf("expression, line %d, column %d: %s", line, column, e.Reason)
	}
	return fmt.Sprintf("expression, column %d: %s", column, e.Reason)
}

// place returns the line and the column of Offset, both from 1; a column is a character.
func (e *Error) place() (line, column int) {
	before := e.Text[:min(e.Offset, len(e.Text))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// Picture returns the line with the error and, below it, a caret at the error.
func (e *Error) Picture() string {
	at := min(e.Offset, len(e.Text))
	start := strings.LastIndexByte(e.Text[:at], '\n') + 1
	end := len(e.Text)
	if i := strings.IndexByte(e.Text[at:], '\n'); i >= 0 {
		end = at + i
	}
	before, after := []rune(e.Text[start:at]), []rune(e.Text[at:end])
	if len(before) > pictureRunes {
		before = append([]rune("..."), before[len(before)-pictureRunes:]...)
	}
	if len(after) > pictureRunes {
		after = append(after[:pictureRunes:pictureRunes], []rune("...")...)
	}
	var b strings.Builder
	for _, r := range before {
		b.WriteRune(printable(r))
	}
	for _, r := range after {
		b.WriteRune(printable(r))
	}
	b.WriteByte('\n')
	for range before {
		b.WriteByte(' ')
	}
	b.WriteByte('^')
	return b.String()
}

// printable returns r, or a space in its place when printing r would move the caret or reach the terminal.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
		return ' '
	}
	return r
}
