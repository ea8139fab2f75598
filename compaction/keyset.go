package compaction

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// Keys is a set of values of an integer or string feature that identifies users, requests or sessions. Each instance
// has either numbers or texts.
type Keys struct {
	feature catalog.Feature
	numbers map[int64]struct{} // of an integer feature; uint64 values as the int64 with the same bits
	texts   map[string]struct{}
}

// NewKeys returns an empty set of values of f, which must be an integer or a string feature.
func NewKeys(f catalog.Feature) (*Keys, error) {
	k := &Keys{feature: f}
	switch {
	case f.Type.Kind == vector.Bytes || f.Type.Kind == vector.String:
		k.texts = map[string]struct{}{}
	case f.Type.Kind == vector.Dense && f.Type.Elem.IsInteger():
		k.numbers = map[int64]struct{}{}
	default:
		err := fmt.Errorf("key %q is %v: want an integer or a string", f.Name, f.Type)
		if f.Type.Kind == vector.Dense {
			err = fmt.Errorf(`%w; a column of ids that are written as 17850.0 becomes integers in a new table, by `+
				`{"columns": {%q: {"elem": "int64"}}} in a mapping file`, err, f.Name)
		}
		return nil, err
	}
	return k, nil
}

// empty returns a set of the same feature without keys.
func (k *Keys) empty() *Keys {
	if k.texts != nil {
		return &Keys{feature: k.feature, texts: map[string]struct{}{}}
	}
	return &Keys{feature: k.feature, numbers: map[int64]struct{}{}}
}

// Add adds the keys of a plain column, borrowed, whose type compares with the feature's by value. place says, for
// messages, where a row of the column comes from. A null is an error.
func (k *Keys) Add(c *vector.Column, place func(row int) string) error {
	for row := range c.Rows {
		if c.IsNull(row) {
			return fmt.Errorf("keys: %s: the key is null: no row can be named by it", place(row))
		}
		k.add(c, row)
	}
	return nil
}

// number parses an integer of the feature's type.
func (k *Keys) number(text string) (int64, error) {
	if k.feature.Type.Elem == vector.Uint64 {
		u, err := strconv.ParseUint(text, 10, 64)
		return int64(u), err
	}
	return strconv.ParseInt(text, 10, 64)
}

// named reports whether a predicate contains the feature's name and one of the keys as words or between quotes, as
// "user_id IN (17, 18)" contains 17.
func (k *Keys) named(predicate string) bool {
	words := strings.FieldsFunc(predicate, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`(),;=<>!", r) })
	words = append(words, strings.FieldsFunc(predicate, func(r rune) bool { return r == '\'' || r == '"' })...)
	words = append(words, literals(predicate)...)
	return slices.Contains(words, k.feature.Name) && slices.ContainsFunc(words, func(word string) bool {
		if k.texts != nil {
			_, ok := k.texts[word]
			return ok
		}
		v, err := k.number(word)
		_, ok := k.numbers[v]
		return ok && err == nil
	})
}

// literals returns the texts between single quotes of a predicate, in which two quotes are one.
func literals(predicate string) (out []string) {
	for {
		_, rest, found := strings.Cut(predicate, "'")
		if !found {
			return out
		}
		text := ""
		for {
			part, after, _ := strings.Cut(rest, "'")
			if text += part; !strings.HasPrefix(after, "'") {
				predicate = after
				break
			}
			text, rest = text+"'", after[1:]
		}
		out = append(out, text)
	}
}

// hashes returns the hashes of the keys, for Snapshot.KeyRows.
func (k *Keys) hashes() []uint64 {
	out := make([]uint64, 0, k.Len())
	for t := range k.texts {
		out = append(out, segment.HashText([]byte(t)))
	}
	for v := range k.numbers {
		out = append(out, segment.HashInt(v))
	}
	return out
}

// Len returns how many keys there are.
func (k *Keys) Len() int { return len(k.numbers) + len(k.texts) }

// has reports whether the value of a slot, which is not null, is one of the keys.
func (k *Keys) has(c *vector.Column, slot int) bool {
	lo, hi := c.SlotRange(slot)
	if k.texts != nil {
		_, ok := k.texts[string(c.Data[lo:hi])]
		return ok
	}
	_, ok := k.numbers[c.Ints[lo]]
	return ok
}

// add adds the value of a slot, which is not null.
func (k *Keys) add(c *vector.Column, slot int) {
	lo, hi := c.SlotRange(slot)
	if k.texts != nil {
		k.texts[string(c.Data[lo:hi])] = struct{}{}
		return
	}
	k.numbers[c.Ints[lo]] = struct{}{}
}

// remove removes the value of a slot, which is not null.
func (k *Keys) remove(c *vector.Column, slot int) {
	lo, hi := c.SlotRange(slot)
	if k.texts != nil {
		delete(k.texts, string(c.Data[lo:hi]))
		return
	}
	delete(k.numbers, c.Ints[lo])
}

// merge adds the keys of another set of the feature.
func (k *Keys) merge(o *Keys) {
	maps.Copy(k.numbers, o.numbers)
	maps.Copy(k.texts, o.texts)
}

// without returns how many keys o lacks, and at most n of them as text.
func (k *Keys) without(o *Keys, n int) (missing uint64, examples []string) {
	examples = []string{}
	lacks := func(there bool, text func() string) {
		if there {
			return
		}
		if missing++; len(examples) < n {
			examples = append(examples, text())
		}
	}
	for t := range k.texts {
		_, ok := o.texts[t]
		lacks(ok, func() string {
			if k.feature.Type.Kind == vector.Bytes {
				return fmt.Sprintf("0x%x", t)
			}
			return t
		})
	}
	for v := range k.numbers {
		_, ok := o.numbers[v]
		lacks(ok, func() string { return string(k.appendText(nil, v)) })
	}
	slices.Sort(examples)
	return missing, examples
}

// rows returns the rows of a column whose value is one of the keys, deleted ones too, and adds those keys to seen,
// unless it is nil.
func (k *Keys) rows(c *column, seen *Keys) (*roaring.Bitmap, error) {
	out := roaring.New()
	var hit []bool
	err := c.eachStripe(func(first int, stripe *vector.Column) error {
		hit = append(hit[:0], make([]bool, stripe.Slots)...)
		for slot := range stripe.Slots {
			hit[slot] = present(stripe, slot) && k.has(stripe, slot)
			if hit[slot] && seen != nil {
				seen.add(stripe, slot)
			}
		}
		if !slices.Contains(hit, true) {
			return nil
		}
		for row := range stripe.Rows {
			if hit[stripe.Slot(row)] {
				if first+row > math.MaxUint32 {
					return fmt.Errorf("more than %d rows in a segment", math.MaxUint32)
				}
				out.Add(uint32(first + row))
			}
		}
		return nil
	})
	return out, err
}
