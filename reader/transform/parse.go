package transform

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/reader/expr"
)

// The text form of transforms:
//
//	chain = call { "|" call }
//	call  = [ "scores." ] name [ "(" [ item { "," item } ] ")" ]
//	item  = number | element type | name "=" number
//
// as in first(50) | hash(1000000, seed=7). White space is free between the parts.

// ParseChain parses transforms. Errors are *expr.Error, which has the offset in text.
func ParseChain(text string) (Chain, error) {
	p := &chainParser{text: text}
	var out Chain
	for {
		at := p.skip()
		t, err := p.call()
		if err != nil {
			return nil, err
		}
		if len(out) == MaxTransforms {
			return nil, p.fail(at, "more than %d transforms", MaxTransforms)
		}
		out = append(out, t)
		at = p.skip()
		if at == len(text) {
			return out, nil
		}
		if !p.symbol('|') {
			return nil, p.fail(at, "found %s: want | and another transform, or the end", p.found())
		}
	}
}

// A chainParser parses text from position at on.
type chainParser struct {
	text string
	at   int
}

func (p *chainParser) fail(at int, reason string, args ...any) error {
	return &expr.Error{Text: p.text, Offset: at, Reason: fmt.Sprintf(reason, args...)}
}

// skip skips white space and returns the position.
func (p *chainParser) skip() int {
	for p.at < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.at:])
		if !unicode.IsSpace(r) {
			break
		}
		p.at += n
	}
	return p.at
}

// symbol skips c if it is next, and reports whether it was.
func (p *chainParser) symbol(c byte) bool {
	if p.skip() < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// word skips and returns letters, digits and the other characters of numbers.
func (p *chainParser) word() string {
	start := p.skip()
	for p.at < len(p.text) {
		c := p.text[p.at]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || c == '+' ||
			c == '-') {
			break
		}
		p.at++
	}
	return p.text[start:p.at]
}

// found describes what is next.
func (p *chainParser) found() string {
	start := p.skip()
	if start == len(p.text) {
		return "the end"
	}
	w := p.word()
	p.at = start
	if w == "" {
		r, _ := utf8.DecodeRuneInString(p.text[start:])
		w = string(r)
	}
	return quoteShort(w)
}

// quoteShort quotes text to a readable length.
func quoteShort(s string) string {
	const longest = 40
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}

// foreignNames are names of our functions in other libraries.
var foreignNames = map[string]Op{
	"firstx": First, "list_slice": First, "slice": First, "truncate": First,
	"remainder": Mod, "pmod": Mod, "modulo": Mod,
	"hash_bucket": Hash, "hashbucket": Hash, "xxhash64": Hash,
	"clip": Clamp, "clamp_list": Clamp, "log": Log1p, "logop": Log1p,
	"bucketise": Bucketize, "bucketizer": Bucketize, "digitize": Bucketize,
	"fill_null": Fill, "fillna": Fill, "fill_missing": Fill, "fillmissing": Fill, "coalesce": Fill,
}

func (p *chainParser) call() (Transform, error) {
	at := p.skip()
	word := p.word()
	if word == "" {
		return Transform{}, p.fail(at, "found %s: want a transform: %s", p.found(), functionNames())
	}
	var t Transform
	name, scores := strings.CutPrefix(word, scoresPrefix)
	t.Scores = scores
	if scores {
		at += len(scoresPrefix)
	}
	var f *function
	for op := range functions {
		if functions[op].name == name && op > 0 {
			t.Op, f = Op(op), &functions[op]
		}
	}
	if f == nil {
		hint := suggest.Hint(name, strings.Split(functionNames(), ", "))
		if op, ok := foreignNames[strings.ToLower(name)]; ok {
			hint = fmt.Sprintf("; here it is called %q", op)
		}
		if hint == "" {
			hint = ": want " + functionNames()
		}
		return t, p.fail(at, "unknown transform %s%s", quoteShort(name), hint)
	}
	if p.symbol('(') && !p.symbol(')') {
		for {
			if err := p.item(&t, f); err != nil {
				return t, err
			}
			if p.symbol(')') {
				break
			}
			if here := p.skip(); !p.symbol(',') {
				return t, p.fail(here, "found %s: want , or )", p.found())
			}
		}
	}
	if err := t.Validate(); err != nil {
		if missing := t.N == 0 && len(t.Values) == 0 && t.Elem == vector.NoElem; missing && p.text[p.at-1] != ')' {
			return t, p.fail(at, "%s needs more: want %s", f.name, f.usage)
		}
		return t, p.fail(at, "%v", err)
	}
	return t, nil
}

// functionNames lists the transforms.
func functionNames() string {
	var names []string
	for _, f := range functions[1:] {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// item reads one item between parentheses into t.
func (p *chainParser) item(t *Transform, f *function) error {
	at := p.skip()
	word := p.word()
	if word == "" {
		return p.fail(at, "found %s: want %s", p.found(), f.usage)
	}
	if f.seed != "" && p.symbol('=') {
		if word != f.seed {
			return p.fail(at, "unknown name %s: want %s", quoteShort(word), f.usage)
		}
		if t.Seed != 0 {
			return p.fail(at, "a second %s", f.seed)
		}
		at = p.skip()
		n, ok := parseNumber(p.word())
		if !ok || n.kind == floatNumber || t.Op == Hash && n.kind == signedNumber && int64(n.bits) < 0 ||
			t.Op == SigridHash && n.kind == unsignedNumber {
			return p.fail(at, "%s is no integer that fits in 64 bits", f.seed)
		}
		t.Seed = n.bits
		return nil
	}
	if f.takes == elemParameter {
		e, err := vector.ParseElem(word)
		switch {
		case err != nil:
			return p.fail(at, "%v%s", err, suggest.Hint(word, elemNames()))
		case t.Elem != vector.NoElem:
			return p.fail(at, "a second type: want %s", f.usage)
		}
		t.Elem = e
		return nil
	}
	n, ok := parseNumber(word)
	if !ok {
		return p.fail(at, "%s is no number: want %s", quoteShort(word), f.usage)
	}
	switch f.takes {
	case noParameter:
		return p.fail(at, "%s takes nothing", f.name)
	case countParameter, rangeParameter:
		if n.kind == floatNumber || n.kind == signedNumber && int64(n.bits) < 1 {
			return p.fail(at, "%v: want an integer from 1 on", n)
		}
		if t.N != 0 {
			return p.fail(at, "a second number: want %s", f.usage)
		}
		t.N = n.bits
		return nil
	case boundsParameter:
		if len(t.Values) == 2 {
			return p.fail(at, "a third bound: want %s", f.usage)
		}
	case fillParameter:
		if len(t.Values) == MaxFillValues {
			return p.fail(at, "more than %d values", MaxFillValues)
		}
	case bordersParameter:
		if len(t.Values) == MaxBorders {
			return p.fail(at, "more than %d borders", MaxBorders)
		}
		if k := len(t.Values); n.isNaN() || k > 0 && !t.Values[k-1].less(n) {
			return p.fail(at, "border %v: want ascending numbers", n)
		}
	}
	t.Values = append(t.Values, n)
	return nil
}

func elemNames() []string {
	var out []string
	for e := vector.Bool; e <= vector.Float64; e++ {
		out = append(out, e.String())
	}
	return out
}

// A Rule chooses the transforms of features.
type Rule struct {
	// Features is a name, a glob or a set, as in PlanOptions.Features, of features that the plan reads.
	Features string
	Chain    Chain
}

// ParseRule parses FEATURES=CHAIN, for example user_*=first(20)|mod(1000003). FEATURES ends at the first = without a \
// before it.
func ParseRule(text string) (Rule, error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '=':
			if i == 0 {
				return Rule{}, errors.New("no feature before the =")
			}
			chain, err := ParseChain(text[i+1:])
			if err != nil {
				var at *expr.Error
				if errors.As(err, &at) { // make the offset one in the whole text
					err = &expr.Error{Text: text, Offset: at.Offset + i + 1, Reason: at.Reason}
				}
				return Rule{}, err
			}
			return Rule{Features: text[:i], Chain: chain}, nil
		}
	}
	return Rule{}, fmt.Errorf("%s: want FEATURES=TRANSFORMS, as in user_*=first(20)|mod(1000003)", quoteShort(text))
}
