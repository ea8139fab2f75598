package remote

import (
	"fmt"
	"strings"
)

// Refusals are the errors of the objects that a request about many has not deleted, and another one would not. The zero
// value has none.
type Refusals struct {
	first  error
	others []string
}

// shownRefusals is of how many other objects the names are shown.
const shownRefusals = 10

// Add adds the error of an object of a name.
func (r *Refusals) Add(name string, err error) {
	if r.first == nil {
		r.first = err
	} else {
		r.others = append(r.others, name)
	}
}

// Err returns the first error with the names of the other objects; nil: there is none.
func (r *Refusals) Err() error {
	if len(r.others) == 0 {
		return r.first
	}
	names, more := r.others, ""
	if n := len(names) - shownRefusals; n > 0 {
		names, more = names[:shownRefusals], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w; refused too: %s%s", r.first, strings.Join(names, ", "), more)
}
