package source

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A tableDDL is what Hive's SHOW CREATE TABLE says of a table, as far as reading its files needs it.
type tableDDL struct {
	columns     []*node
	partitionBy []string
	text        TextOptions
	// storedAs is empty for text.
	storedAs string
}

const maxDDLBytes = 64 << 20

func readDDL(path string, limits *Limits) (*tableDDL, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxDDLBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxDDLBytes {
		return nil, fmt.Errorf("%s: a DDL file has at most %d bytes", path, maxDDLBytes)
	}
	d, err := parseDDL(string(raw), limits.Depth)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// parseDDL reads a CREATE TABLE statement of Hive. Clauses that do not concern the files' text are passed over.
func parseDDL(text string, maxDepth int) (*tableDDL, error) {
	p := &ddlParser{hiveTypeParser{s: strings.TrimPrefix(text, byteOrderMark), maxDepth: maxDepth}}
	d := &tableDDL{}
	if !p.words("create") {
		return nil, p.want("CREATE TABLE")
	}
	for p.words("external") || p.words("temporary") || p.words("managed") || p.words("transactional") {
	}
	if p.words("view") || p.words("materialized", "view") {
		return nil, refuse("", "it describes a view, which has no files: give the DDL of the table whose files these are")
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
	if d.columns, err = p.columnList(); err != nil {
		return nil, err
	}
	for {
		if p.skip(); p.pos >= len(p.s) || p.accept(';') {
			return d, d.check()
		}
		if err := p.clause(d); err != nil {
			return nil, err
		}
	}
}

func (d *tableDDL) check() error {
	if len(d.columns) == 0 {
		return fmt.Errorf("the table has no columns")
	}
	seen := map[string]bool{}
	for _, c := range d.columns {
		if seen[strings.ToLower(c.name)] {
			return fmt.Errorf("two columns have the name %q", c.name)
		}
		seen[strings.ToLower(c.name)] = true
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
	return fmt.Errorf("line %d: want %s, got %s", line, what, quoteCell(rest))
}

// skip passes over spaces and comments.
func (p *ddlParser) skip() {
	for {
		p.hiveTypeParser.skip()
		end := ""
		switch rest := p.s[p.pos:]; {
		case strings.HasPrefix(rest, "--"):
			end = "\n"
		case strings.HasPrefix(rest, "/*"):
			end = "*/"
		default:
			return
		}
		at := strings.Index(p.s[p.pos+2:], end)
		if at < 0 {
			p.pos = len(p.s)
			return
		}
		p.pos += 2 + at + len(end)
	}
}

func (p *ddlParser) word() string {
	p.skip()
	return p.hiveTypeParser.word()
}

// words accepts the given keywords in a row, or nothing.
func (p *ddlParser) words(want ...string) bool {
	at := p.pos
	for _, w := range want {
		if p.skip(); p.pos < len(p.s) && p.s[p.pos] == '`' || !strings.EqualFold(p.word(), w) {
			p.pos = at
			return false
		}
	}
	return true
}

// columnList reads (name type [COMMENT 'text'], ...).
func (p *ddlParser) columnList() ([]*node, error) {
	p.skip()
	if !p.accept('(') {
		return nil, p.want("( and the columns")
	}
	var out []*node
	for {
		name := p.word()
		if name == "" {
			return nil, p.want("a column's name")
		}
		at := p.pos
		n, err := p.parse(1)
		if err != nil {
			p.pos = at
			return nil, fmt.Errorf("column %q: %w: %w", name, err, p.want("its type"))
		}
		n.name = name
		out = append(out, n)
		if p.words("comment") {
			if _, err := p.quoted(); err != nil {
				return nil, err
			}
		}
		p.words("not", "null")
		if p.skip(); p.accept(',') {
			continue
		}
		if p.skip(); p.accept(')') {
			return out, nil
		}
		return nil, p.want(", or )")
	}
}

// quoted reads 'text' or "text" with Hive's escapes: \n \t \r \b \Z \0, \001 (octal), \u0001, and a backslash before
// anything else stands for that.
func (p *ddlParser) quoted() (string, error) {
	p.skip()
	if p.pos >= len(p.s) || p.s[p.pos] != '\'' && p.s[p.pos] != '"' {
		return "", p.want("a quoted text")
	}
	quote := p.s[p.pos]
	var out []byte
	for i := p.pos + 1; i < len(p.s); i++ {
		c := p.s[i]
		switch {
		case c == quote && i+1 < len(p.s) && p.s[i+1] == quote:
			i++ // two literals in a row are one
			continue
		case c == quote:
			p.pos = i + 1
			return string(out), nil
		case c != '\\' || i+1 >= len(p.s):
			out = append(out, c)
			continue
		}
		rest := p.s[i+1:]
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
	return "", p.want("the end of a quoted text")
}

// clause reads one clause after the columns.
func (p *ddlParser) clause(d *tableDDL) error {
	switch {
	case p.words("comment"), p.words("location"):
		_, err := p.quoted()
		return err
	case p.words("partitioned", "by"):
		cols, err := p.columnList()
		for _, c := range cols {
			d.partitionBy = append(d.partitionBy, c.name)
		}
		return err
	case p.words("row", "format", "delimited"):
		return p.delimited(d)
	case p.words("row", "format", "serde"):
		return p.serde(d)
	case p.words("stored", "as", "inputformat"), p.words("inputformat"):
		class, err := p.quoted()
		if !strings.HasSuffix(class, "TextInputFormat") {
			d.storedAs = class
		}
		return err
	case p.words("outputformat"):
		_, err := p.quoted()
		return err
	case p.words("stored", "as"):
		if w := p.word(); !strings.EqualFold(w, "textfile") {
			d.storedAs = w
		}
		return nil
	case p.words("stored", "by"):
		class, err := p.quoted()
		d.storedAs = class
		return err
	case p.words("with", "serdeproperties"), p.words("tblproperties"):
		return p.properties(d)
	case p.words("clustered", "by"), p.words("sorted", "by"), p.words("skewed", "by"), p.words("on"):
		return p.parentheses()
	case p.words("into"):
		p.word()
		p.words("buckets")
		return nil
	case p.words("stored", "as", "directories"):
		return nil
	}
	return p.want("a clause of CREATE TABLE")
}

// parentheses passes over a balanced ( ... ).
func (p *ddlParser) parentheses() error {
	p.skip()
	if !p.accept('(') {
		return p.want("(")
	}
	for depth := 1; depth > 0; {
		p.skip()
		if p.pos >= len(p.s) {
			return p.want(")")
		}
		switch p.s[p.pos] {
		case '(':
			depth++
		case ')':
			depth--
		case '\'', '"':
			if _, err := p.quoted(); err != nil {
				return err
			}
			continue
		}
		p.pos++
	}
	return nil
}

// delimited reads what follows ROW FORMAT DELIMITED.
func (p *ddlParser) delimited(d *tableDDL) error {
	set := func(key string) error {
		v, err := p.quoted()
		if err != nil {
			return err
		}
		return d.property(key, v)
	}
	for {
		var err error
		switch {
		case p.words("fields", "terminated", "by"):
			err = set("field.delim")
		case p.words("escaped", "by"):
			err = set("escape.delim")
		case p.words("collection", "items", "terminated", "by"):
			err = set("collection.delim")
		case p.words("map", "keys", "terminated", "by"):
			err = set("mapkey.delim")
		case p.words("lines", "terminated", "by"):
			err = set("line.delim")
		case p.words("null", "defined", "as"):
			err = set("serialization.null.format")
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// serde reads what follows ROW FORMAT SERDE.
func (p *ddlParser) serde(d *tableDDL) error {
	class, err := p.quoted()
	if err != nil {
		return err
	}
	switch name := class[strings.LastIndexByte(class, '.')+1:]; name {
	case "LazySimpleSerDe":
	case "OpenCSVSerde":
		d.text.CSV, d.text.Escape, d.text.EmptyText = true, `\`, true
	case "ParquetHiveSerDe", "OrcSerde":
		d.storedAs = name
	case "JsonSerDe", "JsonSerde":
		return refuse("", "SerDe %s: read the files as JSON lines, with --format jsonl and no --ddl", class)
	default:
		return refuse("", "SerDe %s is not supported: LazySimpleSerDe and OpenCSVSerde are", class)
	}
	return nil
}

// properties reads ('key'='value', ...).
func (p *ddlParser) properties(d *tableDDL) error {
	if p.skip(); !p.accept('(') {
		return p.want("( and properties")
	}
	for {
		key, err := p.quoted()
		if err != nil {
			return err
		}
		if p.skip(); !p.accept('=') {
			return p.want("=")
		}
		value, err := p.quoted()
		if err != nil {
			return err
		}
		if err := d.property(key, value); err != nil {
			return err
		}
		if p.skip(); p.accept(',') {
			continue
		}
		if p.skip(); p.accept(')') {
			return nil
		}
		return p.want(", or )")
	}
}

// property takes a SerDe property that says how the text is laid out.
func (d *tableDDL) property(key, value string) error {
	t := &d.text
	char := func(p *string) error {
		b, err := delimiter(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		*p = string(b)
		return nil
	}
	switch key {
	case "field.delim", "separatorChar":
		return char(&t.Delimiter)
	case "serialization.format":
		if t.Delimiter == "" && !t.CSV {
			return char(&t.Delimiter)
		}
	case "collection.delim", "colelction.delim": // Hive 2 wrote the latter
		return char(&t.Items)
	case "mapkey.delim":
		return char(&t.MapKeys)
	case "escape.delim", "escapeChar":
		return char(&t.Escape)
	case "quoteChar":
		return char(&t.Quote)
	case "line.delim":
		if value != "\n" && value != "10" {
			return refuse("", "lines that end with %q are not supported: Hive itself only takes \\n", value)
		}
	case "serialization.null.format":
		t.Null, t.HasNull = value, true
	case "skip.header.line.count":
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 0 {
			return fmt.Errorf("skip.header.line.count: %q is no count", value)
		}
		t.SkipLines = n
	case "skip.footer.line.count":
		if strings.TrimSpace(value) != "0" {
			return refuse("", "skip.footer.line.count is not supported")
		}
	case "serialization.encoding":
		if !strings.EqualFold(value, "UTF-8") {
			return refuse("", "text in %s is not supported: UTF-8 is", value)
		}
	}
	return nil
}

// delimiter reads a separator as Hive does: a number from -128 to 127 is the byte, else the first character counts.
func delimiter(value string) ([]byte, error) {
	if n, err := strconv.ParseInt(value, 10, 8); err == nil {
		return []byte{byte(n)}, nil
	}
	if value == "" {
		return nil, fmt.Errorf("an empty separator")
	}
	r, size := utf8.DecodeRuneInString(value)
	if r >= 0x80 && size > 1 {
		if r > 0xff {
			return nil, fmt.Errorf("the separator %q is more than a byte", value)
		}
		return []byte{byte(r)}, nil
	}
	return []byte{value[0]}, nil
}
