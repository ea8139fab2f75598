package column

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/format/vector"
)

// AppendText appends the value that text spells, as Hive spells values of a's type. On an error nothing is appended.
//
//	boolean     true, false in any case
//	integers    -12, +3, 7.0; in the type's range
//	floats      1.5, 1e-3, NaN, Infinity
//	decimal     12.50; no more digits than the type has
//	date        2026-11-01
//	timestamp   2026-11-01 12:00[:00[.123456789]][Z or +01:00], T for the space, or a date
//	string      as it is
//	binary      base64, or the bytes themselves where they are none
//
// A date and a timestamp with a TimeFormat are spelled as it says.
//
// Blanks around anything but strings and binary do not count, as in Hive, DuckDB and pandas.
func AppendText(a *Array, text []byte, limits *Limits) error {
	n := a.Type
	if n.Shape == String || n.Shape == Bytes && n.Logical == "" {
		if n.Shape == Bytes {
			if raw, err := base64.StdEncoding.Strict().DecodeString(string(text)); err == nil {
				text = raw
			}
		}
		if int64(len(text)) > limits.CellBytes {
			return fmt.Errorf("a value of %d bytes, the limit is %d", len(text), limits.CellBytes)
		}
		return AppendCell(a, text, limits)
	}
	s := TrimBlanks(string(text))
	if n.Shape == Bytes {
		v, err := parseDecimal(s, n.Logical)
		if err != nil {
			return err
		}
		return AppendCell(a, decimalBytes(v, DecimalWidth(n)), limits)
	}
	switch n.Elem.Physical() {
	case vector.Float32Values:
		v, err := ParseFloat(s, 32)
		if err != nil {
			return fmt.Errorf("%s is no float: %w", Quote(s), errors.Unwrap(err))
		}
		a.Floats = append(a.Floats, float32(v))
	case vector.Float64Values:
		v, err := ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%s is no double: %w", Quote(s), errors.Unwrap(err))
		}
		a.Doubles = append(a.Doubles, v)
	default:
		v, err := parseInteger(n, s)
		if err != nil {
			return err
		}
		a.Ints = append(a.Ints, v)
	}
	a.AppendEntry(true)
	return nil
}

// ParseFloat is strconv.ParseFloat without what only Go writes: digits with underscores between them, and hexadecimal.
func ParseFloat(s string, bits int) (float64, error) {
	for i := range len(s) {
		if c := s[i]; c == '_' || c|0x20 == 'x' {
			return 0, &strconv.NumError{Func: "ParseFloat", Num: s, Err: strconv.ErrSyntax}
		}
	}
	return strconv.ParseFloat(s, bits)
}

// TrimBlanks returns s without the blanks around it.
func TrimBlanks(s string) string {
	if s != "" && s[0] > ' ' && s[len(s)-1] > ' ' { // Trim would make a set of the blanks for each value
		return s
	}
	return strings.Trim(s, " \t\r\n\v\f")
}

// Quote quotes a value for an error message, shortened.
func Quote(s string) string {
	if len(s) > 64 {
		return strconv.Quote(s[:64]) + "..."
	}
	return strconv.Quote(s)
}

func parseInteger(n *Type, s string) (int64, error) {
	switch {
	case n.Logical == "date32":
		t, err := parseDate(n, s)
		return t.Unix() / 86400, err
	case strings.HasPrefix(n.Logical, "timestamp["):
		m, err := parseTimestamp(n, s)
		if err != nil {
			return 0, err
		}
		if n.Seen != nil {
			n.Seen.Add(m)
			return 0, nil
		}
		return m.Value(n, Quote(s))
	case strings.HasPrefix(n.Logical, "decimal("):
		v, err := parseDecimal(s, n.Logical)
		if err != nil {
			return 0, err
		}
		return v.Int64(), nil
	case n.Elem == vector.Bool:
		if strings.EqualFold(s, "true") {
			return 1, nil
		} else if !strings.EqualFold(s, "false") {
			return 0, fmt.Errorf("%s is no boolean", Quote(s))
		}
		return 0, nil
	}
	// Programs that know no null but NaN write integers with nulls as floats.
	if whole, fraction, ok := strings.Cut(s, "."); ok && fraction != "" && strings.Trim(fraction, "0") == "" &&
		whole != "" {
		s = whole
	}
	if n.Elem == vector.Uint64 {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, notNumber(s, n.Elem, err)
		}
		return int64(v), nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err == nil && !ElemHolds(n.Elem, v) {
		err = &strconv.NumError{Err: strconv.ErrRange}
	}
	if err != nil {
		return 0, notNumber(s, n.Elem, err)
	}
	return v, nil
}

func parseDate(n *Type, s string) (time.Time, error) {
	if n.TimeFormat != nil {
		return n.TimeFormat.parse(s)
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		err = fmt.Errorf("%s is no date", Quote(s))
	}
	return t, err
}

func parseTimestamp(n *Type, s string) (Timestamp, error) {
	if n.TimeFormat == nil {
		return ParseTimestamp(s)
	}
	t, err := n.TimeFormat.parse(s)
	return Timestamp{t.Unix(), int64(t.Nanosecond())}, err
}

var timestampLayouts = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00",
	"2006-01-02 15:04:05Z07:00", time.DateOnly,
	// As Jackson and Spark write zones, and Postgres and DuckDB.
	"2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02 15:04:05Z07",
	// Without seconds, as spreadsheets write them, and Java where they are 0.
	"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"}

// ParseTimestamp reads a timestamp or a date; see AppendText.
func ParseTimestamp(s string) (Timestamp, error) {
	text, _ := strings.CutSuffix(s, " UTC") // as BigQuery writes it
	for _, layout := range timestampLayouts {
		if t, err := time.Parse(layout, text); err == nil { // takes a fraction after the seconds
			return Timestamp{t.Unix(), int64(t.Nanosecond())}, nil
		}
	}
	return Timestamp{}, fmt.Errorf("%s is no timestamp", Quote(s))
}

const maxDecimalText = 256

// parseDecimal returns the unscaled value of a decimal number.
func parseDecimal(s, logical string) (*big.Int, error) {
	precision, scale, err := decimalOf(logical)
	if err != nil {
		return nil, err
	}
	bad := fmt.Errorf("%s is no %s", Quote(s), logical)
	if len(s) > maxDecimalText {
		return nil, bad
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exponent, err = strconv.Atoi(s[i+1:]); err != nil || exponent < -maxDecimalText ||
			exponent > maxDecimalText {
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

// ExactFloat reports whether the integer v is exact in the element type e.
func ExactFloat(e vector.Elem, v int64) bool {
	if e == vector.Float32 {
		return int64(float32(v)) == v && math.Abs(float64(v)) <= 1<<53
	}
	return v >= -1<<53 && v <= 1<<53
}

// AppendCell appends a byte string, or a fault in its place when it is too long.
func AppendCell[T ~string | ~[]byte](a *Array, v T, limits *Limits) error {
	if int64(len(v)) > limits.CellBytes {
		a.Fault(fmt.Errorf("a value of %d bytes, the limit is %d", len(v), limits.CellBytes))
		v = v[:0]
	}
	if int64(len(a.Data)+len(v)) > min(limits.BatchBytes, math.MaxInt32) {
		return fmt.Errorf("%d values hold more than %d bytes", a.Len+1, limits.BatchBytes)
	}
	a.Data = append(a.Data, v...)
	a.AppendEntry(true)
	return nil
}

// AppendDecimal appends a number, which is in big-endian two's complement, to an array of decimals of a DecimalWidth.
// One that does not fit is a fault.
func AppendDecimal(a *Array, v []byte, width int, limits *Limits) error {
	for len(v) > 1 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:] // it only repeats the sign
	}
	if len(v) == 0 {
		a.Fault(errors.New("a decimal of no bytes"))
	} else if len(v) > width {
		a.Fault(fmt.Errorf("%x does not fit %s", v, a.Type.Logical))
		v = nil
	}
	var wide [32]byte
	if len(v) > 0 && v[0] >= 0x80 {
		for i := range width - len(v) {
			wide[i] = 0xff
		}
	}
	copy(wide[width-len(v):], v)
	if width > 8 {
		return AppendCell(a, wide[:width], limits)
	}
	a.Ints = append(a.Ints, int64(binary.BigEndian.Uint64(wide[:8])))
	a.AppendEntry(true)
	return nil
}

// decimalOf returns the precision and scale of a decimal's logical type.
func decimalOf(logical string) (precision, scale int, err error) {
	_, err = fmt.Sscanf(logical, "decimal(%d, %d)", &precision, &scale)
	return precision, scale, err
}

// DecimalWidth is how many bytes hold a decimal.
func DecimalWidth(n *Type) int {
	precision, _, err := decimalOf(n.Logical)
	switch {
	case n.Shape == Number:
		return 8
	case err == nil && precision <= 38:
		return 16
	}
	return 32
}

// Decimal returns the type of a decimal: unscaled in an int64 up to 18 digits, else in 16 or 32 bytes.
func Decimal(precision, scale int) (*Type, error) {
	switch {
	case precision < 1 || precision > 76 || scale > precision:
		return nil, fmt.Errorf("decimal(%d, %d): want a precision of 1 to 76 and a scale up to it", precision, scale)
	case scale < 0: // Parquet, DuckDB and most others have none
		return nil, fmt.Errorf("decimal(%d, %d): want a scale of 0 or more: cast it to decimal(%d, 0)", precision,
			scale, min(precision-scale, 76))
	}
	n := &Type{Shape: Number, Elem: vector.Int64, Logical: fmt.Sprintf("decimal(%d, %d)", precision, scale)}
	if precision > 18 {
		n.Shape, n.Elem = Bytes, vector.NoElem
	}
	return n, nil
}

// ElemHolds reports whether an integer element type holds v; Uint64 holds every bit pattern.
func ElemHolds(e vector.Elem, v int64) bool {
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

// notNumber says why s is no number of a type, which strconv found.
func notNumber(s string, elem vector.Elem, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s is out of the range of %v", Quote(s), elem)
	}
	return fmt.Errorf("%s is no %v", Quote(s), elem)
}
