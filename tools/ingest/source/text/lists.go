package text

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// listSample is how many values of a column of a file are looked at as lists. Lists stay text unless the mapping file
// says their type, so that this is for a hint alone.
const listSample = 1000

// listSeparators are what is looked for between the items of lists; the first stands for brackets with commas.
const listSeparators = "[|;, "

// A listItems is a set of what the items of a list can be.
type listItems uint8

const (
	intItems listItems = 1 << iota
	uintItems
	floatItems
	stringItems
	anyItems = 1<<iota - 1
)

// listTypes are the types of lists that are suggested, the narrowest first.
var listTypes = []struct {
	items listItems
	types string // members of a mapping file's column
}{
	{intItems, `"type": "array<bigint>"`},
	{uintItems, `"type": "list<uint64>"`},
	{floatItems, `"type": "array<double>"`},
	{stringItems, `"type": "array<string>", "kind": "sparse", "hash": true`},
}

// lists is what the first values of a column are as lists, by the index of listSeparators.
type lists struct {
	seen int
	null bool // an item in brackets is null
	by   [len(listSeparators)]struct {
		not  listItems
		many int // values of several items, or in brackets
	}
}

// noBrackets: brackets are text in this layout.
func (l *lists) noBrackets() { l.by[0].not = anyItems }

// add takes a value into account, without the blanks around it.
func (l *lists) add(s string) {
	l.seen++
	for i := range l.by {
		by := &l.by[i]
		if by.not == anyItems {
			continue
		}
		is, several, null := asList(s, listSeparators[i])
		by.not |= anyItems &^ is
		l.null = l.null || null
		if several {
			by.many++
		}
	}
}

func (l *lists) merge(o *lists) {
	l.seen, l.null = l.seen+o.seen, l.null || o.null
	for i := range l.by {
		l.by[i].not |= o.by[i].not
		l.by[i].many += o.by[i].many
	}
}

// mapping returns the mapping file with which the column is read as lists; it is empty where it does not look so. items
// is text.items of the mapping file, null the word that stands for null in the column; both may be empty. Numbers get
// the type that the table has, if its lists hold them: fits.
func (l *lists) mapping(name, items, null string, table vector.Type) (mapping string, fits bool) {
	for i, by := range l.by {
		sep := listSeparators[i : i+1]
		if by.many == 0 || sep != "[" && items != "" && items != sep {
			continue
		}
		for _, t := range listTypes {
			// Text between bars is a list where most values have some.
			if by.not&t.items != 0 || t.items == stringItems && 2*by.many < l.seen {
				continue
			}
			members, text := t.types, []string(nil)
			fits = (table.Kind == vector.Sparse || table.Kind == vector.Embedding) &&
				(t.items == intItems || t.items != stringItems && !table.Elem.IsInteger())
			if fits {
				members = fmt.Sprintf(`"type": %q`, table)
			}
			if sep == "[" && l.null {
				members += `, "nulls": "drop"`
			}
			if sep != "[" && items == "" {
				text = append(text, fmt.Sprintf(`"items": %q`, sep))
			}
			if null != "" {
				text = append(text, fmt.Sprintf(`"null": %q`, null))
			}
			mapping = fmt.Sprintf(`{"columns": {%q: {%s}}`, name, members)
			if len(text) > 0 {
				mapping += fmt.Sprintf(`, "text": {%s}`, strings.Join(text, ", "))
			}
			return mapping + "}", fits
		}
	}
	return "", false
}

// asList returns what the items of a value can be with sep between them, as a Reader takes them, whether it looks like
// a list rather than one item, and whether an item is null.
func asList(s string, sep byte) (is listItems, several, null bool) {
	inner, bracketed := inBrackets([]byte(s))
	if bracketed != (sep == '[') {
		return 0, false, false
	}
	is = anyItems
	if bracketed {
		several, sep = true, ','
		quoted, ok := quotedItems(inner)
		if !ok {
			is &^= stringItems
		} else if bytes.ContainsAny(inner, `'"`) {
			is = stringItems
		}
		for _, item := range quoted {
			null = null || item.null
		}
		if len(inner) == 0 || is == stringItems {
			return is, several, null
		}
	} else if inner = []byte(s); sep != '|' { // text has commas and blanks
		is &^= stringItems
	}
	count, thousands := 0, true
	for rest, more := inner, true; more && is != 0; count++ {
		var item []byte
		item, rest, more = bytes.Cut(rest, []byte{sep})
		item = bytes.TrimSpace(item)
		if bracketed && isNullItem(item) {
			null = true
			continue
		}
		thousands = thousands && (count == 0 || len(item) == 3)
		is &= itemIs(string(item))
	}
	if !bracketed {
		// 1,5 may be a decimal, and 1,234,567 a number with its thousands apart.
		several = count > 1 && (sep != ',' || count > 2 && !thousands)
	}
	return is, several, null && is != 0
}

// itemIs returns what an item of a list can be.
func itemIs(s string) (is listItems) {
	if s == "" {
		return 0
	}
	switch {
	case isInteger(s):
	case !isFraction(s):
		return stringItems
	case exactWhole(s):
		return floatItems
	default:
		return 0
	}
	is = stringItems // an id
	v, err := strconv.ParseInt(s, 10, 64)
	if err == nil {
		is |= intItems
		if column.ExactFloat(vector.Float64, v) {
			is |= floatItems
		}
	}
	if _, err := strconv.ParseUint(s, 10, 64); err == nil {
		is |= uintItems
	}
	return is
}

// isNullItem reports whether JSON or Python writes null so in a list.
func isNullItem(item []byte) bool { return string(item) == "null" || string(item) == "None" }

// itemsHint says what separates the items of a value that is no list as it is read, empty where it does not look like
// one of numbers.
func itemsHint(text []byte) string {
	for _, sep := range []byte(listSeparators[1:]) {
		if is, _, _ := asList(column.TrimBlanks(string(text)), sep); is&^stringItems != 0 && bytes.IndexByte(text,
			sep) >= 0 {
			return fmt.Sprintf(`; {"text": {"items": %q}} in a mapping file takes what is between %q for items`,
				string(sep), string(sep))
		}
	}
	return ""
}

// listHint says how a column of text is read as lists, empty where it does not look like lists. table is the type of
// the table's feature, if it has one, and fits reports whether its lists hold these.
func (c *textValues) listHint(name, items string, table vector.Type) (hint string, fits bool) {
	if !c.some || !c.isText() {
		return "", false
	}
	mapping, fits := c.lists.mapping(name, items, c.null.value, table)
	if mapping == "" {
		return "", false
	}
	return "looks like lists: " + mapping + " in a mapping file (--mapping) reads them", fits
}
