package read

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
)

// shownElements and shownBytes are how much of a list and of a string cellText shows.
const (
	shownElements = 6
	shownBytes    = 40
)

// cellText prints the value of a row for people: lists and strings are cut short, and where the logical type says what
// a number means (a date, a decimal) it is printed as that.
func cellText(c *vector.Column, logical string, row int) string {
	if c.IsNull(row) {
		return "null"
	}
	lo, hi := c.RowRange(row)
	switch c.Type.Kind {
	case vector.Dense:
		return numberText(c, logical, lo)
	case vector.Bytes, vector.String:
		return bytesCell(c.Data[lo:hi], c.Type.Kind, logical)
	}
	var b strings.Builder
	b.WriteByte('[')
	for i := lo; i < hi && i < lo+shownElements; i++ {
		if i > lo {
			b.WriteByte(' ')
		}
		b.WriteString(numberText(c, logical, i))
		if c.Type.Kind == vector.Weighted {
			b.WriteString(":" + scoreText(c, i))
		}
	}
	if hi-lo > shownElements {
		fmt.Fprintf(&b, " ... %d in all", hi-lo)
	}
	b.WriteByte(']')
	return b.String()
}

func bytesCell(data []byte, kind vector.Kind, logical string) string {
	more := ""
	all := len(data)
	if strings.HasPrefix(logical, "decimal(") {
		return decimalText(new(big.Int), data, logical)
	}
	if logical == "uuid" && len(data) == 16 {
		h := hex.EncodeToString(data)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	}
	if len(data) > shownBytes {
		data = data[:shownBytes]
		for kind == vector.String && len(data) > 0 && !utf8.Valid(data) {
			data = data[:len(data)-1]
		}
		more = fmt.Sprintf("... %d bytes in all", all)
	}
	if kind == vector.String {
		return strconv.Quote(string(data)) + more
	}
	return "0x" + hex.EncodeToString(data) + more
}

// numberText prints element i.
func numberText(c *vector.Column, logical string, i int) string {
	switch c.Type.Physical() {
	case vector.Float32Values:
		return strconv.FormatFloat(float64(c.Floats[i]), 'g', -1, 32)
	case vector.Float64Values:
		return strconv.FormatFloat(c.Doubles[i], 'g', -1, 64)
	}
	v := c.Ints[i]
	switch {
	case c.Type.Elem == vector.Bool:
		return strconv.FormatBool(v != 0)
	case c.Type.Elem == vector.Uint64:
		return strconv.FormatUint(uint64(v), 10)
	case logical != "":
		return logicalText(v, logical)
	}
	return strconv.FormatInt(v, 10)
}

func scoreText(c *vector.Column, i int) string {
	if c.Type.Score == vector.Float64 {
		return strconv.FormatFloat(c.ScoreDoubles[i], 'g', -1, 64)
	}
	return strconv.FormatFloat(float64(c.ScoreFloats[i]), 'g', -1, 32)
}

// unitsPerSecond of the logical types that count time.
var unitsPerSecond = map[string]int64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

// logicalText prints an integer whose logical type says what it counts.
func logicalText(v int64, logical string) string {
	name, rest, _ := strings.Cut(strings.TrimSuffix(logical, "]"), "[")
	unit, _, zoned := strings.Cut(rest, ", tz=")
	per := unitsPerSecond[unit]
	switch name {
	case "date32":
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(v)).Format("2006-01-02")
	case "date64":
		return time.UnixMilli(v).UTC().Format("2006-01-02")
	case "timestamp":
		if per == 0 {
			break
		}
		zone := ""
		if zoned {
			zone = "Z"
		}
		seconds, rest := floorDivide(v, per)
		return time.Unix(seconds, rest*(1e9/per)).UTC().Format("2006-01-02 15:04:05.999999999") + zone
	case "time32", "time64":
		if per == 0 {
			break
		}
		seconds, rest := floorDivide(v, per)
		return time.Unix(seconds, rest*(1e9/per)).UTC().Format("15:04:05.999999999")
	case "duration":
		if unit != "" {
			return strconv.FormatInt(v, 10) + unit
		}
	}
	if strings.HasPrefix(logical, "decimal(") {
		return decimalText(big.NewInt(v), nil, logical)
	}
	return strconv.FormatInt(v, 10)
}

// floorDivide returns a / b rounded down and the rest, which is not negative. b > 0.
func floorDivide(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		return quotient - 1, rest + b
	}
	return quotient, rest
}

// decimalText prints an unscaled decimal: v, or data when it is set, big-endian two's complement.
func decimalText(v *big.Int, data []byte, logical string) string {
	if len(data) > 0 {
		v.SetBytes(data)
		if data[0]&0x80 != 0 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(data))))
		}
	}
	var precision, scale int
	if n, err := fmt.Sscanf(logical, "decimal(%d, %d)", &precision, &scale); err != nil || n != 2 || scale <= 0 {
		return v.String()
	}
	sign, digits := "", new(big.Int).Abs(v).String()
	if v.Sign() < 0 {
		sign = "-"
	}
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale+1-len(digits)) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// cellValue returns the whole value of a row as --json prints it: numbers as stored, bytes in base64, weighted ids as
// [id, score], and NaN and the infinities, which JSON does not have, as strings.
func cellValue(c *vector.Column, row int) any {
	if c.IsNull(row) {
		return nil
	}
	lo, hi := c.RowRange(row)
	switch c.Type.Kind {
	case vector.Dense:
		return numberValue(c, lo)
	case vector.String:
		return string(c.Data[lo:hi])
	case vector.Bytes:
		return base64.StdEncoding.EncodeToString(c.Data[lo:hi])
	}
	list := make([]any, 0, hi-lo)
	for i := lo; i < hi; i++ {
		if c.Type.Kind != vector.Weighted {
			list = append(list, numberValue(c, i))
			continue
		}
		score := 0.0
		if c.Type.Score == vector.Float64 {
			score = c.ScoreDoubles[i]
		} else {
			score = float64(c.ScoreFloats[i])
		}
		list = append(list, []any{numberValue(c, i), floatValue(score)})
	}
	return list
}

func numberValue(c *vector.Column, i int) any {
	switch c.Type.Physical() {
	case vector.Float32Values:
		if f := c.Floats[i]; !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) {
			return f
		}
		return floatValue(float64(c.Floats[i]))
	case vector.Float64Values:
		return floatValue(c.Doubles[i])
	}
	switch c.Type.Elem {
	case vector.Bool:
		return c.Ints[i] != 0
	case vector.Uint64:
		return uint64(c.Ints[i])
	}
	return c.Ints[i]
}

func floatValue(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return f
}
