package compaction

import (
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/internal/quantity"
)

// A Plan lists what Run will do. It is plain data: it may be stored, and run later. Its JSON keys are stable.
type Plan struct {
	Table    string `json:"table"`
	Snapshot uint64 `json:"snapshot"`
	Jobs     []Job  `json:"jobs"`
	// Left is the number of segments that no job rewrites; LeftRows and LeftBytes are their rows and stored bytes.
	Left      uint64 `json:"segments_left"`
	LeftRows  uint64 `json:"rows_left"`
	LeftBytes uint64 `json:"bytes_left"`
	// Packs is the order of features in the packs of new segments; nil if there are no jobs.
	Packs *PackOrder `json:"packs,omitempty"`
	// Notes say why segments that were examined are not rewritten.
	Notes []string `json:"notes"`
	// Looked is the value that Run gives lookedProperty when all jobs are done; empty: it does not set it.
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
	// Into is the approximate number of new segments. BytesOut estimates their stored bytes; it does not count what
	// merging saves.
	Into     uint64 `json:"segments_made_estimate"`
	BytesOut uint64 `json:"bytes_made_estimate"`
}

// Segments returns how many segments the jobs rewrite.
func (p *Plan) Segments() (n int) {
	for i := range p.Jobs {
		n += len(p.Jobs[i].Segments)
	}
	return n
}

// Bytes returns how many stored bytes the jobs read, and an estimate of how many they write.
func (p *Plan) Bytes() (in, out uint64) {
	for i := range p.Jobs {
		in += p.Jobs[i].Bytes
		out += p.Jobs[i].BytesOut
	}
	return in, out
}

// String prints p, one line for each job with its reasons under it.
func (p *Plan) String() string {
	var b strings.Builder
	what := "nothing to do"
	if len(p.Jobs) > 0 {
		in, out := p.Bytes()
		what = fmt.Sprintf("rewrite %s, %s, into about %s, in %s", quantity.Plural(uint64(p.Segments()), "segment"),
			quantity.Bytes(in), quantity.Bytes(out), quantity.Plural(uint64(len(p.Jobs)), "job"))
	}
	fmt.Fprintf(&b, "table %s, snapshot %d: %s; unchanged: %s, %s\n", p.Table, p.Snapshot, what,
		quantity.Plural(p.Left, "segment"), quantity.Bytes(p.LeftBytes))
	for i := range p.Jobs {
		j := &p.Jobs[i]
		partition := j.Partition
		if partition == "" {
			partition = "(no partition)"
		}
		fmt.Fprintf(&b, "%s: %s, %s (%s deleted), %s, into %s, about %s\n", partition,
			quantity.Plural(uint64(len(j.Segments)), "segment"), quantity.Plural(j.Rows, "row"),
			quantity.Count(j.Deleted), quantity.Bytes(j.Bytes), quantity.Count(j.Into), quantity.Bytes(j.BytesOut))
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
