package main

import (
	"fmt"
	"strings"
)

// duplicates are what repeats in a table, or in what was ingested.
type duplicates struct {
	factor                          float64
	slots, rowSlots                 int64 // rowSlots is 0 where they are not known
	partial, groups, grouped, saved uint64
}

// text says what was found and what it is worth, without what there is nothing of.
func (d duplicates) text() string {
	if d.factor <= 1 && d.partial == 0 && d.groups == 0 && d.saved == 0 {
		return "none: each value is used once"
	}
	out := fmt.Sprintf("each stored value is used %.2f times", d.factor)
	var parts []string
	if d.rowSlots > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s slots", countText(d.slots), countText(d.rowSlots)))
	}
	if d.partial > 0 {
		parts = append(parts, plural(d.partial, "partial duplicate"))
	}
	if d.groups > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", plural(d.groups, "group"), plural(d.grouped, "feature")))
	}
	if d.saved > 0 {
		parts = append(parts, fmt.Sprintf("about %s saved", bytesText(d.saved)))
	} else {
		parts = append(parts, "which saves decoding: the encodings alone would be as small")
	}
	return out + "; " + strings.Join(parts, ", ")
}
