package lint

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// maxColumns is the length of a line. A tab counts tabColumns.
	maxColumns = 120
	tabColumns = 4
	// maxFiles is the number of Go files of a package, tests aside, that a reader can hold in the head.
	maxFiles = 25
)

// Glossary maps a word that is not used to the word that is used instead.
type Glossary map[string]string

// ParseGlossary reads lines "word: word to use". "#" begins a comment.
func ParseGlossary(r io.Reader) (Glossary, error) {
	g := Glossary{}
	err := eachLine(r, func(text string) error {
		word, use, found := strings.Cut(text, ":")
		if word = strings.TrimSpace(word); !found || word != strings.ToLower(word) {
			return fmt.Errorf("want \"word: word to use\", in lower case")
		}
		g[word] = strings.TrimSpace(use)
		return nil
	})
	return g, err
}

// Exceptions maps a rule to the directories that it does not apply to yet: "files", "columns", "words".
type Exceptions map[string]map[string]bool

// ParseExceptions reads lines "rule: directory ...". "#" begins a comment. "." is the root.
func ParseExceptions(r io.Reader) (Exceptions, error) {
	e := Exceptions{"files": {}, "columns": {}, "words": {}}
	err := eachLine(r, func(text string) error {
		rule, dirs, _ := strings.Cut(text, ":")
		if e[rule] == nil {
			return fmt.Errorf("no rule %q", rule)
		}
		for _, d := range strings.Fields(dirs) {
			e[rule][d] = true
		}
		return nil
	})
	return e, err
}

// eachLine calls f with every line that is not empty without its comment.
func eachLine(r io.Reader, f func(text string) error) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := f(text); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

// checkedText are the endings of files whose lines and words are checked.
var checkedText = map[string]bool{".go": true, ".py": true, ".sh": true, ".s": true, ".md": true}

// generated matches the first lines of a file that a program wrote.
var generated = regexp.MustCompile(`(?m)^(//|#) Code generated .* DO NOT EDIT\.$`)

// text checks the lines and the words of a file.
func (c *checker) text(name string, src []byte) {
	ending, dir := path.Ext(name), path.Dir(name)
	if !checkedText[ending] || generated.Match(src[:min(len(src), 1000)]) {
		return
	}
	fenced := false // in a block of Markdown that quotes a program or what it printed
	for i, line := range strings.Split(string(src), "\n") {
		if ending == ".md" && strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if n := columns(line); n > maxColumns && !fenced && !c.pending["columns"][dir] && !unwrappable(ending, line) {
			c.add(name, i+1, "%d columns: want at most %d", n, maxColumns)
		}
		if ending == ".md" || dir == "internal/lint" || c.pending["words"][dir] {
			continue // Markdown quotes the words of other systems, and this package has examples
		}
		for _, word := range words(line) {
			if use, found := c.glossary[word]; found {
				c.add(name, i+1, "%q is not a word of the glossary: %s", word, use)
			}
		}
	}
}

// columns counts the columns of a line.
func columns(line string) int {
	tabs := strings.Count(line, "\t")
	return utf8.RuneCountInString(line) + tabs*(tabColumns-1)
}

// unwrappable reports whether a long line cannot be broken: a struct tag of Go, and in Markdown a table or an address.
func unwrappable(ending, line string) bool {
	switch ending {
	case ".go":
		return structTag.MatchString(line)
	case ".md":
		return strings.HasPrefix(strings.TrimSpace(line), "|") || strings.Contains(line, "](") ||
			strings.Contains(line, "://")
	}
	return false
}

var structTag = regexp.MustCompile("`[a-z_]+:\"")

// wordPattern matches words of prose and the words that identifiers are made of: leaseKeeper is lease and keeper.
var wordPattern = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// words returns the words of a line in lower case, and pairs of neighbours joined by "-": overRead, over_read and
// over-read are all over-read.
func words(line string) []string {
	var out []string
	last, end := "", -1
	for _, at := range wordPattern.FindAllStringIndex(line, -1) {
		word := strings.ToLower(line[at[0]:at[1]])
		out = append(out, word)
		if last != "" && at[0]-end <= 1 {
			out = append(out, last+"-"+word)
		}
		last, end = word, at[1]
	}
	return out
}
