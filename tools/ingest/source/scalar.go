package source

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/format/vector"
)

// appendText appends the value that text spells, as Hive spells values of a's type. On an error nothing is appended.
//
//	boolean     true, false in any case
//	integers    -12, +3, 7.0; in the type's range
//	floats      1.5, 1e-3, NaN, Infinity
//	decimal     12.50; no more digits than the type has
//	date        2026-11-01
//	timestamp   2026-11-01 12:00:00[.123456789][Z or +01:00], T for the space, or a date
//	string      as it is
//	binary      base64, or the bytes themselves where they are none
//
// Blanks around anything but strings and binary do not count, as in Hive, DuckDB and pandas.
func appendText(a *array, text []byte, limits *Limits) error {
	n := a.node
	if n.shape == shapeString || n.shape == shapeBytes && n.logical == "" {
		if n.shape == shapeBytes {
			if raw, err := base64.StdEncoding.Strict().DecodeString(string(text)); err == nil {
				text = raw
			}
		}
		if int64(len(text)) > limits.CellBytes {
			return fmt.Errorf("a value of %d bytes, the limit is %d", len(text), limits.CellBytes)
		}
		return appendCell(a, text, limits)
	}
	s := trimBlanks(string(text))
	if n.shape == shapeBytes {
		v, err := parseDecimal(s, n.logical)
		if err != nil {
			return err
		}
		return appendCell(a, decimalBytes(v, decimalWidthOf(n.logical)), limits)
	}
	switch n.elem.Physical() {
	case vector.Float32Values:
		v, err := strconv.ParseFloat(s, 32)
		if err != nil {
			return fmt.Errorf("%s is no float: %w", quoteCell(s), errors.Unwrap(err))
		}
		a.floats = append(a.floats, float32(v))
	case vector.Float64Values:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%s is no double: %w", quoteCell(s), errors.Unwrap(err))
		}
		a.doubles = append(a.doubles, v)
	default:
		v, err := parseInteger(n, s)
		if err != nil {
			return err
		}
		a.ints = append(a.ints, v)
	}
	a.appendEntry(true)
	return nil
}

// trimBlanks returns s without the blanks around it.
func trimBlanks(s string) string { return strings.Trim(s, " \t\r\n\v\f") }

// quoteCell quotes a value for an error message, shortened.
func quoteCell(s string) string {
	if len(s) > 64 {
		return strconv.Quote(s[:64]) + "..."
	}
	return strconv.Quote(s)
}

func parseInteger(n *node, s string) (int64, error) {
	switch {
	case n.logical == "date32":
		t, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return 0, fmt.Errorf("%s is no date", quoteCell(s))
		}
		return t.Unix() / 86400, nil
	case strings.HasPrefix(n.logical, "timestamp["):
		m, err := parseMoment(s)
		if err != nil {
			return 0, err
		}
		if n.seen != nil {
			n.seen.add(m)
			return 0, nil
		}
		return m.value(n, quoteCell(s))
	case strings.HasPrefix(n.logical, "decimal("):
		v, err := parseDecimal(s, n.logical)
		if err != nil {
			return 0, err
		}
		return v.Int64(), nil
	case n.elem == vector.Bool:
		switch {
		case strings.EqualFold(s, "true"):
			return 1, nil
		case strings.EqualFold(s, "false"):
			return 0, nil
		}
		return 0, fmt.Errorf("%s is no boolean", quoteCell(s))
	}
	// Programs that know no null but NaN write integers with nulls as floats.
	if whole, fraction, ok := strings.Cut(s, "."); ok && fraction != "" && strings.Trim(fraction, "0") == "" && whole != "" {
		s = whole
	}
	if n.elem == vector.Uint64 {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s is no uint64: %w", quoteCell(s), errors.Unwrap(err))
		}
		return int64(v), nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err == nil && !elemHolds(n.elem, v) {
		err = &strconv.NumError{Err: strconv.ErrRange}
	}
	if err != nil {
		return 0, fmt.Errorf("%s is no %v: %w", quoteCell(s), n.elem, errors.Unwrap(err))
	}
	return v, nil
}

var timestampLayouts = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00", time.DateOnly}

func parseMoment(s string) (moment, error) {
	for _, layout := range timestampLayouts {
		if t, err := time.Parse(layout, s); err == nil { // takes a fraction after the seconds
			return moment{t.Unix(), int64(t.Nanosecond())}, nil
		}
	}
	return moment{}, fmt.Errorf("%s is no timestamp", quoteCell(s))
}

const maxDecimalText = 256

// parseDecimal returns the unscaled value of a decimal number.
func parseDecimal(s, logical string) (*big.Int, error) {
	var precision, scale int
	if _, err := fmt.Sscanf(logical, "decimal(%d, %d)", &precision, &scale); err != nil {
		return nil, err
	}
	bad := fmt.Errorf("%s is no %s", quoteCell(s), logical)
	if len(s) > maxDecimalText {
		return nil, bad
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(s[i+1:]); err != nil || exponent < -maxDecimalText || exponent > maxDecimalText {
			return nil, bad
		}
		mantissa = s[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole, "+-") + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" || len(whole)-len(strings.TrimLeft(whole, "+-")) > 1 {
		return nil, bad
	}
	v, _ := new(big.Int).SetString(digits, 10)
	if strings.HasPrefix(whole, "-") {
		v.Neg(v)
	}
	shift := scale - len(fraction) + exponent
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		v.Mul(v, ten)
	} else {
		var rest big.Int
		if v.QuoRem(v, ten, &rest); rest.Sign() != 0 {
			return nil, bad
		}
	}
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	if v.CmpAbs(limit) >= 0 {
		return nil, bad
	}
	return v, nil
}

// decimalBytes returns v as width bytes of big-endian two's complement.
func decimalBytes(v *big.Int, width int) []byte {
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
	}
	return v.FillBytes(make([]byte, width))
}

// exactFloat reports whether the integer v is exact in the element type e.
func exactFloat(e vector.Elem, v int64) bool {
	if e == vector.Float32 {
		return int64(float32(v)) == v && math.Abs(float64(v)) <= 1<<53
	}
	return v >= -1<<53 && v <= 1<<53
}

// appendCell appends a byte string, or a fault in its place when it is too long.
func appendCell[T ~string | ~[]byte](a *array, v T, limits *Limits) error {
	if int64(len(v)) > limits.CellBytes {
		a.faults = append(a.faults, fault{a.n, fmt.Errorf("a value of %d bytes, the limit is %d", len(v), limits.CellBytes)})
		v = v[:0]
	}
	if int64(len(a.data)+len(v)) > min(limits.BatchBytes, math.MaxInt32) {
		return fmt.Errorf("%d values hold more than %d bytes", a.n+1, limits.BatchBytes)
	}
	a.data = append(a.data, v...)
	a.appendEntry(true)
	return nil
}

// trimDecimal drops the leading bytes of a big-endian two's complement number that only repeat its sign.
func trimDecimal(v []byte) []byte {
	for len(v) > 1 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:]
	}
	return v
}

func decimalWidthOf(logical string) int {
	var p, s int
	if _, err := fmt.Sscanf(logical, "decimal(%d, %d)", &p, &s); err != nil {
		return 32
	}
	return decimalWidth(p)
}

// decimalWidth is how many bytes hold a decimal of more than 18 digits.
func decimalWidth(precision int) int {
	if precision <= 38 {
		return 16
	}
	return 32
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

// elemHolds reports whether an integer element type holds v; Uint64 holds every bit pattern.
func elemHolds(e vector.Elem, v int64) bool {
	switch e {
	case vector.Bool:
		return v == 0 || v == 1
	case vector.Int8:
		return v == int64(int8(v))
	case vector.Int16:
		return v == int64(int16(v))
	case vector.Int32:
		return v == int64(int32(v))
	case vector.Uint8:
		return v == int64(uint8(v))
	case vector.Uint16:
		return v == int64(uint16(v))
	case vector.Uint32:
		return v == int64(uint32(v))
	}
	return true
}
