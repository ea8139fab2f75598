package transform

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/reader/expr"
)

func mustChain(t interface{ Fatalf(string, ...any) }, text string) Chain {
	c, err := ParseChain(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func TestParseChain(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"first(50)", ""},
		{" first ( 50 )|mod(1000000) ", "first(50) | mod(1000000)"},
		{"mod(1e6)", "mod(1000000)"},
		{"mod(18446744073709551615)", ""},
		{"hash(1000000)", ""},
		{"hash(1000000, seed=7)", ""},
		{"hash(seed = 7, 1000000)", "hash(1000000, seed=7)"},
		{"hash(10, seed=18446744073709551615)", ""},
		{"hash(10, seed=0)", "hash(10)"},
		{"sigrid_hash(100, salt=5)", ""},
		{"sigrid_hash(100, salt=-5)", ""},
		{"clamp(0, 10)", ""},
		{"clamp(-inf, 0.5)", ""},
		{"clamp(+1.50, INF)", "clamp(1.5, inf)"},
		{"scores.clamp(0, 1) | scores.log1p | scores.cast(float64)", ""},
		{"log1p", ""},
		{"log1p()", "log1p"},
		{"bucketize(1, 5.0, 10)", "bucketize(1, 5, 10)"},
		{"bucketize(-inf, -0.25, 1e300, inf)", "bucketize(-inf, -0.25, 1e+300, inf)"},
		{"cast(float32)", ""},
		{"cast( uint8 )|list", "cast(uint8) | list"},
		{"fill", ""},
		{"fill()", "fill"},
		{"fill(0)", ""},
		{"fill(-0.0)", ""},
		{"fill(-0)", "fill(0)"},
		{"fill(nan)", ""},
		{"fill(1, 2, 3)", ""},
		{"fill(9223372036854775808)", ""},
		{"fill(1e18)", "fill(1000000000000000000)"},
	} {
		want := c.want
		if want == "" {
			want = c.text
		}
		if got := mustChain(t, c.text).String(); got != want {
			t.Errorf("%s: %s, want %s", c.text, got, want)
		}
	}
}

func TestParseChainErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, "want a transform: first, mod"},
		{"first(5) |", 10, "want a transform"},
		{"first(5) mod(3)", 9, `found "mod": want |`},
		{"frist(5)", 0, `did you mean "first" or "list"?`},
		{"log1p | clip(0, 1)", 8, `here it is called "clamp"`},
		{"firstx(5)", 0, `here it is called "first"`},
		{"frobnicate", 0, "want first, mod"},
		{"scores.frist(5)", 7, `did you mean "first" or "list"?`},
		{"scores.first(5)", 7, "scores have clamp, log1p and cast only"},
		{"first", 0, "first needs more: want first(20)"},
		{"first()", 0, "0 values: want 1"},
		{"first(0)", 6, "want an integer from 1 on"},
		{"first(2.5)", 6, "want an integer from 1 on"},
		{"first(-1)", 6, "want an integer from 1 on"},
		{"first(5, 6)", 9, "a second number"},
		{"first(4294967296)", 0, "want 1 to"},
		{"mod(x)", 4, `"x" is no number: want mod(1000000)`},
		{"mod(5", 5, "found the end: want , or )"},
		{"mod(,)", 4, `found ",": want mod`},
		{"hash(9223372036854775809)", 0, "at most 2^63"},
		{"hash(10, sede=1)", 9, `unknown name "sede"`},
		{"hash(10, seed=-1)", 14, "seed is no integer"},
		{"hash(10, seed=1.5)", 14, "seed is no integer"},
		{"hash(10, seed=1, seed=2)", 17, "a second seed"},
		{"clamp(1)", 0, "1 bounds: want 2"},
		{"clamp(3, 1)", 0, "the lower one first"},
		{"clamp(0, nan)", 0, "two numbers"},
		{"clamp(0, 1, 2)", 12, "a third bound"},
		{"log1p(1)", 6, "log1p takes nothing"},
		{"bucketize(1, 1)", 13, "ascending"},
		{"bucketize(nan)", 10, "ascending"},
		{"bucketize(9007199254740993, 9007199254740992)", 28, "ascending"},
		{"cast(flaot32)", 5, `did you mean "float32"`},
		{"cast(int8, int16)", 11, "a second type"},
		{"cast", 0, "cast needs more"},
		{"fill(0x10)", 5, "is no number"},
		{"fill(1_000)", 5, "is no number"},
		{"fill(--1)", 5, "is no number"},
		{"fill(infinity)", 5, "is no number"},
		{"fill(-nan)", 5, "is no number"},
		{"fill(1e999)", 5, "is no number"},
		{"fill(" + strings.Repeat("1,", MaxFillValues) + "1)", 5 + 2*MaxFillValues, "more than 64 values"},
		{strings.Repeat("log1p|", MaxTransforms) + "log1p", 6 * MaxTransforms, "more than 32 transforms"},
		{"first(5)\xff", 8, "want |"},
	} {
		_, err := ParseChain(c.text)
		var at *expr.Error
		if !errors.As(err, &at) || at.Offset != c.offset || !strings.Contains(at.Reason, c.want) {
			t.Errorf("%s: %v at %d, want %q at %d", c.text, err, at.Offset, c.want, c.offset)
		}
	}
}

// Equal numbers are one Number, and its text is read as it.
func TestNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(
			rapid.Map(rapid.Int64(), Int), rapid.Map(rapid.Uint64(), Uint), rapid.Map(rapid.Float64(), Float),
			rapid.SampledFrom([]Number{
				Float(math.NaN()), Float(math.Inf(1)), Float(math.Inf(-1)), Float(1 << 63), Float(1 << 64),
				Float(-1 << 63),
				Float(math.Copysign(0, -1)), Float(math.MaxFloat64), Float(5e-324),
			}),
		).Draw(t, "n")
		back, ok := parseNumber(n.String())
		if !ok || back != n || !n.valid() {
			t.Fatalf("%v became %v, %v", n, back, ok)
		}
	})
	for _, c := range []struct {
		a, b Number
		less bool
	}{
		{Uint(math.MaxUint64), Float(1 << 64), true},
		{Float(1 << 64), Uint(math.MaxUint64), false},
		{Int(math.MinInt64), Float(-1 << 63), false},
		{Float(-1e19), Int(math.MinInt64), true},
		{Int(-1), Uint(1 << 63), true},
		{Uint(1 << 63), Int(-1), false},
		{Int(1<<53 + 1), Int(1<<53 + 2), true},
		{Int(3), Float(3.5), true},
		{Float(math.Copysign(0, -1)), Int(0), false},
		{Int(0), Float(math.Copysign(0, -1)), false},
		{Float(math.Inf(-1)), Int(math.MinInt64), true},
	} {
		if c.a.less(c.b) != c.less {
			t.Errorf("%v < %v is %v", c.a, c.b, !c.less)
		}
	}
}

func TestParseTransformRule(t *testing.T) {
	for _, c := range []struct{ text, features, chain, want string }{
		{"user_*=first(20)|mod(1000003)", "user_*", "first(20) | mod(1000003)", ""},
		{"a=hash(10, seed=7)", "a", "hash(10, seed=7)", ""},
		{`a\=b=log1p`, `a\=b`, "log1p", ""},
		{"a", "", "", "want FEATURES=TRANSFORMS"},
		{"=log1p", "", "", "no feature before"},
		{`a\`, "", "", "want FEATURES=TRANSFORMS"},
	} {
		r, err := ParseRule(c.text)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.text, err, c.want)
			}
			continue
		}
		if err != nil || r.Features != c.features || r.Chain.String() != c.chain {
			t.Errorf("%s: %+v, %v", c.text, r, err)
		}
	}
	_, err := ParseRule("user=first(5)|frist(3)")
	var at *expr.Error
	if !errors.As(err, &at) || at.Offset != 14 || at.Text != "user=first(5)|frist(3)" {
		t.Errorf("%v", err)
	}
}

// Whatever is read is valid and is written as text that is read as the same.
func FuzzParseChain(f *testing.F) {
	for _, text := range []string{
		"first(50) | mod(1000000)", "hash(10, seed=7)", "sigrid_hash(10, salt=-1)",
		"scores.clamp(-inf, 0.5)|scores.cast(float64)",
		"bucketize(1, 5.5, 1e300)", "fill(nan, -0.0, 18446744073709551615)", "cast(uint8)|list|fill", "log1p()",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChain(text)
		if err != nil {
			var at *expr.Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(text) || at.Reason == "" {
				t.Fatalf("%q: %v", text, err)
			}
			_ = at.Picture()
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := ParseChain(c.String())
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("%q is written %q: %v", text, c, err)
		}
	})
}
