package dedup

// Stats count what a Finder saw and left since Reset.
type Stats struct {
	Stripes int64
	Rows    int64
	Runs    int64 // stretches of equal rows; in stripes that were sampled only, as many as rows
	Slots   int64 // stored, in all stripes
	// Partial is how many of the slots are sub-ranges of what others store.
	Partial int64
	// ElementsBefore are the values of all rows, ElementsAfter those stored: ids, bytes or numbers.
	ElementsBefore, ElementsAfter int64
	// SavedBytes estimates what the stripes would take more with a slot for each row, from those that were examined; a
	// group's inverse is not taken off.
	SavedBytes float64
}

// Factor returns how often a stored value is used: the dedupe factor by elements, or by slots where no row has an
// element.
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
