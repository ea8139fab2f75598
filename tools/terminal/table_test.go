package terminal

import (
	"strings"
	"testing"
)

// TestTableHeader: names come from data too.
func TestTableHeader(t *testing.T) {
	var b strings.Builder
	Table(&b, []string{"a\x1bb", "c\nd"}, [][]string{{"1", "2"}}, "a\x1bb")
	if want := "a?b  c d\n  1  2\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestFittingTable: a narrow terminal gets the columns that it has room for, the words of a last one shortened; a pipe
// gets all.
func TestFittingTable(t *testing.T) {
	names, rows := []string{"name", "n", "because"},
		[][]string{{"first", "1,000", "of a long reason that has many words"}, {"b", "2", "short"}}
	for _, c := range []struct {
		width, left int
		want        string
	}{
		{0, 0, "name       n  because\nfirst  1,000  of a long reason that has many words\nb          2  short\n"},
		{50, 0, "name       n  because\nfirst  1,000  of a long reason that has many words\nb          2  short\n"},
		{40, 0, "name       n  because\nfirst  1,000  of a long reason that has…\nb          2  short\n"},
		{30, 1, "name       n\nfirst  1,000\nb          2\n"},
		{8, 2, "name\nfirst\nb\n"},
		{2, 2, "name\nfirst\nb\n"},
	} {
		var b strings.Builder
		if left := FittingTable(&b, c.width, names, rows, "n"); left != c.left || b.String() != c.want {
			t.Errorf("width %d: %d left out of\n%s, want %d of\n%s", c.width, left, b.String(), c.left, c.want)
		}
		for line := range strings.Lines(b.String()) {
			if c.width >= 8 && len([]rune(strings.TrimSpace(line))) > c.width {
				t.Errorf("width %d: %q", c.width, line)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	for width, want := range map[int]string{0: "one two three four\n", 13: "one two three\n  four\n",
		9: "one two\n  three\n  four\n", 1: "one\n  two\n  three\n  four\n"} {
		var b strings.Builder
		if Wrap(&b, width, 2, " one two\nthree  four"); b.String() != want {
			t.Errorf("width %d: %q, want %q", width, b.String(), want)
		}
	}
}
