// Package suggest finds what a user probably meant by a name that does not exist.
//
//	"user_clik"  ──> distance to each name that exists ──> ["user_click"] ──> `; did you mean "user_click"?`
//
// The distance is the number of single-character edits (insert, delete, replace, swap of neighbours), case ignored.
// Names further away than a third of their length are not offered: a wrong hint is worse than none.
package suggest

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// maxRunes bounds the names that are compared, so that an untrusted name cannot make the comparison expensive.
const maxRunes = 256

// Names returns up to n of the names in among that are nearest to name, nearest first, names at the same distance in
// name order. among is borrowed for the call.
func Names(name string, among []string, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	var d distancer
	want := []rune(strings.ToLower(name))
	if len(want) > maxRunes {
		return nil
	}
	limit := max(1, (len(want)+1)/3)
	for _, other := range among {
		if abs(utf8.RuneCountInString(other)-len(want)) > limit {
			continue
		}
		if x := d.distance(want, []rune(strings.ToLower(other)), limit); x <= limit {
			found = append(found, candidate{other, x})
		}
	}
	sort.Slice(found, func(i, j int) bool {
		if found[i].distance != found[j].distance {
			return found[i].distance < found[j].distance
		}
		return found[i].name < found[j].name
	})
	var names []string
	for _, c := range found[:min(n, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// Hint returns the end of an error message, `; did you mean "a" or "b"?`, or "" when nothing in among is near.
func Hint(name string, among []string) string { return Question(Names(name, among, 3)) }

// Question returns what Hint does of names that were found, "" of none.
func Question(names []string) string {
	if len(names) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("; did you mean ")
	for i, near := range names {
		if i > 0 {
			b.WriteString(" or ")
		}
		fmt.Fprintf(&b, "%q", near)
	}
	b.WriteString("?")
	return b.String()
}

// OneOf joins two words or more: "a, b or c".
func OneOf(words []string, or string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + or + " " + words[last]
}

// A distancer holds the three rows of the table that the distance needs.
type distancer struct{ before, above, row []int }

// distance returns the optimal string alignment distance of a and b, or some number over limit when it is over limit.
func (d *distancer) distance(a, b []rune, limit int) int {
	if cap(d.row) < len(b)+1 {
		d.before, d.above, d.row = make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	}
	before, above, row := d.before[:len(b)+1], d.above[:len(b)+1], d.row[:len(b)+1]
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			best = min(best, row[j])
		}
		if best > limit {
			return best
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}

func abs(x int) int {
	if x < 0 {
		return -x
	}
	return x
}
