package compaction

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/keytext"
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

// ReadKeys reads values of f from a file in a format of package internal/keytext. The extension of path is the format;
// errors name path. Empty keys are skipped.
func ReadKeys(f catalog.Feature, r io.Reader, path string) (*Keys, error) {
	k, err := NewKeys(f)
	if err != nil {
		return nil, err
	}
	in := keytext.New(r, path, f.Name)
	for {
		key, err := in.Next()
		if err == io.EOF {
			return k, nil
		}
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		text := string(key)
		if text == "" {
			continue
		}
		if k.texts != nil {
			k.texts[text] = struct{}{}
			continue
		}
		v, err := k.number(text)
		if err != nil {
			return nil, fmt.Errorf("keys: %s, line %d: %.50q is not a value of key %q, which is %v", path, in.Line(),
				text, f.Name, f.Type)
		}
		k.numbers[v] = struct{}{}
	}
}

// number parses an integer of the feature's type.
func (k *Keys) number(text string) (int64, error) {
	if k.feature.Type.Elem == vector.Uint64 {
		u, err := strconv.ParseUint(text, 10, 64)
		return int64(u), err
	}
	return strconv.ParseInt(text, 10, 64)
}

// named reports whether a predicate contains the feature's name and one of the keys as words, as "user_id IN (17, 18)"
// contains 17.
func (k *Keys) named(predicate string) bool {
	words := strings.FieldsFunc(predicate, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`(),;=<>!", r) })
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

// rows returns the rows of a column whose value is one of the keys, deleted ones too.
func (k *Keys) rows(c *column) (*roaring.Bitmap, error) {
	out := roaring.New()
	var hit []bool
	err := c.eachStripe(func(first int, stripe *vector.Column) error {
		hit = append(hit[:0], make([]bool, stripe.Slots)...)
		for slot := range stripe.Slots {
			hit[slot] = present(stripe, slot) && k.has(stripe, slot)
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
