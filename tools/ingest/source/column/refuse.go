package column

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/internal/suggest"
)

// DropHint begins what RefuseToDrop says of what to do.
const DropHint = "; drop it with {"

// RefuseToDrop refuses a column that can be nothing but dropped.
func RefuseToDrop(path, format string, args ...any) error {
	return Refuse(path, "%s%s\"columns\": {%q: {\"drop\": true}}} in a mapping file", fmt.Sprintf(format, args...),
		DropHint, path)
}

// ErrRefused is matched when an input is whole but holds something that has no place in a table: the message names the
// column, what it is and what to do.
var ErrRefused = errors.New("not supported")

// A RefusedError says what has no place in a table.
type RefusedError struct {
	File   string
	Column string // empty: the file as a whole
	Reason string
	Apart  bool // the file does not go with the others of its dump, and had no say in their types
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ": ")
	}
	if e.Column != "" {
		fmt.Fprintf(&b, "column %q: ", e.Column)
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// Refuse returns a RefusedError about a column, or about the file where that is empty.
func Refuse(column, format string, args ...any) error {
	return &RefusedError{Column: column, Reason: fmt.Sprintf(format, args...)}
}

// Apart says of a RefusedError that it is of the file at path, which does not go with the others of its dump.
func Apart(path string, err error) error {
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		refused.File, refused.Apart = path, true
	}
	return err
}

// mostNames is how many names an error lists.
const mostNames = 12

// DidYouMean returns ` "nam"; did you mean "name"?`, or where none is near, ` "nam"; there are "a", "b" and 3 more`.
func DidYouMean(name string, known []string) string {
	if hint := suggest.Hint(name, known); hint != "" {
		return fmt.Sprintf(" %q%s", name, hint)
	}
	if len(known) == 0 {
		return fmt.Sprintf(" %q", name)
	}
	quoted := make([]string, min(len(known), mostNames))
	for i := range quoted {
		quoted[i] = fmt.Sprintf("%.100q", known[i])
	}
	list := strings.Join(quoted, ", ")
	if more := len(known) - len(quoted); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf(" %q; there are %s", name, list)
}
