package program

import (
	"fmt"
	"os"
	"strings"
)

// ReplacePart puts text, whole lines, between the lines <!-- name --> and <!-- /name --> of a page.
func ReplacePart(path, name, text string) error {
	begins, ends := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), begins)
	_, after, whole := strings.Cut(rest, ends)
	if !found || !whole {
		return fmt.Errorf("%s has no part between %q and %q", path, begins, ends)
	}
	return os.WriteFile(path, []byte(before+begins+text+ends+after), 0o666)
}
