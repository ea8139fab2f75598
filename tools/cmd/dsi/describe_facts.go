package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// describeFacts lays a description out for people.
func describeFacts(d describeJSON) [][2]string {
	facts := [][2]string{
		{"table", d.Table},
		{"store", d.Store},
		{"snapshot", fmt.Sprintf("%d, %s, %s", d.Number, d.Operation, d.Time)},
		{"rows", countText(d.Rows - d.RowsDeleted)},
		{"bytes", fmt.Sprintf("%s, %.1f a row", bytesText(d.Bytes), d.BytesPerRow)},
		{"segments", countText(d.Segments)},
	}
	if d.RowsDeleted > 0 {
		facts = append(facts, [2]string{"deleted", plural(d.RowsDeleted, "row") + ", stored and seen by no reader"})
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(d.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", d.Kinds[kind], kind))
	}
	facts = append(facts, [2]string{"features", fmt.Sprintf("%s: %s", countText(d.Features), strings.Join(kinds, ", "))})
	for _, role := range slices.Sorted(maps.Keys(d.Roles)) {
		facts = append(facts, [2]string{role, d.Roles[role]})
	}
	if len(d.Labels) > 0 {
		facts = append(facts, [2]string{"labels", strings.Join(d.Labels, ", ")})
	}
	switch {
	case d.PartitionCount == 1 && d.FirstPartition == "":
		facts = append(facts, [2]string{"partitions", "none"})
	case d.PartitionCount > 0:
		facts = append(facts, [2]string{"partitions", fmt.Sprintf("%s, from %s to %s", countText(d.PartitionCount), d.FirstPartition, d.LastPartition)})
	}
	if u := d.Duplicates; u != nil {
		found := duplicates{factor: u.Factor, partial: uint64(u.Partial), groups: uint64(u.Groups), grouped: uint64(u.Grouped), saved: uint64(u.SavedBytes)}
		facts = append(facts, [2]string{"duplicates", found.text()})
	}
	return facts
}
