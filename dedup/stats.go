package dedup

// Stats are the counts of a Finder since Reset.
type Stats struct {
	Stripes int64
	Rows    int64
	Runs    int64 // runs of equal rows; a stripe that is stored with one slot per row counts its rows
	Slots   int64 // stored
	// Partial is how many of the slots are partial duplicates.
	Partial int64
	// ElementsBefore counts the values (ids, bytes or numbers) of all rows, ElementsAfter the stored ones.
	ElementsBefore, ElementsAfter int64
	// SavedBytes estimates how many more bytes the stripes would take with one slot per row. It is extrapolated from
	// the examined stripes. The size of a group's inverse is not subtracted.
	SavedBytes float64
}

// Factor returns the dedupe factor: how often a stored element is used on average, or a slot if there are no elements.
func (s Stats) Factor() float64 {
	switch {
	case s.ElementsAfter > 0:
		return float64(s.ElementsBefore) / float64(s.ElementsAfter)
	case s.Slots > 0:
		return float64(s.Rows) / float64(s.Slots)
	}
	return 1
}

// Add adds the counts of more stripes.
func (s *Stats) Add(o Stats) {
	s.Stripes += o.Stripes
	s.Rows += o.Rows
	s.Runs += o.Runs
	s.Slots += o.Slots
	s.Partial += o.Partial
	s.ElementsBefore += o.ElementsBefore
	s.ElementsAfter += o.ElementsAfter
	s.SavedBytes += o.SavedBytes
}
