package dedup

// markRuns appends to starts the first row of each run of equal rows among rows [0, rows).
func (v *values) markRuns(starts []int32, rows int) []int32 {
	if rows == 0 {
		return starts
	}
	starts = append(starts, 0)
	if v.c.Type.IsList() || v.c.Type.Width() != 1 {
		for row := 1; row < rows; row++ {
			if !v.equal(row-1, row) {
				starts = append(starts, int32(row))
			}
		}
		return starts
	}
	if v.narrow != nil {
		return markNumbers(starts, v, v.narrow[:rows])
	}
	return markNumbers(starts, v, v.wide[:rows])
}

// markNumbers is markRuns for one number per row, after row 0.
func markNumbers[T int64 | uint32](starts []int32, v *values, vals []T) []int32 {
	present := v.c.Present
	if present == nil {
		for row := 1; row < len(vals); row++ {
			if vals[row] != vals[row-1] {
				starts = append(starts, int32(row))
			}
		}
		return starts
	}
	before := present.Get(0)
	for row := 1; row < len(vals); row++ {
		now := present[row>>6]>>(uint(row)&63)&1 != 0
		if now != before || now && vals[row] != vals[row-1] {
			starts = append(starts, int32(row))
		}
		before = now
	}
	return starts
}
