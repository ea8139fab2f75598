package arrowbatch

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"github.com/dsistore/dsistore/format/vector"
)

// numberType returns the Arrow type of a number of element type e with a Logical. A Logical that does not fit e (a
// feature whose type was widened has none that does) says nothing: the values are exported as they are.
func numberType(e vector.Elem, logical string) arrow.DataType {
	if t := logicalNumber(e, logical); t != nil {
		return t
	}
	return plainTypes[e]
}

var plainTypes = [...]arrow.DataType{
	vector.Bool: arrow.FixedWidthTypes.Boolean,
	vector.Int8: arrow.PrimitiveTypes.Int8, vector.Int16: arrow.PrimitiveTypes.Int16,
	vector.Int32: arrow.PrimitiveTypes.Int32, vector.Int64: arrow.PrimitiveTypes.Int64,
	vector.Uint8: arrow.PrimitiveTypes.Uint8, vector.Uint16: arrow.PrimitiveTypes.Uint16,
	vector.Uint32: arrow.PrimitiveTypes.Uint32, vector.Uint64: arrow.PrimitiveTypes.Uint64,
	vector.Float32: arrow.PrimitiveTypes.Float32, vector.Float64: arrow.PrimitiveTypes.Float64,
}

func logicalNumber(e vector.Elem, logical string) arrow.DataType {
	name, args := splitLogical(logical)
	switch e {
	case vector.Float32:
		if logical == "float16" {
			return arrow.FixedWidthTypes.Float16
		}
	case vector.Int32:
		switch logical {
		case "date32":
			return arrow.FixedWidthTypes.Date32
		case "time32[s]":
			return arrow.FixedWidthTypes.Time32s
		case "time32[ms]":
			return arrow.FixedWidthTypes.Time32ms
		}
	case vector.Int64:
		switch {
		case logical == "date64":
			return arrow.FixedWidthTypes.Date64
		case logical == "time64[us]":
			return arrow.FixedWidthTypes.Time64us
		case logical == "time64[ns]":
			return arrow.FixedWidthTypes.Time64ns
		case name == "duration" && len(args) == 1:
			if u, ok := timeUnits[args[0]]; ok {
				return &arrow.DurationType{Unit: u}
			}
		case name == "timestamp" && len(args) >= 1:
			return timestampType(args)
		case name == "decimal":
			if t := decimalType(args); t != nil && t.GetPrecision() <= 18 {
				return t
			}
		}
	}
	return nil
}

var timeUnits = map[string]arrow.TimeUnit{
	"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond,
}

func timestampType(args []string) arrow.DataType {
	u, ok := timeUnits[args[0]]
	if !ok {
		return nil
	}
	zone := ""
	if len(args) > 1 {
		if zone, ok = strings.CutPrefix(args[1], "tz="); !ok || len(args) > 2 {
			return nil
		}
	}
	return &arrow.TimestampType{Unit: u, TimeZone: zone}
}

func decimalType(args []string) arrow.DecimalType {
	if len(args) != 2 {
		return nil
	}
	p, err := strconv.ParseInt(args[0], 10, 32)
	if err != nil {
		return nil
	}
	s, err := strconv.ParseInt(args[1], 10, 32)
	switch {
	case err != nil || p < 1 || p > 76 || s < 0 || s > p:
		return nil
	case p > 38:
		return &arrow.Decimal256Type{Precision: int32(p), Scale: int32(s)}
	}
	return &arrow.Decimal128Type{Precision: int32(p), Scale: int32(s)}
}

// bytesType returns the Arrow type of a bytes or string feature.
func bytesType(k vector.Kind, logical string) arrow.DataType {
	name, args := splitLogical(logical)
	if k == vector.String {
		if logical == "json" {
			if t, err := extensions.NewJSONType(arrow.BinaryTypes.String); err == nil {
				return t
			}
		}
		return arrow.BinaryTypes.String
	}
	switch {
	case logical == "uuid":
		return extensions.NewUUIDType()
	case name == "fixed_size_binary" && len(args) == 1:
		if n, err := strconv.ParseInt(args[0], 10, 31); err == nil && n > 0 {
			return &arrow.FixedSizeBinaryType{ByteWidth: int(n)}
		}
	case name == "decimal":
		if t := decimalType(args); t != nil && t.GetPrecision() > 18 {
			return t
		}
	}
	return arrow.BinaryTypes.Binary
}

// weightedNames returns the names of ids and scores, or that the pairs are a map.
func weightedNames(logical string) (id, score string, isMap bool) {
	if logical == "map" {
		return "", "", true
	}
	if id, score, ok := structNames(logical); ok && id != score {
		return id, score, false
	}
	return "id", "score", false
}

// structNames splits "struct<a, b>", whose names may be quoted as Go does it.
func structNames(logical string) (a, b string, ok bool) {
	rest, ok := strings.CutPrefix(logical, "struct<")
	if !ok {
		return "", "", false
	}
	a, rest = logicalName(rest, ", ")
	b, rest = logicalName(rest, ">")
	return a, b, rest == "" && strings.HasSuffix(logical, ">")
}

// logicalName returns the name at the start of s and what follows it and the end.
func logicalName(s, end string) (name, rest string) {
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if name, err2 := strconv.Unquote(quoted); err == nil && err2 == nil {
			return name, strings.TrimPrefix(s[len(quoted):], end)
		}
	}
	name, rest, _ = strings.Cut(s, end)
	return name, rest
}

// splitLogical splits "name[a, b]", "name(a, b)" and "name<a, b>".
func splitLogical(s string) (name string, args []string) {
	i := strings.IndexAny(s, "[(<")
	if i < 0 || len(s) < i+2 {
		return s, nil
	}
	closing := map[byte]byte{'[': ']', '(': ')', '<': '>'}[s[i]]
	if s[len(s)-1] != closing {
		return s, nil
	}
	return s[:i], strings.Split(s[i+1:len(s)-1], ", ")
}
