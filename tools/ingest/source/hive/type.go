package hive

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// primitives maps the names of types to nodes: Hive's, Spark's, and those that dsi prints. varchar and char take a
// length, decimal precision and scale, timestamp a unit.
var primitives = withElems(map[string]column.Type{
	"boolean":   {Shape: column.Number, Elem: vector.Bool},
	"tinyint":   {Shape: column.Number, Elem: vector.Int8},
	"smallint":  {Shape: column.Number, Elem: vector.Int16},
	"int":       {Shape: column.Number, Elem: vector.Int32},
	"integer":   {Shape: column.Number, Elem: vector.Int32},
	"bigint":    {Shape: column.Number, Elem: vector.Int64},
	"float":     {Shape: column.Number, Elem: vector.Float32},
	"real":      {Shape: column.Number, Elem: vector.Float32},
	"double":    {Shape: column.Number, Elem: vector.Float64},
	"string":    {Shape: column.String},
	"varchar":   {Shape: column.String},
	"char":      {Shape: column.String},
	"binary":    {Shape: column.Bytes},
	"date":      {Shape: column.Number, Elem: vector.Int32, Logical: "date32"},
	"timestamp": {Shape: column.Number, Elem: vector.Int64, Logical: "timestamp[ns]", AnyUnit: true},
	"void":      {Shape: column.Null},
	// Spark's names.
	"byte":          {Shape: column.Number, Elem: vector.Int8},
	"short":         {Shape: column.Number, Elem: vector.Int16},
	"long":          {Shape: column.Number, Elem: vector.Int64},
	"timestamp_ntz": {Shape: column.Number, Elem: vector.Int64, Logical: "timestamp[ns]", AnyUnit: true},
	// Columns of these can be dropped, and are nothing else.
	"interval":            {Shape: column.Refused, Reason: "intervals have no place in a table"},
	"interval_year_month": {Shape: column.Refused, Reason: "intervals have no place in a table"},
	"interval_day_time":   {Shape: column.Refused, Reason: "intervals have no place in a table"},
	"timestamp_ltz": {Shape: column.Refused, Reason: "text of a timestamp with local time zone names zones, " +
		"which are not known here"},
	"variant": {Shape: column.Refused, Reason: "a variant has no place in a table"},
	// What dsi prints, beside the numbers.
	"bytes":  {Shape: column.Bytes},
	"date32": {Shape: column.Number, Elem: vector.Int32, Logical: "date32"},
	"null":   {Shape: column.Null},
})

// withElems adds the names of numbers as dsi prints them.
func withElems(types map[string]column.Type) map[string]column.Type {
	for e := vector.Bool; e <= vector.Float64; e++ {
		types[e.String()] = column.Type{Shape: column.Number, Elem: e}
	}
	return types
}

// ParseType reads a type as Hive spells it, "array<map<string, bigint>>", "decimal(10,2)", ..., or as vector.Type and
// column.Type print it, of which it is the inverse: "list<int64>", "list<int64:float32>", "float32[64]",
// "timestamp[us]". After a type of numbers may come their logical type, as --show-schema has it: "int32, date32".
func ParseType(s string, maxDepth int) (*column.Type, error) {
	p := &hiveTypeParser{s: s, maxDepth: maxDepth}
	n, err := p.parse(1)
	if err == nil && p.accept(',') {
		err = p.parseLogical(n)
	}
	if err != nil {
		return nil, fmt.Errorf("type %q: %w", s, err)
	}
	if p.skip(); p.pos != len(p.s) {
		return nil, fmt.Errorf("type %q: %q after its end", s, p.s[p.pos:])
	}
	return n, nil
}

var errTooDeep = errors.New("nested deeper")

type hiveTypeParser struct {
	s        string
	pos      int
	maxDepth int
	// statement: it is a type in a statement, which may have comments. One that is unknown is refused, so that the
	// column or member may be dropped.
	statement bool
}

// skip passes over spaces, and over the comments of a statement.
func (p *hiveTypeParser) skip() {
	for p.pos < len(p.s) {
		end := ""
		switch rest := p.s[p.pos:]; {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.pos++
			continue
		case p.statement && strings.HasPrefix(rest, "--"):
			end = "\n"
		case p.statement && strings.HasPrefix(rest, "/*"):
			end = "*/"
		default:
			return
		}
		if at := strings.Index(p.s[p.pos+2:], end); at >= 0 {
			p.pos += 2 + at + len(end)
		} else {
			p.pos = len(p.s)
		}
	}
}

// word returns a word, or a name between backticks, in which two backticks are one.
func (p *hiveTypeParser) word() string {
	p.skip()
	start := p.pos
	if p.pos < len(p.s) && p.s[p.pos] == '`' {
		var name strings.Builder
		for rest := p.s[p.pos+1:]; ; {
			end := strings.IndexByte(rest, '`')
			if end < 0 {
				return ""
			}
			name.WriteString(rest[:end])
			if rest = rest[end+1:]; !strings.HasPrefix(rest, "`") {
				p.pos = len(p.s) - len(rest)
				return name.String()
			}
			name.WriteByte('`')
			rest = rest[1:]
		}
	}
	for p.pos < len(p.s) {
		c := p.s[p.pos]
		if c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 {
			p.pos++
			continue
		}
		break
	}
	return p.s[start:p.pos]
}

// words accepts the given keywords in a row, or nothing.
func (p *hiveTypeParser) words(want ...string) bool {
	at := p.pos
	for _, w := range want {
		if p.skip(); p.pos < len(p.s) && p.s[p.pos] == '`' || !strings.EqualFold(p.word(), w) {
			p.pos = at
			return false
		}
	}
	return true
}

func (p *hiveTypeParser) accept(c byte) bool {
	p.skip()
	if p.pos < len(p.s) && p.s[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *hiveTypeParser) expect(c byte) error {
	if !p.accept(c) {
		return fmt.Errorf("want %q at offset %d", c, p.pos)
	}
	return nil
}

// parse reads a type, and the length of its lists where it follows.
func (p *hiveTypeParser) parse(depth int) (*column.Type, error) {
	n, err := p.parseOne(depth)
	if err != nil || n.Shape != column.List && n.Shape != column.Number || !p.accept('[') {
		return n, err
	}
	at := p.pos
	dim, err := strconv.Atoi(p.word())
	if err != nil || dim < 1 || dim > vector.MaxDim {
		return nil, fmt.Errorf("want the length of an embedding, 1 to %d, at offset %d", vector.MaxDim, at)
	}
	if n.Shape == column.Number {
		n = &column.Type{Shape: column.List, Children: []*column.Type{n}}
	}
	n.Dim = dim
	return n, p.expect(']')
}

// parseLogical reads the logical type of the numbers of n.
func (p *hiveTypeParser) parseLogical(n *column.Type) error {
	for n.Shape == column.List {
		n = n.Children[0]
	}
	logical, err := p.parse(1)
	if err != nil {
		return err
	}
	if logical.Logical == "" || logical.Shape != n.Shape || logical.Elem != n.Elem || n.Logical != "" {
		return fmt.Errorf("%v is no logical type of %v", logical, n)
	}
	*n = *logical
	return nil
}

func (p *hiveTypeParser) parseOne(depth int) (*column.Type, error) {
	if depth > p.maxDepth {
		return nil, fmt.Errorf("%w than %d", errTooDeep, p.maxDepth)
	}
	w := strings.ToLower(p.word())
	if w == "double" {
		p.words("precision")
	}
	switch w {
	case "array":
		return p.parameters(depth, column.List, "")
	case "list":
		return p.parseList(depth)
	case "map":
		return p.parameters(depth, column.Map, "key", "value")
	case "struct":
		return p.parseStruct(depth)
	case "uniontype":
		if err := p.balanced('<', '>'); err != nil {
			return nil, err
		}
		return &column.Type{Shape: column.Refused, Reason: "a union has no place in a table"}, nil
	case "decimal", "numeric", "dec":
		return p.parseDecimal()
	}
	n, ok := primitives[w]
	if !ok {
		unknown := fmt.Errorf("unknown type%s", column.DidYouMean(w, slices.Sorted(maps.Keys(primitives))))
		if !p.statement || w == "" || p.brackets() != nil {
			return nil, unknown
		}
		return &column.Type{Shape: column.Refused, Reason: unknown.Error()}, nil
	}
	if (w == "varchar" || w == "char") && p.accept('(') {
		p.word()
		if err := p.expect(')'); err != nil {
			return nil, err
		}
	}
	switch w {
	case "interval":
		for p.words("year") || p.words("month") || p.words("day") || p.words("hour") || p.words("minute") ||
			p.words("second") || p.words("to") {
		}
	case "timestamp":
		if p.words("with", "local", "time", "zone") {
			n = primitives["timestamp_ltz"]
		} else if p.accept('[') {
			return p.parseTimestamp()
		}
	}
	return &n, nil
}

// parameters reads the types in the angle brackets of one of a shape.
func (p *hiveTypeParser) parameters(depth int, shape column.Shape, names ...string) (*column.Type, error) {
	n := &column.Type{Shape: shape}
	before := byte('<')
	for _, name := range names {
		if err := p.expect(before); err != nil {
			return nil, err
		}
		c, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		c.Name, before = name, ','
		n.Children = append(n.Children, c)
	}
	return n, p.expect('>')
}

// parseList reads what follows list: <T>, or <ID:SCORE>, the ids and scores of a weighted feature.
func (p *hiveTypeParser) parseList(depth int) (*column.Type, error) {
	if err := p.expect('<'); err != nil {
		return nil, err
	}
	id, err := p.parse(depth + 1)
	if err != nil || !p.accept(':') {
		return &column.Type{Shape: column.List, Children: []*column.Type{id}}, cmp.Or(err, p.expect('>'))
	}
	score, err := p.parse(depth + 1)
	if err != nil {
		return nil, err
	}
	id.Name, score.Name = "id", "score"
	pair := &column.Type{Shape: column.Struct, Children: []*column.Type{id, score}}
	return &column.Type{Shape: column.List, Children: []*column.Type{pair}}, p.expect('>')
}

// parseTimestamp reads what follows timestamp[: a unit, and that the values are instants.
func (p *hiveTypeParser) parseTimestamp() (*column.Type, error) {
	unit, zone := p.word(), ""
	if column.TimeUnits[unit] == 0 {
		return nil, fmt.Errorf("unit %q of a timestamp: want s, ms, us or ns", unit)
	}
	if p.accept(',') {
		if zone = ", tz=UTC"; !p.words("tz") || !p.accept('=') || !p.words("utc") {
			return nil, fmt.Errorf("want tz=UTC after the unit of a timestamp")
		}
	}
	n := &column.Type{Shape: column.Number, Elem: vector.Int64, Logical: "timestamp[" + unit + zone + "]"}
	return n, p.expect(']')
}

// brackets passes over what may follow the name of a type in ( ... ) and < ... >.
func (p *hiveTypeParser) brackets() error {
	for p.skip(); p.pos < len(p.s); p.skip() {
		var err error
		switch p.s[p.pos] {
		case '(':
			err = p.balanced('(', ')')
		case '<':
			err = p.balanced('<', '>')
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *hiveTypeParser) balanced(opens, closes byte) error {
	if err := p.expect(opens); err != nil {
		return err
	}
	for depth := 1; depth > 0; p.pos++ {
		if p.pos >= len(p.s) {
			return p.expect(closes)
		}
		switch p.s[p.pos] {
		case opens:
			depth++
		case closes:
			depth--
		}
	}
	return nil
}

func (p *hiveTypeParser) parseStruct(depth int) (*column.Type, error) {
	if err := p.expect('<'); err != nil {
		return nil, err
	}
	n := &column.Type{Shape: column.Struct}
	for {
		name := p.memberName()
		if name == "" {
			return nil, fmt.Errorf("want a name at offset %d", p.pos)
		}
		p.accept(':') // Spark can do without
		c, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		c.Name = name
		n.Children = append(n.Children, c)
		p.words("not", "null")
		if p.words("comment") {
			p.skip()
			_, end, ok := quotedText(p.s, p.pos)
			if !ok {
				return nil, fmt.Errorf("want a quoted text at offset %d", p.pos)
			}
			p.pos = end
		}
		if p.accept(',') {
			continue
		}
		return n, p.expect('>')
	}
}

// memberName returns the name of a struct's member. Hive prints it without backticks, whatever is in it.
func (p *hiveTypeParser) memberName() string {
	p.skip()
	rest := p.s[p.pos:]
	if i := strings.IndexAny(rest, ":,<>` \t\r\n"); i > 0 && rest[i] == ':' {
		p.pos += i
		return rest[:i]
	}
	return p.word()
}

func (p *hiveTypeParser) parseDecimal() (*column.Type, error) {
	precision, scale := 10, 0
	if p.accept('(') {
		var err error
		if precision, err = strconv.Atoi(p.word()); err != nil {
			return nil, fmt.Errorf("a decimal's precision is a number")
		}
		if p.accept(',') {
			if scale, err = strconv.Atoi(p.word()); err != nil {
				return nil, fmt.Errorf("a decimal's scale is a number")
			}
		}
		if err := p.expect(')'); err != nil {
			return nil, err
		}
	}
	return column.Decimal(precision, scale)
}
