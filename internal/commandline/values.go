package commandline

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is a flag's or an argument's field, as pflag sets it.
type value struct {
	field       reflect.Value
	placeholder string
	enum        []string // nil: everything
	commas      bool     // of a list: commas separate values
	complete    string   // what a shell completes it to
	given       bool     // by the environment
	isSet       bool     // by the user; until then the field has its default, which the first value replaces
}

// String returns the value as help shows it.
func (v *value) String() string {
	if v == nil || !v.field.IsValid() {
		return ""
	}
	if v.isList() && v.field.Len() == 0 {
		return ""
	}
	if v.isList() {
		var b strings.Builder
		for i := range v.field.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprint(&b, v.field.Index(i))
		}
		return b.String()
	}
	if v.field.Kind() == reflect.Pointer {
		if v.field.IsNil() {
			return ""
		}
		return fmt.Sprint(v.field.Elem())
	}
	return fmt.Sprint(v.field)
}

// Type returns what stands for the value in help. Of bool, pflag shows no value.
func (v *value) Type() string {
	if v.isBool() {
		return "bool"
	}
	return v.placeholder
}

func (v *value) isList() bool {
	if _, ok := v.field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return false
	}
	return v.field.Kind() == reflect.Slice
}

func (v *value) isBool() bool { return v.field.Kind() == reflect.Bool }

// Set sets the field. Of a list, it replaces the default, or adds to what was set. Any other is set once: of two
// predicates of a delete, the second alone would be another delete.
func (v *value) Set(s string) error {
	if !v.isList() {
		if v.isSet && !v.isBool() {
			return errors.New("it is given twice: want it once")
		}
		if err := v.check(s); err != nil {
			return err
		}
		v.isSet = true
		return parse(v.field, s)
	}
	if !v.isSet {
		v.field.SetZero()
	}
	v.isSet = true
	parts := []string{s}
	if v.commas {
		parts = splitCommas(s)
	}
	for _, part := range parts {
		if err := v.check(part); err != nil {
			return err
		}
		e := reflect.New(v.field.Type().Elem()).Elem()
		if err := parse(e, part); err != nil {
			return err
		}
		v.field.Set(reflect.Append(v.field, e))
	}
	return nil
}

func (v *value) check(s string) error {
	if v.enum != nil && !slices.Contains(v.enum, s) {
		return fmt.Errorf("%q: want one of %s", s, strings.Join(v.enum, ", "))
	}
	return nil
}

// splitCommas returns the parts between commas. A comma after a backslash separates nothing.
func splitCommas(s string) (parts []string) {
	if s == "" {
		return nil
	}
	var part strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == ',':
			part.WriteByte(',')
			i++
		case s[i] == ',':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(s[i])
		}
	}
	return append(parts, part.String())
}

var durationType = reflect.TypeFor[time.Duration]()

// parse sets field to what s stands for.
func parse(field reflect.Value, s string) error {
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(s))
	}
	bits := 0
	if k := field.Kind(); k >= reflect.Int && k <= reflect.Float64 {
		bits = field.Type().Bits()
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(s)
	case reflect.Bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Errorf("%q: want true or false", s)
		}
		field.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if field.Type() == durationType {
			d, err := time.ParseDuration(s)
			if err != nil {
				return fmt.Errorf("%q: want a time with its unit, as in 90s, 15m or 24h", s)
			}
			field.SetInt(int64(d))
			return nil
		}
		n, err := strconv.ParseInt(s, 10, bits)
		if err != nil {
			return wantNumber(s, "a whole number", err)
		}
		field.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(s, 10, bits)
		if err != nil {
			return wantNumber(s, "a whole number from 0 on", err)
		}
		field.SetUint(n)
	case reflect.Float32, reflect.Float64:
		x, err := strconv.ParseFloat(s, bits)
		if err != nil {
			return wantNumber(s, "a number", err)
		}
		field.SetFloat(x)
	case reflect.Pointer: // nil without the flag
		e := reflect.New(field.Type().Elem())
		if err := parse(e.Elem(), s); err != nil {
			return err
		}
		field.Set(e)
	default:
		panic(fmt.Sprintf("commandline: no flag can be a %v", field.Type()))
	}
	return nil
}

// supported reports whether parse knows a field's type, or that of its elements.
func supported(t reflect.Type, list bool) bool {
	k := t.Kind()
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return true
	case k == reflect.Slice && list, k == reflect.Pointer:
		return supported(t.Elem(), false)
	}
	return k >= reflect.Bool && k <= reflect.Uint64 || k == reflect.Float32 || k == reflect.Float64 ||
		k == reflect.String
}

func wantNumber(s, what string, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is too large", s)
	}
	return fmt.Errorf("%q: want %s", s, what)
}
