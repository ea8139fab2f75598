package source

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// hivePrimitives maps the names of Hive's types to nodes. varchar and char take a length, decimal precision and scale.
var hivePrimitives = map[string]node{
	"boolean":          {shape: shapeNumber, elem: vector.Bool},
	"tinyint":          {shape: shapeNumber, elem: vector.Int8},
	"smallint":         {shape: shapeNumber, elem: vector.Int16},
	"int":              {shape: shapeNumber, elem: vector.Int32},
	"integer":          {shape: shapeNumber, elem: vector.Int32},
	"bigint":           {shape: shapeNumber, elem: vector.Int64},
	"float":            {shape: shapeNumber, elem: vector.Float32},
	"real":             {shape: shapeNumber, elem: vector.Float32},
	"double":           {shape: shapeNumber, elem: vector.Float64},
	"double precision": {shape: shapeNumber, elem: vector.Float64},
	"string":           {shape: shapeString},
	"varchar":          {shape: shapeString},
	"char":             {shape: shapeString},
	"binary":           {shape: shapeBytes},
	"date":             {shape: shapeNumber, elem: vector.Int32, logical: "date32"},
	"timestamp":        {shape: shapeNumber, elem: vector.Int64, logical: "timestamp[ns]"},
}

// parseHiveType reads a type as Hive spells it: "array<map<string, bigint>>", "decimal(10,2)", ...
func parseHiveType(s string, maxDepth int) (*node, error) {
	p := &hiveTypeParser{s: s, maxDepth: maxDepth}
	n, err := p.parse(1)
	if err != nil {
		return nil, fmt.Errorf("type %q: %w", s, err)
	}
	if p.skip(); p.pos != len(p.s) {
		return nil, fmt.Errorf("type %q: %q after its end", s, p.s[p.pos:])
	}
	return n, nil
}

type hiveTypeParser struct {
	s        string
	pos      int
	maxDepth int
}

func (p *hiveTypeParser) skip() {
	for p.pos < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *hiveTypeParser) word() string {
	p.skip()
	start := p.pos
	if p.pos < len(p.s) && p.s[p.pos] == '`' {
		if end := strings.IndexByte(p.s[p.pos+1:], '`'); end >= 0 {
			w := p.s[p.pos+1 : p.pos+1+end]
			p.pos += end + 2
			return w
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

func (p *hiveTypeParser) parse(depth int) (*node, error) {
	if depth > p.maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", p.maxDepth)
	}
	w := strings.ToLower(p.word())
	if w == "double" {
		at := p.pos
		if strings.EqualFold(p.word(), "precision") {
			w = "double precision"
		} else {
			p.pos = at
		}
	}
	switch w {
	case "array":
		if err := p.expect('<'); err != nil {
			return nil, err
		}
		c, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		return &node{nullable: true, shape: shapeList, children: []*node{c}}, p.expect('>')
	case "map":
		if err := p.expect('<'); err != nil {
			return nil, err
		}
		k, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		if err := p.expect(','); err != nil {
			return nil, err
		}
		v, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		k.name, v.name = "key", "value"
		return &node{nullable: true, shape: shapeMap, children: []*node{k, v}}, p.expect('>')
	case "struct":
		return p.parseStruct(depth)
	case "uniontype":
		return nil, fmt.Errorf("a union has no place in a table")
	case "decimal", "numeric", "dec":
		return p.parseDecimal()
	}
	n, ok := hivePrimitives[w]
	if !ok {
		return nil, fmt.Errorf("unknown type%s", didYouMean(w, sortedKeys(hivePrimitives)))
	}
	if (w == "varchar" || w == "char") && p.accept('(') {
		p.word()
		if err := p.expect(')'); err != nil {
			return nil, err
		}
	}
	n.nullable = true
	return &n, nil
}

func (p *hiveTypeParser) parseStruct(depth int) (*node, error) {
	if err := p.expect('<'); err != nil {
		return nil, err
	}
	n := &node{nullable: true, shape: shapeStruct}
	for {
		name := p.word()
		if name == "" {
			return nil, fmt.Errorf("want a name at offset %d", p.pos)
		}
		if err := p.expect(':'); err != nil {
			return nil, err
		}
		c, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		c.name = name
		n.children = append(n.children, c)
		if p.accept(',') {
			continue
		}
		return n, p.expect('>')
	}
}

func (p *hiveTypeParser) parseDecimal() (*node, error) {
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
	n, err := decimalNode(precision, scale)
	if err == nil {
		n.nullable = true
	}
	return n, err
}

// decimalNode returns the node of a decimal: unscaled in an int64 up to 18 digits, else in 16 or 32 bytes.
func decimalNode(precision, scale int) (*node, error) {
	if precision < 1 || precision > 76 || scale > precision || scale < -76 {
		return nil, fmt.Errorf("decimal(%d, %d): want a precision of 1 to 76 and a scale up to it", precision, scale)
	}
	n := &node{shape: shapeNumber, elem: vector.Int64, logical: fmt.Sprintf("decimal(%d, %d)", precision, scale)}
	if precision > 18 {
		n.shape, n.elem = shapeBytes, vector.NoElem
	}
	return n, nil
}

// decimalWidth is how many bytes hold a decimal of more than 18 digits.
func decimalWidth(precision int) int {
	if precision <= 38 {
		return 16
	}
	return 32
}
