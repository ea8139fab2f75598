package lint

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// maxWords is the length of a page of docs/ that somebody reads from top to bottom.
const maxWords = 1500

// A Pattern is what documents do not say, and what to write instead.
type Pattern struct {
	Found *regexp.Regexp
	Use   string
}

// ParsePatterns reads lines "regular expression => what to write". "#" begins a comment.
func ParsePatterns(r io.Reader) (out []Pattern, err error) {
	err = eachLine(r, func(text string) error {
		expr, use, found := strings.Cut(text, " => ")
		if !found {
			return fmt.Errorf("want \"regular expression => what to write\"")
		}
		p, err := regexp.Compile(expr)
		out = append(out, Pattern{p, use})
		return err
	})
	return out, err
}

// isDocument reports whether a file is written for users: its words are checked.
func isDocument(name string) bool {
	return path.Ext(name) == ".md" && (strings.HasPrefix(name, "docs/") || name == "README.md")
}

var (
	code   = regexp.MustCompile("`[^`]*`")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	filled = regexp.MustCompile(`(?s)<!-- ([\w-]+) -->\n.*?<!-- /([\w-]+) -->\n`) // by a program
)

// document checks what a page for users says, and how much.
func (c *checker) document(name string, src []byte) {
	c.proseLines(string(src), func(n int, line string) {
		line = strings.ToLower(link.ReplaceAllString(code.ReplaceAllString(line, "``"), "]()"))
		for _, p := range c.prose {
			if found := p.Found.FindString(line); found != "" {
				c.add(name, n, "%q: write plainly: %s", found, p.Use)
			}
		}
		for _, word := range words(line) {
			if use, found := c.glossary[word]; found {
				c.add(name, n, "%q is not a word of the glossary: %s", word, use)
			}
		}
	})
	if strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, "docs/reference/") {
		if n := len(strings.Fields(filled.ReplaceAllString(string(src), ""))); n > maxWords {
			c.add(name, 1, "%d words, without what programs fill in: want at most %d, or docs/reference", n, maxWords)
		}
	}
}

// links checks that what a page links to is there.
func (c *checker) links(tree fs.FS, name string, src []byte) {
	c.proseLines(string(src), func(n int, line string) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, "``"), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, ":") {
				continue
			}
			at := path.Join(path.Dir(name), target)
			if _, err := fs.Stat(tree, at); err != nil && !strings.HasPrefix(at, "..") {
				c.add(name, n, "link to %s: there is no %s", m[1], at)
			}
		}
	})
}

// proseLines calls f with each line of Markdown that is no code, and its number.
func (c *checker) proseLines(src string, f func(n int, line string)) {
	fenced := false
	for i, line := range strings.Split(src, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case !fenced && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t"):
			f(i+1, line)
		}
	}
}
