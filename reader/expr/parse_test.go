package expr

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// TestParse shows the tree of each expression of testdata/parse, or the error and the place it points at.
func TestParse(t *testing.T) {
	datadriven.RunTest(t, "testdata/parse", func(t *testing.T, d *datadriven.TestData) string {
		e, err := Parse(d.Input)
		if err != nil {
			return report(err)
		}
		again, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%s: prints as %s, which does not parse: %v", d.Input, e, err)
		}
		if !equal(e, again) {
			t.Fatalf("%s: prints as %s, which parses to another tree", d.Input, e)
		}
		return fmt.Sprintf("%s\n%s\n", e, sketch(e))
	})
}

// report prints an error as a user sees it.
func report(err error) string {
	var place *Error
	if !errors.As(err, &place) {
		return fmt.Sprintf("error: %v\n", err)
	}
	return fmt.Sprintf("error: %v\n%s\n", err, place.Picture())
}

// sketch prints the shape of a tree with a name for each node, and no offsets.
func sketch(e any) string {
	v := reflect.Indirect(reflect.ValueOf(e))
	switch x := e.(type) {
	case *Name:
		return fmt.Sprintf("name:%q", x.Name)
	case *Sample:
		return fmt.Sprintf("sample(%v %s %d)", x.Fraction, sketch(x.Key), x.Seed)
	case *Literal:
		return [...]string{StringLiteral: "string:", NumberLiteral: "number:", BoolLiteral: "bool:"}[x.Kind] +
			x.String()
	}
	var parts []string
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Slice:
			for j := range f.Len() {
				parts = append(parts, sketch(f.Index(j).Interface()))
			}
		case f.Kind() == reflect.Pointer, f.Kind() == reflect.Interface:
			parts = append(parts, sketch(f.Interface()))
		case f.Kind() == reflect.Bool:
			if f.Bool() {
				parts = append(parts, strings.ToLower(v.Type().Field(i).Name))
			}
		default:
			parts = append(parts, fmt.Sprintf("%q", f.String()))
		}
	}
	return strings.ToLower(v.Type().Name()) + "(" + strings.Join(parts, " ") + ")"
}

// equal compares two trees, offsets left out.
func equal(a, b Expr) bool { return sketch(a) == sketch(b) }

func TestParseLimits(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"text", strings.Repeat(" ", MaxBytes) + "a", "bytes of text"},
		{"parentheses", strings.Repeat("(", 1<<19), "parentheses and NOTs inside one another"},
		{"nots", strings.Repeat("NOT ", 1<<17) + "a", "parentheses and NOTs inside one another"},
		{"parts", "a" + strings.Repeat(" OR a", MaxNodes), "more than 100000 parts"},
		{"operators", "a" + strings.Repeat(" + a", MaxOperators+1) + " > 0", "more than 1000 of +, -, * and /"},
		{"signs", strings.Repeat("- ", 1<<17) + "a", "want a number after -"},
		{"comments", strings.Repeat("-", 1<<17) + "a", "-- begins a comment"},
		{"operands", strings.Repeat("(", 1<<17) + "a" + strings.Repeat(")", 1<<17) + " > 0",
			"parentheses and NOTs inside one another"},
		{"values", "a IN (1" + strings.Repeat(",1", MaxNodes) + ")", "more than 100000 parts"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %.200v, want %q", err, test.want)
			}
			if len(err.Error()) > 300 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
		})
	}
	for _, text := range []string{"", " \n\t"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "the expression is empty") {
			t.Fatalf("%q: error %v", text, err)
		}
	}
	deep := strings.Repeat("(", MaxDepth) + "a" + strings.Repeat(")", MaxDepth)
	if _, err := Parse(deep); err != nil {
		t.Fatalf("depth %d: %v", MaxDepth, err)
	}
}

// drawExpr draws any expression that Parse can return.
func drawExpr(t *rapid.T, depth int) Expr {
	if depth > 0 {
		n := rapid.IntRange(2, 4)
		switch rapid.IntRange(0, 5).Draw(t, "connective") {
		case 0:
			e := &Or{}
			for range n.Draw(t, "terms") {
				e.Terms = append(e.Terms, drawExpr(t, depth-1))
			}
			return e
		case 1:
			e := &And{}
			for range n.Draw(t, "terms") {
				e.Terms = append(e.Terms, drawExpr(t, depth-1))
			}
			return e
		case 2:
			return &Not{drawExpr(t, depth-1)}
		}
	}
	negated := rapid.Bool().Draw(t, "negated")
	left := drawOperand(t, true)
	switch rapid.IntRange(0, 8).Draw(t, "predicate") {
	case 0:
		e := &In{X: left, Negated: negated}
		for range rapid.IntRange(1, 4).Draw(t, "values") {
			e.List = append(e.List, drawLiteral(t))
		}
		return e
	case 1:
		return &Between{left, negated, drawOperand(t, false), drawOperand(t, false)}
	case 2:
		pattern := rapid.StringOf(rapid.RuneFrom([]rune(`%_ab'"é `))).Draw(t, "pattern")
		return &Like{left, negated, pattern}
	case 3:
		return &IsNull{left, negated}
	case 4:
		return &Contains{drawName(t), drawLiteral(t)}
	case 5:
		return drawName(t)
	case 6:
		return &Literal{Kind: BoolLiteral, Bool: negated}
	case 7:
		return &RegexpMatches{left, rapid.SampledFrom([]string{"", "a|b", "it's", `^\d+$`}).Draw(t, "regexp")}
	}
	op := rapid.SampledFrom([]Op{Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual}).Draw(t, "op")
	return &Compare{left, op, drawOperand(t, false)}
}

// drawArithmetic draws what is computed from a name, at least, and other numbers.
func drawArithmetic(t *rapid.T, depth int) Operand {
	named := func() Operand {
		switch rapid.IntRange(0, 2).Draw(t, "number") {
		case 0:
			if depth > 0 {
				return drawArithmetic(t, depth-1)
			}
			fallthrough
		case 1:
			return &Len{drawName(t)}
		}
		return drawName(t)
	}
	e := &Arithmetic{named(), rapid.SampledFrom([]ArithmeticOp{Plus, Minus, Times, Divide}).Draw(t, "operator"),
		named()}
	l := drawLiteral(t)
	switch {
	case l.Kind != NumberLiteral:
	case rapid.Bool().Draw(t, "constant on the left"):
		e.Left = l
	default:
		e.Right = l
	}
	return e
}

func drawOperand(t *rapid.T, left bool) Operand {
	switch rapid.IntRange(0, 4).Draw(t, "operand") {
	case 4:
		return drawArithmetic(t, 3)
	case 0:
		return drawName(t)
	case 1:
		return &Len{drawName(t)}
	case 2:
		if left {
			return &Quantified{rapid.Bool().Draw(t, "all"), drawName(t)}
		}
	}
	return drawLiteral(t)
}

func drawName(t *rapid.T) *Name {
	return &Name{Name: rapid.OneOf(
		rapid.StringMatching(`[a-z_][a-z0-9_]{0,5}(\.[a-z0-9_]{1,3}){0,2}`),
		rapid.SampledFrom([]string{"in", "Null", "len", "contains", "any", "all", "a.b", "a..b", "a.-5",
			"1a", "a b", `a"b`, "a`b", "é", "a'"}),
		rapid.StringN(1, 6, -1),
	).Draw(t, "name")}
}

func drawLiteral(t *rapid.T) *Literal {
	switch rapid.IntRange(0, 3).Draw(t, "literal") {
	case 0:
		return &Literal{Kind: BoolLiteral, Bool: rapid.Bool().Draw(t, "bool")}
	case 1:
		n := Number{Integer: true, Abs: rapid.Uint64().Draw(t, "abs")}
		n.Negative = n.Abs != 0 && n.Abs <= 1<<63 && rapid.Bool().Draw(t, "negative")
		return &Literal{Kind: NumberLiteral, Number: n}
	case 2:
		return &Literal{Kind: NumberLiteral, Number: Number{Float: rapid.Float64().Draw(t, "float")}}
	}
	return &Literal{Kind: StringLiteral, Text: rapid.String().Draw(t, "text")}
}

// TestPrintParse holds every tree to what String promises: it parses back to an equal tree.
func TestPrintParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpr(t, 4)
		again, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		if !equal(e, again) {
			t.Fatalf("printed %s, parsed %s:\n%s\n%s", e, again, sketch(e), sketch(again))
		}
	})
}

// FuzzParse holds Parse to: no panic; an error has a place inside the text; what parses prints to what parses
// to the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"click = 1 AND country IN ('US','CA') AND dwell > 3.5",
		"not (a.b is not null or `x y` between -1 and +2e9) and \"q\"\"q\" not like '%\\_''%'",
		"contains(hist, 17) or any(ids) >= 5 or all(ids) in (1,2) or len(ids) <> 0 or true",
		"ds == '2026-11-01", "a = 99999999999999999999", "((((", "a\n=\n=", "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			var place *Error
			if errors.As(err, &place) {
				if place.Offset < 0 || place.Offset > len(text) {
					t.Fatalf("offset %d of a text of %d bytes", place.Offset, len(text))
				}
				if lines := strings.Count(place.Picture(), "\n"); lines != 1 {
					t.Fatalf("picture of %d lines: %q", lines+1, place.Picture())
				}
			}
			return
		}
		again, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%q printed as %q: %v", text, e, err)
		}
		if !equal(e, again) {
			t.Fatalf("%q: %s and %s", text, sketch(e), sketch(again))
		}
		if _, err := ParsePartition(text, []string{"ds", "hr", "a"}); err != nil &&
			strings.Contains(err.Error(), "\n") {
			t.Fatalf("error of several lines: %q", err)
		}
	})
}

// TestOperatorsAreDocumented: the guide names every condition and function.
func TestOperatorsAreDocumented(t *testing.T) {
	guide, err := os.ReadFile("../../docs/reference/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conditions {
		if !strings.Contains(string(guide), c.keyword) {
			t.Errorf("docs/reference/expressions.md says nothing of %s", c.keyword)
		}
	}
	for _, f := range functions {
		if !strings.Contains(string(guide), f.name+"(") {
			t.Errorf("docs/reference/expressions.md says nothing of %s(...)", f.name)
		}
	}
}
