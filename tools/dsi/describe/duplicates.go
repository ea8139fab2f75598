package describe

import (
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/tools/terminal"
)

// Duplicates sum over features the duplicates that ingest found: in a table, or in what was ingested.
type Duplicates struct {
	Factor     float64 `json:"dedupe_factor"`
	Slots      uint64  `json:"slots"`
	Partial    uint64  `json:"partial"`
	Groups     uint64  `json:"groups"`
	Grouped    uint64  `json:"group_features"`
	SavedBytes uint64  `json:"saved_bytes_estimate"`

	RowSlots uint64 `json:"-"` // 0 where they are not known
}

// String says what was found and what it is worth, without what there is nothing of.
func (d Duplicates) String() string {
	if d.Factor <= 1 && d.Partial == 0 && d.Groups == 0 && d.SavedBytes == 0 {
		return "none: each value is used once"
	}
	out := fmt.Sprintf("each stored value is used %.2f times", d.Factor)
	var parts []string
	if d.RowSlots > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s slots", terminal.Count(d.Slots), terminal.Count(d.RowSlots)))
	}
	if d.Partial > 0 {
		parts = append(parts, terminal.Plural(d.Partial, "partial duplicate"))
	}
	if d.Groups > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", terminal.Plural(d.Groups, "group"),
			terminal.Plural(d.Grouped, "feature")))
	}
	// Against encodings alone, which shrink repeated values too. So it is less than the factor makes one expect.
	more := "about as much would be stored, encoded: they save decoding"
	if d.SavedBytes > 0 {
		more = fmt.Sprintf("about %s more would be stored, encoded", terminal.Bytes(d.SavedBytes))
	}
	if len(parts) > 0 {
		out += "; " + strings.Join(parts, ", ")
	}
	return out + "; without, " + more
}
