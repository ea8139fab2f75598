package expr

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// A Number is an integer of 64 bits or a float64; integers are exact.
type Number struct {
	// Integer: the number is -Abs or Abs; else it is Float, which is finite.
	Integer  bool
	Negative bool // Integer only; false when Abs is 0
	Abs      uint64
	Float    float64
	// Text, of a number that was written with a point or an exponent, is that number, and Float the float64
	// next to it: floats are compared with Float, integers and decimals with Text. It is Float's shortest form
	// where that is the same number. Empty: the number is Float itself.
	Text string
}

// parseNumber reads an unsigned number and gives it the sign.
func parseNumber(text string, negative bool) (Number, error) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return Number{}, fmt.Errorf("number %s is beyond what a float64 holds", shorten(text))
		}
		if negative {
			f, text = -f, "-"+text
		}
		n := Number{Float: f}
		if short := n.String(); parseDecimal(short) == parseDecimal(text) {
			text = short
		}
		n.Text = text
		return n, nil
	}
	abs, err := strconv.ParseUint(text, 10, 64)
	if err != nil || negative && abs > 1<<63 {
		sign := ""
		if negative {
			sign = "-"
		}
		return Number{}, fmt.Errorf("integer %s%s is beyond 64 bits", sign, shorten(text))
	}
	return Number{Integer: true, Negative: negative && abs > 0, Abs: abs}, nil
}

// readNumber reads text that is a number as a whole: a sign, digits, a fraction, an exponent.
func readNumber(text string) (Number, bool) {
	unsigned := strings.TrimLeft(text, "+-")
	if len(text)-len(unsigned) > 1 || unsigned == "" || strings.Trim(unsigned, "0123456789.eE+-") != "" {
		return Number{}, false
	}
	if n, err := parseNumber(unsigned, text[0] == '-'); err == nil {
		return n, true
	}
	// An integer beyond 64 bits is compared as a float.
	f, err := strconv.ParseFloat(text, 64)
	return Number{Float: f}, err == nil && !math.IsInf(f, 0)
}

// String prints n so that it parses to the same kind of number: a float keeps a point or an exponent.
func (n Number) String() string {
	if n.Integer {
		s := strconv.FormatUint(n.Abs, 10)
		if n.Negative {
			s = "-" + s
		}
		return s
	}
	if n.Text != "" {
		return n.Text
	}
	s := strconv.FormatFloat(n.Float, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// float returns the float64 next to n.
func (n Number) float() float64 {
	switch {
	case !n.Integer:
		return n.Float
	case n.Negative:
		return -float64(n.Abs)
	}
	return float64(n.Abs)
}

// stored returns an integer as columns hold it; false: it is beyond an int64, or an uint64.
func (n Number) stored(unsigned bool) (int64, bool) {
	switch {
	case unsigned:
		return int64(n.Abs), !n.Negative
	case n.Negative:
		return -int64(n.Abs), n.Abs <= 1<<63
	}
	return int64(n.Abs), n.Abs <= math.MaxInt64
}

// rat returns n as it is written: 0.1, not the nearest float64. It may return another number that compares with all
// integers and decimals as n does: see decimal.rat.
func (n Number) rat() *big.Rat {
	if !n.Integer {
		return parseDecimal(n.String()).rat()
	}
	i := new(big.Int).SetUint64(n.Abs)
	if n.Negative {
		i.Neg(i)
	}
	return new(big.Rat).SetInt(i)
}

// compareNumbers returns the order of a and b, exactly, also between an integer and a float.
func compareNumbers(a, b *Number) int {
	switch {
	case a.Float != a.Float || b.Float != b.Float:
		return noOrder
	case a.Text != "" && (b.Text != "" || b.Integer), a.Integer && b.Text != "":
		return parseDecimal(a.String()).compare(parseDecimal(b.String()))
	case a.Integer && b.Integer:
		return compareIntegers(a, b)
	case a.Integer:
		return compareIntegerFloat(a, b.Float)
	case b.Integer:
		return -compareIntegerFloat(b, a.Float)
	}
	return order(a.Float < b.Float, a.Float > b.Float)
}

func compareIntegers(a, b *Number) int {
	switch {
	case a.Negative != b.Negative:
		return order(a.Negative, b.Negative)
	case a.Negative:
		return order(a.Abs > b.Abs, a.Abs < b.Abs)
	}
	return order(a.Abs < b.Abs, a.Abs > b.Abs)
}

// compareIntegerFloat splits f into its whole part, which a 64-bit integer holds when it is within range, and the rest.
func compareIntegerFloat(n *Number, f float64) int {
	const beyond = 1 << 64
	if f >= beyond {
		return -1
	}
	if f <= -beyond {
		return 1
	}
	whole, fraction := math.Modf(f)
	w := Number{Integer: true, Negative: whole < 0, Abs: uint64(math.Abs(whole))}
	if c := compareIntegers(n, &w); c != 0 {
		return c
	}
	return order(fraction > 0, fraction < 0)
}

func order(less, greater bool) int {
	switch {
	case less:
		return -1
	case greater:
		return 1
	}
	return 0
}

// of computes a number; false: it is null.
func (o ArithmeticOp) of(a, b Number) (Number, bool) {
	if o == Divide || !a.Integer || !b.Integer {
		return o.ofFloats(a.float(), b.float())
	}
	switch o {
	case Times:
		hi, lo := bits.Mul64(a.Abs, b.Abs)
		return Number{Integer: true, Negative: a.Negative != b.Negative && lo > 0, Abs: lo}, hi == 0
	case Minus:
		b.Negative = !b.Negative
	}
	if a.Negative == b.Negative {
		sum, carry := bits.Add64(a.Abs, b.Abs, 0)
		return Number{Integer: true, Negative: a.Negative && sum > 0, Abs: sum}, carry == 0
	}
	if a.Abs < b.Abs {
		a, b = b, a
	}
	n := Number{Integer: true, Abs: a.Abs - b.Abs}
	n.Negative = a.Negative && n.Abs > 0
	return n, true
}

func (o ArithmeticOp) ofFloats(a, b float64) (Number, bool) {
	switch o {
	case Plus:
		a += b
	case Minus:
		a -= b
	case Times:
		a *= b
	case Divide:
		if b == 0 {
			return Number{}, false
		}
		a /= b
	}
	return Number{Float: a}, true
}

// A decimal is a number as it is written, of any length: 0.digits * 10^exponent, negated if negative. Equal numbers are
// equal decimals.
//
//	-120.50    negative, digits 1205, exponent 3
//	0.00       digits "", exponent 0
type decimal struct {
	negative bool   // false of 0
	digits   string // neither the first nor the last is 0
	exponent int
}

// parseDecimal reads a number that the lexer takes, with a sign or without. An exponent beyond 32 bits counts
// as the last within.
func parseDecimal(text string) decimal {
	unsigned := strings.TrimPrefix(text, "-")
	mantissa, power := unsigned, 0
	if at := strings.IndexAny(unsigned, "eE"); at >= 0 {
		// An exponent that is out of range becomes the end of the range: such a number is next to nothing, or
		// no float64.
		p, _ := strconv.ParseInt(unsigned[at+1:], 10, 32)
		mantissa, power = unsigned[:at], int(p)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	digits := strings.TrimLeft(all, "0")
	exponent := power + len(whole) - (len(all) - len(digits))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return decimal{}
	}
	return decimal{negative: len(unsigned) < len(text), digits: digits, exponent: exponent}
}

// compare returns the order of a and b: below 0, 0 or above 0.
func (a decimal) compare(b decimal) int {
	if a.negative != b.negative {
		return order(a.negative, b.negative)
	}
	less, greater := -1, 1
	if a.negative {
		less, greater = 1, -1
	}
	switch c := strings.Compare(a.digits, b.digits); {
	case a.digits == "" || b.digits == "": // the shorter text is the smaller number: neither is negative
		return c
	case a.exponent < b.exponent || a.exponent == b.exponent && c < 0:
		return less
	case a.exponent > b.exponent || c > 0:
		return greater
	}
	return 0
}

// ratDigits limits the digits of a rat on each side of the point. Integers of 64 bits have 20, and decimals at most 76
// more: see parseLogical.
const ratDigits = 100

// rat returns a. If a has more digits than ratDigits on a side of the point, it returns a number with the same
// position among all numbers that have not: rationals of arbitrary numbers would take arbitrary time and
// memory.
func (a decimal) rat() *big.Rat {
	digits, last := a.digits, a.exponent-len(a.digits) // a is digits * 10^last
	switch {
	case digits == "":
		return new(big.Rat)
	case a.exponent > ratDigits:
		digits, last = "1", ratDigits
	case a.exponent < -ratDigits:
		digits, last = "1", -ratDigits-1
	case last < -ratDigits:
		// The rest is not 0, and less than one of the last digit that is left.
		digits, last = digits[:a.exponent+ratDigits]+"1", -ratDigits-1
	}
	if a.negative {
		digits = "-" + digits
	}
	r, _ := new(big.Rat).SetString(digits + "e" + strconv.Itoa(last))
	return r
}
