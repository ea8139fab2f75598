package hive

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

// delimiters are the clauses of ROW FORMAT DELIMITED, and the properties that they set.
var delimiters = []struct {
	words    []string
	property string
}{
	{[]string{"fields", "terminated", "by"}, "field.delim"},
	{[]string{"escaped", "by"}, "escape.delim"},
	{[]string{"collection", "items", "terminated", "by"}, "collection.delim"},
	{[]string{"map", "keys", "terminated", "by"}, "mapkey.delim"},
	{[]string{"lines", "terminated", "by"}, "line.delim"},
	{[]string{"null", "defined", "as"}, "serialization.null.format"},
}

// delimited reads what follows ROW FORMAT DELIMITED.
func (p *ddlParser) delimited(d *Table) error {
	for i := 0; i < len(delimiters); i++ {
		if !p.words(delimiters[i].words...) {
			continue
		}
		v, err := p.quoted()
		if err == nil {
			err = d.property(delimiters[i].property, v)
		}
		if err != nil {
			return err
		}
		i = -1 // they may be in any order
	}
	return nil
}

// serde reads what follows ROW FORMAT SERDE.
func (p *ddlParser) serde(d *Table) error {
	class, err := p.quoted()
	if err != nil {
		return err
	}
	switch name := lastPart(class); name {
	case "LazySimpleSerDe":
	case "MultiDelimitSerDe":
		d.multiDelimit = true
	case "OpenCSVSerde":
		d.Text.CSV, d.Text.Escape, d.Text.EmptyText = true, `\`, true
	case "ParquetHiveSerDe", "OrcSerde":
		d.StoredAs = name
	case "JsonSerDe", "JsonSerde":
		return column.Refuse("", "SerDe %s: read the files as JSON lines, with --format jsonl and no --ddl", class)
	default:
		return column.Refuse("", "SerDe %s is not supported: LazySimpleSerDe, MultiDelimitSerDe and OpenCSVSerde are",
			class)
	}
	return nil
}

func lastPart(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// using reads what Spark says in place of ROW FORMAT.
func (p *ddlParser) using(d *Table) error {
	switch name := strings.ToLower(p.word()); name {
	case "hive":
	case "csv":
		d.Text.CSV, d.Text.Escape, d.Text.EscapeQuotes = true, `\`, true
	case "json":
		return column.Refuse("", "it describes JSON: read the files as JSON lines, with --format jsonl and no --ddl")
	case "":
		return p.want("a format")
	default:
		d.StoredAs = name
	}
	return nil
}

// properties gives ('key'='value', ...) to take, pair by pair; Spark can do without the sign and the quotes.
func (p *ddlParser) properties(take func(key, value string) error) error {
	if !p.accept('(') {
		return p.want("( and properties")
	}
	for {
		var key, value string
		var err error
		if p.atQuote() {
			key, err = p.quoted()
		} else {
			for key = p.word(); p.accept('.'); key += "." + p.word() {
			}
			if key == "" {
				err = p.want("a property")
			}
		}
		if err != nil {
			return err
		}
		p.accept('=')
		if p.skip(); p.pos >= len(p.s) || p.atQuote() {
			value, err = p.quoted()
		} else if value = p.word(); value == "" {
			err = p.want("a property's value")
		}
		if err != nil {
			return err
		}
		if err := take(key, value); err != nil {
			return err
		}
		if p.accept(',') {
			continue
		}
		if p.accept(')') {
			return nil
		}
		return p.want(", or )")
	}
}

// atQuote reports whether a quoted text comes next.
func (p *ddlParser) atQuote() bool {
	p.skip()
	return p.pos < len(p.s) && (p.s[p.pos] == '\'' || p.s[p.pos] == '"')
}

// option takes one of Spark's options, which stand for properties of Hive's.
func (d *Table) option(key, value string) error {
	t := &d.Text
	switch strings.ToLower(key) {
	case "sep", "delimiter":
		t.Delimiter = value
	case "quote":
		return setCharacter(&t.Quote, key, value)
	case "escape":
		return setCharacter(&t.Escape, key, value)
	case "nullvalue":
		t.Null, t.HasNull = value, true
	case "header":
		if strings.EqualFold(value, "true") { // Spark goes by position, not by the names in it
			t.SkipLines = 1
		}
	case "linesep", "comment", "dateformat", "timestampformat":
		return column.Refuse("", "the option %q is not supported", key)
	case "encoding", "charset":
		return d.property("serialization.encoding", value)
	default:
		return d.property(key, value)
	}
	return nil
}

// setCharacter sets what separates, quotes or escapes.
func setCharacter(to *string, key, value string) error {
	b, err := delimiter(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	*to = string(b)
	return nil
}

// property takes a SerDe property that describes the layout of the text.
func (d *Table) property(key, value string) error {
	t := &d.Text
	char := func(p *string) error { return setCharacter(p, key, value) }
	switch key {
	case "field.delim":
		if d.multiDelimit {
			if value == "" {
				return fmt.Errorf("%s: an empty separator", key)
			}
			t.Delimiter = value
			return nil
		}
		if _, err := strconv.ParseInt(value, 10, 8); err != nil && utf8.RuneCountInString(value) > 1 {
			d.Doubt = fmt.Sprintf("columns are separated by %q, of which Hive itself takes the first character: say "+
				"which you mean with \"text\": {\"delimiter\": ...} in a mapping file", value)
		}
		return char(&t.Delimiter)
	case "separatorChar":
		return char(&t.Delimiter)
	case "textinputformat.record.delimiter", "timestamp.formats":
		return column.Refuse("", "the property %q is not supported", key)
	case "serialization.last.column.takes.rest":
		if strings.EqualFold(value, "true") {
			return column.Refuse("", "the property %q is not supported", key)
		}
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
			return column.Refuse("", "lines that end with %q are not supported: Hive itself only takes \\n", value)
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
			return column.Refuse("", "skip.footer.line.count is not supported")
		}
	case "serialization.encoding":
		set, err := lines.Charset(value)
		if err != nil {
			return column.Refuse("", "%v", err)
		}
		t.Charset = set
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
