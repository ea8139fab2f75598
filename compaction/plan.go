package compaction

import (
	"fmt"
	"strings"
)

// A Plan says what Run will do: a pure value. Its JSON keys are stable.
type Plan struct {
	Table    string `json:"table"`
	Snapshot uint64 `json:"snapshot"`
	Jobs     []Job  `json:"jobs"`
	// Left are the segments that no job has.
	Left      uint64 `json:"segments_left"`
	LeftRows  uint64 `json:"rows_left"`
	LeftBytes uint64 `json:"bytes_left"`
	// Packs say in which order the new segments' packs will hold the features; nil where nothing is rewritten.
	Packs *PackOrder `json:"packs,omitempty"`
	// Notes say what was looked at and is left as it is.
	Notes []string `json:"notes"`
	// Looked is what Run notes in the table, when all jobs are done, so that later plans need not look at the same
	// again; empty: nothing.
	Looked string `json:"looked,omitempty"`
}

// A Job is segments of one partition that are rewritten together.
type Job struct {
	Partition string   `json:"partition"`
	Segments  []string `json:"segments"` // ids, in the table's order
	Reasons   []string `json:"reasons"`
	Rows      uint64   `json:"rows"`
	Deleted   uint64   `json:"rows_deleted"`
	Bytes     uint64   `json:"bytes"` // stored, of the segments
	// Into is how many segments they become, about; BytesOut what these will take, without what the merging saves.
	Into     uint64 `json:"into_segments"`
	BytesOut uint64 `json:"bytes_out_estimate"`
}

// Segments returns how many segments the jobs rewrite.
func (p *Plan) Segments() (n int) {
	for i := range p.Jobs {
		n += len(p.Jobs[i].Segments)
	}
	return n
}

// Bytes returns how many stored bytes the jobs read, and about how many they write.
func (p *Plan) Bytes() (in, out uint64) {
	for i := range p.Jobs {
		in += p.Jobs[i].Bytes
		out += p.Jobs[i].BytesOut
	}
	return in, out
}

// String prints p for people: a line for each job, and its reasons under it.
func (p *Plan) String() string {
	var b strings.Builder
	in, out := p.Bytes()
	fmt.Fprintf(&b, "table %s, snapshot %d: %d jobs rewrite %d segments, %s, into about %s; %d segments, %s, stay\n",
		p.Table, p.Snapshot, len(p.Jobs), p.Segments(), bytesText(in), bytesText(out), p.Left, bytesText(p.LeftBytes))
	for i := range p.Jobs {
		j := &p.Jobs[i]
		partition := j.Partition
		if partition == "" {
			partition = "(no partition)"
		}
		fmt.Fprintf(&b, "%s: %d segments, %d rows (%d deleted), %s, into %d, about %s\n",
			partition, len(j.Segments), j.Rows, j.Deleted, bytesText(j.Bytes), j.Into, bytesText(j.BytesOut))
		for _, r := range j.Reasons {
			fmt.Fprintf(&b, "  %s\n", r)
		}
	}
	if p.Packs != nil {
		fmt.Fprintf(&b, "%s\n", p.Packs)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "%s\n", n)
	}
	return b.String()
}

// bytesText prints a size with three digits.
func bytesText(n uint64) string {
	v, unit := float64(n), 0
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for v >= 1024 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, units[unit])
}
