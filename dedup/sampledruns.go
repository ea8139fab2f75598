package dedup

import "slices"

// sampledRuns are the runs of a sample's rows that are equal in a feature, or in each member of a group. Where the
// sample comes from several stripes, each begins a run: a segment's stripes share none.
type sampledRuns struct {
	starts []int32   // first row of each run
	codes  []int32   // slot of each run; slots are numbered in the order in which they first occur
	bits   []float32 // by run: encoded size of a row's values, in bits
	slots  int

	ofRuns  float64 // sum of bits
	ofSlots float64 // of those, of the first run of each slot
}

// reset empties r, and makes room for so many runs.
func (r *sampledRuns) reset(runs int) {
	*r = sampledRuns{starts: slices.Grow(r.starts[:0], runs), codes: slices.Grow(r.codes[:0], runs),
		bits: slices.Grow(r.bits[:0], runs)}
}

// set makes r a copy of from, in r's memory where that is large enough, else in as much as it takes.
func (r *sampledRuns) set(from *sampledRuns) {
	starts, codes, bits := r.starts, r.codes, r.bits
	if n := len(from.starts); cap(starts) < n {
		starts, codes, bits = make([]int32, 0, n), make([]int32, 0, n), make([]float32, 0, n)
	}
	*r = *from
	r.starts, r.codes, r.bits = append(starts[:0], from.starts...), append(codes[:0], from.codes...),
		append(bits[:0], from.bits...)
}

// bytes returns the memory of the runs after set.
func (r *sampledRuns) bytes() int64 { return 12 * int64(len(r.starts)) }

// end returns the row after run i, of a sample of so many rows.
func (r *sampledRuns) end(i, rows int) int32 {
	if i+1 < len(r.starts) {
		return r.starts[i+1]
	}
	return int32(rows)
}
