package format_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// rowText returns a row as "null", "5", "[1 2 3]", "[1:0.5]", "(0.5 1)" or a quoted string. Floats are exact.
func rowText(c *vector.Column, row int) string {
	if c.IsNull(row) {
		return "null"
	}
	if c.Type.Kind == vector.Inverse {
		return strconv.Itoa(c.Slot(row))
	}
	lo, hi := c.RowRange(row)
	if c.Type.Physical() == vector.ByteValues {
		return strconv.QuoteToASCII(string(c.Data[lo:hi]))
	}
	parts := make([]string, 0, hi-lo)
	for i := lo; i < hi; i++ {
		parts = append(parts, valueText(c, i))
	}
	switch c.Type.Kind {
	case vector.Dense:
		return parts[0]
	case vector.Embedding:
		return "(" + strings.Join(parts, " ") + ")"
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func valueText(c *vector.Column, i int) string {
	text := ""
	switch {
	case c.Type.Elem == vector.Uint64:
		text = strconv.FormatUint(uint64(c.Ints[i]), 10)
	case c.Type.Elem.IsInteger():
		text = strconv.FormatInt(c.Ints[i], 10)
	case c.Type.Elem == vector.Float32:
		text = strconv.FormatFloat(float64(c.Floats[i]), 'g', -1, 32)
	default:
		text = strconv.FormatFloat(c.Doubles[i], 'g', -1, 64)
	}
	if c.Type.Kind == vector.Weighted {
		if c.Type.Score == vector.Float64 {
			return text + ":" + strconv.FormatFloat(c.ScoreDoubles[i], 'g', -1, 64)
		}
		return text + ":" + strconv.FormatFloat(float64(c.ScoreFloats[i]), 'g', -1, 32)
	}
	return text
}

// columnText returns a title and a line for each row.
func columnText(title string, c *vector.Column) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v, %d rows, %d slots\n", title, c.Type, c.Rows, c.Slots)
	for row := range c.Rows {
		b.WriteString(rowText(c, row) + "\n")
	}
	return b.String()
}
