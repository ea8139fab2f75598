package expr

import (
	"math/big"
	"strconv"
	"strings"
)

// A decimal is a number as it is written, of any length: 0.digits * 10^exponent, or below 0 minus that. Equal numbers are equal decimals.
//
//	-120.50    negative, digits 1205, exponent 3
//	0.00       digits "", exponent 0
type decimal struct {
	negative bool   // false of 0
	digits   string // neither the first nor the last is 0
	exponent int
}

// parseDecimal reads a number that the lexer takes, with a sign or without. An exponent beyond 32 bits counts as the last within.
func parseDecimal(text string) decimal {
	unsigned := strings.TrimPrefix(text, "-")
	mantissa, power := unsigned, 0
	if at := strings.IndexAny(unsigned, "eE"); at >= 0 {
		// What is out of range comes back as the end of the range; whoever writes so means as good as nothing, or no float64.
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

// ratDigits bounds the digits of a rat on each side of the point. Integers of 64 bits have 20, and decimals at most 76 more: see parseLogical.
const ratDigits = 100

// rat returns a, or where a has more digits than ratDigits on a side of the point a number that is in the same place among all that have not
// more: rationals of arbitrary numbers would take arbitrary time and memory.
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
