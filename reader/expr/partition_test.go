package expr

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/dsistore/dsistore/storage/catalog"
	"pgregory.net/rapid"
)

// TestPartition evaluates the expressions of testdata/partition over the partitions that "table" lists, one a line as
// key=value/key=value, NULL for null, and prints those selected.
func TestPartition(t *testing.T) {
	var partitions []catalog.Partition
	var keys []string
	datadriven.RunTest(t, "testdata/partition", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "table" {
			partitions, keys = nil, nil
			for _, line := range strings.Split(d.Input, "\n") {
				var p catalog.Partition
				for _, kv := range strings.Split(line, "/") {
					k, v, _ := strings.Cut(kv, "=")
					p = append(p, catalog.PartitionValue{Key: k, Value: v, Null: v == "NULL"})
					if len(partitions) == 0 {
						keys = append(keys, k)
					}
				}
				partitions = append(partitions, p)
			}
			return ""
		}
		match, err := ParsePartition(d.Input, keys)
		if err != nil {
			return report(err)
		}
		var out []string
		for i, line := range partitionLines(partitions) {
			if match(partitions[i]) {
				out = append(out, line)
			}
		}
		if len(out) == 0 {
			return "none\n"
		}
		return strings.Join(out, "\n") + "\n"
	})
}

func partitionLines(partitions []catalog.Partition) []string {
	var lines []string
	for _, p := range partitions {
		var kvs []string
		for _, v := range p {
			kvs = append(kvs, v.Key+"="+v.Value)
		}
		lines = append(lines, strings.Join(kvs, "/"))
	}
	return lines
}

func TestPartitionWithoutKeys(t *testing.T) {
	_, err := ParsePartition("ds = '1'", nil)
	if err == nil || !strings.Contains(err.Error(), "the table has no partitions") {
		t.Fatalf("error %v", err)
	}
	match, err := ParsePartition("TRUE", nil)
	if err != nil || !match(nil) {
		t.Fatalf("TRUE selects nothing (%v)", err)
	}
	_, err = ParsePartition("dt = '1'", []string{"ds"})
	if want := `expression, column 1: unknown partition key "dt"; did you mean "ds"?`; err == nil ||
		err.Error() != want {
		t.Fatalf("error %v, want %s", err, want)
	}
}

// TestLike holds the matcher to a regular expression made from the same pattern.
func TestLike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := []rune("ab%_é")
		text := rapid.StringOf(rapid.RuneFrom([]rune("abé%"))).Draw(t, "text")
		like := rapid.StringOf(rapid.RuneFrom(alphabet)).Draw(t, "pattern")
		var re strings.Builder
		re.WriteString(`(?s)\A`)
		for _, r := range like {
			switch r {
			case '%':
				re.WriteString(".*")
			case '_':
				re.WriteString(".")
			default:
				re.WriteString(regexp.QuoteMeta(string(r)))
			}
		}
		re.WriteString(`\z`)
		want := regexp.MustCompile(re.String()).MatchString(text)
		if got := parsePattern(like).matches(text); got != want {
			t.Fatalf("%q LIKE %q is %v, want %v", text, like, got, want)
		}
	})
}

// TestLikeUntrusted shows that a pattern made to backtrack ends.
func TestLikeUntrusted(t *testing.T) {
	p := parsePattern(strings.Repeat("%a", 1000) + "b")
	if p.matches(strings.Repeat("a", 100_000)) {
		t.Fatal("matches")
	}
	if !parsePattern("_%").matches("\xff\xfe") || parsePattern("\uFFFD").matches("\xff") {
		t.Fatal("a byte that is not UTF-8 is one character, and no other")
	}
}

// TestCompareNumbers holds comparisons to exact arithmetic.
func TestCompareNumbers(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) Number {
		if rapid.Bool().Draw(t, "integer") {
			n := Number{Integer: true, Abs: rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3),
				rapid.Uint64Range(1<<53-2, 1<<53+2)).Draw(t, "abs")}
			n.Negative = n.Abs > 0 && rapid.Bool().Draw(t, "negative")
			return n
		}
		return Number{Float: rapid.OneOf(rapid.Float64(), rapid.Float64Range(-3, 3),
			rapid.SampledFrom([]float64{0, 1 << 53, 1 << 63, -(1 << 63), 1 << 64, -(1 << 64), 1e300})).Draw(t, "float")}
	})
	exact := func(n Number) *big.Rat {
		if !n.Integer {
			return new(big.Rat).SetFloat64(n.Float)
		}
		i := new(big.Int).SetUint64(n.Abs)
		if n.Negative {
			i.Neg(i)
		}
		return new(big.Rat).SetInt(i)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		if got, want := compareNumbers(&a, &b), exact(a).Cmp(exact(b)); got != want {
			t.Fatalf("order of %v and %v is %d, want %d", a, b, got, want)
		}
	})
}

// TestCompareWritten holds comparisons of numbers as they are written to exact arithmetic.
func TestCompareWritten(t *testing.T) {
	written := rapid.Custom(func(t *rapid.T) string {
		return rapid.OneOf(
			rapid.StringMatching(`-?(0|[0-9]{1,25}\.[0-9]{0,25}|\.[0-9]{1,3})(e[+-]?[0-9])?`),
			rapid.StringMatching(`-?[0-9]{1,18}`),
			rapid.SampledFrom([]string{"0.1", "0.10", "1e-1", "9007199254740993.0", "9007199254740993",
				"9007199254740992", "-0.0", "0", "10.0", "1e1", "1e+1"}),
		).Draw(t, "number")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := written.Draw(t, "a"), written.Draw(t, "b")
		if strings.Contains(a, ".") && !strings.Contains(a, "e") && rapid.Bool().Draw(t, "close") {
			b = a + rapid.StringMatching(`[0-9]{0,3}`).Draw(t, "more digits") // or the same number, in another way
		}
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		m, okM := readNumber(a)
		n, okN := readNumber(b)
		if !okX || !okY || !okM || !okN {
			t.Fatalf("%s or %s is no number", a, b)
		}
		if got, want := compareNumbers(&m, &n), x.Cmp(y); got != want {
			t.Fatalf("order of %s and %s is %d, want %d", a, b, got, want)
		}
		if r := parseDecimal(a).rat(); r.Cmp(x) != 0 {
			t.Fatalf("%s is %s", a, r)
		}
	})
}
