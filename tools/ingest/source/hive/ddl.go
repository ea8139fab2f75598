package hive

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

// A Table is what SHOW CREATE TABLE of Hive or Spark says of a table, as far as reading its files needs it.
type Table struct {
	Columns     []*column.Type
	PartitionBy []string
	Text        lines.Layout
	// multiDelimit: the SerDe takes all of the delimiter. Others take its first byte, so that a longer one is in doubt,
	// unless the mapping file says what it is.
	multiDelimit bool
	Doubt        string
	// StoredAs is empty for text.
	StoredAs string
}

// ReadTable reads a file with a CREATE TABLE statement; see ParseTable.
func ReadTable(path string, limits *column.Limits) (*Table, error) {
	raw, err := lines.ReadFile(path, "DDL")
	if err != nil {
		return nil, err
	}
	d, err := ParseTable(string(raw), limits.Depth)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// ParseTable reads a CREATE TABLE statement of Hive or Spark. Clauses that do not concern the files' text are passed
// over.
func ParseTable(text string, maxDepth int) (*Table, error) {
	p := &ddlParser{hiveTypeParser{s: unframe(strings.TrimPrefix(text, lines.ByteOrderMark)), maxDepth: maxDepth,
		statement: true}}
	d := &Table{}
	for p.words("use") || p.words("set") || p.words("drop") {
		p.statementEnd()
	}
	if !p.create() {
		return nil, p.want("CREATE TABLE")
	}
	if p.words("view") || p.words("materialized", "view") {
		return nil, column.Refuse("", "it describes a view, which has no files: give the DDL of the table whose "+
			"files these are")
	}
	if !p.words("table") {
		return nil, p.want("TABLE")
	}
	p.words("if", "not", "exists")
	for {
		if p.word() == "" {
			return nil, p.want("the table's name")
		}
		if !p.accept('.') {
			break
		}
	}
	var err error
	if p.skip(); p.pos < len(p.s) && p.s[p.pos] != '(' {
		return nil, column.Refuse("", "the statement names no columns (CREATE TABLE ... AS SELECT and LIKE take them "+
			"from elsewhere): give what SHOW CREATE TABLE prints")
	}
	if d.Columns, err = p.columnList(); err != nil {
		return nil, err
	}
	for {
		if p.skip(); p.pos >= len(p.s) || p.words("time", "taken") || p.words("as") {
			return d, d.check()
		}
		if p.accept(';') {
			if strings.Contains(strings.ToLower(p.s[p.pos:]), "create") && p.anotherTable() {
				return nil, errors.New("more than one CREATE TABLE: give the statement of the table whose files " +
					"these are")
			}
			return d, d.check()
		}
		if err := p.clause(d); err != nil {
			return nil, err
		}
	}
}

// unframe takes away what Hive's and Spark's shells print around a statement: beeline's frame of + and |, the name of
// the column, and OK.
func unframe(text string) string {
	framed := strings.HasPrefix(strings.TrimSpace(text), "+-")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		bare := strings.TrimSpace(line)
		if framed {
			if strings.HasPrefix(bare, "+-") {
				bare = ""
			}
			bare = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(bare, "|"), "|"))
			lines[i] = bare
		}
		if bare == "createtab_stmt" || bare == "OK" {
			lines[i] = ""
		} else if bare != "" && !framed {
			break
		}
	}
	return strings.Join(lines, "\n")
}

// create accepts CREATE and the words that may follow it.
func (p *ddlParser) create() bool {
	if !p.words("create") {
		return false
	}
	for p.words("or", "replace") || p.words("external") || p.words("temporary") || p.words("managed") ||
		p.words("transactional") {
	}
	return true
}

// statementEnd passes over the rest of a statement.
func (p *ddlParser) statementEnd() {
	for p.skip(); p.pos < len(p.s); p.skip() {
		if p.atQuote() {
			if _, err := p.quoted(); err == nil {
				continue
			}
		}
		if p.pos++; p.s[p.pos-1] == ';' {
			return
		}
	}
}

// anotherTable reports whether one of the statements that are left creates a table.
func (p *ddlParser) anotherTable() bool {
	for p.skip(); p.pos < len(p.s); p.skip() {
		if p.create() && p.words("table") {
			return true
		}
		p.statementEnd()
	}
	return false
}

func (d *Table) check() error {
	if len(d.Columns) == 0 {
		return fmt.Errorf("the table has no columns")
	}
	seen := map[string]bool{}
	for _, c := range d.Columns {
		if c.Shape == 0 {
			return fmt.Errorf("column %q has no type", c.Name)
		}
		if seen[strings.ToLower(c.Name)] {
			return fmt.Errorf("two columns have the name %q", c.Name)
		}
		seen[strings.ToLower(c.Name)] = true
	}
	return nil
}

// partition notes the partition keys. One without a type is a column, as in Spark, which the files do not have.
func (d *Table) partition(keys []*column.Type) error {
	for _, k := range keys {
		i := slices.IndexFunc(d.Columns, func(c *column.Type) bool { return strings.EqualFold(c.Name, k.Name) })
		if k.Shape == 0 && i < 0 {
			return fmt.Errorf("partitioned by %q, which is no column", k.Name)
		}
		if k.Shape == 0 {
			d.Columns = slices.Delete(d.Columns, i, i+1)
		}
		d.PartitionBy = append(d.PartitionBy, k.Name)
	}
	return nil
}

type ddlParser struct{ hiveTypeParser }

func (p *ddlParser) want(what string) error {
	p.skip()
	line := 1 + strings.Count(p.s[:min(p.pos, len(p.s))], "\n")
	rest := p.s[min(p.pos, len(p.s)):]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	return fmt.Errorf("line %d: want %s, got %s", line, what, column.Quote(rest))
}

// columnList reads (name type [COMMENT 'text'] [constraints], ..., [constraints]).
func (p *ddlParser) columnList() ([]*column.Type, error) {
	if !p.accept('(') {
		return nil, p.want("( and the columns")
	}
	var out []*column.Type
	for {
		if p.words("primary", "key") || p.words("foreign", "key") || p.words("constraint") {
			if err := p.columnRest(); err != nil {
				return nil, err
			}
		} else {
			n, err := p.column()
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
		if p.accept(',') {
			continue
		}
		if p.accept(')') {
			return out, nil
		}
		return nil, p.want(", or )")
	}
}

func (p *ddlParser) column() (*column.Type, error) {
	name := p.word()
	if name == "" {
		return nil, p.want("a column's name")
	}
	if p.skip(); p.pos < len(p.s) && (p.s[p.pos] == ',' || p.s[p.pos] == ')') {
		return &column.Type{Name: name}, nil // a partition key as Spark prints them; for others check wants a type
	}
	at := p.pos
	n, err := p.parse(1)
	if err != nil {
		p.pos = at
		if !errors.Is(err, errTooDeep) || p.word() == "" || p.brackets() != nil {
			p.pos = at
			return nil, fmt.Errorf("column %q: %w: %w", name, err, p.want("its type"))
		}
		n = &column.Type{Shape: column.Refused, Reason: err.Error()} // it may be dropped
	}
	n.Name = name
	for {
		switch {
		case p.words("comment"):
			if _, err := p.quoted(); err != nil {
				return nil, err
			}
		case p.words("not", "null"), p.words("null"), p.words("enable"), p.words("disable"), p.words("validate"),
			p.words("novalidate"), p.words("rely"), p.words("norely"), p.words("unique"), p.words("primary", "key"):
		case p.words("collate"):
			p.word()
		case p.words("default"), p.words("check"), p.words("generated"), p.words("constraint"), p.words("references"):
			return n, p.columnRest()
		default:
			return n, nil
		}
	}
}

// columnRest passes over what is left up to the next column.
func (p *ddlParser) columnRest() error { return p.passOver(",)") }

// passOver passes over text up to one of stops, which counts outside of parentheses and quotes, or to the end.
func (p *ddlParser) passOver(stops string) error {
	depth := 0
	for p.skip(); p.pos < len(p.s); p.skip() {
		switch c := p.s[p.pos]; {
		case depth == 0 && strings.IndexByte(stops, c) >= 0:
			return nil
		case p.atQuote():
			if _, err := p.quoted(); err != nil {
				return err
			}
			continue
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		p.pos++
	}
	if depth > 0 {
		return p.want(")")
	}
	return nil
}

// quoted reads 'text' or "text".
func (p *ddlParser) quoted() (string, error) {
	p.skip()
	text, end, ok := quotedText(p.s, p.pos)
	if !ok && end > p.pos {
		return "", p.want("the end of a quoted text")
	}
	if !ok {
		return "", p.want("a quoted text")
	}
	p.pos = end
	return text, nil
}

// quotedText reads the 'text' or "text" that begins at s[at] with Hive's escapes: \n \t \r \b \Z \0, \001 (octal),
// \u0001, and a backslash before anything else stands for that. It returns the text and where it ended.
func quotedText(s string, at int) (text string, end int, ok bool) {
	if at >= len(s) || s[at] != '\'' && s[at] != '"' {
		return "", at, false
	}
	quote := s[at]
	var out []byte
	for i := at + 1; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote && i+1 < len(s) && s[i+1] == quote:
			i++ // two literals in a row are one
			continue
		case c == quote:
			return string(out), i + 1, true
		case c != '\\' || i+1 >= len(s):
			out = append(out, c)
			continue
		}
		rest := s[i+1:]
		if len(rest) >= 5 && rest[0] == 'u' {
			if v, err := strconv.ParseUint(rest[1:5], 16, 16); err == nil {
				out = utf8.AppendRune(out, rune(v))
				i += 5
				continue
			}
		}
		if len(rest) >= 3 && rest[0] <= '1' && rest[0] >= '0' {
			if v, err := strconv.ParseUint(rest[:3], 8, 8); err == nil {
				out = append(out, byte(v))
				i += 3
				continue
			}
		}
		i++
		if at := strings.IndexByte("ntrb0Z", rest[0]); at >= 0 {
			out = append(out, "\n\t\r\b\x00\x1a"[at])
		} else {
			out = append(out, rest[0])
		}
	}
	return "", len(s), false
}

// clause reads one clause after the columns.
func (p *ddlParser) clause(d *Table) error {
	switch {
	case p.words("comment"), p.words("location"):
		_, err := p.quoted()
		return err
	case p.words("partitioned", "by"):
		keys, err := p.columnList()
		if err != nil {
			return err
		}
		return d.partition(keys)
	case p.words("using"):
		return p.using(d)
	case p.words("options"):
		return p.properties(d.option)
	case p.words("stored", "as", "directories"):
		return nil
	case p.words("row", "format", "delimited"):
		return p.delimited(d)
	case p.words("row", "format", "serde"):
		return p.serde(d)
	case p.words("stored", "as", "inputformat"), p.words("inputformat"):
		class, err := p.quoted()
		if lastPart(class) != "TextInputFormat" { // SymlinkTextInputFormat's files name others
			d.StoredAs = class
		}
		return err
	case p.words("outputformat"):
		_, err := p.quoted()
		return err
	case p.words("stored", "as"):
		if w := p.word(); !strings.EqualFold(w, "textfile") {
			d.StoredAs = w
		}
		return nil
	case p.words("stored", "by"):
		class, err := p.quoted()
		d.StoredAs = class
		return err
	case p.words("with", "serdeproperties"), p.words("tblproperties"):
		return p.properties(d.property)
	case p.words("clustered", "by"), p.words("sorted", "by"), p.words("skewed", "by"), p.words("on"):
		return p.parentheses()
	case p.words("into"):
		p.word()
		p.words("buckets")
		return nil
	}
	return p.want("a clause of CREATE TABLE")
}

// parentheses passes over a balanced ( ... ).
func (p *ddlParser) parentheses() error {
	if !p.accept('(') {
		return p.want("(")
	}
	if err := p.passOver(")"); err != nil {
		return err
	}
	if !p.accept(')') {
		return p.want(")")
	}
	return nil
}
